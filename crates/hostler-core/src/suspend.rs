//! Suspending a job without its help: what it has on its GPUs goes to the memory of its nodes,
//! where its processes wait, and comes back later, onto the same GPUs.
//!
//! Nothing is lost and the job need not know, so that one that cannot save itself can give way too.
//! What it costs grows with the memory that moves. Host memory for it is booked from the decision
//! on until it is back, or gone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::Share;
use crate::id::{Features, LeaseId, ModelId, ModelSet, NodeId};
use crate::job::{JobSpec, Models};
use crate::placement::{Part, Placement, Slice};
use crate::units::{Mib, Span};

/// What suspending a job costs, by the GPU memory that moves on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspendCost {
    /// Time for which there is always something to do, out and back.
    pub fixed: Span,
    /// Time for each GiB to go out.
    pub out_per_gib: Span,
    /// Time for each GiB to come back.
    pub back_per_gib: Span,
}

impl Default for SuspendCost {
    /// As measured on one H200 with jobs of 1, 21 and 61 GiB: 0.9, 16.7 and 33.9 s out, 0.4, 5.6
    /// and 13.2 s back, on average. The line is off by at most a third.
    fn default() -> SuspendCost {
        SuspendCost {
            fixed: Span(200_000),
            out_per_gib: Span(600_000),
            back_per_gib: Span(220_000),
        }
    }
}

impl SuspendCost {
    /// Time until so much GPU memory is in the memory of the node.
    pub fn out(self, mem: Mib) -> Span {
        self.fixed + per_gib(self.out_per_gib, mem)
    }

    /// Time until it is back on the GPUs.
    pub fn back(self, mem: Mib) -> Span {
        self.fixed + per_gib(self.back_per_gib, mem)
    }
}

fn per_gib(each: Span, mem: Mib) -> Span {
    Span((u128::from(each.0) * u128::from(mem.0) / 1024) as u64)
}

/// A job whose processes wait in the memory of its nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// The stay that was suspended.
    pub lease: LeaseId,
    /// What it held of its nodes and GPUs, and holds again when it goes on.
    pub placement: Arc<Placement>,
    /// Memory of its nodes that is booked for it: its own, and for what was on its GPUs.
    pub memory: Placement,
    /// Reference work done over all stays; in memory, and gone with the node.
    pub done: Span,
    /// What was asked for when it was submitted.
    pub asked: Arc<JobSpec>,
}

/// GPU memory that moves when a job at a placement is suspended, given what a device of a node has.
/// Nodes work side by side: the one that moves most is waited for.
pub fn moved(asked: &JobSpec, placement: &Placement, device_mem: impl Fn(NodeId) -> Mib) -> Mib {
    let nodes = placement.parts.chunk_by(|one, other| one.node == other.node);
    let of = |part: &Part| moved_by_part(asked, part, device_mem(part.node)).0;
    let moved = nodes.map(|parts| parts.iter().map(of).fold(0, u32::saturating_add));
    Mib(moved.max().unwrap_or(0))
}

/// What one part moves: of each device what its job said that it uses, else what it may use. Who
/// asked for a part of a device may have been given all of it.
pub(crate) fn moved_by_part(asked: &JobSpec, part: &Part, device_mem: Mib) -> Mib {
    let demand = &asked.gangs[part.gang as usize].demand;
    let of = |slice: &Slice| match slice.share {
        Share::Whole if demand.gpu_mem.0 == 0 => device_mem.0,
        _ => demand.device_mem(device_mem).0,
    };
    Mib(part.slices.iter().map(of).fold(0, u32::saturating_add))
}

/// The memory of a node that one part takes while it waits.
pub(crate) fn parked_part(part: &Part, moved: Mib) -> Part {
    Part { mem: Mib(part.mem.0.saturating_add(moved.0)), ..part.only_mem() }
}

/// What a suspended job lacks: its cores, and the GPUs that it was on. Its memory it has, and what
/// it needs of its nodes it found there, whatever they are marked with by now.
pub(crate) fn pinned_spec(asked: &JobSpec, placement: &Placement, model: ModelId) -> JobSpec {
    let mut spec = asked.clone();
    for (at, gang) in spec.gangs.iter_mut().enumerate() {
        let own = placement.parts.iter().filter(|part| part.gang == at as u32);
        gang.demand.pinned = Some(own.map(Part::without_mem).collect());
        gang.demand.models = Models::OneOf(ModelSet::one(model));
        gang.demand.mem = Mib(0);
        gang.demand.needs = Features::default();
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::SuspendCost;
    use crate::units::{Mib, Span};

    #[test]
    fn costs_grow_with_the_memory_that_moves() {
        let cost = SuspendCost::default();
        assert_eq!((cost.out(Mib(0)), cost.back(Mib(0))), (Span(200_000), Span(200_000)));
        assert_eq!(cost.out(Mib(61 * 1024)), Span(36_800_000));
        assert_eq!(cost.back(Mib(61 * 1024)), Span(13_620_000));
        assert_eq!(cost.out(Mib(512)), Span(500_000));
    }
}
