//! What each fact does to the state.
//!
//! Facts about leases and jobs that are over are counted and ignored: outcomes may come late or
//! twice, and the lease id tells.

use std::sync::Arc;

use super::{Change, ClusterState, PolicyFault};
use crate::cluster::{Health, Node, NodeSpec, Power, Share};
use crate::decision::StopWhy;
use crate::event::{Event, Outcome};
use crate::gate::Gates;
use crate::id::{DeviceId, Features, JobId, LeaseId, ModelId, NodeId, ProfileKey};
use crate::job::{Ending, Estimate, Job, JobSpec, Ledger, Phase};
use crate::limits::{
    DEVICES_PER_NODE_MAX, MODELS_MAX, NODES_MAX, PACKED_FAILURES_MAX, START_FAILURES_MAX,
};
use crate::placement::{Lease, Part, Placement};
use crate::profile::Profile;
use crate::reason::Reason;
use crate::units::{Milli, Pace, Rate, Span, Time};
use crate::watch::Watch;

impl ClusterState {
    /// Moves the state to a new instant and tells whether a time that the policy asked for has
    /// come. Time never goes back: a late clock stands still.
    pub(crate) fn begin_step(&mut self, at: Time) -> bool {
        let passed = at.since(self.now).0;
        self.crowd = self.crowd.wrapping_add(passed.wrapping_mul(self.jobs.len() as u64));
        self.now = self.now.max(at);
        self.step += 1;
        let woken = self.wake_at.is_some_and(|wake| wake <= self.now);
        if woken {
            self.wake_at = None;
        }
        let resumed = self.resume_paused();
        let paid = self.pass_budgets();
        self.pass_windows() || paid || resumed || woken
    }

    /// Takes one fact in.
    pub(crate) fn apply_event(&mut self, event: &Event, watch: &mut dyn Watch) {
        match event {
            Event::ModelAdded { model, spec } => self.add_model(*model, spec),
            Event::TenantAdded { tenant, spec } => {
                assert_eq!(tenant.index(), self.tenants.len(), "tenants are numbered in order");
                self.tenants.push(spec.clone());
                self.tenant_added(*tenant);
                self.budget_changed(*tenant, false);
            }
            Event::TenantChanged { tenant, spec } => {
                assert!(spec.weight > 0, "something is due to every tenant");
                let before = std::mem::replace(&mut self.tenants[tenant.index()], spec.clone());
                self.note_change();
                self.budget_changed(*tenant, before.budget.is_some());
                self.quota_changed(*tenant);
            }
            Event::AbilitiesChanged { abilities } => {
                self.abilities = *abilities;
                self.note_catalogue();
            }
            Event::NodeUp { node, spec } => self.node_up(*node, spec, watch),
            Event::NodeDown { node } => self.node_down(*node, watch),
            Event::NodeRetired { node } => self.node_retired(*node, watch),
            Event::FeaturesChanged { node, features } => self.features_changed(*node, *features),
            Event::NodeDrain { node, draining } => self.node_drain(*node, *draining, watch),
            Event::WindowSet { window, spec } => self.window_set(*window, spec),
            Event::WindowEnded { window } => self.window_ended(*window),
            Event::PowerChanged { node, power } => self.power_changed(*node, *power, watch),
            Event::Submitted { job, spec } => self.submitted(*job, spec, watch),
            Event::LeasesSkipped { next } => self.leases.skip_to(next.0),
            Event::JobsSkipped { next } => self.jobs.skip_to(next.0),
            Event::Cancelled { job } => self.cancelled(*job, watch),
            Event::HoldChanged { job, held } => self.hold_changed(*job, *held),
            Event::KeptBack { job, kept } => self.kept_back(*job, *kept),
            Event::Adopted { lease, job, placement, done } => {
                self.adopt(*lease, *job, placement, *done, watch);
            }
            Event::Paused { job, until } => self.paused(*job, *until),
            Event::Started { lease } => self.started(*lease),
            Event::StartFailed { lease } => self.start_failed(*lease, watch),
            Event::SuspendRefused { lease } => self.suspend_refused(*lease),
            Event::SuspendedLost { job } => self.suspended_lost(*job),
            Event::Progress { lease, done, idle } => self.progress(*lease, *done, *idle),
            Event::Checkpointed { lease, done } => self.checkpointed(*lease, *done),
            Event::Stopped { lease, outcome, done, lost } => {
                self.stopped(*lease, *outcome, *done, *lost, watch);
            }
            Event::Estimated { job, estimate } => self.estimated(*job, *estimate),
            Event::Profiled { key, profile } => self.profiled(*key, profile),
            Event::Used { lease, gpu } => self.used(*lease, *gpu),
            Event::Solved { based_on, solution } => self.solved(*based_on, solution),
            Event::RoundEnded => self.end_round(),
            Event::PolicyChanged { .. } => self.policy_changed(None),
            Event::PolicyBroke { fault, fallback } => {
                let (fault, nobody_decides) = (fault.clone(), fallback.is_none());
                self.policy_changed(Some(PolicyFault { fault, nobody_decides }));
            }
        }
    }

