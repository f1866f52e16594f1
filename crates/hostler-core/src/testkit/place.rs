//! The plainest placement rule there is.

use crate::capacity::{Capacity, Walk};
use crate::job::{Demand, Locality};
use crate::placement::Part;
use crate::stage::{Place, Shortfall};

/// Node by node, as many tasks as fit.
pub(crate) struct FirstFit;

impl Place for FirstFit {
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        let one_node = matches!(demand.locality, Locality::Node | Locality::Island);
        let (mut parts, mut left, mut best) = (Vec::new(), count, 0);
        free.visit(Walk::ById, demand, |node| {
            let slots = free.slots(node, demand, left);
            best = best.max(slots);
            if slots == count || !one_node {
                parts.extend(free.fit(node, gang, demand, slots));
                left -= slots;
            }
            left == 0
        });
        let fit = if one_node { best } else { count - left };
        if left == 0 { Ok(parts) } else { Err(Shortfall { fit }) }
    }
}
