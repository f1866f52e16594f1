//! Consolidation: as few nodes as possible, because tasks that talk across nodes run slower.
//!
//! When one node holds what is left, the tightest such node gets it; else the node with the most
//! room is filled and the search goes on. Taking the largest first needs the fewest nodes. The
//! tasks of a role are on one GPU model where one has room for all: they wait for the slowest.
//! Inside a node, the GPUs of a task come from one island where that is possible. It does not move
//! jobs that run to make room.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hostler_core::capacity::{Capacity, Walk};
use hostler_core::id::ModelId;
use hostler_core::job::{Demand, Models};
use hostler_core::placement::Part;
use hostler_core::stage::{Place, Shortfall};

use super::{Rack, Rule, Seat, choose};

/// Fewest nodes.
pub struct Consolidate;

impl Place for Consolidate {
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        choose::<Consolidate>(free, gang, demand, count)
    }
}

/// The fewest nodes of one GPU model that hold all tasks, where there is a choice of models.
fn one_model(free: &Capacity, demand: &Demand, seats: &[Seat], count: u32) -> Option<Vec<Seat>> {
    if demand.gpu.0 == 0 || matches!(demand.models, Models::Ordered(_)) {
        return None;
    }
    let mut models: BTreeMap<Option<ModelId>, Vec<Seat>> = BTreeMap::new();
    for seat in seats {
        models.entry(free.model(seat.node)).or_default().push(*seat);
    }
    if models.len() < 2 {
        return None;
    }
    let holds = |seats: &Vec<Seat>| {
        seats.iter().fold(0, |sum: u32, seat| sum.saturating_add(seat.tasks)) >= count
    };
    let able = models.into_values().filter(holds);
    able.map(|seats| Consolidate::divide(&seats, count)).min_by_key(Vec::len)
}

impl Rule for Consolidate {
    const WALK: Walk = Walk::Tightest;

    fn enough(seats: &[Seat], _: u32, count: u32) -> bool {
        seats.last().is_some_and(|seat| seat.tasks >= count)
    }

    fn pick(free: &Capacity, demand: &Demand, seats: &[Seat], count: u32) -> Vec<Seat> {
        let alike = one_model(free, demand, seats, count);
        alike.unwrap_or_else(|| Self::divide(seats, count))
    }

    fn divide(seats: &[Seat], count: u32) -> Vec<Seat> {
        let mut seats = seats.to_vec();
        seats.sort_by_key(|seat| Reverse(seat.tasks));
        let mut left = count;
        let mut taken = Vec::new();
        for at in 0..seats.len() {
            let able = seats[at..].iter().take_while(|seat| seat.tasks >= left);
            if let Some(last) = able.min_by_key(|seat| seat.tasks) {
                taken.push(Seat { tasks: left, ..*last });
                break;
            }
            left -= seats[at].tasks;
            taken.push(seats[at]);
        }
        taken
    }

    fn rack_rank(rack: &Rack, count: u32) -> (u32, u32) {
        (Self::divide(rack.seats, count).len() as u32, rack.slots)
    }
}
