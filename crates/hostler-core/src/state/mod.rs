//! The state of a cluster: the fold of events and decisions.
//!
//! Only `apply_event` and `apply_decision` change it; indices are kept there too and re-derived in
//! debug builds by `audit`.

mod accounts;
mod apply_decision;
mod apply_event;
mod audit;
mod gates;
mod journal;
mod lease;
mod parking;
mod snapshot;
#[cfg(test)]
mod tests;
mod turns;
mod windows;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use journal::{Change, Journal};
use serde::{Deserialize, Serialize};
pub use snapshot::Snapshot;

use crate::ability::Abilities;
use crate::account::TenantAccount;
use crate::capacity::Capacity;
use crate::cluster::{GpuModel, Health, Node, Tenant};
use crate::decision::StopWhy;
use crate::id::{DeviceId, GroupId, JobId, LeaseId, ModelId, NodeId, ProfileKey, TenantId};
use crate::job::{Job, JobSpec, Phase};
use crate::limits::{STOP_ATTEMPTS_MAX, UNSAVED_STAY_MIN, USES_SEEN_MIN};
use crate::placement::{Lease, Part, Placement};
use crate::profile::{Profile, Reach};
use crate::service::Services;
use crate::table::IdWindow;
use crate::units::{Milli, Rate, Span, Time};
use gates::GateBook;
use turns::Turns;
use windows::WindowBook;

/// Everything that a decision may depend on.
#[derive(Clone, Debug, Default)]
pub struct ClusterState {
    now: Time,
    step: u64,
    /// Jobs that were not over, summed over time (job-microseconds, modulo 2^64): only differences
    /// over the life of a job count.
    crowd: u64,
    models: Vec<GpuModel>,
    tenants: Vec<Tenant>,
    profiles: BTreeMap<ProfileKey, Profile>,
    nodes: Vec<Node>,
    /// Number of nodes that never come back.
    retired: usize,
    /// Times that a node began to be able to do other things; for caches.
    refitted: usize,
    pub(crate) capacity: Capacity,
    jobs: IdWindow<Job>,
    leases: IdWindow<Lease>,
    /// CPU and memory that leases hold, by node: booked apart from what is free.
    node_held: Vec<[u32; 2]>,
    /// Compute and memory that leases hold, by device.
    device_held: Vec<[u32; 2]>,
    /// Devices that are divided in hardware slices: known apart from what is free, too.
    divided: BTreeSet<DeviceId>,
    pending: BTreeSet<JobId>,
    /// Jobs for which memory of nodes is booked because they are suspended, or are to be.
    parked: BTreeSet<JobId>,
    by_end: BTreeSet<(Time, LeaseId)>,
    /// Starts that wait for their confirmation, oldest first; entries may be settled already.
    starting: VecDeque<(Time, LeaseId)>,
    /// Stops to ask for again, time limits and ends of leases.
    alarms: BTreeSet<(Time, LeaseId)>,
    /// Leases that must end whatever the policy says.
    must_stop: BTreeMap<LeaseId, StopWhy>,
    /// Number of leases that were told to stop.
    stopping: usize,
    gates: GateBook,
    windows: WindowBook,
    /// By tenant.
    accounts: Vec<TenantAccount>,
    weighed_at: Option<Time>,
    /// When budgets are used up or begin anew.
    budget_changes: BTreeSet<(Time, TenantId)>,
    abilities: Abilities,
    /// What jobs of a group were seen to use of their GPUs.
    uses: BTreeMap<(TenantId, GroupId), Seen>,
    services: Services,
    wake_at: Option<Time>,
    asked_at: Option<Time>,
    turns: Turns,
    /// Jobs that rounds keep something of.
    in_rounds: BTreeSet<JobId>,
    policy_fault: Option<PolicyFault>,
    stale_events: u64,
    next_device: u32,
    pub(crate) journal: Journal,
}

/// The rule that a policy broke last, until a person says who decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyFault {
    /// What it did, in words.
    pub fault: Box<str>,
    /// Whether nobody took over from it.
    pub nobody_decides: bool,
}

/// Compute that jobs of a group used of each device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    jobs: u32,
    /// The most of all: what a slowed job could not use must not count as not needed.
    most: Milli,
}

