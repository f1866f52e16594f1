//! The life of a stay: how it starts, works, saves, fails and ends.

use std::sync::Arc;

use hostler_core::decision::StopHow;
use hostler_core::event::{Event, Outcome};
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::placement::Placement;
use hostler_core::units::{Milli, Span, Time};

use super::queue::Coming;
use super::stay::{Doing, SimulatedStay};
use super::{Arrivals, Report, World};

impl<Source: Arrivals> World<Source> {
    pub(super) fn start(&mut self, lease: LeaseId, events: &mut Vec<Event>) {
        let Some(stay) = self.stays.get(lease.0) else {
            return;
        };
        if stay.doing != Doing::Starting {
            return;
        }
        let job = stay.job;
        // Running out of memory looks like any other start that fails.
        if self.faults.start_fails(job) || !self.fits(lease) {
            self.leave(lease);
            self.report(job, Report::Start, Event::StartFailed { lease }, events);
            return;
        }
        self.begin_work(lease);
        self.report(job, Report::Start, Event::Started { lease }, events);
    }

    /// A job runs that nobody decided to start: it works from now on. Whether it can.
    pub fn adopt(
        &mut self,
        at: Time,
        lease: LeaseId,
        job: JobId,
        placement: &Arc<Placement>,
    ) -> bool {
        if placement.parts.iter().any(|part| self.down[part.node.index()] > 0) {
            return false;
        }
        self.now = at;
        self.drop_forgotten(job);
        let stay = self.next_stay(lease, job, placement);
        self.stays.insert(lease.0, stay);
        let fits = self.fits(lease);
        if fits {
            self.begin_work(lease);
        } else {
            self.leave(lease);
        }
        fits
    }

    /// The first step of work comes after the state is loaded.
    pub(super) fn begin_work(&mut self, lease: LeaseId) {
        if let (Some(neighbours), Some(stay)) = (&mut self.neighbours, self.stays.get(lease.0)) {
            neighbours.join(lease, &stay.placement);
        }
        self.join_shared(lease);
        let rate = self.rate_of(lease).expect("a job that does not fit does not start");
        let stay = self.stays.get_mut(lease.0).expect("the stay is here");
        stay.work_from(self.now + stay.load, rate);
        self.await_finish(lease);
        self.adjust_neighbours(lease);
    }

    pub(super) fn finish(&mut self, lease: LeaseId, version: u32, events: &mut Vec<Event>) {
        let Some(stay) = self.stays.get(lease.0).filter(|stay| stay.version == version) else {
            return;
        };
        let job = stay.job;
        let done = self.truth.run(job);
        let used = self.shared.as_mut().and_then(|shared| shared.measured(self.now, lease));
        events.extend(used.map(|gpu| Event::Used { lease, gpu: Milli(gpu) }));
        self.leave(lease);
        // A node that fails before the word is out takes it along, and the job runs again.
        if !self.reports_go_astray {
            self.specs.remove(job.0);
            self.safe.remove(&job);
        }
        let word = Event::Stopped { lease, outcome: Outcome::Finished, done, lost: Span::ZERO };
        self.report(job, Report::Finish, word, events);
    }

    pub(super) fn saved(&mut self, lease: LeaseId, events: &mut Vec<Event>) {
        let Some(stay) = self.stays.get(lease.0).filter(|stay| stay.doing == Doing::Saving) else {
            return;
        };
        let job = stay.job;
        let (done, _) = stay.done_and_safe();
        self.safe.insert(job, done);
        self.leave(lease);
        let word = Event::Stopped { lease, outcome: Outcome::Interrupted, done, lost: Span::ZERO };
        self.report(job, Report::Stop, word, events);
    }

    pub(super) fn repair(&mut self, node: NodeId, events: &mut Vec<Event>) {
        self.down[node.index()] -= 1;
        if self.down[node.index()] == 0 {
            let spec = self.site.nodes[node.index()].clone();
            events.push(Event::NodeUp { node, spec });
        }
    }

