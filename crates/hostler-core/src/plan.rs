//! A plan under construction: decisions that cannot contradict each other or book anything twice.
//!
//! The plan holds the cluster's [`Capacity`] while a policy thinks. Starts are booked in it at
//! once; trial moves (lifting a running job, claiming room for one that has to wait) are undone
//! when the plan is finished.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::capacity::{Capacity, Refusal};
use crate::cluster::{Layout, Power};
use crate::decision::{Decision, StopHow, StopWhy};
use crate::id::{DeviceId, JobId, LeaseId, NodeId};
use crate::job::Phase;
use crate::placement::Placement;
use crate::reason::Reason;
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
}

/// A change of the free capacity, to be undone at the end.
enum Move {
    Booked(Arc<Placement>),
    Lifted(Arc<Placement>),
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
    /// Something is taken.
    #[error(transparent)]
    Taken(#[from] Refusal),
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
        }
    }

    /// What is free, after everything planned so far.
    pub fn free(&self) -> &Capacity {
        &self.free
    }

    /// What is free, to try placements of several roles; leave it as it was.
    pub fn free_mut(&mut self) -> &mut Capacity {
        &mut self.free
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
        self.check_waiting(job)?;
        let mut placement = placement.into();
        if !placement.parts.is_sorted_by_key(|part| (part.node, part.gang)) {
            let parts = &mut Arc::make_mut(&mut placement).parts;
            parts.sort_by_key(|part| (part.node, part.gang));
        }
        self.free.book(&placement)?;
        self.moves.push(Move::Booked(Arc::clone(&placement)));
        self.jobs.insert(job);
        let lease = self.next_lease;
        self.next_lease = LeaseId(lease.0 + 1);
        self.decisions.push(Decision::Start { lease, job, placement });
        Ok(lease)
    }

    /// Asks a running or starting job to stop.
    pub fn stop(&mut self, lease: LeaseId, how: StopHow, why: StopWhy) -> Result<(), PlanError> {
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

    /// Moves, grows or shrinks a running job.
    pub fn resize(&mut self, lease: LeaseId, mut placement: Placement) -> Result<(), PlanError> {
        placement.parts.sort_by_key(|part| (part.node, part.gang));
        let running = self.state.lease(lease).filter(|lease| lease.stop.is_none());
        let Some(current) = running.filter(|lease| !self.leases.contains(&lease.id)) else {
            return Err(PlanError::Lease(lease));
        };
        self.free.release(&current.placement);
        if let Err(refusal) = self.free.book(&placement) {
            self.free.book_again(&current.placement);
            return Err(PlanError::Taken(refusal));
        }
        let placement = Arc::new(placement);
        self.moves.push(Move::Lifted(Arc::clone(&current.placement)));
        self.moves.push(Move::Booked(Arc::clone(&placement)));
        self.leases.insert(lease);
        self.decisions.push(Decision::Resize { lease, placement });
        Ok(())
    }

    /// Promises a waiting job that it will run.
    pub fn admit(&mut self, job: JobId) {
        self.decisions.push(Decision::Admit { job });
    }

    /// Turns a waiting job away for good.
    pub fn reject(&mut self, job: JobId, reason: Reason) -> Result<(), PlanError> {
        self.check_waiting(job)?;
        self.jobs.insert(job);
        self.decisions.push(Decision::Reject { job, reason });
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

    /// Lets a lease run until later.
    pub fn extend(&mut self, lease: LeaseId, until: Time) -> Result<(), PlanError> {
        if self.state.lease(lease).is_none() || self.leases.contains(&lease) {
            return Err(PlanError::Lease(lease));
        }
        self.decisions.push(Decision::Extend { lease, until });
        Ok(())
    }

    /// Divides an empty device another way.
    pub fn repartition(&mut self, device: DeviceId, layout: Layout) {
        self.decisions.push(Decision::Repartition { device, layout });
    }

    /// Switches an empty node off or on.
    pub fn set_power(&mut self, node: NodeId, power: Power) {
        self.decisions.push(Decision::SetPower { node, power });
    }

    /// Asks for a solution on the state as it is; the answer comes as a fact.
    pub fn solve(&mut self) {
        self.decisions.push(Decision::Solve { based_on: self.state.step() });
    }

    /// Begins a round with these turns, or adds them to the one that goes on.
    pub fn take_turns(&mut self, begins: bool, turns: Vec<Turn>) {
        self.decisions.push(Decision::Turns { begins, turns });
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
    pub fn lift(&mut self, lease: LeaseId) {
        let lease = self.state.lease(lease).expect("only live leases are lifted");
        self.free.release(&lease.placement);
        self.moves.push(Move::Lifted(Arc::clone(&lease.placement)));
    }

    /// Keeps room for a job that cannot start yet, for the rest of this question.
    pub fn claim(&mut self, placement: impl Into<Arc<Placement>>) -> Result<(), PlanError> {
        let placement = placement.into();
        self.free.book(&placement)?;
        self.moves.push(Move::Booked(placement));
        Ok(())
    }

    /// A point to come back to with [`Plan::undo_to`]. Decisions are not undone.
    pub fn mark(&self) -> usize {
        self.moves.len()
    }

    /// Undoes trial moves after `mark`.
    pub fn undo_to(&mut self, mark: usize) {
        while self.moves.len() > mark {
            match self.moves.pop().expect("there are moves after the mark") {
                Move::Booked(placement) => self.free.release(&placement),
                Move::Lifted(placement) => {
                    self.free.book_again(&placement);
                }
            }
        }
    }

    pub(crate) fn finish(mut self) -> (Vec<Decision>, Capacity) {
        self.undo_to(0);
        (self.decisions, self.free)
    }

    fn check_waiting(&self, job: JobId) -> Result<(), PlanError> {
        let waiting = self.state.job(job).is_some_and(|job| job.phase == Phase::Pending);
        if waiting && !self.jobs.contains(&job) { Ok(()) } else { Err(PlanError::Job(job)) }
    }
}
