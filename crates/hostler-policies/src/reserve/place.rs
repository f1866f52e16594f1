//! Where in its searches a job goes: the cheapest nodes of the first search that holds it.
//!
//! What a node costs is up to a [`CostModel`], which is where the policies of this family differ.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hostler_core::capacity::Capacity;
use hostler_core::id::NodeId;
use hostler_core::job::{Demand, JobSpec, Locality};
use hostler_core::placement::{Part, Placement};
use hostler_core::stage::{Room, Shortfall};

use super::booked::Booked;
use super::class_access::{Class, ClassOrder, Fleet, SearchOrder};
use crate::place::scored::{Role, cheapest};

/// Says which nodes suit a task.
pub(super) trait CostModel: Send {
    /// What the last of `seat.tasks` tasks costs on a node; the least wins.
    fn cost(&self, free: &Capacity, seat: &Candidate<'_>) -> i64;

    /// Weights of GPUs and cores in the booked part of a class, for tasks that ask for `demand`.
    fn class_weights(&self, demand: &Demand) -> [u64; 2];
}

/// Tasks on a node, on trial.
pub(super) struct Candidate<'a> {
    pub(super) node: NodeId,
    pub(super) demand: &'a Demand,
    /// How many of them the node gets in all.
    pub(super) tasks: u32,
    /// Whether the role gains from fast GPUs.
    pub(super) high: bool,
}

/// Places all roles of a job, all or none, each by its search.
pub(super) fn place_job(
    costs: &dyn CostModel,
    fleet: &Fleet,
    booked: &Booked,
    room: &mut impl Room,
    spec: &JobSpec,
    searches: &[SearchOrder],
) -> Result<Placement, Shortfall> {
    room.try_roles(spec, &mut |free, at, gang| {
        let role = Role { gang: at, demand: &gang.demand, count: gang.count };
        place_role(costs, fleet, booked, free, role, &searches[at as usize])
    })
}

/// Places one role: in one class if one holds it whole, else over several in the search's order.
fn place_role(
    costs: &dyn CostModel,
    fleet: &Fleet,
    booked: &Booked,
    free: &Capacity,
    role: Role<'_>,
    search: &SearchOrder,
) -> Result<Vec<Part>, Shortfall> {
    let cost = |node: NodeId, tasks: u32| {
        costs.cost(free, &Candidate { node, demand: role.demand, tasks, high: search.high })
    };
    let classes = in_turn(fleet, booked, search, costs.class_weights(role.demand));
    let (mut most, mut sum) = (0, 0u32);
    for class in &*classes {
        match cheapest(free, role, &[*class], cost) {
            Ok(parts) => return Ok(parts),
            Err(Shortfall { fit }) => {
                most = fit.max(most);
                sum = sum.saturating_add(fit);
            }
        }
    }
    let mixes = match role.demand.locality {
        Locality::Any | Locality::Apart => sum >= role.count,
        Locality::Rack => true,
        Locality::Node | Locality::Island => false,
    };
    if !mixes {
        let anywhere = matches!(role.demand.locality, Locality::Any | Locality::Apart);
        let fit = if anywhere { sum } else { most };
        return Err(Shortfall { fit });
    }
    let position = |node: NodeId| classes.iter().position(|class| *class == free.model(node));
    cheapest(free, role, &classes, |node, tasks| (position(node), cost(node, tasks)))
}

/// The classes of a search in the order in which they are tried: the least booked first where the
/// search leaves that open, and the top class last.
fn in_turn<'a>(
    fleet: &Fleet,
    booked: &Booked,
    search: &'a SearchOrder,
    weights: [u64; 2],
) -> Cow<'a, [Class]> {
    if search.order == ClassOrder::Listed {
        return Cow::Borrowed(&search.classes);
    }
    let mut classes = search.classes.to_vec();
    // A stable sort: equal ones stay in the order of their speed.
    classes.sort_by_cached_key(|class| (fleet.is_top(*class), booked.thousandths(*class, weights)));
    Cow::Owned(classes)
}

/// Tasks of a role that fit, counted up to what it needs.
pub(super) fn room(free: &Capacity, role: Role<'_>, classes: &[Class]) -> u32 {
    let Role { demand, count, .. } = role;
    let (mut most, mut racks) = (0u32, BTreeMap::<u32, u32>::new());
    let mut count_node = |node: NodeId| {
        let tasks = free.slots(node, demand, count);
        most = match demand.locality {
            Locality::Any | Locality::Apart => most + tasks.min(count - most),
            Locality::Rack => {
                let sum = racks.entry(free.rack(node)).or_default();
                *sum = sum.saturating_add(tasks);
                most.max(*sum)
            }
            Locality::Node | Locality::Island => most.max(tasks),
        };
        // What is enough is not counted any further.
        most >= count
    };
    classes.iter().any(|class| free.visit_on(*class, demand, &mut count_node));
    most
}
