//! What jobs tell about how far they are, in terms of the scheduler.

use hostler_core::event::Event;
use hostler_core::id::{LeaseId, NodeId};
use hostler_core::job::Estimate;
use hostler_core::units::Span;

use super::Host;

/// Time between two reports of one job that enter the log; more would only fill it.
const PROGRESS_EVERY: Span = Span::from_secs(10);

/// More than any job takes: a thousand years.
const RUN_MAX: Span = Span::from_secs(1_000 * 366 * 86_400);

impl Host {
    pub(super) fn progress(
        &mut self,
        node: NodeId,
        lease: LeaseId,
        step: u64,
        total: Option<u64>,
        saved: bool,
    ) {
        let Some(run) = self.lease_runs.get(&lease).filter(|run| run.parts.contains_key(&node))
        else {
            return;
        };
        let job = run.job;
        self.measure(lease, step);
        let state = self.engine.state();
        let (Some(known), Some(job)) = (state.lease(lease), state.job(job)) else { return };
        let Some(live) = self.jobs.get_mut(&job.id.0) else { return };
        let total = total.or(live.row.facts.steps_total).or(live.row.request.steps);
        live.row.facts.steps_done = Some(step);
        live.row.facts.steps_total = total;
        let due = known.progress.is_none_or(|(at, _)| self.now.since(at) >= PROGRESS_EVERY);
        let Some(total) = total.filter(|total| *total >= step && *total > 0) else { return };
        let Some(started) = known.started.filter(|_| step > 0 && (due || saved)) else { return };
        live.changed = true;
        self.draft.touched.insert(job.id.0);
        let ran = job.ledger.ran.0 + self.now.since(started).0;
        let scaled = |span: u64, by: u64, of: u64| {
            let scaled = u128::from(span) * u128::from(by) / u128::from(of);
            Span(u64::try_from(scaled).unwrap_or(u64::MAX / 4).min(u64::MAX / 4))
        };
        let run = match self.reference(job) {
            // As long as all steps take where they are fastest.
            Some(pace) => pace.time_for(total),
            // The pace so far says more than what somebody guessed before.
            None => scaled(ran, total, step),
        };
        let run = run.clamp(Span(1), RUN_MAX);
        let overall = scaled(run.0, step, total);
        let (job, base) = (job.id, known.base);
        self.fact(Event::Estimated { job, estimate: Estimate { run, spread: Span::ZERO } });
        self.fact(Event::Progress { lease, done: overall.saturating_sub(base), idle: Span::ZERO });
        if saved {
            self.fact(Event::Checkpointed { lease, done: overall });
        }
    }
}
