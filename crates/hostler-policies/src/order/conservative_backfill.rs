//! Conservative backfilling: every job that is considered has a reservation.
//!
//! Jobs are looked at in the order of their submission. Each gets the earliest time at which a
//! place is believed to be free for as long as it runs, beside the reservations of all before it,
//! and starts now only if that time is now. So nobody who is considered is delayed by a job that
//! overtakes it; gaps are filled less eagerly than by `fifo-backfill`, which protects only the
//! first.
//!
//! Needs estimates. Jobs without one are believed to run for ever: what they hold is planned with
//! last. A job that outlasts its estimate is believed to need a tenth more than it has run so far.
//! Ends of running jobs are rounded up onto a few dozen instants, so a reservation may be later
//! than it could be, never earlier. For each instant the placement rule proposes a place, and a
//! second one where the first is taken later on; a place that neither finds is missed.
//!
//! Never preempts. Remembers nothing: all reservations are worked out anew at each question, and
//! only when a job behind the first that waits would fit now. A reservation is a plan, not a
//! promise: it moves when jobs end early or late.

use hostler_core::capacity::Capacity;
use hostler_core::id::JobId;
use hostler_core::job::Job;
use hostler_core::placement::Placement;
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, PolicyDef, Wake, defaults, settings};
use hostler_core::predict::EstimateSource;
use hostler_core::reason::Reason;
use hostler_core::stage::{Place, place_job};
use hostler_core::units::Time;
use hostler_core::view::View;

use super::outlook::{
    Door, Ending, believed_end, endings, explain, explain_rest, may_fit, no_capacity,
    start,
};
use crate::limits::{ENDS_MAX, STEPS_MAX};
use crate::place::PlaceRule;

/// Conservative backfilling.
pub const DEF: PolicyDef = PolicyDef {
    kind: "conservative-backfill",
    summary: "first in, first out; others fill gaps if they delay nobody who was there before",
    needs: &[],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings("conservative-backfill", table)?;
        Ok(Box::new(Conservative {
            place: config.place.build(),
            depth: config.depth as usize,
            estimate: config.estimate,
            door: Door::default(),
        }))
    },
};

hostler_core::settings! {
    struct Config {
        /// Jobs that are considered. Each reservation costs a search through the believed future;
        /// those of jobs further back would change with every end anyway.
        depth: u32 = 32,
        /// Whose run times count. Few traces carry what users said, so the truth is the default;
        /// on a real cluster nobody knows it.
        estimate: EstimateSource = EstimateSource::Oracle,
        /// Which nodes a job gets.
        place: PlaceRule = PlaceRule::BestFit,
    }
}

struct Conservative {
    place: Box<dyn Place>,
    depth: usize,
    estimate: EstimateSource,
    door: Door,
}

impl Policy for Conservative {
    fn estimates(&self) -> EstimateSource {
        self.estimate
    }

    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        let came = self.door.admit(view, plan);
        let waiting = view.pending().iter().filter(|id| !plan.has_job(**id));
        let waiting = waiting.map(|id| view.job(*id).expect("a waiting job is not over"));
        let line: Vec<&Job> = waiting.take(self.depth.max(1)).collect();
        // Only jobs up to the last that fits now can start, or keep others from it.
        let last = line.iter().rposition(|job| self.fits(plan, job));
        let (ahead, rest) = line.split_at(last.map_or(0, |last| last + 1));
        let head = self.reserve_all(view, plan, ahead);
        for job in rest {
            explain(plan, job, no_capacity(plan.free(), &job.spec));
        }
        if let Some(head) = head.or(rest.first().map(|job| job.id)) {
            explain_rest(view, plan, &came, head);
        }
    }
}

impl Conservative {
    fn fits(&self, plan: &mut Plan<'_>, job: &Job) -> bool {
        may_fit(plan.free(), &job.spec)
            && place_job(&*self.place, plan.free_mut(), &job.spec).is_ok()
    }