impl PartialEq for ClusterState {
    /// Equality of facts; indices follow from them and the journal is no part of the state.
    fn eq(&self, other: &ClusterState) -> bool {
        self.now == other.now
            && self.step == other.step
            && self.crowd == other.crowd
            && self.models == other.models
            && self.tenants == other.tenants
            && self.profiles == other.profiles
            && self.nodes == other.nodes
            && self.capacity == other.capacity
            && self.jobs == other.jobs
            && self.leases == other.leases
            && self.pending == other.pending
            && self.by_end == other.by_end
            && self.alarms == other.alarms
            && self.must_stop == other.must_stop
            && self.gates == other.gates
            && self.windows == other.windows
            && self.accounts == other.accounts
            && self.weighed_at == other.weighed_at
            && self.budget_changes == other.budget_changes
            && self.abilities == other.abilities
            && self.uses == other.uses
            && self.services == other.services
            && self.wake_at == other.wake_at
            && self.asked_at == other.asked_at
            && self.turns == other.turns
            && self.policy_fault == other.policy_fault
            && self.stale_events == other.stale_events
    }
}

impl ClusterState {
    /// Time of the last record.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The rule that a policy broke last, until a person says who decides.
    pub fn policy_fault(&self) -> Option<&PolicyFault> {
        self.policy_fault.as_ref()
    }

    /// Whether only housekeeping goes on, for want of a policy that keeps the rules.
    pub fn nobody_decides(&self) -> bool {
        self.policy_fault.as_ref().is_some_and(|fault| fault.nobody_decides)
    }

    /// Number of input records so far.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// GPU models of the catalogue, by id.
    pub fn models(&self) -> &[GpuModel] {
        &self.models
    }

    /// Tenants of the catalogue, by id.
    pub fn tenants(&self) -> &[Tenant] {
        &self.tenants
    }

    /// Nodes, by id.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Number of nodes that never come back.
    pub fn retired(&self) -> usize {
        self.retired
    }

    /// Times that a node began to be able to do other things, since this state was made.
    pub fn refitted(&self) -> usize {
        self.refitted
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// A GPU model.
    pub fn model(&self, id: ModelId) -> &GpuModel {
        &self.models[id.index()]
    }

    /// A tenant.
    pub fn tenant(&self, id: TenantId) -> &Tenant {
        &self.tenants[id.index()]
    }

    /// What the executor can do.
    pub fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// What is free. Not for policies: during a question the plan holds it.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// A job that is not over.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(id.0)
    }

