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
    Door, Ending, believed_end, blocked, endings, explain, explain_rest, may_fit, no_capacity,
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
        /// Waiting jobs behind the first that are considered. Each reservation costs a search
        /// through the believed future; those further back would change with every end anyway.
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
        let place = &*self.place;
        let mut started = Vec::new();
        let mut line = view.pending().iter();
        let head = line.find_map(|id| blocked(place, view, plan, *id, &mut started));
        let Some(head) = head else { return };
        explain(plan, head, no_capacity(plan.free(), &head.spec));
        let mut planned = Reservations {
            view,
            place,
            first_waiting: head.id,
            started,
            unplanned: vec![head],
            future: None,
        };
        let mut left = self.depth;
        for id in line {
            if left == 0 {
                break;
            }
            if plan.has_job(*id) {
                continue;
            }
            let job = view.job(*id).expect("a waiting job is not over");
            if !planned.starts(plan, job) {
                left -= 1;
            }
        }
        explain_rest(view, plan, &came, head.id);
    }
}

/// Reservations in the order of submission.
struct Reservations<'a> {
    view: &'a View<'a>,
    place: &'a dyn Place,
    first_waiting: JobId,
    /// Jobs that this question started before one had to wait.
    started: Vec<Ending>,
    /// Jobs that wait and have no reservation yet: nobody behind them could start so far.
    unplanned: Vec<&'a Job>,
    /// What is left beside the reservations, once somebody could start.
    future: Option<Future>,
}

impl<'a> Reservations<'a> {
    /// Gives a job its reservation, and starts it if that is for now.
    fn starts(&mut self, plan: &mut Plan<'_>, job: &'a Job) -> bool {
        if !self.fits(plan, job) {
            explain(plan, job, no_capacity(plan.free(), &job.spec));
            self.unplanned.push(job);
            return false;
        }
        let (view, place) = (self.view, self.place);
        let future = self.future.get_or_insert_with(|| {
            let started = std::mem::take(&mut self.started);
            Future::new(view.now(), plan.free(), &endings(view, started))
        });
        for earlier in self.unplanned.drain(..) {
            future.reserve(place, view, earlier);
        }
        let reserved = self.first_waiting;
        match future.reserve(place, view, job) {
            Some((at, placement)) if at == view.now() => {
                plan.start(job.id, placement)
                    .expect("what the future has free now is free");
                true
            }
            Some(_) | None => {
                explain(plan, job, Reason::WouldDelay { reserved });
                false
            }
        }
    }

    fn fits(&self, plan: &mut Plan<'_>, job: &Job) -> bool {
        may_fit(plan.free(), &job.spec)
            && place_job(self.place, plan.free_mut(), &job.spec).is_ok()
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
