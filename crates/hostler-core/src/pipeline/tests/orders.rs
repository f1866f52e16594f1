//! Orders for tests, which count how often they are asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::job::Job;
use crate::stage::{Learnt, Order};
use crate::units::{Span, Time};
use crate::view::View;

/// How often an order was asked.
#[derive(Clone, Default)]
pub(super) struct Count(Arc<AtomicUsize>);

impl Count {
    fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How often since the last time.
    pub(super) fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// The highest priority first.
#[derive(Clone, Default)]
pub(super) struct ByPriority(pub(super) Count);

impl Order for ByPriority {
    fn key(&self, _: &View<'_>, job: &Job) -> i64 {
        self.0.one_more();
        -i64::from(job.spec.priority)
    }

    fn keeps_rank(&self) -> bool {
        true
    }
}

/// The same, by an order that does not say that running jobs keep their rank.
pub(super) struct Restless(pub(super) Count);

impl Order for Restless {
    fn key(&self, _: &View<'_>, job: &Job) -> i64 {
        self.0.one_more();
        -i64::from(job.spec.priority)
    }
}

/// Least left first: running jobs rise.
pub(super) struct ByRemaining;

impl Order for ByRemaining {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        let run = job.spec.user_estimate.unwrap_or(Span::ZERO);
        run.saturating_sub(view.done(job)).0 as i64
    }

    fn keeps_rank(&self) -> bool {
        true
    }
}

/// A priority more for each ten seconds of waiting.
#[derive(Clone, Default)]
pub(super) struct Ageing(pub(super) Count);

const STEP: u64 = 10_000_000;

impl Order for Ageing {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        self.0.one_more();
        let age = if job.lease().is_some() { 0 } else { view.now().since(job.submitted).0 / STEP };
        -i64::from(job.spec.priority) - age as i64
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let age = view.now().since(job.submitted).0 / STEP;
        job.lease().is_none().then(|| job.submitted + Span((age + 1) * STEP))
    }
}

/// Least attained service in two queues: who has had twenty GPU seconds goes behind.
#[derive(Clone, Default)]
pub(super) struct TwoQueues(pub(super) Count);

const ENOUGH: u64 = 20_000_000;

impl Order for TwoQueues {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        self.0.one_more();
        i64::from(view.served(job) >= ENOUGH)
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let (gpus, served) = (u64::from(job.spec.gpus()), view.served(job));
        let left = ENOUGH.checked_sub(served).filter(|left| *left > 0 && gpus > 0)?;
        job.lease().map(|_| view.now() + Span(left.div_ceil(gpus)))
    }
}

/// Who has waited longest comes first; who runs gives way after some time, and the longer the more.
pub(super) struct Drifting;

/// As much as anybody is behind while his time is not over, and when it is.
const BEHIND: [i64; 2] = [-40, 20];

impl Drifting {
    fn since(view: &View<'_>, job: &Job) -> Time {
        let lease = job.lease();
        lease.map_or(job.phase_since, |id| view.lease(id).map_or(view.now(), |lease| lease.since))
    }

    fn is_over(view: &View<'_>, job: &Job) -> bool {
        view.now().since(Drifting::since(view, job)).0 >= STEP
    }
}

impl Order for Drifting {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        let age = (view.now().since(Drifting::since(view, job)).0 / 1_000_000) as i64;
        match job.lease().is_some() {
            true => (age * 3 - 60).min(BEHIND[usize::from(Drifting::is_over(view, job))]),
            false => -age,
        }
    }

    fn learn(&mut self, _: &View<'_>) -> Learnt {
        Learnt::Waiting
    }

    fn keeps_rank(&self) -> bool {
        true
    }

    fn key_at_most(&self, view: &View<'_>, job: &Job) -> Option<i64> {
        Some(BEHIND[usize::from(Drifting::is_over(view, job))])
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let over = Drifting::since(view, job) + Span(STEP);
        job.lease().filter(|_| !Drifting::is_over(view, job)).map(|_| over)
    }
}