    /// What a policy asked its solver is of no use to another.
    fn policy_changed(&mut self, fault: Option<PolicyFault>) {
        self.policy_fault = fault;
        self.withdraw_question();
    }

    /// A policy may rank or place jobs by their speeds.
    fn profiled(&mut self, key: ProfileKey, profile: &Profile) {
        self.note_catalogue();
        if let Some(before) = self.profiles.insert(key, profile.clone()) {
            self.recount(key, &before, profile);
        }
        for id in &self.pending {
            let job = self.jobs.get(id.0).expect("a waiting job is not over");
            if job.spec.profile == Some(key) {
                self.journal.push(Change::Queued(*id));
            }
        }
    }

    pub(super) fn stale_unless(&mut self, live: bool) {
        self.stale_events += u64::from(!live);
    }

    fn add_model(&mut self, model: ModelId, spec: &crate::cluster::GpuModel) {
        assert_eq!(model.index(), self.models.len(), "models are numbered in order");
        assert!(self.models.len() < MODELS_MAX, "more than {MODELS_MAX} GPU models");
        self.capacity.add_model(spec);
        self.models.push(spec.clone());
    }

    fn node_up(&mut self, id: NodeId, spec: &NodeSpec, watch: &mut dyn Watch) {
        if id.index() < self.nodes.len() {
            let node = &mut self.nodes[id.index()];
            assert_eq!(node.spec, *spec, "{id:?} came back as another machine");
            assert!(!node.retired, "{id:?} came back although it never would");
            node.health = Health::Up;
            node.power = Power::On;
        } else {
            self.add_node(id, spec);
            self.reconsider_set_aside();
        }
        self.refresh_usable(id);
        watch.node_changed(self.now, self, &self.nodes[id.index()]);
        self.journal.push(Change::Freed(id));
    }

    fn add_node(&mut self, id: NodeId, spec: &NodeSpec) {
        assert_eq!(id.index(), self.nodes.len(), "nodes are numbered in order");
        assert!(self.nodes.len() < NODES_MAX, "more than {NODES_MAX} nodes");
        assert!(spec.gpus as usize <= DEVICES_PER_NODE_MAX, "{id:?} has too many GPUs");
        assert_eq!(spec.gpus == 0, spec.gpu_model.is_none(), "{id:?}: GPUs and model disagree");
        let node = Node {
            id,
            spec: spec.clone(),
            health: Health::Up,
            power: Power::On,
            first_device: DeviceId(self.next_device),
            leases: Vec::new(),
            parked: Vec::new(),
            retired: false,
            kept: None,
        };
        self.next_device += spec.gpus;
        self.node_held.push([0; 2]);
        self.device_held.resize(self.next_device as usize, [0; 2]);
        self.note_catalogue();
        self.capacity.add_node(&node);
        self.nodes.push(node);
    }

