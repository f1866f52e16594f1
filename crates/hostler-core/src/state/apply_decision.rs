//! What each decision does to the state.

use std::sync::Arc;

use super::{Change, ClusterState};
use crate::cluster::{Layout, Power};
use crate::decision::{Decision, StopHow, StopWhy};
use crate::id::{DeviceId, LeaseId, NodeId};
use crate::job::{Ending, Phase};
use crate::limits::STOP_TIMEOUT;
use crate::placement::{Lease, Placement, Stop};
use crate::units::Time;
use crate::watch::Watch;

impl ClusterState {
    /// Takes one decision in. It must have passed `verify`: a broken one is a bug and panics.
    pub(crate) fn apply_decision(&mut self, decision: &Decision, watch: &mut dyn Watch) {
        match decision {
            Decision::Reject { job, reason } => {
                self.jobs.get_mut(job.0).expect("the job is not over").reason = *reason;
                self.finish(*job, Ending::Rejected, watch);
            }
            Decision::SetAside { job, reason } => self.set_aside(*job, *reason),
            Decision::Start { lease, job, placement, until } => {
                assert_eq!(*lease, self.next_lease(), "leases are numbered in order");
                self.begin_lease(*lease, *job, placement, *until, watch);
            }
            Decision::Stop { lease, how, why } => self.stop(*lease, *how, *why),
            Decision::Resize { lease, placement } => self.rebook(*lease, placement, watch),
            Decision::Repartition { device, layout } => self.repartition(*device, *layout),
            Decision::SetPower { node, power } => self.set_power(*node, *power, watch),
            Decision::Hold { job, reason } => {
                self.jobs.get_mut(job.0).expect("the job is not over").reason = *reason;
            }
            Decision::Solve { based_on } => self.ask_solver(*based_on),
            Decision::BeginRound => self.begin_round(),
            Decision::WeighPast { half_life } => self.weigh_past(*half_life),
            Decision::Turns { turns } => self.take_turns(turns),
            Decision::WakeAt { at } => {
                self.wake_at = Some(self.wake_at.map_or(*at, |earlier| earlier.min(*at)));
            }
        }
    }

    fn stop(&mut self, id: LeaseId, how: StopHow, why: StopWhy) {
        let lease = self.leases.get(id.0).expect("the lease has not ended");
        if let Some(alarm) = self.alarm_of(lease) {
            self.alarms.remove(&(alarm, id));
        }
        self.must_stop.remove(&id);
        if how == StopHow::Suspend && !self.lease(id).is_some_and(Lease::is_suspending) {
            self.park(id);
        }
        let lease = self.lease(id).expect("the lease has not ended");
        let (now, patience) = (self.now, self.stop_patience(lease, how));
        let lease = self.leases.get_mut(id.0).expect("the lease has not ended");
        let job = self.jobs.get_mut(lease.job.0).expect("a lease belongs to a job");
        let asked = lease.stop.map_or(0, |stop| stop.asked) + 1;
        self.stopping += usize::from(lease.stop.is_none());
        // The first reason stays: a preemption that has to be asked for twice is still one.
        let why = lease.stop.map_or(why, |stop| stop.why);
        let deadline = now + patience + STOP_TIMEOUT;
        lease.stop = Some(Stop { how, why, asked, deadline });
        self.alarms.insert((deadline, id));
        self.journal.push(Change::Rescheduled(id));
        if !matches!(job.phase, Phase::Stopping(_)) {
            job.phase = Phase::Stopping(id);
            job.phase_since = now;
        }
    }

    /// Changes where a stay is: the old placement goes back before the new one is booked.
    fn rebook(&mut self, id: LeaseId, placement: &Arc<Placement>, watch: &mut dyn Watch) {
        let mut lease = self.leases.get(id.0).expect("the lease has not ended").clone();
        let before = lease.clone();
        self.capacity.release(&lease.placement);
        if let Err(refusal) = self.capacity.book(placement) {
            panic!("{id:?} moves to what is taken: {refusal}");
        }
        self.unlink_nodes(id, &lease.placement);
        self.link_nodes(id, placement);
        self.journal.push(Change::Rescheduled(id));
        self.charge(lease.job, &before.placement, false);
        self.charge(lease.job, placement, true);
        self.settle_lease(&lease);
        self.note_service(&lease);
        let job = self.jobs.get(lease.job.0).expect("a lease belongs to a job");
        let (rate, checkpoint) = (self.believed_rate(job, placement), job.spec.checkpoint);
        let (seen, done) = lease.believed_work(checkpoint, self.now);
        if lease.expected_end != Time::NEVER {
            let left = checkpoint.work_in(done, lease.expected_end.since(seen), lease.rate);
            self.by_end.remove(&(lease.expected_end, id));
            lease.expected_end = seen + checkpoint.time_for(done, left, rate);
            self.by_end.insert((lease.expected_end, id));
        }
        // What was done at the old rate is settled before the new one counts.
        if lease.started.is_some() {
            lease.progress = Some((seen, done));
        }
        lease.rate = rate;
        lease.since = self.now;
        lease.settled = self.now;
        lease.placement = Arc::clone(placement);
        watch.moved(self.now, self, job, &before, &lease);
        *self.leases.get_mut(id.0).expect("the lease has not ended") = lease;
    }

    fn repartition(&mut self, device: DeviceId, layout: Layout) {
        self.set_layout(device, layout);
        self.journal.push(Change::Freed(self.node_of(device)));
    }

    pub(super) fn set_layout(&mut self, device: DeviceId, layout: Layout) {
        self.capacity.set_layout(self.node_of(device), device, layout);
        match layout {
            Layout::Mig => self.divided.insert(device),
            Layout::Shared => self.divided.remove(&device),
        };
    }

    fn set_power(&mut self, id: NodeId, power: Power, watch: &mut dyn Watch) {
        let node = &mut self.nodes[id.index()];
        assert!(node.is_empty(), "{id:?} is switched while in use");
        assert_ne!(power, Power::On, "{id:?}: only the executor can say that a node is on");
        node.power = power;
        let usable = node.usable();
        self.capacity.set_usable(id, usable);
        self.journal.push(Change::Closed(id));
        watch.node_changed(self.now, self, &self.nodes[id.index()]);
    }
}
