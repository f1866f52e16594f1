//! The life of a lease inside the state: how one begins, ends and is accounted for.

use std::sync::Arc;

use super::{Change, ClusterState};
use crate::id::{JobId, LeaseId, NodeId};
use crate::job::{Ending, Job, Phase};
use crate::limits::START_TIMEOUT;
use crate::placement::{Lease, Placement, Slice};
use crate::reason::Reason;
use crate::service::Service;
use crate::suspend::Parked;
use crate::units::{Span, Time};
use crate::watch::Watch;

impl ClusterState {
    pub(super) fn begin_lease(
        &mut self,
        id: LeaseId,
        job_id: JobId,
        placement: &Arc<Placement>,
        until: Option<Time>,
        watch: &mut dyn Watch,
    ) {
        let parked = self.unpark(job_id);
        // What it lacked was asked for; it holds all that it held before.
        let placement = parked.as_ref().map_or(placement, |parked| &parked.placement);
        if let Err(refusal) = self.capacity.book(placement) {
            panic!("{id:?} of {job_id:?} books what is taken: {refusal}");
        }
        self.hold_lease(id, job_id, placement, until, parked.as_deref(), watch);
    }

    /// A job that nobody here started runs: its place is booked, whatever is true of its nodes.
    pub(super) fn adopt(
        &mut self,
        id: LeaseId,
        job_id: JobId,
        placement: &Arc<Placement>,
        done: Span,
        watch: &mut dyn Watch,
    ) {
        assert_eq!(id, self.next_lease(), "leases are numbered in order");
        self.let_run(job_id);
        if let Err(refusal) = self.capacity.keep(placement) {
            panic!("{id:?} of {job_id:?} was found on what is taken: {refusal}");
        }
        self.hold_lease(id, job_id, placement, None, None, watch);
        self.started(id);
        self.progress(id, done, Span::ZERO);
        // It is no newcomer to those who go by what jobs received.
        let lease = self.lease(id).expect("it has just begun").clone();
        self.add_service(&lease, done);
    }

    /// A lease begins whose place is booked.
    fn hold_lease(
        &mut self,
        id: LeaseId,
        job_id: JobId,
        placement: &Arc<Placement>,
        until: Option<Time>,
        parked: Option<&Parked>,
        watch: &mut dyn Watch,
    ) {
        let now = self.now;
        let job = self.jobs.get(job_id.0).expect("the job is not over");
        assert_eq!(job.phase, Phase::Pending, "{job_id:?} starts while it is not waiting");
        let rate = self.believed_rate(job, placement);
        let again = job.ledger.first_start.is_some();
        let load = match (parked, again) {
            (Some(_), _) => self.back_time(job, placement),
            (None, true) => job.spec.checkpoint.load,
            (None, false) => Span::ZERO,
        };
        let base = parked.map_or(job.ledger.done, |parked| parked.done);
        let left = job.estimate.map(|estimate| estimate.run.saturating_sub(base));
        let expected_end = match left {
            Some(left) => now + load + job.spec.checkpoint.time_for(Span::ZERO, left, rate),
            None => Time::NEVER,
        };
        let lease = Lease {
            id,
            job: job_id,
            placement: Arc::clone(placement),
            since: now,
            started: None,
            until,
            expected_end,
            rate,
            load,
            base,
            resumes: parked.map(|parked| parked.lease),
            progress: None,
            settled: now,
            idle: Span::ZERO,
            stop: None,
            stays: false,
        };
        let job = self.jobs.get_mut(job_id.0).expect("the job is not over");
        job.ledger.waited += now.since(job.phase_since);
        job.ledger.restarts += u32::from(again && parked.is_none());
        job.ledger.first_start.get_or_insert(now);
        job.phase = Phase::Starting(id);
        job.phase_since = now;
        job.reason = Reason::None;
        self.pending.remove(&job_id);
        self.journal.push(Change::Unqueued(job_id));
        self.by_end.insert((expected_end, id));
        self.starting.push_back((now + START_TIMEOUT, id));
        self.link_nodes(id, placement);
        self.charge(job_id, placement, true);
        let job = self.jobs.get(job_id.0).expect("the job is not over");
        watch.began(now, self, job, &lease);
        self.leases.insert(id.0, lease);
        let lease = self.lease(id).expect("inserted just now");
        if let Some(alarm) = self.alarm_of(lease) {
            self.alarms.insert((alarm, id));
        }
    }

    /// Ends a lease, gives its resources back and accounts for it.
    pub(super) fn end_lease(&mut self, id: LeaseId, watch: &mut dyn Watch) -> Lease {
        let lease = self.leases.remove(id.0).expect("the lease has not ended");
        self.capacity.release(&lease.placement);
        self.by_end.remove(&(lease.expected_end, id));
        if let Some(alarm) = self.alarm_of(&lease) {
            self.alarms.remove(&(alarm, id));
        }
        self.must_stop.remove(&id);
        self.stopping -= usize::from(lease.stop.is_some());
        self.unlink_nodes(id, &lease.placement);
        self.journal.push(Change::Ended(lease.job));
        self.charge(lease.job, &lease.placement, false);
        self.settle_lease(&lease);
        self.note_service(&lease);
        let job = self.jobs.get(lease.job.0).expect("a lease belongs to a job");
        watch.ended(self.now, self, job, &lease);
        lease
    }

