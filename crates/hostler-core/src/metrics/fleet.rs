//! What each node contributes to the sums over the cluster, so that a change costs one node.

use crate::cluster::{Health, Node, Power};
use crate::id::NodeId;
use crate::state::ClusterState;

/// What a node adds to the sums over the cluster; nothing while it is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contribution {
    /// GPU compute, in thousandths of a device.
    pub(super) capacity: u32,
    /// Part of it that is booked.
    pub(super) allocated: u32,
    /// Part of it that is idle on devices of which another part is booked.
    pub(super) rest: u32,
    /// Power draw.
    pub(super) milliwatts: u64,
}

/// The last known contribution of every node.
#[derive(Clone, Debug, Default)]
pub(super) struct Fleet {
    nodes: Vec<Contribution>,
}

impl Fleet {
    /// Looks at a node again: its contribution before and now.
    pub(super) fn refresh(
        &mut self,
        state: &ClusterState,
        id: NodeId,
    ) -> (Contribution, Contribution) {
        if self.nodes.len() <= id.index() {
            self.nodes.resize(id.index() + 1, Contribution::default());
        }
        let now = contribution(state, state.node(id));
        let before = std::mem::replace(&mut self.nodes[id.index()], now);
        (before, now)
    }
}

fn contribution(state: &ClusterState, node: &Node) -> Contribution {
    if node.health == Health::Down {
        return Contribution::default();
    }
    let capacity = node.spec.gpus * 1000;
    let allocated = capacity - state.capacity().gpu_free(node.id).0;
    Contribution {
        capacity,
        allocated,
        rest: state.capacity().gpu_rest(node.id).0,
        milliwatts: milliwatts(state, node, allocated),
    }
}

/// Power draw of a node: its own, and that of each device, which grows from idle to busy with the
/// part of it that is booked. A sleeping node draws nothing.
fn milliwatts(state: &ClusterState, node: &Node, allocated: u32) -> u64 {
    if node.power == Power::Sleeping {
        return 0;
    }
    let own = u64::from(node.spec.base_watts) * 1000;
    let Some(model) = node.spec.gpu_model.map(|model| state.model(model)) else {
        return own;
    };
    let idle = u64::from(node.spec.gpus * 1000 - allocated) * u64::from(model.idle_watts);
    own + idle + u64::from(allocated) * u64::from(model.busy_watts)
}