    fn refresh_usable(&mut self, id: NodeId) {
        self.note_change();
        let usable = self.nodes[id.index()].usable();
        self.capacity.set_usable(id, usable);
        if !usable {
            self.journal.push(Change::Closed(id));
        }
    }

    fn node_down(&mut self, id: NodeId, watch: &mut dyn Watch) {
        if self.nodes[id.index()].health == Health::Down {
            self.stale_events += 1;
            return;
        }
        self.nodes[id.index()].health = Health::Down;
        self.refresh_usable(id);
        for lease_id in self.nodes[id.index()].leases.clone() {
            let lease = self.lease(lease_id).expect("a node names live leases");
            let down = |node: NodeId| self.node(node).health == Health::Down;
            if lease.placement.parts.iter().all(|part| down(part.node)) {
                let job = lease.job;
                self.write_off(lease_id);
                self.unpark(job);
                self.interrupted(lease_id, StopWhy::NodeFailed, watch);
            } else if lease.stop.is_none() {
                // Tasks of the gang may still run elsewhere: they stay booked until they stopped.
                self.must_stop.insert(lease_id, StopWhy::NodeFailed);
            }
        }
        self.lose_parked_on(id);
        watch.node_changed(self.now, self, &self.nodes[id.index()]);
    }

    /// Whoever waits may have counted on the node, and is looked at as if it had just come.
    fn node_retired(&mut self, id: NodeId, watch: &mut dyn Watch) {
        if self.nodes[id.index()].health != Health::Down {
            self.node_down(id, watch);
        }
        if std::mem::replace(&mut self.nodes[id.index()].retired, true) {
            self.stale_events += 1;
            return;
        }
        self.retired += 1;
        self.note_catalogue();
        self.look_at_waiting_anew();
    }

    /// What a node can do is another thing now; what runs there stays.
    fn features_changed(&mut self, id: NodeId, features: Features) {
        let node = &mut self.nodes[id.index()];
        if std::mem::replace(&mut node.spec.features, features) == features {
            self.stale_events += 1;
            return;
        }
        self.refitted += 1;
        self.note_catalogue();
        self.capacity.set_features(id, features);
        self.reconsider_set_aside();
        self.look_at_waiting_anew();
        self.journal.push(Change::Freed(id));
    }

    fn look_at_waiting_anew(&mut self) {
        for id in &self.pending {
            let job = self.jobs.get_mut(id.0).expect("a waiting job is not over");
            job.reason = Reason::New;
            self.journal.push(Change::Unqueued(*id));
            self.journal.push(Change::Queued(*id));
        }
    }

    /// Nobody is left to report: what was believed done and is not safe counts as lost.
    fn write_off(&mut self, id: LeaseId) {
        let lease = self.leases.get(id.0).expect("the lease has not ended");
        let job = self.jobs.get_mut(lease.job.0).expect("a lease belongs to a job");
        let done = lease.believed_done(job.spec.checkpoint, self.now);
        job.ledger.lost_work += done.saturating_sub(job.ledger.done);
    }

    fn node_drain(&mut self, id: NodeId, draining: bool, watch: &mut dyn Watch) {
        let node = &mut self.nodes[id.index()];
        match (node.health, draining) {
            (Health::Up, true) => node.health = Health::Draining,
            (Health::Draining, false) => node.health = Health::Up,
            (Health::Up, false) | (Health::Draining, true) | (Health::Down, _) => return,
        }
        self.refresh_usable(id);
        if !draining {
            self.journal.push(Change::Freed(id));
        }
        watch.node_changed(self.now, self, &self.nodes[id.index()]);
    }

    fn power_changed(&mut self, id: NodeId, power: Power, watch: &mut dyn Watch) {
        self.nodes[id.index()].power = power;
        self.refresh_usable(id);
        self.journal.push(Change::Freed(id));
        watch.node_changed(self.now, self, &self.nodes[id.index()]);
    }

