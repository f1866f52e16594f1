//! Starts that fail: the job waits a while before it is tried again.

use hostler_core::event::Event;
use hostler_core::id::LeaseId;
use hostler_core::units::Span;

use super::Desk;

/// Time after the first failed start before the next; it doubles with each. All tries of a job that
/// never starts take about a minute, in which somebody may mount what is missing.
const PAUSE: Span = Span::from_secs(2);

impl Desk {
    /// A stay never began: its job is tried again after a pause.
    pub fn start_failed(&mut self, lease: LeaseId) {
        let Some(known) = self.engine.state().lease(lease) else { return };
        let job = known.job;
        let before = self.engine.state().job(job).map_or(0, |job| job.ledger.start_failures);
        let pause = Span(PAUSE.0 << before.min(8));
        self.paused.insert(job.0, self.now + pause);
        self.fact(Event::StartFailed { lease });
        self.consider(job.0);
        self.drain();
    }

    /// Lets jobs go whose pause is over.
    pub(super) fn resume_paused(&mut self) {
        let due = self.paused.iter().filter(|(_, until)| **until <= self.now);
        let due: Vec<u32> = due.map(|(job, _)| *job).collect();
        for job in due {
            self.paused.remove(&job);
            self.consider(job);
        }
        self.drain();
    }
}
