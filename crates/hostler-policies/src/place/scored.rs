//! Placement by cost: task after task goes to the node where it costs the least.
//!
//! The cost of a node may change with every task that it gets, so that a rule can pack (less with
//! each task) or balance (more with each). What must stay close goes to the rack or node whose
//! best seat is the cheapest. Not a rule of its own: who calls says what a task costs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hostler_core::capacity::Capacity;
use hostler_core::id::NodeId;
use hostler_core::job::{Demand, Locality};
use hostler_core::placement::Part;
use hostler_core::stage::Shortfall;

use super::{Seat, part};

/// Tasks of one role.
#[derive(Clone, Copy)]
pub(crate) struct Role<'a> {
    /// Its position in the job.
    pub(crate) gang: u32,
    /// What each task asks for.
    pub(crate) demand: &'a Demand,
    /// How many tasks, all or none.
    pub(crate) count: u32,
}

/// Places a role on some of `nodes`. `cost(node, tasks)` is what the last of `tasks` tasks costs
/// there; equal costs go by node.
pub(crate) fn cheapest<Cost: Ord + Copy>(
    free: &Capacity,
    role: Role<'_>,
    nodes: impl Iterator<Item = NodeId>,
    cost: impl Fn(NodeId, u32) -> Cost,
) -> Result<Vec<Part>, Shortfall> {
    let Role { gang, demand, count } = role;
    let seats = nodes.map(|node| Seat { node, tasks: free.slots(node, demand, count) });
    let mut seats: Vec<Seat> = seats.filter(|seat| seat.tasks > 0).collect();
    seats.sort_by_key(|seat| place_of(free, demand.locality, seat.node));
    let together = |one: &Seat, other: &Seat| {
        let place = |seat: &Seat| place_of(free, demand.locality, seat.node);
        place(one) == place(other)
    };
    let mut fit = 0;
    let mut best: Option<(Cost, &[Seat])> = None;
    for group in seats.chunk_by(together) {
        let total = group.iter().fold(0u32, |sum, seat| sum.saturating_add(seat.tasks));
        fit = fit.max(total);
        let least = group.iter().map(|seat| cost(seat.node, 1)).min();
        let least = least.filter(|_| total >= count);
        if let Some(least) = least.filter(|least| best.is_none_or(|(known, _)| *least < known)) {
            best = Some((least, group));
        }
    }
    let (_, group) = best.ok_or(Shortfall { fit })?;
    let chosen = divide(group, count, cost);
    Ok(chosen.into_iter().map(|seat| part(free, gang, demand, seat)).collect())
}

/// Nodes that can work together have the same place.
fn place_of(free: &Capacity, locality: Locality, node: NodeId) -> u32 {
    match locality {
        Locality::Any | Locality::Apart => 0,
        Locality::Rack => free.rack(node),
        Locality::Node | Locality::Island => node.0,
    }
}

/// Gives the tasks to the seats, one by one.
fn divide<Cost: Ord + Copy>(
    seats: &[Seat],
    count: u32,
    cost: impl Fn(NodeId, u32) -> Cost,
) -> Vec<Seat> {
    if let [seat] = seats {
        return vec![Seat { tasks: count, ..*seat }];
    }
    if count == 1 {
        let cheapest = seats.iter().min_by_key(|seat| (cost(seat.node, 1), seat.node));
        return cheapest.map(|seat| Seat { tasks: 1, ..*seat }).into_iter().collect();
    }
    let entry = |at: usize, tasks: u32| {
        let seat = &seats[at];
        Reverse((cost(seat.node, tasks), seat.node, at))
    };
    let mut heap: BinaryHeap<_> = (0..seats.len()).map(|at| entry(at, 1)).collect();
    let mut taken = vec![0u32; seats.len()];
    for _ in 0..count {
        let Reverse((_, _, at)) = heap.pop().expect("the seats hold the tasks");
        taken[at] += 1;
        if taken[at] < seats[at].tasks {
            heap.push(entry(at, taken[at] + 1));
        }
    }
    let used = seats.iter().zip(taken).filter(|(_, tasks)| *tasks > 0);
    used.map(|(seat, tasks)| Seat { tasks, ..*seat }).collect()
}
