//! Suspended jobs: who may be, the memory that is booked for them, and how they come back or are
//! lost.

use std::sync::Arc;

use super::{Change, ClusterState};
use crate::cluster::{Health, Share};
use crate::decision::{StopHow, StopWhy};
use crate::id::{Features, JobId, LeaseId, ModelId, NodeId};
use crate::job::{Job, Phase};
use crate::placement::{Lease, Part, Placement};
use crate::reason::Reason;
use crate::suspend::{Parked, moved, moved_by_part, parked_part, pinned_spec};
use crate::units::{Mib, Span};
use crate::window::Kept;

impl ClusterState {
    /// The memory of its nodes that a stay would take while it is suspended; none when it cannot
    /// be: not all that it has are whole GPUs of one model on nodes that keep such jobs and would
    /// take it back, it was found with fewer tasks than it asks for, it has not begun, its owner
    /// minds, or it was tried in vain.
    pub fn parking(&self, lease: &Lease) -> Option<Placement> {
        self.abilities.suspend.filter(|_| !lease.stays)?;
        let job = self.job(lease.job).filter(|job| !job.spec.checkpoint.no_suspend)?;
        self.single_model(&lease.placement)?;
        let able = |part: &Part| {
            let (node, gang) = (self.node(part.node), &job.spec.gangs[part.gang as usize]);
            let whole = part.slices.iter().all(|slice| slice.share == Share::Whole);
            let suspends = node.spec.features.cover(Features::SUSPENDS);
            let comes_back = node.usable() && Kept::admits(node.kept, &gang.demand);
            whole && !part.slices.is_empty() && suspends && comes_back
        };
        let parts = &lease.placement.parts;
        let memory = |part: &Part| {
            let moved = moved_by_part(job.asked(), part, self.device_mem(part.node));
            parked_part(part, moved)
        };
        let mut gangs = (0..).zip(&job.asked().gangs);
        // It would come back with as many as it asks for.
        let complete = gangs.all(|(at, gang)| lease.placement.tasks_of(at) == gang.count);
        let able = lease.started.is_some() && parts.iter().all(able) && complete;
        able.then(|| Placement { parts: parts.iter().map(memory).collect() })
    }

    /// How a stay is best ended in favour of others, by what the stop and the next start take; none
    /// when it is left alone. Whether memory is free to suspend it is the plan's business.
    pub fn best_stop(&self, lease: &Lease) -> Option<StopHow> {
        let job = self.job(lease.job)?;
        let checkpoint = job.spec.checkpoint;
        let pays = || {
            let saving = checkpoint.save + checkpoint.load;
            checkpoint.never || self.suspend_time(job, &lease.placement) < saving
        };
        match self.abilities.suspend.is_some() && pays() && self.parking(lease).is_some() {
            true => Some(StopHow::Suspend),
            false => self.may_stop_for_good(lease).then_some(StopHow::Checkpoint),
        }
    }

    /// Time that it takes to suspend a stay and to let it go on.
    fn suspend_time(&self, job: &Job, placement: &Placement) -> Span {
        self.out_time(job, placement) + self.back_time(job, placement)
    }

    fn out_time(&self, job: &Job, placement: &Placement) -> Span {
        let moved = self.moved(job, placement);
        self.abilities.suspend.map_or(Span::ZERO, |cost| cost.out(moved))
    }

    /// Time that a suspended job takes to go on.
    pub(super) fn back_time(&self, job: &Job, placement: &Placement) -> Span {
        let moved = self.moved(job, placement);
        self.abilities.suspend.map_or(Span::ZERO, |cost| cost.back(moved))
    }

    /// GPU memory that moves when a job at a placement is suspended: most on one node.
    pub fn moved(&self, job: &Job, placement: &Placement) -> Mib {
        moved(job.asked(), placement, |node| self.device_mem(node))
    }

    fn device_mem(&self, node: NodeId) -> Mib {
        self.node(node).spec.gpu_model.map_or(Mib(0), |model| self.model(model).mem)
    }

    fn single_model(&self, placement: &Placement) -> Option<ModelId> {
        let mut models = placement.parts.iter().map(|part| self.node(part.node).spec.gpu_model);
        let first = models.next()??;
        models.all(|model| model == Some(first)).then_some(first)
    }

    /// Books memory for a job that is told to let itself be suspended. Its own stays where it is,
    /// so that the lease holds cores and GPUs only.
    pub(super) fn park(&mut self, id: LeaseId) {
        let lease = self.lease(id).expect("the lease has not ended");
        let memory = self.parking(lease).expect("verify looked at it");
        let (job_id, placement) = (lease.job, Arc::clone(&lease.placement));
        let job = self.job(job_id).expect("a lease belongs to a job");
        let (asked, done) = (Arc::clone(&job.spec), job.ledger.done);
        let held =
            Arc::new(Placement { parts: placement.parts.iter().map(Part::without_mem).collect() });
        self.rehold(id, held);
        self.hold_memory(job_id, &memory, true);
        let parked = Parked { lease: id, placement, memory, done, asked };
        let job = self.jobs.get_mut(job_id.0).expect("a lease belongs to a job");
        job.parked = Some(Box::new(parked));
    }

    /// A job has left its GPUs: from now on it asks for what it lacks.
    pub(super) fn pin(&mut self, job_id: JobId, done: Span) {
        let Some(parked) = self.job(job_id).and_then(|job| job.parked.as_ref()) else { return };
        let model = self.single_model(&parked.placement).expect("its GPUs are of one model");
        let spec = Arc::new(pinned_spec(&parked.asked, &parked.placement, model));
        let job = self.jobs.get_mut(job_id.0).expect("looked up above");
        job.spec = spec;
        job.parked.iter_mut().for_each(|parked| parked.done = done);
        self.note_change();
    }

