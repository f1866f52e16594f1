//! What a policy may look at: the state, read-only, and a few sums over it.

use std::ops::Deref;

use crate::job::Job;
use crate::state::ClusterState;
use crate::target::Turn;
use crate::units::Span;

/// The state as a policy sees it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    state: &'a ClusterState,
}

impl<'a> View<'a> {
    /// A look at `state`.
    pub fn new(state: &'a ClusterState) -> View<'a> {
        View { state }
    }

    /// The state itself, for as long as the view lives.
    pub fn state(&self) -> &'a ClusterState {
        self.state
    }

    /// GPU time that the job received up to now (device-microseconds).
    pub fn served(&self, job: &Job) -> u64 {
        let lease = job.lease().and_then(|id| self.lease(id));
        let current = lease.map_or(0, |lease| {
            let held = self.now().since(lease.since).0;
            let compute = lease.placement.parts.iter().map(|part| u64::from(self.gpu_of(part).0));
            let compute: u64 = compute.sum();
            (u128::from(held) * u128::from(compute) / 1000) as u64
        });
        job.ledger.gpu_time() + current
    }

    /// The account that a running job's time goes to, and the time since it was last settled.
    pub fn running_account(&self, job: &Job) -> Option<(Turn, Span)> {
        let lease = self.lease(job.lease()?)?;
        let (team, model) = self.account_key(lease)?;
        Some((Turn { team, model }, self.now().since(lease.settled)))
    }

    /// Reference work believed done up to now, over all stays.
    pub fn done(&self, job: &Job) -> Span {
        let lease = job.lease().and_then(|id| self.lease(id));
        lease.map_or(job.ledger.done, |lease| lease.believed_done(self.now()))
    }

    /// Work believed left at reference speed; none without an estimate.
    pub fn remaining(&self, job: &Job) -> Option<Span> {
        job.estimate.map(|estimate| estimate.run.saturating_sub(self.done(job)))
    }
}

impl Deref for View<'_> {
    type Target = ClusterState;

    fn deref(&self) -> &ClusterState {
        self.state
    }
}
