//! Jobs that leave their GPUs for the memory of their nodes, and come back.

use std::sync::Arc;

use hostler_core::event::{Event, Outcome};
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::job::JobSpec;
use hostler_core::placement::Placement;
use hostler_core::suspend::moved;
use hostler_core::units::{Mib, Span};

use super::queue::Coming;
use super::stay::{Before, Doing, SimulatedStay};
use super::{Arrivals, Report, World};

/// A job whose processes wait in memory.
#[derive(Debug)]
pub(super) struct Suspended {
    pub(super) done: Span,
    pub(super) placement: Arc<Placement>,
}

impl Suspended {
    fn is_on(&self, node: NodeId) -> bool {
        self.placement.parts.iter().any(|part| part.node == node)
    }

    /// Whether a job that starts there finds its processes.
    fn waits_at(&self, placement: &Placement) -> bool {
        let devices = |placement: &Placement| {
            let slices = placement.parts.iter().flat_map(|part| &part.slices);
            slices.map(|slice| slice.device).collect::<Vec<_>>()
        };
        devices(&self.placement) == devices(placement)
    }
}

impl<Source: Arrivals> World<Source> {
    /// A stay that is to begin: from memory, from what was saved, or anew.
    pub(super) fn next_stay(
        &mut self,
        lease: LeaseId,
        job: JobId,
        placement: &Arc<Placement>,
    ) -> SimulatedStay {
        let spec = Arc::clone(self.specs.get(job.0).expect("a job that starts is not over"));
        let saved = self.safe.get(&job).copied();
        let safe = saved.unwrap_or(Span::ZERO);
        let waiting = self.suspended.remove(&job).filter(|waiting| waiting.waits_at(placement));
        let waiting = waiting.filter(|_| goes_on(&spec, placement));
        let (before, load) = match (waiting, saved) {
            (Some(waiting), _) => {
                let back = self.site.physics.suspend.back(self.moved(&spec, placement));
                (Before { done: waiting.done, safe }, back)
            }
            (None, Some(_)) => (Before::saved(safe), spec.checkpoint.load),
            (None, None) => (Before::default(), Span::ZERO),
        };
        SimulatedStay::new(lease, job, spec, Arc::clone(placement), before).after(load)
    }

    /// A stay that works begins to leave its GPUs.
    pub(super) fn suspend(&mut self, lease: LeaseId) {
        let stay = self.stays.get(lease.0).expect("the stay is here");
        let out = self.site.physics.suspend.out(self.moved(&stay.spec, &stay.placement));
        let stay = self.stays.get_mut(lease.0).expect("the stay is here");
        stay.pause(self.now, Doing::Suspending);
        self.queue.push(self.now + out, Coming::Suspended(lease));
    }

    /// A stay has left its GPUs.
    pub(super) fn out_of_gpus(&mut self, lease: LeaseId, events: &mut Vec<Event>) {
        let stay = self.stays.get(lease.0).filter(|stay| stay.doing == Doing::Suspending);
        let Some(stay) = stay else { return };
        let (job, (done, safe)) = (stay.job, stay.done_and_safe());
        let placement = Arc::clone(&stay.placement);
        self.suspended.insert(job, Suspended { done, placement });
        self.safe.insert(job, safe);
        self.leave(lease);
        let word = Event::Stopped { lease, outcome: Outcome::Suspended, done, lost: Span::ZERO };
        self.report(job, Report::Stop, word, events);
    }

    /// What waited in the memory of a node is gone with it.
    pub(super) fn lose_suspended(&mut self, node: NodeId) {
        self.suspended.retain(|_, waiting| !waiting.is_on(node));
    }

    /// GPU memory that moves when a job is suspended.
    pub(super) fn moved(&self, spec: &JobSpec, placement: &Placement) -> Mib {
        moved(spec, placement, |node| {
            let model = self.site.nodes[node.index()].gpu_model;
            model.map_or(Mib(0), |model| self.site.models[model.index()].mem)
        })
    }
}

/// Whether a job that starts where its processes wait goes on with them. Memory is asked for by who
/// begins anew, because what waited was given up; one that asks for none is taken to go on.
fn goes_on(spec: &JobSpec, placement: &Placement) -> bool {
    let asks = spec.gangs.iter().any(|gang| gang.demand.mem.0 > 0);
    !asks || placement.parts.iter().all(|part| part.mem.0 == 0)
}