    /// The time at which something is due for a lease, when there is one.
    pub(super) fn alarm_of(&self, lease: &Lease) -> Option<Time> {
        if let Some(stop) = lease.stop {
            return Some(stop.deadline);
        }
        let limit = self.job(lease.job)?.spec.time_limit;
        let limit = lease.started.zip(limit).map(|(started, limit)| started + limit);
        [limit, lease.until].into_iter().flatten().min()
    }

    pub(super) fn requeue(&mut self, job_id: JobId, reason: Reason) {
        let now = self.now;
        let job = self.jobs.get_mut(job_id.0).expect("the job is not over");
        job.phase = Phase::Pending;
        job.phase_since = now;
        job.reason = reason;
        self.pending.insert(job_id);
        self.journal.push(Change::Queued(job_id));
        self.hold_by_time(job_id);
    }

    /// Ends a job, and those that waited for another end of it.
    pub(super) fn finish(&mut self, job_id: JobId, ending: Ending, watch: &mut dyn Watch) {
        let mut over = vec![(job_id, ending)];
        while let Some((id, ending)) = over.pop() {
            self.unpark(id);
            let Some(mut job) = self.jobs.remove(id.0) else { continue };
            if self.pending.remove(&id) {
                self.journal.push(Change::Unqueued(id));
            }
            if matches!(job.phase, Phase::Pending | Phase::Held) {
                job.ledger.waited += self.now.since(job.phase_since);
            }
            self.forget_turns(&job);
            self.note_end(&job, ending);
            let in_vain = self.settle_over(&mut job, ending);
            for dependent in in_vain.into_iter().rev() {
                if let Some(waiting) = self.jobs.get_mut(dependent.0) {
                    waiting.reason = Reason::NeverComes { after: id };
                    over.push((dependent, Ending::Cancelled));
                }
            }
            job.phase = Phase::Done(ending);
            job.phase_since = self.now;
            watch.retired(self.now, self, &job);
        }
    }

    /// Notes what a job received that came to an end of its own; of one that somebody ended nobody
    /// knows what it would have needed.
    fn note_end(&mut self, job: &Job, ending: Ending) {
        let gpu_time = job.ledger.gpu_time();
        let own_end = match ending {
            Ending::Finished | Ending::Failed | Ending::TimedOut => gpu_time > 0,
            Ending::Cancelled | Ending::Rejected => false,
        };
        if own_end {
            let (tenant, group) = (job.spec.tenant, job.spec.group);
            self.services.note(Service { tenant, group, gpu_time });
        }
    }

    pub(super) fn note_service(&mut self, lease: &Lease) {
        let held = self.now.since(lease.since);
        self.jobs.get_mut(lease.job.0).expect("a lease belongs to a job").ledger.ran += held;
        self.add_service(lease, held);
    }

    /// Adds what a job received in a stay in so much time to its accounts.
    fn add_service(&mut self, lease: &Lease, held: Span) {
        for part in &lease.placement.parts {
            let compute = self.gpu_of(part).0;
            let Some(model) = self.nodes[part.node.index()].spec.gpu_model else {
                continue;
            };
            if compute == 0 {
                continue;
            }
            let job = self.jobs.get_mut(lease.job.0).expect("a lease belongs to a job");
            let served = (u128::from(held.0) * u128::from(compute) / 1000) as u64;
            match job.ledger.served.iter_mut().find(|(known, _)| *known == model) {
                Some((_, time)) => *time += served,
                None => job.ledger.served.push((model, served)),
            }
        }
    }

    /// Notes that a lease holds its placement.
    pub(super) fn link_nodes(&mut self, id: LeaseId, placement: &Placement) {
        for part in &placement.parts {
            let leases = &mut self.nodes[part.node.index()].leases;
            if let Err(at) = leases.binary_search(&id) {
                leases.insert(at, id);
            }
            let [cpu, mem] = &mut self.node_held[part.node.index()];
            (*cpu, *mem) = (*cpu + part.cpu.0, *mem + part.mem.0);
            for slice in &part.slices {
                let amounts = self.amounts(part.node, slice);
                let [compute, mem] = &mut self.device_held[slice.device.index()];
                (*compute, *mem) = (*compute + amounts[0], *mem + amounts[1]);
            }
        }
    }

    /// Notes that a lease does not hold its placement any more.
    pub(super) fn unlink_nodes(&mut self, id: LeaseId, placement: &Placement) {
        let mut last: Option<NodeId> = None;
        for part in &placement.parts {
            let leases = &mut self.nodes[part.node.index()].leases;
            if let Ok(at) = leases.binary_search(&id) {
                leases.remove(at);
            }
            let [cpu, mem] = &mut self.node_held[part.node.index()];
            (*cpu, *mem) = (*cpu - part.cpu.0, *mem - part.mem.0);
            for slice in &part.slices {
                let amounts = self.amounts(part.node, slice);
                let [compute, mem] = &mut self.device_held[slice.device.index()];
                (*compute, *mem) = (*compute - amounts[0], *mem - amounts[1]);
            }
            if last != Some(part.node) {
                self.journal.push(Change::Vacated(part.node, id));
            }
            last = Some(part.node);
        }
    }

    /// Compute and memory of a share.
    pub(super) fn amounts(&self, node: NodeId, slice: &Slice) -> [u32; 2] {
        let model = self.node(node).spec.gpu_model.expect("a device is in a node with GPUs");
        let model = self.model(model);
        [slice.share.compute(model.mig_slices).0, slice.share.mem(model.mem).0]
    }
}
