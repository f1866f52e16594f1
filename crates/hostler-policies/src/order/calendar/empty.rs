//! Whether a job would ever find a place: the order of places on a cluster that is empty.

use hostler_core::capacity::Capacity;
use hostler_core::id::NodeId;
use hostler_core::job::Demand;
use hostler_core::placement::Part;
use hostler_core::stage::{Place, Shortfall};

use super::Calendar;
use super::node::Need;

/// Chooses the first place, whether its nodes are open now or not.
pub(in crate::order) struct FirstPlace<'a>(pub(in crate::order) &'a Calendar);

impl Place for FirstPlace<'_> {
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        let mut seats: Vec<(NodeId, u32)> = Vec::new();
        self.0.accepted(demand, None, |nodes| {
            seats.extend(nodes.iter().map(|node| (*node, free.slots(*node, demand, count))));
            false
        });
        seats.retain(|(_, slots)| *slots > 0);
        let fit = seats.iter().map(|(_, slots)| *slots).fold(0, u32::saturating_add);
        if let Some(all) = seats.iter().find(|(_, slots)| *slots == count) {
            seats = vec![*all];
        }
        let divided = self.0.divide(seats, &Need { demand, count, run: None });
        let divided = divided.ok_or(Shortfall { fit: fit.min(count.saturating_sub(1)) })?;
        let part = |(node, tasks)| free.fit(node, gang, demand, tasks);
        Ok(divided.into_iter().filter_map(part).collect())
    }
}
