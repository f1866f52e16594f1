//! What backfilling policies have in common: who is new, when jobs are believed to end, and what
//! to tell those who wait. No policy of its own.

use std::mem::discriminant;
use std::sync::Arc;

use hostler_core::admit::Census;
use hostler_core::capacity::Capacity;
use hostler_core::id::JobId;
use hostler_core::job::{Job, JobSpec};
use hostler_core::placement::{Lease, Placement};
use hostler_core::plan::Plan;
use hostler_core::reason::Reason;
use hostler_core::stage::{Place, place_job};
use hostler_core::state::Change;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;

use crate::limits::{OVERDUE_MIN, OVERDUE_PART};

/// Meets newcomers. All that it remembers follows from the state.
#[derive(Default)]
pub(super) struct Door {
    seen: Option<u64>,
    census: Census,
}

impl Door {
    /// Rejects newcomers that can never run; the answer are the others.
    pub(super) fn admit(&mut self, view: &View<'_>, plan: &mut Plan<'_>) -> Vec<JobId> {
        self.census.refresh(view);
        let mut came = self.newcomers(view);
        came.retain(|id| {
            let job = view.job(*id).expect("a waiting job is not over");
            match self.census.objection(view, &job.spec) {
                Some(reason) => plan.reject(*id, reason).is_err(),
                None => true,
            }
        });
        came
    }

    /// Jobs that began to wait since the last question, by id; all when that is not known.
    fn newcomers(&mut self, view: &View<'_>) -> Vec<JobId> {
        let journal = view.state().journal();
        let changes = self.seen.and_then(|seen| journal.since(seen));
        self.seen = Some(journal.end());
        let Some(changes) = changes else {
            return view.pending().iter().copied().collect();
        };
        let queued = changes.iter().filter_map(|change| match change {
            Change::Queued(id) => Some(*id),
            Change::Unqueued(_) | Change::Freed(_) | Change::Grew => None,
        });
        let mut came: Vec<JobId> = queued.filter(|id| view.pending().contains(id)).collect();
        came.sort_unstable();
        came.dedup();
        came
    }
}

/// A stay and when it is believed to end.
pub(super) struct Ending {
    pub(super) at: Time,
    pub(super) placement: Arc<Placement>,
}

/// Stays by believed end, soonest first; those without one at `Time::NEVER`. `started` are those
/// of this very question.
pub(super) fn endings(view: &View<'_>, started: Vec<Ending>) -> Vec<Ending> {
    let mut endings = started;
    endings.extend(view.by_expected_end().map(|lease| Ending {
        at: end_of_lease(view, lease),
        placement: Arc::clone(&lease.placement),
    }));
    endings.sort_by_key(|ending| ending.at);
    endings
}

/// When a stay is believed to end: as estimated, or when it is cut off; a little later than now
/// when that time has passed.
fn end_of_lease(view: &View<'_>, lease: &Lease) -> Time {
    let job = view.job(lease.job).expect("a lease belongs to a job");
    let limit = lease.started.zip(job.spec.time_limit);
    let limit = limit.map(|(started, limit)| started + limit);
    let stop = lease.stop.map(|stop| stop.deadline);
    let cut = [limit, lease.until, stop].into_iter().flatten().min();
    let end = lease.expected_end.min(cut.unwrap_or(Time::NEVER));
    if end > view.now() {
        end
    } else {
        view.now() + overdue(view.now().since(lease.since))
    }
}

/// When a job that starts at `start` is believed to end; `Time::NEVER` when nobody knows.
pub(super) fn believed_end(
    view: &View<'_>,
    job: &Job,
    placement: &Placement,
    start: Time,
) -> Time {
    let again = job.ledger.first_start.is_some();
    let load = if again {
        job.spec.checkpoint.load
    } else {
        Span::ZERO
    };
    let left = match job.remaining() {
        Some(Span::ZERO) => Some(overdue(job.ledger.ran)),
        left => left,
    };
    let rate = view.believed_rate(job, placement);
    let end = left.map_or(Time::NEVER, |left| start + load + left.at(rate));
    let cut = job.spec.time_limit.map(|limit| start + limit);
    end.min(cut.unwrap_or(Time::NEVER)).max(start + Span(1))
}

/// Starts a job and notes when it is believed to end; the answer is the job if it does not fit.
pub(super) fn blocked<'a>(
    place: &dyn Place,
    view: &View<'a>,
    plan: &mut Plan<'_>,
    id: JobId,
    started: &mut Vec<Ending>,
) -> Option<&'a Job> {
    if plan.has_job(id) {
        return None;
    }
    let job = view.state().job(id).expect("a waiting job is not over");
    if !may_fit(plan.free(), &job.spec) {
        return Some(job);
    }
    let Ok(placement) = place_job(place, plan.free_mut(), &job.spec) else {
        return Some(job);
    };
    let at = believed_end(view, job, &placement, view.now());
    let copy = Arc::new(placement.clone());
    started.push(Ending { at, placement: copy });
    plan.start(id, placement)
        .expect("a waiting job starts on free nodes");
    None
}

/// What a job is believed to need beyond its estimate.
fn overdue(ran: Span) -> Span {
    Span(ran.0 / OVERDUE_PART).max(OVERDUE_MIN)
}

/// Whether a placement is worth a search.
pub(super) fn may_fit(free: &Capacity, spec: &JobSpec) -> bool {
    spec.gangs
        .iter()
        .all(|gang| free.slots_bound(&gang.demand) >= gang.count)
}

/// That a job does not fit, with a bound on how much of it would.
pub(super) fn no_capacity(free: &Capacity, spec: &JobSpec) -> Reason {
    let bounds = spec
        .gangs
        .iter()
        .map(|gang| free.slots_bound(&gang.demand));
    let tasks = spec.tasks();
    let fit = bounds.min().unwrap_or(0).min(tasks.saturating_sub(1));
    Reason::NoCapacity { tasks, fit }
}

/// Tells a waiting job why it waits, when that is something else than it was told last. Numbers
/// that change with every question are no news; jobs that were stopped keep the reason they have.
pub(super) fn explain(plan: &mut Plan<'_>, job: &Job, reason: Reason) {
    let news = match job.reason {
        Reason::New | Reason::NoCapacity { .. } | Reason::Behind { .. } => {
            discriminant(&job.reason) != discriminant(&reason)
        }
        Reason::WouldDelay { .. } => true,
        _ => false,
    };
    if news {
        plan.hold(job.id, reason);
    }
}

/// Tells newcomers that nobody looked at that they are behind `head`.
pub(super) fn explain_rest(view: &View<'_>, plan: &mut Plan<'_>, came: &[JobId], head: JobId) {
    for id in came {
        let job = view.job(*id).expect("a waiting job is not over");
        if job.reason == Reason::New {
            plan.hold(*id, Reason::Behind { head });
        }
    }
}
