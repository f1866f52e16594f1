//! The placement of the original that knows nodes: the first switch under which a job fits.
//!
//! A job that one node could hold goes to the first node with room for it. A larger one gets nodes
//! whose GPUs are all free, the first ones, and the rest of it goes to the first other node.

use hostler_core::capacity::{Capacity, Walk};
use hostler_core::id::NodeId;
use hostler_core::job::Demand;
use hostler_core::placement::Part;
use hostler_core::stage::{Place, Shortfall};

/// The first switch, and in it the first nodes.
pub(super) struct Yarn {
    /// GPUs of a node.
    pub(super) gpus: u32,
}

impl Place for Yarn {
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        let mut nodes = Vec::new();
        free.visit(Walk::ById, demand, |node| {
            nodes.push((node, free.slots(node, demand, count)));
            false
        });
        let mut switches = nodes.chunk_by(|one, other| free.rack(one.0) == free.rack(other.0));
        let seats = switches.find_map(|nodes| self.under_switch(nodes, count));
        // Any node on which something ends may be the one that was missing.
        let seats = seats.ok_or(Shortfall { fit: count.saturating_sub(1) })?;
        let part = |(node, tasks)| {
            free.fit(node, gang, demand, tasks).expect("the slots of the node were counted")
        };
        Ok(seats.into_iter().map(part).collect())
    }
}

impl Yarn {
    /// Nodes under one switch, with the tasks that each gets. A job for one node is one task.
    fn under_switch(&self, nodes: &[(NodeId, u32)], count: u32) -> Option<Vec<(NodeId, u32)>> {
        if count == 1 {
            return nodes.iter().find(|(_, slots)| *slots > 0).map(|(node, _)| vec![(*node, 1)]);
        }
        let (whole, rest) = ((count / self.gpus) as usize, count % self.gpus);
        let idle = nodes.iter().filter(|(_, slots)| *slots >= self.gpus).take(whole);
        let mut seats: Vec<(NodeId, u32)> = idle.map(|(node, _)| (*node, self.gpus)).collect();
        if seats.len() < whole {
            return None;
        }
        if rest > 0 {
            let taken = |node: NodeId| seats.iter().any(|(seat, _)| *seat == node);
            let mut others = nodes.iter().filter(|(node, _)| !taken(*node));
            let (node, _) = others.find(|(_, slots)| *slots >= rest)?;
            seats.push((*node, rest));
        }
        Some(seats)
    }
}
