//! What a policy may look at: the facts of the state, read-only, and a few sums over them.
//!
//! Nothing here changes anything, and nothing panics. What is free is not here but in the plan,
//! which counts what it has decided so far.

use std::collections::BTreeSet;

use crate::ability::Abilities;
use crate::account::TenantAccount;
use crate::cluster::{GpuModel, Node, Tenant};
use crate::decision::StopHow;
use crate::id::{JobId, LeaseId, ModelId, NodeId, ProfileKey, TenantId};
use crate::job::Job;
use crate::placement::{Lease, Part, Placement};
use crate::profile::Profile;
use crate::service::Services;
use crate::state::{ClusterState, Journal};
use crate::target::{Account, Round, SolveRecord, Team, Turn};
use crate::units::{Milli, Rate, Span, Time};

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

    /// The time of the question.
    pub fn now(&self) -> Time {
        self.state.now()
    }

    /// What the executor can do.
    pub fn abilities(&self) -> Abilities {
        self.state.abilities()
    }

    /// GPU models of the catalogue, by id.
    pub fn models(&self) -> &'a [GpuModel] {
        self.state.models()
    }

    /// A GPU model of the catalogue.
    pub fn model(&self, id: ModelId) -> Option<&'a GpuModel> {
        self.state.models().get(id.index())
    }

    /// Tenants of the catalogue, by id.
    pub fn tenants(&self) -> &'a [Tenant] {
        self.state.tenants()
    }

    /// Nodes, by id.
    pub fn nodes(&self) -> &'a [Node] {
        self.state.nodes()
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> Option<&'a Node> {
        self.state.nodes().get(id.index())
    }

    /// What a tenant used; nothing of one that there is not.
    pub fn tenant_account(&self, tenant: TenantId) -> TenantAccount {
        self.state.tenant_account(tenant)
    }

    /// When the past of tenants was last weighed.
    pub fn weighed_at(&self) -> Option<Time> {
        self.state.weighed_at()
    }

    /// Number of nodes that never come back.
    pub fn retired(&self) -> usize {
        self.state.retired()
    }

    /// Times that a node began to be able to do other things.
    pub fn refitted(&self) -> usize {
        self.state.refitted()
    }

    /// Last step that changed which nodes or speeds are known: for caches.
    pub fn catalogue_step(&self) -> u64 {
        self.state.catalogue_step()
    }

    /// A job that is not over.
    pub fn job(&self, id: JobId) -> Option<&'a Job> {
        self.state.job(id)
    }

    /// Jobs that are not over, by id.
    pub fn jobs(&self) -> impl Iterator<Item = &'a Job> + use<'a> {
        self.state.jobs()
    }

    /// Jobs that are not over from a number on, by id.
    pub fn jobs_from(&self, id: JobId) -> impl Iterator<Item = &'a Job> + use<'a> {
        self.state.jobs_from(id)
    }

    /// Number of jobs that are not over.
    pub fn job_count(&self) -> usize {
        self.state.job_count()
    }

    /// Jobs that were not over, summed over the life of one so far (job-microseconds); itself
    /// counts.
    pub fn crowd_since(&self, job: &Job) -> u64 {
        self.state.crowd_since(job)
    }

    /// When the policy was last asked before this question.
    pub fn asked_at(&self) -> Option<Time> {
        self.state.asked_at()
    }

    /// The least number that the next job may have.
    pub fn next_job(&self) -> JobId {
        self.state.next_job()
    }

    /// Jobs that wait and that nothing holds back, in order of submission.
    pub fn pending(&self) -> &'a BTreeSet<JobId> {
        self.state.pending()
    }

    /// Whether memory of nodes is taken by jobs that are suspended, or are about to be.
    pub fn keeps_suspended(&self) -> bool {
        self.state.keeps_suspended()
    }

    /// Jobs that wait suspended, by id.
    pub fn suspended(&self) -> impl Iterator<Item = &'a Job> + use<'a> {
        self.state.suspended()
    }

    /// A lease that has not ended.
    pub fn lease(&self, id: LeaseId) -> Option<&'a Lease> {
        self.state.lease(id)
    }

    /// Leases that have not ended, by id.
    pub fn leases(&self) -> impl Iterator<Item = &'a Lease> + use<'a> {
        self.state.leases()
    }

    /// Number of leases that have not ended.
    pub fn lease_count(&self) -> usize {
        self.state.lease_count()
    }

    /// Number of leases that were told to stop and have not ended.
    pub fn stopping(&self) -> usize {
        self.state.stopping()
    }

    /// Leases by believed end, soonest first.
    pub fn by_expected_end(&self) -> impl Iterator<Item = &'a Lease> + use<'a> {
        self.state.by_expected_end()
    }

    /// Leases that will be cut off, soonest first: they have a time limit or an end, or were told
    /// to stop.
    pub fn by_alarm(&self) -> impl Iterator<Item = &'a Lease> + use<'a> {
        self.state.by_alarm()
    }

    /// What changed since the policy was last asked.
    pub fn journal(&self) -> &'a Journal {
        self.state.journal()
    }

    /// The profile under a key, when it is known.
    pub fn profile(&self, key: ProfileKey) -> Option<&'a Profile> {
        self.state.profile(key)
    }

    /// The model that a lease has GPUs of.
    pub fn model_of(&self, lease: &Lease) -> Option<ModelId> {
        self.state.model_of(self.own(lease)?)
    }

    /// Compute that a part books on its GPUs; none of nodes that there are not.
    pub fn gpu_of(&self, part: &Part) -> Milli {
        self.node(part.node).map_or(Milli::ZERO, |_| self.state.gpu_of(part))
    }

    /// What the last jobs received that are over.
    pub fn services(&self) -> &'a Services {
        self.state.services()
    }

    /// Whether a stay may be ended in favour of others: a job that can neither be saved nor
    /// suspended is left alone, unless the operator allows for its loss.
    pub fn may_preempt(&self, lease: &Lease) -> bool {
        self.own(lease).is_some_and(|lease| self.state.may_preempt(lease))
    }

    /// Whether the processes of a stay may be ended in favour of others: a job that cannot be saved
    /// is left alone, unless the operator allows for its loss.
    pub fn may_stop_for_good(&self, lease: &Lease) -> bool {
        self.own(lease).is_some_and(|lease| self.state.may_stop_for_good(lease))
    }

    /// How a stay is best ended in favour of others, by what the stop and the next start take; none
    /// when it is left alone.
    pub fn best_stop(&self, lease: &Lease) -> Option<StopHow> {
        self.state.best_stop(self.own(lease)?)
    }

    /// The memory of its nodes that a stay would take while it is suspended; none when it cannot
    /// be.
    pub fn parking(&self, lease: &Lease) -> Option<Placement> {
        self.state.parking(self.own(lease)?)
    }

    /// Believed speed of a job at a placement while it works, without neighbours: that of its
    /// slowest task. Where it is believed not to fit, or there is no such node, the least there is.
    pub fn believed_rate(&self, job: &Job, placement: &Placement) -> Rate {
        let is_there = |part: &Part| {
            let Some(node) = self.node(part.node) else { return false };
            let devices = node.first_device.0..node.first_device.0 + node.spec.gpus;
            part.slices.iter().all(|slice| devices.contains(&slice.device.0))
        };
        let known = placement.parts.iter().all(is_there);
        if known { self.state.believed_rate(job, placement) } else { Rate(1) }
    }

    /// The lease of the state that has this number: whoever asks may have made up another.
    fn own(&self, lease: &Lease) -> Option<&'a Lease> {
        self.lease(lease.id)
    }

    /// The round that goes on, if there ever was one.
    pub fn round(&self) -> Option<&'a Round> {
        self.state.round()
    }

    /// The turn of a job in this round.
    pub fn turn(&self, job: JobId) -> Option<Turn> {
        self.state.turn(job)
    }

    /// What a team was to receive and received on a model since the last solution, up to its last
    /// settlement.
    pub fn account(&self, team: Team, model: ModelId) -> Account {
        self.state.account(team, model)
    }

    /// The accounts of a job by itself, by model; what is missing is empty.
    pub fn own_accounts(&self, job: JobId) -> &'a [Account] {
        self.state.own_accounts(job)
    }

    /// Jobs that rounds keep something of, by id: all others have no share.
    pub fn in_rounds(&self) -> &'a BTreeSet<JobId> {
        self.state.in_rounds()
    }

    /// Accounts of pairs that are not empty, by team and model.
    pub fn pair_accounts(&self) -> impl Iterator<Item = (Team, ModelId, Account)> + use<'a> {
        self.state.pair_accounts()
    }

    /// Where a job stood when it was last solved for.
    pub fn solve_record(&self, job: JobId) -> Option<SolveRecord> {
        self.state.solve_record(job)
    }

    /// When the last solution came.
    pub fn solved_at(&self) -> Option<Time> {
        self.state.solved_at()
    }

    /// Number of solutions so far.
    pub fn solves(&self) -> u64 {
        self.state.solves().0
    }

    /// Whether jobs, nodes or speeds changed since the state that was last solved for.
    pub fn solution_is_stale(&self) -> bool {
        self.state.solution_is_stale()
    }

    /// Step of the state that a solver is to look at, while it has not answered.
    pub fn solve_asked(&self) -> Option<u64> {
        self.state.solve_asked()
    }

    /// GPU time that the job received up to now (device-microseconds), as its ledger would say if
    /// it was stopped at once.
    pub fn served(&self, job: &Job) -> u64 {
        let lease = job.lease().and_then(|id| self.lease(id));
        let held = |lease: &Lease| self.gpu_time_of(lease, self.now().since(lease.since));
        job.ledger.gpu_time() + lease.map_or(0, held)
    }

    /// GPU time of a stay that goes into loading what was saved (device-microseconds).
    pub fn gpu_time_of_load(&self, lease: &Lease) -> u64 {
        self.gpu_time_of(lease, lease.load)
    }

    fn gpu_time_of(&self, lease: &Lease, held: Span) -> u64 {
        let parts = lease.placement.parts.iter().map(|part| u128::from(self.gpu_of(part).0));
        parts.map(|compute| (u128::from(held.0) * compute / 1000) as u64).sum()
    }

    /// When a job that holds GPUs will have received so much GPU time (device-microseconds), if it
    /// keeps them; that may be over. Of one that starts just now the answer may be too early, as
    /// nobody knows yet which part of its GPUs it gets.
    pub fn served_at(&self, job: &Job, gpu_time: u64) -> Option<Time> {
        let (since, compute) = match self.lease(job.lease()?) {
            Some(lease) => {
                let parts = lease.placement.parts.iter();
                (lease.since, parts.map(|part| u64::from(self.gpu_of(part).0)).sum())
            }
            None => (self.now(), u64::from(job.spec.gpus()) * 1000),
        };
        let left = u128::from(gpu_time.saturating_sub(job.ledger.gpu_time()));
        let span = (left * 1000).div_ceil(u128::from(compute).max(1));
        (compute > 0).then(|| since + Span(u64::try_from(span).unwrap_or(u64::MAX)))
    }

    /// The account that a running job's time goes to, and the time since it was last settled.
    pub fn running_account(&self, job: &Job) -> Option<(Turn, Span)> {
        let lease = self.lease(job.lease()?)?;
        let (team, model) = self.state.account_key(lease)?;
        Some((Turn { team, model }, self.now().since(lease.settled)))
    }

    /// Reference work believed done up to now, over all stays.
    pub fn done(&self, job: &Job) -> Span {
        let lease = job.lease().and_then(|id| self.lease(id));
        let checkpoint = job.spec.checkpoint;
        lease.map_or(job.done(), |lease| lease.believed_done(checkpoint, self.now()))
    }

    /// Work believed left at reference speed; none without an estimate.
    pub fn remaining(&self, job: &Job) -> Option<Span> {
        job.estimate.map(|estimate| estimate.run.saturating_sub(self.done(job)))
    }
}

#[cfg(test)]
mod tests;
