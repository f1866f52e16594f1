//! Placement by cost: task after task goes to the node where it costs the least.
//!
//! The cost of a node may change with every task that it gets, so that a rule can pack (less with
//! each task) or balance (more with each). What must stay close goes to the rack or node whose
//! best seat is the cheapest. Not a rule of its own: who calls says what a task costs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hostler_core::capacity::Capacity;
use hostler_core::id::{ModelId, NodeId};
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

/// Places a role on nodes with GPUs of some models, or without GPUs. `cost(node, tasks)` is what
/// the last of `tasks` tasks costs there; equal costs go by node.
pub(crate) fn cheapest<Cost: Ord + Copy>(
    free: &Capacity,
    role: Role<'_>,
    models: &[Option<ModelId>],
    cost: impl Fn(NodeId, u32) -> Cost,
) -> Result<Vec<Part>, Shortfall> {
    let mut nodes = Vec::new();
    let mut note = |node: NodeId| {
        nodes.push(node);
        false
    };
    models.iter().for_each(|model| _ = free.visit_on(*model, role.demand, &mut note));
    cheapest_of(free, role, &nodes, cost)
}

/// The same on some of `nodes`.
pub(crate) fn cheapest_of<Cost: Ord + Copy>(
    free: &Capacity,
    role: Role<'_>,
    nodes: &[NodeId],
    cost: impl Fn(NodeId, u32) -> Cost,
) -> Result<Vec<Part>, Shortfall> {
    let Role { gang, demand, count } = role;
    let seat = |node: &NodeId| Seat { node: *node, tasks: free.slots(*node, demand, count) };
    let mut seats: Vec<Seat> = nodes.iter().map(seat).filter(|seat| seat.tasks > 0).collect();
    let group = match demand.locality {
        Locality::Any | Locality::Apart => anywhere(&seats, count),
        Locality::Rack | Locality::Node | Locality::Island => {
            let place = |seat: &Seat| (place_of(free, demand.locality, seat.node), seat.node);
            seats.sort_unstable_by_key(place);
            cheapest_group(free, demand, &seats, count, &cost)
        }
    };
    let chosen = divide(group?, count, cost);
    Ok(chosen.into_iter().map(|seat| part(free, gang, demand, seat)).collect())
}

/// All seats, if they hold the tasks.
fn anywhere(seats: &[Seat], count: u32) -> Result<&[Seat], Shortfall> {
    let fit = seats.iter().fold(0u32, |sum, seat| sum.saturating_add(seat.tasks));
    if fit >= count { Ok(seats) } else { Err(Shortfall { fit }) }
}

/// The seats of one place that hold the tasks: where the cheapest of them is the cheapest of all.
fn cheapest_group<'a, Cost: Ord + Copy>(
    free: &Capacity,
    demand: &Demand,
    seats: &'a [Seat],
    count: u32,
    cost: &impl Fn(NodeId, u32) -> Cost,
) -> Result<&'a [Seat], Shortfall> {
    let place = |seat: &Seat| place_of(free, demand.locality, seat.node);
    let mut fit = 0;
    let mut best: Option<(Cost, &[Seat])> = None;
    for group in seats.chunk_by(|one, other| place(one) == place(other)) {
        let total = group.iter().fold(0u32, |sum, seat| sum.saturating_add(seat.tasks));
        fit = fit.max(total);
        let least = group.iter().map(|seat| cost(seat.node, 1)).min();
        let least = least.filter(|_| total >= count);
        if let Some(least) = least.filter(|least| best.is_none_or(|(known, _)| *least < known)) {
            best = Some((least, group));
        }
    }
    best.map(|(_, group)| group).ok_or(Shortfall { fit })
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