    fn submitted(&mut self, id: JobId, spec: &Arc<JobSpec>, watch: &mut dyn Watch) {
        let mut job = Job {
            id,
            spec: Arc::clone(spec),
            submitted: self.now,
            crowd_before: self.crowd,
            phase: Phase::Pending,
            ledger: Ledger::default(),
            estimate: None,
            gpu_use: self.expected_use(spec),
            reason: Reason::New,
            phase_since: self.now,
            gates: Gates::default(),
            started: false,
            cancelled: false,
            parked: None,
            share_accounts: None,
        };
        self.note_change();
        self.admit_new(&mut job);
        let waits = job.phase == Phase::Pending;
        watch.submitted(self.now, &job);
        self.jobs.insert(id.0, job);
        if waits {
            self.pending.insert(id);
            self.journal.push(Change::Queued(id));
        }
    }

    /// Notes what a job used, for the next ones of its group.
    fn used(&mut self, id: LeaseId, gpu: Milli) {
        let job = self.lease(id).and_then(|lease| self.job(lease.job));
        let Some(key) = job.map(|job| (job.spec.tenant, job.spec.group)) else {
            self.stale_events += 1;
            return;
        };
        if let (tenant, Some(group)) = key {
            let seen = self.uses.entry((tenant, group)).or_default();
            seen.jobs = seen.jobs.saturating_add(1);
            seen.most = seen.most.max(gpu);
        }
    }

    fn cancelled(&mut self, id: JobId, watch: &mut dyn Watch) {
        let Some(job) = self.jobs.get_mut(id.0) else {
            self.stale_events += 1;
            return;
        };
        job.cancelled = true;
        match job.lease() {
            None => self.finish(id, Ending::Cancelled, watch),
            Some(lease) => {
                if self.lease(lease).is_some_and(|lease| lease.stop.is_none()) {
                    self.must_stop.insert(lease, StopWhy::Cancelled);
                }
            }
        }
    }

    pub(super) fn started(&mut self, id: LeaseId) {
        let now = self.now;
        if let Some(alarm) = self.lease(id).and_then(|lease| self.alarm_of(lease)) {
            self.alarms.remove(&(alarm, id));
        }
        let live = match self.leases.get_mut(id.0) {
            Some(lease) if lease.started.is_none() && lease.stop.is_none() => {
                lease.started = Some(now);
                let job = self.jobs.get_mut(lease.job.0).expect("a lease belongs to a job");
                job.phase = Phase::Running(id);
                job.phase_since = now;
                job.started = true;
                true
            }
            Some(_) | None => false,
        };
        self.stale_unless(live);
        if let Some(alarm) = self.lease(id).and_then(|lease| self.alarm_of(lease)) {
            self.alarms.insert((alarm, id));
            self.journal.push(Change::Rescheduled(id));
        }
        if let Some(job) = self.lease(id).filter(|_| live).map(|lease| lease.job) {
            self.settle_started(job);
        }
    }

    /// Work is counted in seconds of the reference run. Where that is believed to be faster or
    /// slower than before, what was counted is so many fewer seconds of it, or more.
    fn recount(&mut self, key: ProfileKey, before: &Profile, after: &Profile) {
        if before.measured.alone() == after.measured.alone() {
            return;
        }
        for job in self.jobs.values_mut().filter(|job| job.spec.profile == Some(key)) {
            let gpus = job.spec.gpus();
            let (old, new) = (before.reference(gpus), after.reference(gpus));
            if old == new || old == Pace::ZERO || new == Pace::ZERO {
                continue;
            }
            let recounted = |span: Span| span.recounted(old, new);
            job.ledger.done = recounted(job.ledger.done);
            if let Some(parked) = &mut job.parked {
                parked.done = recounted(parked.done);
            }
            if let Some(estimate) = &mut job.estimate {
                estimate.run = recounted(estimate.run);
                estimate.spread = recounted(estimate.spread);
            }
            if let Some(lease) = job.lease().and_then(|id| self.leases.get_mut(id.0)) {
                lease.base = recounted(lease.base);
                lease.progress = lease.progress.map(|(at, done)| (at, recounted(done)));
            }
        }
        self.believe_running(key);
    }