    /// Gives each job its reservation and starts those whose time is now; the answer is the first
    /// that has to wait.
    fn reserve_all(
        &self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        jobs: &[&Job],
    ) -> Option<JobId> {
        let place = &*self.place;
        let mut started = Vec::new();
        let in_order = |job: &&&Job| start(place, view, plan, job, &mut started);
        let count = jobs.iter().take_while(in_order).count();
        let (head, _) = jobs[count..].split_first()?;
        let mut future = Future::new(view.now(), plan.free(), &endings(view, started));
        for job in &jobs[count..] {
            match future.reserve(place, view, job) {
                Some((at, placement)) if at == view.now() => {
                    plan.start(job.id, placement)
                        .expect("what the future has free now is free");
                }
                Some(_) | None => {
                    let reason = if self.fits(plan, job) {
                        Reason::WouldDelay { reserved: head.id }
                    } else {
                        no_capacity(plan.free(), &job.spec)
                    };
                    explain(plan, job, reason);
                }
            }
        }
        Some(head.id)
    }
}

/// What is believed to be free, from now on.
struct Future {
    /// By time. Each step lasts until the next one.
    steps: Vec<Step>,
}

/// What is free from an instant on.
#[derive(Clone)]
struct Step {
    at: Time,
    free: Capacity,
}

impl Future {
    /// The future without reservations. Ends are rounded up onto at most [`ENDS_MAX`] instants.
    fn new(now: Time, free: &Capacity, ends: &[Ending]) -> Future {
        let mut steps = vec![Step {
            at: now,
            free: free.clone(),
        }];
        let (ends, never) = ends.split_at(ends.partition_point(|end| end.at < Time::NEVER));
        let instants: Vec<&[Ending]> = ends.chunk_by(|one, next| one.at == next.at).collect();
        let groups = instants.chunks(instants.len().div_ceil(ENDS_MAX).max(1));
        for group in groups.chain([&[never][..]]) {
            let Some(latest) = group.last().and_then(|together| together.last()) else {
                continue;
            };
            let mut step = steps.last().expect("one is there from the start").clone();
            step.at = latest.at;
            for ending in group.iter().copied().flatten() {
                step.free.release(&ending.placement);
            }
            steps.push(step);
        }
        Future { steps }
    }

    /// Books the earliest place for a job, for as long as it is believed to run.
    fn reserve(
        &mut self,
        place: &dyn Place,
        view: &View<'_>,
        job: &Job,
    ) -> Option<(Time, Placement)> {
        for first in 0..self.steps.len() {
            let Step { at, free } = &mut self.steps[first];
            let at = *at;
            if !may_fit(free, &job.spec) {
                continue;
            }
            let Ok(wanted) = place_job(place, free, &job.spec) else {
                continue;
            };
            let end = believed_end(view, job, &wanted, at);
            let Err(taken) = self.book(first, end, &wanted) else {
                return Some((at, wanted));
            };
            let Ok(other) = place_job(place, &mut self.steps[taken].free, &job.spec) else {
                continue;
            };
            let end = believed_end(view, job, &other, at);
            if self.book(first, end, &other).is_ok() {
                return Some((at, other));
            }
        }
        None
    }

    /// Books a place from one step until an end, or says in which step it is taken.
    fn book(&mut self, first: usize, end: Time, placement: &Placement) -> Result<(), usize> {
        // A job that never ends takes the last step too, whatever its time.
        let lasts = |step: &Step| step.at < end || end == Time::NEVER;
        let after = self.steps.partition_point(lasts);
        for at in first..after {
            if self.steps[at].free.book(placement).is_err() {
                for booked in &mut self.steps[first..at] {
                    booked.free.release(placement);
                }
                return Err(at);
            }
        }
        let known = self.steps.get(after).is_some_and(|step| step.at == end);
        if !known && end < Time::NEVER && self.steps.len() < STEPS_MAX {
            let mut step = self.steps[after - 1].clone();
            step.free.release(placement);
            step.at = end;
            self.steps.insert(after, step);
        }
        Ok(())
    }
}
