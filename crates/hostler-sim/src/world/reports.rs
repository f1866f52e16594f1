//! What the world says about stays, and what it says again when the first word went astray.
//!
//! An agent that is not heard repeats the outcome of a stay, and one that does not answer however
//! often it is asked is restarted. When reports go astray is not decided here.

use std::sync::Arc;

use hostler_core::event::Event;
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::limits::{STOP_ATTEMPTS_MAX, STOP_TIMEOUT};
use hostler_core::placement::Placement;
use hostler_core::units::{Span, Time};

use super::queue::Coming;
use super::{Arrivals, Report, World};

/// Time after which an agent repeats an end that nobody acknowledged: rare enough that an hour of
/// lost reports is no flood, soon enough that a place is not held for a day.
const RESEND_AFTER: Span = Span::from_secs(3600);

/// Time from the last stop that an agent left unanswered to its restart. Longer than the wait for
/// an answer, so that its nodes are taken out before they come back.
const RESTART_AFTER: Span = Span(2 * STOP_TIMEOUT.0);

/// The last word on a stay that is over.
#[derive(Debug)]
pub(super) struct LastWord {
    job: JobId,
    of: Report,
    word: Event,
    placement: Arc<Placement>,
    /// Whether it arrived or is on its way.
    told: bool,
    /// Stops that got no answer in time.
    unanswered: u32,
}

impl<Source: Arrivals> World<Source> {
    /// Sends a report, unless it goes astray.
    pub(super) fn report(&mut self, job: JobId, of: Report, word: Event, events: &mut Vec<Event>) {
        if !self.reports_go_astray {
            events.push(word);
            return;
        }
        let (Event::Stopped { lease, .. } | Event::StartFailed { lease }) = &word else {
            self.send(job, of, &word, events);
            return;
        };
        let lease = *lease;
        let placement = self.left.remove(&lease).expect("a stay with a last word was left");
        let last = LastWord { job, of, word, placement, told: false, unanswered: 0 };
        self.last_words.insert(lease, last);
        self.say_last_word(lease, of == Report::Stop, events);
        if of == Report::Finish {
            self.resend_later(lease);
        }
    }

    /// Says the last word on a stay, for the first time or again.
    pub(super) fn say_last_word(
        &mut self,
        lease: LeaseId,
        answers_stop: bool,
        events: &mut Vec<Event>,
    ) {
        let Some(mut last) = self.last_words.remove(&lease) else {
            return;
        };
        let arrivals = self.send(last.job, last.of, &last.word, events);
        last.told |= arrivals.iter().any(Option::is_some);
        let in_time = arrivals.iter().flatten().any(|at| *at < self.now + STOP_TIMEOUT);
        if answers_stop && !in_time {
            last.unanswered += 1;
            if last.unanswered == STOP_ATTEMPTS_MAX {
                self.restart_later(&last.placement);
            }
        }
        self.last_words.insert(lease, last);
    }

    /// Repeats an end that was not heard; this time it is.
    pub(super) fn resend(&mut self, lease: LeaseId, events: &mut Vec<Event>) {
        if let Some(last) = self.last_words.get_mut(&lease).filter(|last| !last.told) {
            last.told = true;
            events.push(last.word.clone());
        }
    }

    /// A job that starts again has no other stay: one on a node that was taken out as silent goes
    /// without a word.
    pub(super) fn drop_forgotten(&mut self, job: JobId) {
        if !self.nodes_fell_silent {
            return;
        }
        let stays = self.stays.iter().filter(|stay| stay.job == job);
        let forgotten: Vec<LeaseId> = stays.map(|stay| stay.lease).collect();
        for lease in forgotten {
            self.leave(lease);
        }
    }

    fn resend_later(&mut self, lease: LeaseId) {
        if self.last_words.get(&lease).is_some_and(|last| !last.told) {
            self.queue.push(self.now + RESEND_AFTER, Coming::Resend(lease));
        }
    }

    /// The agents of a placement are restarted: their nodes fail and are back at once.
    fn restart_later(&mut self, placement: &Placement) {
        self.nodes_fell_silent = true;
        let mut nodes: Vec<NodeId> = placement.parts.iter().map(|part| part.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            self.queue.push(self.now + RESTART_AFTER, Coming::Fail(node));
            self.queue.push(self.now + RESTART_AFTER, Coming::Repair(node));
        }
    }

    /// Delivers a report as its faults have it; tells when it arrives.
    fn send(
        &mut self,
        job: JobId,
        of: Report,
        word: &Event,
        events: &mut Vec<Event>,
    ) -> [Option<Time>; 2] {
        let arrivals = self.faults.arrivals(self.now, job, of);
        for arrival in arrivals.into_iter().flatten() {
            if arrival == self.now {
                events.push(word.clone());
            } else {
                self.queue.push(arrival, Coming::Deliver(Box::new(word.clone())));
            }
        }
        arrivals
    }
}
