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
    Suspending,
}

/// What a job has done when a stay of it begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    /// All of it.
    pub(super) done: Span,
    /// The part that survives a crash: less where the job goes on from memory.
    pub(super) safe: Span,
}

impl Before {
    pub(super) fn saved(done: Span) -> Before {
        Before { done, safe: done }
    }
}

/// One stay of a job.
#[derive(Debug)]
pub(super) struct SimulatedStay {
    pub(super) lease: LeaseId,
    pub(super) job: JobId,
    pub(super) spec: Arc<JobSpec>,
    pub(super) placement: Arc<Placement>,
    pub(super) doing: Doing,
    /// Work done when the stay began.
    pub(super) base: Span,
    /// Work that was safe then.
    base_safe: Span,
    /// Time before the first step of work.
    pub(super) load: Span,
    /// Work of this stay up to `seen`.
    worked: Span,
    /// The part of it that the job saved by itself; kept only where that takes time.
    saved: Span,
    /// Time spent so far on the save that is due.
    saving: Span,
    seen: Time,
    pub(super) rate: Rate,
    /// Changes whenever the finish does, so that an outdated one is known.
    pub(super) version: u32,
}

impl SimulatedStay {
    pub(super) fn new(
        lease: LeaseId,
        job: JobId,
        spec: Arc<JobSpec>,
        placement: Arc<Placement>,
        before: Before,
    ) -> SimulatedStay {
        SimulatedStay {
            lease,
            job,
            spec,
            placement,
            doing: Doing::Starting,
            base: before.done,
            base_safe: before.safe,
            load: Span::ZERO,
            worked: Span::ZERO,
            saved: Span::ZERO,
            saving: Span::ZERO,
            seen: Time::ZERO,
            rate: Rate::FULL,
            version: 0,
        }
    }

    /// The same with so much time before the first step of work.
    pub(super) fn after(self, load: Span) -> SimulatedStay {
        SimulatedStay { load, ..self }
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
        let checkpoint = self.spec.checkpoint;
        // A save that is due is still to come.
        let saved = Span(checkpoint.saves_before(worked) * checkpoint.every.0);
        (self.saved, self.saving) = (saved, Span::ZERO);
        self.version += 1;
    }

    /// Counts the work up to `now`.
    pub(super) fn account(&mut self, now: Time) {
        if self.doing == Doing::Working {
            let elapsed = now.since(self.seen);
            match self.spec.checkpoint.rhythm() {
                Some(rhythm) => self.advance(elapsed, rhythm),
                None => self.worked += elapsed.work_at(self.rate),
            }
            self.seen = self.seen.max(now);
        }
    }

    /// Counts work and saves: after each `every` of work comes a pause in which it is saved.
    fn advance(&mut self, mut elapsed: Span, (every, save): (Span, Span)) {
        loop {
            let since = self.worked.saturating_sub(self.saved);
            if since >= every {
                let pause = save.saturating_sub(self.saving);
                if elapsed < pause {
                    self.saving += elapsed;
                    return;
                }
                elapsed = elapsed.saturating_sub(pause);
                (self.saved, self.saving) = (self.worked, Span::ZERO);
                // Whole rounds at once, so that a long stay costs no more than a short one.
                let rounds = elapsed.0 / (every.at(self.rate) + save).0;
                elapsed = Span(elapsed.0 - rounds * (every.at(self.rate) + save).0);
                self.worked += Span(rounds * every.0);
                self.saved = self.worked;
                continue;
            }
            let rest = every.saturating_sub(since);
            if elapsed < rest.at(self.rate) {
                self.worked += elapsed.work_at(self.rate);
                return;
            }
            elapsed = elapsed.saturating_sub(rest.at(self.rate));
            self.worked += rest;
        }
    }

    /// When it began to work as it does.
    pub(super) fn works_from(&self) -> Time {
        self.seen
    }

    /// Work of this stay that is done by a time up to which nothing changes.
    pub(super) fn worked_by(&self, now: Time) -> Span {
        let mut then = SimulatedStay {
            spec: Arc::clone(&self.spec),
            placement: Arc::clone(&self.placement),
            ..*self
        };
        then.account(now);
        then.worked
    }

    /// Goes on at another rate.
    pub(super) fn change_rate(&mut self, now: Time, rate: Rate) {
        self.account(now);
        self.rate = rate;
        self.version += 1;
    }

    /// Stops working, to save or to leave its GPUs.
    pub(super) fn pause(&mut self, now: Time, doing: Doing) {
        self.account(now);
        self.doing = doing;
        self.version += 1;
    }

    /// When a job of true length `run` is done at the present rate.
    pub(super) fn finish_at(&self, run: Span) -> Time {
        let left = run.saturating_sub(self.base + self.worked);
        let rhythm = self.spec.checkpoint.rhythm();
        let pauses = rhythm.map_or(Span::ZERO, |rhythm| self.pauses(left, rhythm));
        self.seen + pauses + left.at(self.rate)
    }

    /// Time of the saves that come before `left` is done; whoever is done does not save.
    fn pauses(&self, left: Span, (every, save): (Span, Span)) -> Span {
        let since = self.worked.saturating_sub(self.saved);
        let saves = (since + left).0.saturating_sub(1) / every.0;
        Span(saves.saturating_mul(save.0)).saturating_sub(self.saving)
    }

    /// Work done over all stays, and the part of it that survives a crash.
    pub(super) fn done_and_safe(&self) -> (Span, Span) {
        let takes_time = self.spec.checkpoint.rhythm().is_some();
        let saved = if takes_time { self.saved } else { self.kept(self.worked) };
        let safe = if saved > Span::ZERO { self.base + saved } else { self.base_safe };
        (self.base + self.worked, safe)
    }

    /// What is saved of so much work where saving takes no time.
    fn kept(&self, worked: Span) -> Span {
        let Checkpoint { every, never, .. } = self.spec.checkpoint;
        let every = if never { Span::ZERO } else { every };
        Span(worked.0.checked_div(every.0).map_or(0, |times| times * every.0))
    }
}
