//! A plan under construction: decisions that cannot contradict each other or book anything twice.
//!
//! The plan holds the cluster's [`Capacity`] while a policy thinks, and nobody else can change it.
//! What is decided is booked in it at once: starts and moves, but also nodes that are switched and
//! devices that are divided another way. Trial moves (lifting a running job, claiming room for one
//! that has to wait) are undone when the plan is finished.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::capacity::{Capacity, Refusal};
use crate::cluster::{Layout, Power};
use crate::decision::{Decision, StopHow, StopWhy};
use crate::id::{DeviceId, JobId, LeaseId, NodeId};
use crate::job::{JobSpec, Phase};
use crate::placement::{Lease, Placement};
use crate::reason::Reason;
use crate::stage::{Choose, Room, Shortfall};
use crate::state::ClusterState;
use crate::target::Turn;
use crate::units::{Span, Time};

/// Decisions of one step.
pub struct Plan<'a> {
    state: &'a ClusterState,
    free: Capacity,
    moves: Vec<Move>,
    decisions: Vec<Decision>,
    next_lease: LeaseId,
    jobs: BTreeSet<JobId>,
    leases: BTreeSet<LeaseId>,
    /// Nodes that are switched or divided another way.
    changed: BTreeSet<NodeId>,
    /// Whether something was free on trial at some time: then what is booked may not be free in
    /// the order of the decisions.
    on_trial: bool,
}

/// What a plan comes to.
pub(crate) struct Finished {
    pub(crate) decisions: Vec<Decision>,
    /// The capacity as it was given.
    pub(crate) free: Capacity,
    /// Whether something was free on trial at some time.
    pub(crate) on_trial: bool,
}

/// A change of the free capacity, to be undone at the end.
enum Move {
    Booked(Arc<Placement>),
    Lifted(Arc<Placement>),
    Switched(NodeId, bool),
    Divided(NodeId, DeviceId, Layout),
}