    /// A node fails: what ran only on failed nodes is gone, what was being saved is not saved, and
    /// other gangs wait to be told to stop.
    pub(super) fn fail(&mut self, node: NodeId, events: &mut Vec<Event>) {
        self.down[node.index()] += 1;
        if self.down[node.index()] > 1 {
            return;
        }
        let (now, down) = (self.now, &self.down);
        let (mut gone, mut unsaved) = (Vec::new(), Vec::new());
        let touches = |(_, stay): &(u32, &SimulatedStay)| {
            stay.placement.parts.iter().any(|part| part.node == node)
        };
        let there: Vec<u32> = self.stays.numbered().filter(touches).map(|(id, _)| id).collect();
        for id in there {
            let stay = self.stays.get_mut(id).expect("it was there just now");
            stay.account(now);
            stay.version += 1;
            let (done, safe) = stay.done_and_safe();
            // The last words: what was done and what of it is safe. The rest counts as lost.
            let worked = done.saturating_sub(stay.base);
            if stay.doing != Doing::Starting {
                let (lease, idle) = (stay.lease, Span::ZERO);
                events.push(Event::Progress { lease, done: worked, idle });
            }
            events.push(Event::Checkpointed { lease: stay.lease, done: safe });
            if stay.placement.parts.iter().all(|part| down[part.node.index()] > 0) {
                gone.push((stay.lease, stay.job, safe));
            } else if matches!(stay.doing, Doing::Saving | Doing::Suspending) {
                unsaved.push((stay.lease, stay.job, done, safe));
            }
        }
        for (lease, job, safe) in gone {
            self.safe.insert(job, safe);
            self.leave(lease);
        }
        self.lose_suspended(node);
        events.push(Event::NodeDown { node });
        for (lease, job, done, safe) in unsaved {
            self.end_unsaved(lease, job, done, safe, events);
        }
    }

    /// Ends a stay of which only what it saved by itself is left.
    pub(super) fn end_unsaved(
        &mut self,
        lease: LeaseId,
        job: JobId,
        done: Span,
        safe: Span,
        events: &mut Vec<Event>,
    ) {
        self.safe.insert(job, safe);
        self.leave(lease);
        let lost = done.saturating_sub(safe);
        let word = Event::Stopped { lease, outcome: Outcome::Interrupted, done: safe, lost };
        self.report(job, Report::Stop, word, events);
    }

    pub(super) fn stop(&mut self, lease: LeaseId, how: StopHow) {
        let now = self.now;
        let Some(stay) = self.stays.get_mut(lease.0) else {
            // It is over already; say so (again), in case the first word went astray.
            let mut events = Vec::new();
            self.say_last_word(lease, true, &mut events);
            self.deliver_now(events);
            return;
        };
        stay.account(now);
        let can_save = how == StopHow::Checkpoint && !stay.spec.checkpoint.never;
        match stay.doing {
            Doing::Working if how == StopHow::Suspend => return self.suspend(lease),
            // It is asked again, and on its way.
            Doing::Suspending if how == StopHow::Suspend => return,
            Doing::Working if can_save => {
                let save = stay.spec.checkpoint.save;
                stay.pause(now, Doing::Saving);
                self.queue.push(now + save, Coming::Saved(lease));
                return;
            }
            Doing::Starting | Doing::Working | Doing::Saving | Doing::Suspending => {}
        }
        let job = stay.job;
        let (done, safe) = stay.done_and_safe();
        let mut events = Vec::new();
        self.end_unsaved(lease, job, done, safe, &mut events);
        self.deliver_now(events);
    }

    /// Answers to a decision are the next news.
    fn deliver_now(&mut self, events: Vec<Event>) {
        for event in events {
            self.queue.push(self.now, Coming::Deliver(Box::new(event)));
        }
    }

    pub(super) fn move_to(&mut self, lease: LeaseId, placement: &Arc<Placement>) {
        let now = self.now;
        let Some(stay) = self.stays.get_mut(lease.0) else {
            return;
        };
        stay.account(now);
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.leave(lease, &stay.placement);
            neighbours.join(lease, placement);
        }
        stay.placement = Arc::clone(placement);
        if stay.doing == Doing::Starting {
            return;
        }
        self.leave_shared(lease);
        self.join_shared(lease);
        let stay = self.stays.get(lease.0).expect("the stay is here");
        let pause = stay.spec.checkpoint.save + stay.spec.checkpoint.load;
        let (job, (done, safe)) = (stay.job, stay.done_and_safe());
        let Some(rate) = self.rate_of(lease) else {
            // It runs out of memory there.
            let mut events = Vec::new();
            self.end_unsaved(lease, job, done, safe, &mut events);
            return self.deliver_now(events);
        };
        let stay = self.stays.get_mut(lease.0).expect("the stay is here");
        stay.work_from(now + pause, rate);
        self.await_finish(lease);
        self.adjust_neighbours(lease);
    }

    pub(super) fn leave(&mut self, lease: LeaseId) {
        let stay = self.stays.remove(lease.0).expect("the stay is here");
        if self.reports_go_astray {
            self.left.insert(lease, Arc::clone(&stay.placement));
        }
        self.leave_shared(lease);
        let Some(neighbours) = &mut self.neighbours else {
            return;
        };
        neighbours.leave(lease, &stay.placement);
        for other in neighbours.of(lease, &stay.placement) {
            self.adjust(other);
        }
    }
}
