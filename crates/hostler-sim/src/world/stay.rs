//! One stay of a job on its machines, as it really goes.

use std::sync::Arc;

use hostler_core::id::{JobId, LeaseId};
use hostler_core::job::{Checkpoint, JobSpec};
use hostler_core::placement::Placement;
use hostler_core::units::{Rate, Span, Time};

/// What a stay is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Starting,
    Working,
    Saving,
}

/// One stay of a job.
#[derive(Debug)]
pub(super) struct Stay {
    pub(super) lease: LeaseId,
    pub(super) job: JobId,
    pub(super) spec: Arc<JobSpec>,
    pub(super) placement: Arc<Placement>,
    pub(super) doing: Doing,
    /// Work that was safe when the stay began.
    pub(super) base: Span,
    /// Work of this stay up to `seen`.
    worked: Span,
    seen: Time,
    pub(super) rate: Rate,
    /// Changes whenever the finish does, so that an outdated one is known.
    pub(super) version: u32,
}

impl Stay {
    pub(super) fn new(
        lease: LeaseId,
        job: JobId,
        spec: Arc<JobSpec>,
        placement: Arc<Placement>,
        base: Span,
    ) -> Stay {
        Stay {
            lease,
            job,
            spec,
            placement,
            doing: Doing::Starting,
            base,
            worked: Span::ZERO,
            seen: Time::ZERO,
            rate: Rate::FULL,
            version: 0,
        }
    }

    /// Begins to work at `at`, at `rate`.
    pub(super) fn work_from(&mut self, at: Time, rate: Rate) {
        self.doing = Doing::Working;
        self.seen = at;
        self.rate = rate;
        self.version += 1;
    }

    /// Goes on at `at` with so much work of this stay done.
    pub(super) fn resume(&mut self, worked: Span, at: Time) {
        (self.worked, self.seen) = (worked, at);
        self.version += 1;
    }

    /// Counts the work up to `now`.
    pub(super) fn account(&mut self, now: Time) {
        if self.doing == Doing::Working {
            self.worked += now.since(self.seen).work_at(self.rate);
            self.seen = self.seen.max(now);
        }
    }

    /// Goes on at another rate.
    pub(super) fn change_rate(&mut self, now: Time, rate: Rate) {
        self.account(now);
        self.rate = rate;
        self.version += 1;
    }

    /// Stops working, to save.
    pub(super) fn save(&mut self, now: Time) {
        self.account(now);
        self.doing = Doing::Saving;
        self.version += 1;
    }

    /// When a job of true length `run` is done at the present rate.
    pub(super) fn finish_at(&self, run: Span) -> Time {
        self.seen + run.saturating_sub(self.base + self.worked).at(self.rate)
    }

    /// Work done over all stays, and the part of it that survives a crash.
    pub(super) fn done_and_safe(&self) -> (Span, Span) {
        let Checkpoint { every, never, .. } = self.spec.checkpoint;
        let every = if never { Span::ZERO } else { every };
        let kept = self.worked.0.checked_div(every.0).map_or(0, |times| times * every.0);
        (self.base + self.worked, self.base + Span(kept))
    }
}