    /// Jobs that are not over, by id.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter()
    }

    /// Jobs that are not over from a number on, by id.
    pub fn jobs_from(&self, id: JobId) -> impl Iterator<Item = &Job> {
        self.jobs.numbered_from(id.0).map(|(_, job)| job)
    }

    /// Number of jobs that are not over.
    pub fn job_count(&self) -> usize {
        self.jobs.len()
    }

    /// Jobs that were not over, summed over the life of one so far (job-microseconds); itself
    /// counts.
    pub fn crowd_since(&self, job: &Job) -> u64 {
        self.crowd.wrapping_sub(job.crowd_before)
    }

    /// A lease that has not ended.
    pub fn lease(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(id.0)
    }

    /// Leases that have not ended, by id.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.leases.iter()
    }

    /// Number of leases that have not ended.
    pub fn lease_count(&self) -> usize {
        self.leases.len()
    }

    /// Number of leases that were told to stop and have not ended.
    pub fn stopping(&self) -> usize {
        self.stopping
    }

    /// Jobs that wait and that nothing holds back, in order of submission.
    pub fn pending(&self) -> &BTreeSet<JobId> {
        &self.pending
    }

    /// Whether memory of nodes is taken by jobs that are suspended, or are about to be.
    pub fn keeps_suspended(&self) -> bool {
        !self.parked.is_empty()
    }

    /// Jobs that wait suspended and that nothing holds back, by id.
    pub fn suspended(&self) -> impl Iterator<Item = &Job> {
        let jobs = self.parked.iter().filter_map(|id| self.job(*id));
        jobs.filter(|job| job.phase == Phase::Pending)
    }

    /// Leases by believed end, soonest first.
    pub fn by_expected_end(&self) -> impl Iterator<Item = &Lease> {
        self.by_end.iter().map(|(_, id)| self.lease(*id).expect("the index names live leases"))
    }

    /// Leases that will be cut off, soonest first: they have a time limit or an end, or were told
    /// to stop.
    pub fn by_alarm(&self) -> impl Iterator<Item = &Lease> {
        self.alarms.iter().map(|(_, id)| self.lease(*id).expect("the index names live leases"))
    }

    /// What changed since the policy was last asked.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Compute that a job is expected to use of each device: the most that enough jobs of its
    /// group used.
    fn expected_use(&self, spec: &JobSpec) -> Option<Milli> {
        let seen = self.uses.get(&(spec.tenant, spec.group?))?;
        (seen.jobs >= USES_SEEN_MIN).then_some(seen.most)
    }

    /// What the last jobs received that are over.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Events that came for leases or jobs that were over: late or repeated outcomes.
    pub fn stale_events(&self) -> u64 {
        self.stale_events
    }

    /// Number of profiles that are known.
    pub fn profile_count(&self) -> usize {
        self.profiles.len()
    }

    /// The profile under a key, when it is known.
    pub fn profile(&self, key: ProfileKey) -> Option<&Profile> {
        self.profiles.get(&key)
    }

    /// The least number that the next job may have.
    pub fn next_job(&self) -> JobId {
        JobId(self.jobs.next_id())
    }

    /// The number that the next lease gets.
    pub fn next_lease(&self) -> LeaseId {
        LeaseId(self.leases.next_id())
    }

    /// The time that the policy asked to be woken at.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// Number of GPUs, over all nodes.
    pub fn device_count(&self) -> u32 {
        self.next_device
    }

    /// CPU and memory that leases hold on a node.
    pub(crate) fn held_on(&self, node: NodeId) -> [u32; 2] {
        self.node_held[node.index()]
    }

    /// Compute and memory that leases hold of a device.
    pub(crate) fn held_of(&self, device: DeviceId) -> [u32; 2] {
        self.device_held[device.index()]
    }

    /// When the policy was last asked.
    pub(crate) fn asked_at(&self) -> Option<Time> {
        self.asked_at
    }

    pub(crate) fn note_question(&mut self) {
        self.asked_at = Some(self.now);
        self.journal.clear();
    }

    /// Leases that must end whatever the policy says, and why.
    pub(crate) fn must_stop(&self) -> impl Iterator<Item = (LeaseId, StopWhy)> {
        self.must_stop.iter().map(|(lease, why)| (*lease, *why))
    }

    /// Leases for which something is due by now.
    pub(crate) fn due(&self) -> impl Iterator<Item = &Lease> {
        let alarms = self.alarms.iter().take_while(|(at, _)| *at <= self.now);
        let alarms = alarms.filter(|(_, id)| !self.is_left_alone(*id));
        let starts = self.starting.iter().take_while(|(at, _)| *at <= self.now);
        let starts = starts.filter(|(_, id)| self.awaits_start(*id));
        alarms.chain(starts).filter_map(|(_, id)| self.lease(*id))
    }

    /// Nodes that did not confirm a stop, however often it was asked for.
    pub(crate) fn silent_nodes(&self, at: Time) -> Vec<NodeId> {
        let due = self.alarms.iter().take_while(|(alarm, _)| *alarm <= at);
        let leases = due.filter_map(|(_, id)| self.lease(*id));
        let silent =
            leases.filter(|lease| lease.stop.is_some_and(|stop| stop.asked >= STOP_ATTEMPTS_MAX));
        let parts = silent.flat_map(|lease| &lease.placement.parts);
        let up = parts.map(|part| part.node).filter(|id| self.node(*id).health != Health::Down);
        let mut nodes: Vec<NodeId> = up.collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The next time at which something is due for a lease.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let mut alarms = self.alarms.iter().filter(|(_, id)| !self.is_left_alone(*id));
        let alarm = alarms.next().map(|(at, _)| *at);
        let start = self.starting.iter().find(|(_, id)| self.awaits_start(*id)).map(|(at, _)| *at);
        [alarm, start].into_iter().flatten().min()
    }

    /// Whether a stay may be ended in favour of others, one way or another.
    pub fn may_preempt(&self, lease: &Lease) -> bool {
        self.may_stop_for_good(lease) || self.parking(lease).is_some()
    }

    /// Whether the processes of a stay may be ended in favour of others. A job that cannot be saved
    /// loses all that it did, so it is left alone unless the operator allows for that loss, and
    /// then it does at least twice as much each time as it lost before. Who is about to go on from
    /// memory is left alone as well: what it has there is saved nowhere.
    pub fn may_stop_for_good(&self, lease: &Lease) -> bool {
        if lease.is_resuming() {
            return false;
        }
        let Some(job) = self.job(lease.job).filter(|job| job.spec.checkpoint.never) else {
            return true;
        };
        let (Some(started), before) = (lease.started, job.ledger.lost_work) else { return true };
        let stays = self.now.since(started) >= UNSAVED_STAY_MIN;
        // What it did in stays that were suspended is in its memory, too.
        let done = lease.believed_done(job.spec.checkpoint, self.now);
        let lost = done.saturating_sub(job.ledger.done);
        let enough = stays && lost >= Span(before.0.saturating_mul(2));
        let most = self.abilities.lost_work_max;
        enough && most.is_some_and(|most| before + lost <= most)
    }

    /// Whether a stop was asked for often enough, and the executor will say itself what became of
    /// the node.
    fn is_left_alone(&self, id: LeaseId) -> bool {
        let asked = || self.lease(id)?.stop.map(|stop| stop.asked);
        self.abilities.tells_nodes && asked().is_some_and(|asked| asked >= STOP_ATTEMPTS_MAX)
    }

    fn awaits_start(&self, id: LeaseId) -> bool {
        self.lease(id).is_some_and(|lease| lease.started.is_none() && lease.stop.is_none())
    }

    /// Forgets starts that are settled.
    pub(crate) fn drop_settled_starts(&mut self) {
        while self.starting.front().is_some_and(|(_, id)| !self.awaits_start(*id)) {
            self.starting.pop_front();
        }
    }

    /// The node that a device is in.
    pub fn node_of(&self, device: DeviceId) -> NodeId {
        let after = self.nodes.partition_point(|node| node.first_device <= device);
        let owner = self.nodes[..after].iter().rev().find(|node| node.spec.gpus > 0);
        owner.expect("the device is in a node").id
    }

    /// Compute that a part books on its GPUs.
    pub fn gpu_of(&self, part: &Part) -> Milli {
        let model = self.node(part.node).spec.gpu_model;
        let mig_slices = model.map_or(0, |model| self.model(model).mig_slices);
        Milli(part.slices.iter().map(|slice| slice.share.compute(mig_slices).0).sum())
    }

    /// How far apart the parts of a placement are.
    pub fn reach(&self, placement: &Placement) -> Reach {
        self.reach_of(placement.parts.iter())
    }

    /// How far apart some parts are.
    pub(crate) fn reach_of<'a>(&self, parts: impl Iterator<Item = &'a Part> + Clone) -> Reach {
        let Some(first) = parts.clone().next() else {
            return Reach::Island;
        };
        let node = self.node(first.node);
        if parts.clone().all(|part| part.node == first.node) {
            let local = |device: DeviceId| node.island(device.0 - node.first_device.0);
            let mut devices = parts.flat_map(|part| &part.slices);
            let island = devices.next().map(|slice| local(slice.device));
            let together = devices.all(|slice| Some(local(slice.device)) == island);
            return if together { Reach::Island } else { Reach::Node };
        }
        let same_rack = |part: &Part| self.node(part.node).spec.rack == node.spec.rack;
        if parts.clone().all(same_rack) { Reach::Rack } else { Reach::Cluster }
    }

    /// Believed speed of a job at a placement while it works, without neighbours: that of its
    /// slowest task. Where it is believed not to fit, the least there is.
    pub fn believed_rate(&self, job: &Job, placement: &Placement) -> Rate {
        let profile = job.spec.profile.and_then(|key| self.profiles.get(&key));
        let Some(profile) = profile else {
            return Rate::FULL;
        };
        let model = |part: &Part| self.node(part.node).spec.gpu_model;
        let on_gpus = placement.parts.iter().filter(|part| !part.slices.is_empty());
        let (gpus, asked, reach) = (placement.gpus(), job.spec.gpus(), self.reach(placement));
        let rates = on_gpus.filter_map(model).map(|on| profile.rate(on, gpus, asked, reach));
        let without_gpus = || profile.at_reach(reach);
        rates.min().unwrap_or_else(without_gpus).max(Rate(1))
    }
}
