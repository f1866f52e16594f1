//! Suspending stays by agents: all nodes of a gang or none, and what waits in their memory while
//! its lease is over.
//!
//! A stay that is suspended ends in the state, and its agents keep it; the next stay of the job
//! goes on with the same processes, under its own number (`StartOrder::resumes`). Whoever waits for
//! nobody any more, because its job is over or was started anew, is ended.

use std::collections::BTreeMap;

use hostler_core::ability::Abilities;
use hostler_core::decision::StopHow;
use hostler_core::event::{Event, Outcome};
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::job::Job;
use hostler_core::state::ClusterState;
use hostler_core::units::{Span, Time};

use super::AgentDriver;
use super::gang::PartStage;
use super::suspend_times::Way;
use crate::host::{Desk, Effect};
use crate::wire::{Stage, ToAgent};

/// Tasks that wait in the memory of their nodes.
pub(super) struct SuspendedRun {
    pub(super) job: JobId,
    pub(super) nodes: Vec<NodeId>,
}

/// Those that the state knows of, after a restart of the daemon.
pub(super) fn restored(state: &ClusterState) -> BTreeMap<LeaseId, SuspendedRun> {
    let parked = |job: &Job| {
        let parked = job.parked.as_deref().filter(|_| job.is_suspended())?;
        let nodes = parked.memory.parts.iter().map(|part| part.node).collect();
        Some((parked.lease, SuspendedRun { job: job.id, nodes }))
    };
    state.jobs().filter_map(parked).collect()
}

impl AgentDriver {
    /// Whether the tasks of a lease that is over wait for their job to go on.
    pub(super) fn waits_suspended(&self, desk: &Desk, lease: LeaseId, job: JobId) -> bool {
        let job = desk.state().job(job);
        job.and_then(|job| job.parked.as_deref()).is_some_and(|parked| parked.lease == lease)
    }

    /// Draws the conclusions where a stay is to be suspended and none of its parts is broken.
    pub(super) fn judge_suspension(&mut self, desk: &mut Desk, lease: LeaseId) {
        let Some(run) = self.lease_runs.get(&lease) else { return };
        if run.parts.values().all(|part| *part == PartStage::Suspended) {
            let Some(known) = desk.state().lease(lease) else { return };
            let job = desk.state().job(known.job).expect("a lease belongs to a job");
            let told = run.suspend_told;
            let until = told.unwrap_or(desk.now());
            let done = known.believed_done(job.spec.checkpoint, until);
            let outcome = Outcome::Suspended;
            desk.job_touched(known.job);
            self.learn_suspend_time(desk, lease, Way::Out, told);
            return self.fact(desk, Event::Stopped { lease, outcome, done, lost: Span::ZERO });
        }
        if run.parts.values().any(PartStage::is_over) {
            // One that came to its own end cannot wait: the others go on without it.
            self.take_suspension_back(desk, lease);
            self.judge(desk, lease);
        }
    }

    /// Takes in how long it took to move what a stay has on its GPUs, since its agents were told;
    /// nobody knows if that was in another life of the daemon. Jobs that do not say how much that
    /// is teach nothing.
    pub(super) fn learn_suspend_time(
        &mut self,
        desk: &mut Desk,
        lease: LeaseId,
        way: Way,
        told: Option<Time>,
    ) {
        let state = desk.state();
        let stay = state.lease(lease).and_then(|stay| Some((stay, state.job(stay.job)?)));
        let (Some((stay, job)), Some(told)) = (stay, told) else { return };
        let mut gangs = job.asked().gangs.iter();
        if gangs.any(|gang| gang.demand.gpu.0 > 0 && gang.demand.gpu_mem.0 == 0) {
            return;
        }
        let moved = state.moved(job, &stay.placement);
        let Some(cost) = self.suspend_times.learn(way, moved, desk.now().since(told)) else {
            return;
        };
        let [fixed, out, back] =
            [cost.fixed, cost.out_per_gib, cost.back_per_gib].map(Span::secs_f64);
        tracing::info!(fixed, out_per_gib = out, back_per_gib = back, "suspending costs (s)");
        let abilities = Abilities { suspend: Some(cost), ..desk.state().abilities() };
        desk.fact(Event::AbilitiesChanged { abilities });
    }

    /// A node cannot suspend its part of a stay: all go on.
    pub(super) fn suspend_refused(
        &mut self,
        desk: &mut Desk,
        node: NodeId,
        lease: LeaseId,
        fault: &str,
    ) {
        let run = self.lease_runs.get(&lease);
        if run.is_none_or(|run| run.stop != Some(StopHow::Suspend)) {
            return;
        }
        let name = &desk.state().node(node).spec.name;
        tracing::warn!(lease = lease.0, node = %name, fault, "a job cannot be suspended");
        desk.figures_mut().suspensions_refused += 1;
        self.take_suspension_back(desk, lease);
    }

    /// A stay that was to be suspended goes on, on all nodes.
    fn take_suspension_back(&mut self, desk: &mut Desk, lease: LeaseId) {
        let Some(run) = self.lease_runs.get_mut(&lease) else { return };
        (run.stop, run.suspend_told) = (None, None);
        let left = run.parts.iter().filter(|(_, part)| !part.is_over());
        let left: Vec<NodeId> = left.map(|(node, _)| *node).collect();
        left.into_iter().for_each(|node| self.tell_resume(desk, lease, node));
        self.fact(desk, Event::SuspendRefused { lease });
    }

    /// Tells a node that its part of a stay goes on.
    pub(super) fn tell_resume(&self, desk: &mut Desk, lease: LeaseId, node: NodeId) {
        if let Some(session) = self.agents.session(node) {
            desk.effect(Effect::Tell(session, ToAgent::Resume { lease }));
        }
    }

    /// Takes in what an agent says of a lease that is over and may wait; whether it does.
    pub(super) fn report_on_suspended(
        &mut self,
        desk: &mut Desk,
        lease: LeaseId,
        stage: &Stage,
    ) -> bool {
        let waits = self.suspended.get(&lease).map(|run| run.job);
        let job = waits.filter(|job| self.waits_suspended(desk, lease, *job));
        match (stage, job) {
            // An agent that was just started has not seen yet where they stand.
            (Stage::Suspended { .. } | Stage::Starting, _) => {
                let goes_on = || desk.state().leases().any(|other| other.resumes == Some(lease));
                job.is_some() || goes_on()
            }
            (Stage::Ended { .. }, Some(job)) => {
                self.suspended.remove(&lease);
                self.fact(desk, Event::SuspendedLost { job });
                false
            }
            _ => false,
        }
    }

    /// Ends tasks whose job does not wait for them any more.
    pub(super) fn end_forgotten_suspensions(&mut self, desk: &mut Desk) {
        let idle = |(lease, run): &(&LeaseId, &SuspendedRun)| {
            !self.waits_suspended(desk, **lease, run.job)
        };
        let over: Vec<LeaseId> =
            self.suspended.iter().filter(idle).map(|(lease, _)| *lease).collect();
        for lease in over {
            let Some(run) = self.suspended.remove(&lease) else { continue };
            let sessions = run.nodes.iter().filter_map(|node| self.agents.session(*node));
            for session in sessions.collect::<Vec<_>>() {
                let stop = ToAgent::Stop { lease, how: StopHow::Kill, grace_ms: 0 };
                desk.effect(Effect::Tell(session, stop));
            }
        }
    }
}
