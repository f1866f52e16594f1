//! Balance: the nodes that are booked the least first.
//!
//! What counts is the mean booked part of what a node has (GPUs, CPU, memory), in whole per cent;
//! nodes with the same per cent go by number. It spreads load, and so breaks up the large holes
//! that `best-fit` keeps. Known as load balancing or progressive filling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hostler_core::capacity::{Capacity, Walk};
use hostler_core::id::NodeId;
use hostler_core::job::{Demand, Locality};
use hostler_core::placement::Part;
use hostler_core::stage::{Place, Shortfall};

use super::{Rack, Rule, Seat, choose, in_turn, part};

/// Least booked first.
pub struct Balance {
    /// Whether GPU compute counts; without it only CPU and memory do.
    pub with_gpus: bool,
}

impl Balance {
    /// Mean booked part of a node, in whole per cent.
    fn percent(&self, free: &Capacity, node: NodeId) -> u32 {
        let [gpu, cpu, mem] = free.booked_shares(node);
        let shares = [gpu.filter(|_| self.with_gpus), mem, cpu];
        let count = shares.iter().flatten().count().max(1);
        let sum: f64 = shares.iter().flatten().sum();
        (100.0 * sum / count as f64).round_ties_even() as u32
    }
}

impl Place for Balance {
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        if demand.locality != Locality::Any {
            return choose::<Balance>(free, gang, demand, count);
        }
        let mut seats = BinaryHeap::new();
        let mut total: u32 = 0;
        free.visit(Walk::ById, demand, |node| {
            let tasks = free.slots(node, demand, count);
            if tasks > 0 {
                total = total.saturating_add(tasks);
                seats.push(Reverse((self.percent(free, node), node, tasks)));
            }
            false
        });
        if total < count {
            return Err(Shortfall { fit: total });
        }
        let mut parts = Vec::new();
        let mut left = count;
        while let Some(Reverse((_, node, tasks))) = seats.pop().filter(|_| left > 0) {
            let tasks = tasks.min(left);
            left -= tasks;
            parts.push(part(free, gang, demand, Seat { node, tasks }));
        }
        Ok(parts)
    }
}

/// Roles that must stay close: the roomiest node or rack.
impl Rule for Balance {
    const WALK: Walk = Walk::Roomiest;

    fn enough(_: &[Seat], total: u32, count: u32) -> bool {
        total >= count
    }

    fn divide(seats: &[Seat], count: u32) -> Vec<Seat> {
        in_turn(seats, count)
    }

    fn rack_rank(rack: &Rack, _: u32) -> (u32, u32) {
        (u32::MAX - rack.slots, rack.number)
    }
}
