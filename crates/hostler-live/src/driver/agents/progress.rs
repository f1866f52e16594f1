//! What jobs tell about how far they are, in terms of the scheduler.

use hostler_core::event::Event;
use hostler_core::id::{LeaseId, NodeId};
use hostler_core::job::Estimate;
use hostler_core::units::Span;

use super::AgentDriver;
use super::speeds::reference;
use crate::host::Desk;

/// Time between two reports of one job that enter the log; more would only fill it.
const PROGRESS_EVERY: Span = Span::from_secs(10);

/// More than any job takes: a thousand years.
const RUN_MAX: Span = Span::from_secs(1_000 * 366 * 86_400);

impl AgentDriver {
    pub(super) fn progress(
        &mut self,
        desk: &mut Desk,
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
        self.measure(desk, lease, step);
        let state = desk.state();
        let (Some(known), Some(job)) = (state.lease(lease), state.job(job)) else { return };
        let (started, base) = (known.started, known.base);
        let due = known.progress.is_none_or(|(at, _)| desk.now().since(at) >= PROGRESS_EVERY);
        let (before, reference, job) = (job.ledger.ran, reference(state, job), job.id);
        let Some(row) = desk.job_row(job) else { return };
        let total = total.or(row.facts.steps_total).or(row.request.steps);
        if let Some(facts) = desk.job_facts(job) {
            (facts.steps_done, facts.steps_total) = (Some(step), total);
        }
        let Some(total) = total.filter(|total| *total >= step && *total > 0) else { return };
        let Some(started) = started.filter(|_| step > 0 && (due || saved)) else { return };
        desk.job_changed(job);
        let ran = before.0 + desk.now().since(started).0;
        let scaled = |span: u64, by: u64, of: u64| {
            let scaled = u128::from(span) * u128::from(by) / u128::from(of);
            Span(u64::try_from(scaled).unwrap_or(u64::MAX / 4).min(u64::MAX / 4))
        };
        let run = match reference {
            // As long as all steps take where they are fastest.
            Some(pace) => pace.time_for(total),
            // The pace so far says more than what somebody guessed before.
            None => scaled(ran, total, step),
        };
        let run = run.clamp(Span(1), RUN_MAX);
        let overall = scaled(run.0, step, total);
        let estimate = Estimate { run, spread: Span::ZERO };
        self.fact(desk, Event::Estimated { job, estimate });
        let done = overall.saturating_sub(base);
        self.fact(desk, Event::Progress { lease, done, idle: Span::ZERO });
        if saved {
            self.fact(desk, Event::Checkpointed { lease, done: overall });
        }
    }
}