    /// Who runs is taken to run as fast as is believed now.
    fn believe_running(&mut self, key: ProfileKey) {
        let job_of = |lease: &Lease| self.jobs.get(lease.job.0).expect("a lease belongs to a job");
        let rate = |lease: &Lease| {
            let job = Some(job_of(lease)).filter(|job| job.spec.profile == Some(key))?;
            Some((lease.id, self.believed_rate(job, &lease.placement)))
        };
        let rates: Vec<(LeaseId, Rate)> = self.leases.iter().filter_map(rate).collect();
        for (id, rate) in rates {
            self.leases.get_mut(id.0).expect("it runs").rate = rate;
            self.refresh_expected_end(id);
            self.journal.push(Change::Slipped(id));
        }
    }

    fn start_failed(&mut self, id: LeaseId, watch: &mut dyn Watch) {
        match self.lease(id) {
            // A stop may have crossed with the failure: nothing runs either way.
            Some(lease) if lease.started.is_none() => {
                self.write_off(id);
                self.interrupted(id, StopWhy::NoAnswer, watch);
            }
            Some(_) | None => self.stale_events += 1,
        }
    }

    pub(super) fn progress(&mut self, id: LeaseId, done: Span, idle: Span) {
        let now = self.now;
        let live = self.lease(id).is_some();
        self.stale_unless(live);
        if live {
            let lease = self.leases.get_mut(id.0).expect("looked up above");
            let job = self.jobs.get(lease.job.0).expect("a lease belongs to a job");
            let believed = |lease: &Lease| lease.believed_done(job.spec.checkpoint, now);
            let before = believed(lease);
            lease.progress = Some((now, done));
            if believed(lease) < before {
                self.journal.push(Change::Slipped(id));
            }
            // As if what is in the accounts already had come that much later.
            lease.settled = lease.settled + idle.saturating_sub(lease.idle);
            lease.idle = idle;
            self.refresh_expected_end(id);
        }
    }

    fn checkpointed(&mut self, id: LeaseId, done: Span) {
        let live = self.lease(id).is_some();
        self.stale_unless(live);
        if let Some(job) = self.leases.get(id.0).map(|lease| lease.job) {
            let job = self.jobs.get_mut(job.0).expect("a lease belongs to a job");
            job.ledger.done = job.ledger.done.max(done);
        }
    }

    fn stopped(
        &mut self,
        id: LeaseId,
        outcome: Outcome,
        done: Span,
        lost: Span,
        watch: &mut dyn Watch,
    ) {
        let Some(lease) = self.lease(id) else {
            self.stale_events += 1;
            return;
        };
        let job_id = lease.job;
        if outcome == Outcome::Suspended {
            return self.left_gpus(id, done, watch);
        }
        let job = self.jobs.get_mut(job_id.0).expect("a lease belongs to a job");
        job.ledger.done = job.ledger.done.max(done);
        job.ledger.lost_work += lost;
        // Its processes are gone, whatever was planned with them.
        self.unpark(job_id);
        let ending = match outcome {
            Outcome::Finished => Ending::Finished,
            Outcome::Failed => Ending::Failed,
            Outcome::Interrupted | Outcome::Suspended => {
                return self.interrupted(id, StopWhy::NodeFailed, watch);
            }
        };
        self.end_lease(id, watch);
        self.finish(job_id, ending, watch);
    }