    /// Lets a job that was suspended hold its own memory again, from its next stay on.
    pub(super) fn unpark(&mut self, job_id: JobId) -> Option<Box<Parked>> {
        let job = self.jobs.get_mut(job_id.0)?;
        let parked = job.parked.take()?;
        job.spec = Arc::clone(&parked.asked);
        self.hold_memory(job_id, &parked.memory, false);
        self.note_change();
        Some(parked)
    }

    /// A stay that was to be suspended goes on as it was, unless it had to end in the meantime.
    pub(super) fn suspend_refused(&mut self, id: LeaseId) {
        let lease = self.lease(id).filter(|lease| lease.is_suspending());
        let Some((job_id, alarm)) = lease.map(|lease| (lease.job, self.alarm_of(lease))) else {
            self.stale_events += 1;
            return;
        };
        if let Some(alarm) = alarm {
            self.alarms.remove(&(alarm, id));
        }
        let parked = self.unpark(job_id).expect("it was parked by the decision");
        self.rehold(id, parked.placement);
        let lease = self.leases.get_mut(id.0).expect("the lease has not ended");
        (lease.stop, lease.stays) = (None, true);
        self.stopping -= 1;
        let job = self.jobs.get_mut(job_id.0).expect("a lease belongs to a job");
        (job.phase, job.phase_since) = (Phase::Running(id), self.now);
        let lease = self.lease(id).expect("the lease has not ended");
        if let Some(alarm) = self.alarm_of(lease) {
            self.alarms.insert((alarm, id));
        }
        self.journal.push(Change::Slipped(id));
        self.journal.push(Change::Rescheduled(id));
        self.end_if_due(id);
    }

    /// Notes that a stay must end for what happened while it was being stopped: nobody was told
    /// then, because it was on its way out.
    fn end_if_due(&mut self, id: LeaseId) {
        let lease = self.lease(id).expect("the lease has not ended");
        let job = self.job(lease.job).expect("a lease belongs to a job");
        let down = |part: &Part| self.node(part.node).health == Health::Down;
        let why = match lease.placement.parts.iter().any(down) {
            _ if job.cancelled => Some(StopWhy::Cancelled),
            true => Some(StopWhy::NodeFailed),
            false => None,
        };
        self.must_stop.extend(why.map(|why| (id, why)));
        self.evict();
    }

    /// The processes of a suspended job are gone by themselves.
    pub(super) fn suspended_lost(&mut self, job_id: JobId) {
        let suspended = self.job(job_id).is_some_and(Job::is_suspended);
        self.stale_unless(suspended);
        if suspended {
            self.lose_parked(job_id, Reason::NodeFailed);
        }
    }

    /// What waited in memory is gone: the job goes on from what is safe.
    pub(super) fn lose_parked(&mut self, job_id: JobId, reason: Reason) {
        let Some(parked) = self.unpark(job_id) else { return };
        let job = self.jobs.get_mut(job_id.0).expect("it was parked");
        job.ledger.lost_work += parked.done.saturating_sub(job.ledger.done);
        // Who is held back, or was told something since, knows better why it waits.
        if job.reason == Reason::Suspended {
            job.reason = reason;
        }
        if self.pending.contains(&job_id) {
            self.journal.push(Change::Unqueued(job_id));
            self.journal.push(Change::Queued(job_id));
        }
    }

    /// Time that a stop may take before the executor's own is counted.
    pub fn stop_patience(&self, lease: &Lease, how: StopHow) -> Span {
        let job = self.job(lease.job).expect("a lease belongs to a job");
        match how {
            // A line is only a belief about a cost that was seen to differ by half.
            StopHow::Suspend => Span(2 * self.out_time(job, &lease.placement).0),
            StopHow::Checkpoint => job.spec.checkpoint.save,
            StopHow::Kill => Span::ZERO,
        }
    }

    /// Changes what a lease holds of its nodes, not which GPUs.
    fn rehold(&mut self, id: LeaseId, placement: Arc<Placement>) {
        let before = Arc::clone(&self.lease(id).expect("the lease has not ended").placement);
        self.capacity.release(&before);
        self.capacity.book_again(&placement);
        self.unlink_nodes(id, &before);
        self.link_nodes(id, &placement);
        self.leases.get_mut(id.0).expect("the lease has not ended").placement = placement;
    }

    /// Books memory of nodes for a suspended job, or gives it back.
    pub(super) fn hold_memory(&mut self, job: JobId, memory: &Placement, held: bool) {
        match held {
            true => {
                self.capacity.book_again(memory);
                self.parked.insert(job);
            }
            false => {
                self.capacity.release(memory);
                self.parked.remove(&job);
            }
        }
        for part in &memory.parts {
            let [_, mem] = &mut self.node_held[part.node.index()];
            *mem = if held { *mem + part.mem.0 } else { *mem - part.mem.0 };
            let parked = &mut self.nodes[part.node.index()].parked;
            match (held, parked.binary_search(&job)) {
                (true, Err(at)) => parked.insert(at, job),
                (false, Ok(at)) => drop(parked.remove(at)),
                (true, Ok(_)) | (false, Err(_)) => {}
            }
            if !held {
                self.journal.push(Change::Freed(part.node));
            }
        }
    }

    /// Those that waited in the memory of a node which is gone.
    pub(super) fn lose_parked_on(&mut self, node: NodeId) {
        for job in self.nodes[node.index()].parked.clone() {
            // Whoever still leaves its GPUs is told by the end of its lease.
            if self.job(job).is_some_and(|job| job.lease().is_none()) {
                self.lose_parked(job, Reason::NodeFailed);
            }
        }
    }
}