/// Why a plan does not take a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The job does not wait, or the plan has decided on it already.
    #[error("{0:?} is not waiting, or is planned already")]
    Job(JobId),
    /// The lease has ended, or the plan has decided on it already.
    #[error("{0:?} is over, is stopping, or is planned already")]
    Lease(LeaseId),
    /// Its job cannot be saved, and may not lose what it did.
    #[error("{0:?} cannot be saved and is left alone")]
    Kept(LeaseId),
    /// Something is taken.
    #[error(transparent)]
    Taken(#[from] Refusal),
    /// The executor cannot do that.
    #[error("the executor cannot do that")]
    Unable,
    /// The node is in use, or the plan uses or changes it already.
    #[error("{0:?} is in use, or is planned already")]
    InUse(NodeId),
    /// There is no such node or device.
    #[error("there is no such node or device")]
    Unknown,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(state: &'a ClusterState, free: Capacity) -> Plan<'a> {
        Plan {
            state,
            free,
            moves: Vec::new(),
            decisions: Vec::new(),
            next_lease: state.next_lease(),
            jobs: BTreeSet::new(),
            leases: BTreeSet::new(),
            changed: BTreeSet::new(),
            on_trial: false,
        }
    }

    /// What is free, after everything planned so far.
    pub fn free(&self) -> &Capacity {
        &self.free
    }

    /// Whether all of a placement is free, after everything planned so far.
    pub fn has_room(&mut self, placement: &Placement) -> bool {
        let booked = self.free.book(placement).is_ok();
        if booked {
            self.free.release(placement);
        }
        booked
    }

    /// The decisions so far.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// Whether the plan starts, rejects or holds this job.
    pub fn has_job(&self, job: JobId) -> bool {
        self.jobs.contains(&job)
    }

    /// Whether the plan has decided on this lease.
    pub fn has_lease(&self, lease: LeaseId) -> bool {
        self.leases.contains(&lease)
    }

    /// Starts a waiting job.
    pub fn start(
        &mut self,
        job: JobId,
        placement: impl Into<Arc<Placement>>,
    ) -> Result<LeaseId, PlanError> {
        self.start_until(job, placement, None)
    }

    /// Starts a waiting job that is stopped at `until`, if it has not ended before.
    pub fn start_until(
        &mut self,
        job: JobId,
        placement: impl Into<Arc<Placement>>,
        until: Option<Time>,
    ) -> Result<LeaseId, PlanError> {
        self.check_waiting(job)?;
        let placement = sorted(placement.into());
        self.book(&placement)?;
        self.jobs.insert(job);
        let lease = self.next_lease;
        self.next_lease = LeaseId(lease.0 + 1);
        self.decisions.push(Decision::Start { lease, job, placement, until });
        Ok(lease)
    }

    /// Preempts a running or starting job by what costs it least: suspended, if memory is free for
    /// it, or saved. It goes on some day: only people and limits end jobs.
    pub fn preempt(&mut self, lease: LeaseId) -> Result<StopHow, PlanError> {
        let known = self.state.lease(lease).ok_or(PlanError::Lease(lease))?;
        let how = self.state.best_stop(known).ok_or(PlanError::Kept(lease))?;
        match self.stop(lease, how) {
            Err(PlanError::Taken(_)) if how == StopHow::Suspend => {
                self.stop(lease, StopHow::Checkpoint).map(|()| StopHow::Checkpoint)
            }
            answer => answer.map(|()| how),
        }
    }

    /// Preempts a running or starting job in a certain way.
    pub fn stop(&mut self, lease: LeaseId, how: StopHow) -> Result<(), PlanError> {
        let known = self.state.lease(lease).filter(|known| known.stop.is_none());
        let Some(known) = known.filter(|_| !self.leases.contains(&lease)) else {
            return Err(PlanError::Lease(lease));
        };
        match how {
            StopHow::Suspend => {
                let parking = self.state.parking(known).ok_or(PlanError::Unable)?;
                self.park(known, parking)?;
            }
            StopHow::Checkpoint | StopHow::Kill => {
                if !self.state.may_stop_for_good(known) {
                    return Err(PlanError::Kept(lease));
                }
            }
        }
        self.stop_because(lease, how, StopWhy::Preempted)
    }

    /// Whether all of these stays can be stopped so: memory is free for those that are suspended.
    pub fn can_stop<'l>(&mut self, stops: impl Iterator<Item = (&'l Lease, StopHow)>) -> bool {
        let mark = self.mark();
        let mut suspended = stops.filter(|(_, how)| *how == StopHow::Suspend).peekable();
        if suspended.peek().is_none() {
            return true;
        }
        let fits = suspended.all(|(lease, _)| {
            let parking = self.state.parking(lease);
            parking.is_some_and(|parking| self.park(lease, parking).is_ok())
        });
        self.undo_to(mark);
        fits
    }

    /// Books memory for a job that is to be suspended; its own it keeps.
    fn park(&mut self, lease: &Lease, parking: Placement) -> Result<(), PlanError> {
        let mut more = parking;
        for (part, own) in more.parts.iter_mut().zip(&lease.placement.parts) {
            part.mem.0 -= own.mem.0;
        }
        let more = Arc::new(more);
        self.free.keep(&more)?;
        self.moves.push(Move::Booked(more));
        Ok(())
    }

    /// Asks a running or starting job to stop.
    pub(crate) fn stop_because(
        &mut self,
        lease: LeaseId,
        how: StopHow,
        why: StopWhy,
    ) -> Result<(), PlanError> {
        let stoppable = self.state.lease(lease).is_some_and(|lease| lease.stop.is_none());
        if !stoppable {
            return Err(PlanError::Lease(lease));
        }
        self.stop_again(lease, how, why)
    }

    /// Asks for a stop that may have been asked for before.
    pub(crate) fn stop_again(
        &mut self,
        lease: LeaseId,
        how: StopHow,
        why: StopWhy,
    ) -> Result<(), PlanError> {
        if self.state.lease(lease).is_none() || !self.leases.insert(lease) {
            return Err(PlanError::Lease(lease));
        }
        self.decisions.push(Decision::Stop { lease, how, why });
        Ok(())
    }

    /// Moves, grows or shrinks a running job, or changes the shares that it holds.
    pub fn resize(
        &mut self,
        lease: LeaseId,
        placement: impl Into<Arc<Placement>>,
    ) -> Result<(), PlanError> {
        if !self.state.abilities().resize {
            return Err(PlanError::Unable);
        }
        let running = self.state.lease(lease).filter(|lease| lease.stop.is_none());
        let Some(current) = running.filter(|lease| !self.leases.contains(&lease.id)) else {
            return Err(PlanError::Lease(lease));
        };
        let placement = sorted(placement.into());
        let mark = self.mark();
        self.free.release(&current.placement);
        self.moves.push(Move::Lifted(Arc::clone(&current.placement)));
        if let Err(refusal) = self.book(&placement) {
            self.undo_to(mark);
            return Err(refusal);
        }
        self.leases.insert(lease);
        self.decisions.push(Decision::Resize { lease, placement });
        Ok(())
    }

    /// Turns a waiting job away that fits no node: for good, or until other nodes join where that
    /// may happen.
    pub fn turn_away(&mut self, job: JobId, reason: Reason) -> Result<(), PlanError> {
        self.check_waiting(job)?;
        self.jobs.insert(job);
        self.decisions.push(match self.state.abilities().grows {
            true => Decision::SetAside { job, reason },
            false => Decision::Reject { job, reason },
        });
        Ok(())
    }

    /// Says why a waiting job goes on waiting; says nothing when that is known already.
    pub fn hold(&mut self, job: JobId, reason: Reason) {
        let known = self.state.job(job).is_none_or(|job| job.reason == reason);
        if !known && !self.jobs.contains(&job) {
            self.jobs.insert(job);
            self.decisions.push(Decision::Hold { job, reason });
        }
    }

    /// Divides an empty device another way. Nothing is placed on its node in this step.
    pub fn repartition(&mut self, device: DeviceId, layout: Layout) -> Result<(), PlanError> {
        if !self.state.abilities().repartition {
            return Err(PlanError::Unable);
        }
        if device.0 >= self.state.device_count() {
            return Err(PlanError::Unknown);
        }
        let node = self.state.node_of(device);
        self.check_idle(node)?;
        self.switch(node, false);
        self.moves.push(Move::Divided(node, device, self.free.layout(device)));
        self.free.set_layout(node, device, layout);
        self.decisions.push(Decision::Repartition { device, layout });
        Ok(())
    }

    /// Lets an empty node sleep, or wakes it. Nothing is placed there in this step.
    pub fn set_power(&mut self, node: NodeId, power: Power) -> Result<(), PlanError> {
        if !self.state.abilities().power || power == Power::On {
            return Err(PlanError::Unable);
        }
        if node.index() >= self.state.nodes().len() {
            return Err(PlanError::Unknown);
        }
        self.check_idle(node)?;
        self.switch(node, false);
        self.decisions.push(Decision::SetPower { node, power });
        Ok(())
    }

    /// Asks for a solution on the state as it is; the answer comes as a fact.
    pub fn solve(&mut self) {
        self.decisions.push(Decision::Solve { based_on: self.state.step() });
    }

    /// Gives turns in the round that goes on.
    pub fn take_turns(&mut self, turns: Vec<Turn>) {
        self.decisions.push(Decision::Turns { turns });
    }

    /// Weighs what tenants used in the past: what is a half-life old counts half.
    pub fn weigh_past(&mut self, half_life: Span) {
        self.decisions.push(Decision::WeighPast { half_life });
    }

    /// Begins a round: turns of the one before are over.
    pub fn begin_round(&mut self) {
        self.decisions.push(Decision::BeginRound);
    }

    /// Asks to be woken at `at`, if nothing happens before.
    pub fn wake_at(&mut self, at: Time) {
        // A time that has come would bring the question back at once, for ever.
        let at = at.max(self.state.now() + Span(1));
        if self.state.wake_at().is_none_or(|known| at < known) {
            self.decisions.push(Decision::WakeAt { at });
        }
    }

    /// Frees a lease's resources for the rest of this question, on trial.
    pub fn lift(&mut self, lease: LeaseId) -> Result<(), PlanError> {
        let lease = self.state.lease(lease).ok_or(PlanError::Lease(lease))?;
        self.on_trial = true;
        self.free.release(&lease.placement);
        self.moves.push(Move::Lifted(Arc::clone(&lease.placement)));
        Ok(())
    }

    /// Keeps room for a job that cannot start yet, for the rest of this question.
    pub fn claim(&mut self, placement: impl Into<Arc<Placement>>) -> Result<(), PlanError> {
        self.book(&placement.into())
    }

    /// A point to come back to with [`Plan::undo_to`]. Decisions are not undone.
    pub fn mark(&self) -> usize {
        self.moves.len()
    }

    /// Undoes trial moves after `mark`.
    pub fn undo_to(&mut self, mark: usize) {
        self.on_trial |= self.moves.len() > mark;
        while self.moves.len() > mark {
            match self.moves.pop().expect("there are moves after the mark") {
                Move::Booked(placement) => self.free.release(&placement),
                Move::Lifted(placement) => self.free.book_again(&placement),
                Move::Switched(node, usable) => self.free.set_usable(node, usable),
                Move::Divided(node, device, layout) => self.free.set_layout(node, device, layout),
            }
        }
    }

    pub(crate) fn finish(mut self) -> Finished {
        let on_trial = self.on_trial;
        self.undo_to(0);
        Finished { decisions: self.decisions, free: self.free, on_trial }
    }

    fn book(&mut self, placement: &Arc<Placement>) -> Result<(), PlanError> {
        let known = |node: NodeId| node.index() < self.state.nodes().len();
        if !placement.parts.iter().all(|part| known(part.node)) {
            return Err(PlanError::Unknown);
        }
        self.free.book(placement)?;
        self.moves.push(Move::Booked(Arc::clone(placement)));
        Ok(())
    }

    fn switch(&mut self, node: NodeId, usable: bool) {
        self.moves.push(Move::Switched(node, self.free.node(node).usable));
        self.free.set_usable(node, usable);
        self.changed.insert(node);
    }

    fn check_idle(&self, node: NodeId) -> Result<(), PlanError> {
        let planned = self.moves.iter().any(|step| match step {
            // What is only claimed need not be in order.
            Move::Booked(placement) => placement.parts.iter().any(|part| part.node == node),
            Move::Lifted(_) | Move::Switched(..) | Move::Divided(..) => false,
        });
        let held = !self.state.node(node).is_empty();
        let busy = held || planned || self.changed.contains(&node);
        if busy { Err(PlanError::InUse(node)) } else { Ok(()) }
    }

    fn check_waiting(&self, job: JobId) -> Result<(), PlanError> {
        let waiting = self.state.job(job).is_some_and(|job| job.phase == Phase::Pending);
        if waiting && !self.jobs.contains(&job) { Ok(()) } else { Err(PlanError::Job(job)) }
    }
}

impl Room for Plan<'_> {
    fn free(&self) -> &Capacity {
        &self.free
    }

    fn try_roles(&mut self, spec: &JobSpec, choose: Choose<'_>) -> Result<Placement, Shortfall> {
        self.free.try_roles(spec, choose)
    }
}

/// The placement with its parts in order of nodes.
fn sorted(mut placement: Arc<Placement>) -> Arc<Placement> {
    if !placement.parts.is_sorted_by_key(|part| (part.node, part.gang)) {
        let parts = &mut Arc::make_mut(&mut placement).parts;
        parts.sort_by_key(|part| (part.node, part.gang));
    }
    placement
}

#[cfg(test)]
mod tests;