    /// The processes of a stay wait in memory, unless a node of them is gone by now.
    fn left_gpus(&mut self, id: LeaseId, done: Span, watch: &mut dyn Watch) {
        let lease = self.lease(id).expect("looked up before");
        let (job_id, placement) = (lease.job, Arc::clone(&lease.placement));
        let down = |part: &Part| self.node(part.node).health == Health::Down;
        let gone = placement.parts.iter().any(down);
        let job = self.jobs.get_mut(job_id.0).expect("a lease belongs to a job");
        if job.parked.is_none() {
            // Nobody asked for it, and there is nowhere to go on.
            job.ledger.lost_work += done.saturating_sub(job.ledger.done);
        }
        self.pin(job_id, done);
        self.interrupted(id, StopWhy::NodeFailed, watch);
        if gone {
            self.lose_parked(job_id, Reason::NodeFailed);
        }
        self.evict();
    }

    /// Ends a stay that did not come to its own end. `otherwise` tells why when nobody asked.
    fn interrupted(&mut self, id: LeaseId, otherwise: StopWhy, watch: &mut dyn Watch) {
        let lease = self.end_lease(id, watch);
        let why = lease.stop.map_or(otherwise, |stop| stop.why);
        let job = self.jobs.get_mut(lease.job.0).expect("a lease belongs to a job");
        if job.cancelled {
            return self.finish(lease.job, Ending::Cancelled, watch);
        }
        match why {
            StopWhy::Preempted | StopWhy::LeaseEnded => {
                job.ledger.preemptions += 1;
                let parked = job.parked.is_some();
                let reason = if parked { Reason::Suspended } else { Reason::Preempted };
                self.requeue(lease.job, reason);
            }
            StopWhy::Cancelled => self.finish(lease.job, Ending::Cancelled, watch),
            StopWhy::TimeLimit => self.finish(lease.job, Ending::TimedOut, watch),
            StopWhy::NodeFailed => self.requeue(lease.job, Reason::NodeFailed),
            StopWhy::Evicted => self.requeue(lease.job, Reason::Evicted),
            StopWhy::NoAnswer => {
                if one_failure_too_many(job, &lease.placement) {
                    self.finish(lease.job, Ending::Failed, watch);
                } else {
                    self.requeue(lease.job, Reason::StartFailed);
                }
            }
        }
    }

    fn estimated(&mut self, id: JobId, estimate: Estimate) {
        let Some(job) = self.jobs.get_mut(id.0) else {
            self.stale_events += 1;
            return;
        };
        job.estimate = Some(estimate);
        match job.lease() {
            Some(lease) => {
                self.refresh_expected_end(lease);
                self.journal.push(Change::Slipped(lease));
            }
            None => self.requeue_if_pending(id),
        }
    }

    fn requeue_if_pending(&mut self, id: JobId) {
        if self.pending.contains(&id) {
            self.journal.push(Change::Queued(id));
        }
    }

    fn refresh_expected_end(&mut self, id: LeaseId) {
        let lease = self.leases.get_mut(id.0).expect("the lease has not ended");
        let job = self.jobs.get(lease.job.0).expect("a lease belongs to a job");
        let (seen, done) = lease.progress.unwrap_or((lease.since + lease.load, Span::ZERO));
        // Work that was saved in this stay is part of what it has done.
        let end = match job.estimate {
            Some(estimate) => {
                let left = estimate.run.saturating_sub(lease.base + done);
                seen + job.spec.checkpoint.time_for(done, left, lease.rate)
            }
            None => Time::NEVER,
        };
        let before = std::mem::replace(&mut lease.expected_end, end);
        if before != end {
            self.by_end.remove(&(before, id));
            self.by_end.insert((end, id));
            self.journal.push(Change::Rescheduled(id));
        }
    }
}

/// Counts a start that failed; whether that was the last one that the job has.
fn one_failure_too_many(job: &mut Job, placement: &Placement) -> bool {
    let whole = job.spec.gangs.iter().all(|gang| !gang.demand.gpu.is_fraction());
    let mut slices = placement.parts.iter().flat_map(|part| &part.slices);
    if whole && slices.any(|slice| slice.share != Share::Whole) {
        job.ledger.packed_failures += 1;
        return job.ledger.packed_failures > PACKED_FAILURES_MAX;
    }
    job.ledger.start_failures += 1;
    job.ledger.start_failures > START_FAILURES_MAX
}
