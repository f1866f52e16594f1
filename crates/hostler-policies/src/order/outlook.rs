//! What backfilling policies have in common: when jobs are believed to end, and what to tell those
//! who wait. No policy of its own.

use std::mem::discriminant;

use hostler_core::job::Job;
use hostler_core::placement::{Lease, Placement};
use hostler_core::plan::Plan;
use hostler_core::reason::Reason;
use hostler_core::stage::no_capacity;
use hostler_core::units::{Rate, Span, Time};
use hostler_core::view::View;

use crate::limits::{OVERDUE_MIN, OVERDUE_PART};

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
    end_at(job, view.believed_rate(job, placement), start)
}

/// The same at a speed.
pub(super) fn end_at(job: &Job, rate: Rate, start: Time) -> Time {
    let again = job.ledger.first_start.is_some();
    let load = if again { job.spec.checkpoint.load } else { Span::ZERO };
    let left = match job.remaining() {
        Some(Span::ZERO) => Some(overdue(job.ledger.ran)),
        left => left,
    };
    let takes = |left: Span| job.spec.checkpoint.time_for(Span::ZERO, left, rate);
    let end = left.map_or(Time::NEVER, |left| start + load + takes(left));
    let cut = job.spec.time_limit.map(|limit| start + limit);
    end.min(cut.unwrap_or(Time::NEVER)).max(start + Span(1))
}

/// What a job is believed to need beyond its estimate.
pub(super) fn overdue(ran: Span) -> Span {
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
