//! What backfilling policies have in common: who is new, when jobs are believed to end, and what
//! to tell those who wait. No policy of its own.

use std::mem::discriminant;

use hostler_core::admit::EmptyCluster;
use hostler_core::id::{JobId, NodeId};
use hostler_core::job::Job;
use hostler_core::placement::{Lease, Placement};
use hostler_core::plan::Plan;
use hostler_core::reason::Reason;
use hostler_core::stage::{Place, no_capacity};
use hostler_core::state::Change;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;

use super::hopeless::Hopeless;
use crate::limits::{OVERDUE_MIN, OVERDUE_PART};

/// Follows what happened since the last question. All that it remembers follows from the state.
#[derive(Default)]
pub(super) struct News {
    seen: Option<u64>,
    empty_cluster: EmptyCluster,
    /// What is known not to fit.
    pub(super) hopeless: Hopeless,
}

impl News {
    /// Rejects newcomers that can never run; the answer are the others, by id.
    pub(super) fn follow(
        &mut self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        place: &dyn Place,
    ) -> Vec<JobId> {
        let journal = view.journal();
        let changes = self.seen.and_then(|seen| journal.since(seen));
        self.seen = Some(journal.end());
        let freed = changes.map(freed);
        self.hopeless.follow(plan.free(), freed.as_deref());
        self.empty_cluster.refresh(view);
        let mut came = changes.map_or_else(
            || view.pending().iter().copied().collect(),
            |changes| queued(view, changes),
        );
        came.retain(|id| {
            let job = view.job(*id).expect("a waiting job is not over");
            self.empty_cluster.admits(view, plan, *id, &job.spec, place)
        });
        came
    }
}

/// Nodes that have more free than before, each once.
fn freed(changes: &[Change]) -> Vec<NodeId> {
    let freed = changes.iter().filter_map(|change| match change {
        Change::Freed(node) => Some(*node),
        Change::Queued(_) | Change::Unqueued(_) => None,
    });
    let mut freed: Vec<NodeId> = freed.collect();
    freed.sort_unstable();
    freed.dedup();
    freed
}

/// Jobs that began to wait and still do, by id.
fn queued(view: &View<'_>, changes: &[Change]) -> Vec<JobId> {
    let queued = changes.iter().filter_map(|change| match change {
        Change::Queued(id) => Some(*id),
        Change::Unqueued(_) | Change::Freed(_) => None,
    });
    let mut came: Vec<JobId> = queued.filter(|id| view.pending().contains(id)).collect();
    came.sort_unstable();
    came.dedup();
    came
}

/// A stay and when it is believed to end.
#[derive(Clone, Copy)]
pub(super) struct Ending<'a> {
    pub(super) at: Time,
    pub(super) placement: &'a Placement,
}

/// A stay that this very question begins, and when it is believed to end.
pub(super) struct Started {
    pub(super) at: Time,
    pub(super) placement: Placement,
}

/// Stays by believed end, soonest first; those without one at `Time::NEVER`. Equal ends come in any
/// order.
pub(super) fn endings<'a>(
    view: &'a View<'a>,
    started: &'a [Started],
) -> impl Iterator<Item = Ending<'a>> + 'a {
    let now = view.now();
    let ends_late = move |lease: &&Lease| lease.expected_end <= now;
    let overdue = view.by_expected_end().take_while(ends_late);
    let overdue = overdue.filter(|lease| cut_off(view, lease).is_none());
    let out_of_line = overdue.chain(view.by_alarm());
    let out_of_line = out_of_line
        .map(|lease| Ending { at: end_of_lease(view, lease), placement: &lease.placement });
    let started = started.iter().map(|stay| Ending { at: stay.at, placement: &stay.placement });
    let mut out_of_line: Vec<Ending<'a>> = started.chain(out_of_line).collect();
    out_of_line.sort_by_key(|ending| ending.at);
    let mut out_of_line = out_of_line.into_iter().peekable();
    let in_line = view.by_expected_end().skip_while(ends_late);
    let in_line = in_line.filter(|lease| cut_off(view, lease).is_none());
    let mut in_line = in_line
        .map(|lease| Ending { at: lease.expected_end, placement: &lease.placement })
        .peekable();
    std::iter::from_fn(move || match (out_of_line.peek(), in_line.peek()) {
        (Some(one), Some(other)) if one.at <= other.at => out_of_line.next(),
        (Some(_), None) => out_of_line.next(),
        (_, Some(_)) | (None, None) => in_line.next(),
    })
}

/// When a stay is believed to end: as estimated, or when it is cut off; a little later than now
/// when that time has passed.
fn end_of_lease(view: &View<'_>, lease: &Lease) -> Time {
    let end = lease.expected_end.min(cut_off(view, lease).unwrap_or(Time::NEVER));
    if end > view.now() { end } else { view.now() + overdue(view.now().since(lease.since)) }
}

/// When a stay ends at the latest; none when it may go on.
fn cut_off(view: &View<'_>, lease: &Lease) -> Option<Time> {
    view.by_alarm().next()?;
    let job = view.job(lease.job).expect("a lease belongs to a job");
    let limit = lease.started.zip(job.spec.time_limit);
    let limit = limit.map(|(started, limit)| started + limit);
    let stop = lease.stop.map(|stop| stop.deadline);
    [limit, lease.until, stop].into_iter().flatten().min()
}

/// When a job that starts at `start` is believed to end; `Time::NEVER` when nobody knows.
pub(super) fn believed_end(view: &View<'_>, job: &Job, placement: &Placement, start: Time) -> Time {
    let again = job.ledger.first_start.is_some();
    let load = if again { job.spec.checkpoint.load } else { Span::ZERO };
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
    hopeless: &mut Hopeless,
    view: &View<'a>,
    plan: &mut Plan<'_>,
    id: JobId,
    started: &mut Vec<Started>,
) -> Option<&'a Job> {
    if plan.has_job(id) {
        return None;
    }
    let job = view.job(id).expect("a waiting job is not over");
    let Some(placement) = hopeless.place(place, plan, &job.spec) else {
        return Some(job);
    };
    let at = believed_end(view, job, &placement, view.now());
    started.push(Started { at, placement: placement.clone() });
    plan.start(id, placement).expect("a waiting job starts on free nodes");
    None
}

/// What a job is believed to need beyond its estimate.
fn overdue(ran: Span) -> Span {
    Span(ran.0 / OVERDUE_PART).max(OVERDUE_MIN)
}

/// Tells a waiting job why it waits, when that is something else than it was told last. Numbers
/// that change with every question are no news; jobs that were stopped keep the reason they have.
pub(super) fn explain(plan: &mut Plan<'_>, job: &Job, reason: Reason) {
    let news = match job.reason {
        Reason::New | Reason::NoCapacity { .. } | Reason::Behind { .. } => {
            discriminant(&job.reason) != discriminant(&reason)
        }
        Reason::WouldDelay { .. } => job.reason != reason,
        _ => false,
    };
    if news {
        plan.hold(job.id, reason);
    }
}

/// Tells a waiting job that it does not fit, unless it knows: how much of it would is a sum over
/// the cluster.
pub(super) fn explain_no_capacity(plan: &mut Plan<'_>, job: &Job) {
    if !matches!(job.reason, Reason::NoCapacity { .. }) {
        let reason = no_capacity(plan.free(), &job.spec);
        explain(plan, job, reason);
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
