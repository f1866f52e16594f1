//! Progressive filling: the nodes whose GPUs are booked the least first, task by task.
//!
//! CPU and memory do not count, which is where it differs from `balance`: on machines that run out
//! of CPU first it goes on choosing them. Nodes without GPUs count as unused.

use hostler_core::capacity::{Capacity, Walk};
use hostler_core::id::NodeId;
use hostler_core::job::Demand;
use hostler_core::placement::Part;
use hostler_core::stage::{Place, Shortfall};

use super::scored::{Role, cheapest_of};

/// Least used GPUs first.
pub struct Progressive;

impl Place for Progressive {
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut nodes = Vec::new();
        free.visit(Walk::ById, demand, |node| {
            nodes.push(node);
            false
        });
        let cost = |node: NodeId, tasks: u32| used_millionths(free, node, demand, tasks - 1);
        cheapest_of(free, Role { gang, demand, count }, &nodes, cost)
    }
}

/// Booked part of the node's GPUs, with `tasks` more of the demand.
fn used_millionths(free: &Capacity, node: NodeId, demand: &Demand, tasks: u32) -> u64 {
    let all = u64::from(free.gpu_size(node).0);
    let left = u64::from(free.gpu_free(node).0);
    let more = u64::from(demand.gpu.0) * u64::from(tasks);
    ((all - left + more) * 1_000_000).checked_div(all).unwrap_or(0)
}
