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
//! than it could be, never earlier; only for the first that waits they count to the microsecond, as
//! they do in `fifo-backfill`. For each instant the placement rule proposes a place, and a
//! second one where the first is taken later on; a place that neither finds is missed.
//!
//! Never preempts. Remembers nothing: all reservations are worked out anew at each question, and
//! only when a job behind the first that waits would fit now. A reservation is a plan, not a
//! promise: it moves when jobs end early or late.

use hostler_core::capacity::Capacity;
use hostler_core::job::Job;
use hostler_core::pipeline::HalfLifeDays;
use hostler_core::placement::Placement;
use hostler_core::plan::Plan;
use hostler_core::policy::PolicyDef;
use hostler_core::predict::EstimateSource;
use hostler_core::reason::Reason;
use hostler_core::stage::Place;
use hostler_core::view::View;

use super::backfill::{Backfill, FillGaps, Line, Waiting};
use super::future::{Future, Spare};
use super::hopeless::Hopeless;
use super::outlook::{Started, believed_end, endings, explain, explain_no_capacity};
use super::shadow::{Scratch, Shadow};
use crate::place::PlaceRule;

/// Conservative backfilling.
pub fn def() -> PolicyDef {
    let summary = "first in, first out; others fill gaps if they delay nobody who was there before";
    PolicyDef::new("conservative-backfill", summary, |config: Config| {
        let Config { depth, estimate, place, fair_share_days } = config;
        Ok(Backfill::<BesideAll>::new(place, depth, estimate, fair_share_days))
    })
}

hostler_core::settings! {
    struct Config {
        /// Waiting jobs behind the first that are considered. Each reservation costs a search
        /// through the believed future; those further back would change with every end anyway.
        depth: u32 = 32,
        estimate: EstimateSource = EstimateSource::Oracle,
        place: PlaceRule = PlaceRule::BestFit,
        fair_share_days: HalfLifeDays = HalfLifeDays::default(),
    }
}

/// Those start whose reservation is for now.
#[derive(Default)]
struct BesideAll {
    spare: Spare,
    scratch: Scratch,
}

impl FillGaps for BesideAll {
    fn fill<'a>(&mut self, waiting: Waiting<'a>, line: Line<'a>, plan: &mut Plan<'_>) {
        let Waiting { view, place, hopeless, head, started } = waiting;
        let mut planned = Reservations {
            view,
            place,
            hopeless,
            head,
            started,
            unplanned: vec![head],
            future: None,
            spare: &mut self.spare,
            shadow: None,
            scratch: Some(&mut self.scratch),
        };
        line.offer(plan, |plan, job| planned.starts(plan, job));
        if let Some(future) = planned.future {
            planned.spare.take_back(future);
        }
    }
}

/// Reservations in the order of submission.
struct Reservations<'a> {
    view: &'a View<'a>,
    place: &'a dyn Place,
    hopeless: &'a mut Hopeless,
    /// The first that waits.
    head: &'a Job,
    /// Jobs that this question started before one had to wait.
    started: &'a [Started],
    /// Jobs that wait and have no reservation yet: nobody behind them could start so far.
    unplanned: Vec<&'a Job>,
    /// What is left beside the reservations, once somebody could start.
    future: Option<Future<'a>>,
    spare: &'a mut Spare,
    /// The look ahead to the reservation of the first, once somebody could start; until then, the
    /// memory for it.
    shadow: Option<Shadow<'a>>,
    scratch: Option<&'a mut Scratch>,
}

impl<'a> Reservations<'a> {
    /// Gives a job its reservation, and starts it if that is for now.
    fn starts(&mut self, plan: &mut Plan<'_>, job: &'a Job) -> bool {
        let placed = self.hopeless.place(self.place, plan, &job.spec);
        let Some(wanted) = placed else {
            explain_no_capacity(plan, job);
            self.unplanned.push(job);
            return false;
        };
        let view = self.view;
        let future = self.future.get_or_insert_with(|| {
            let ends = endings(view, self.started).collect();
            Future::new(view, self.place, ends, plan.free(), self.spare)
        });
        for earlier in self.unplanned.drain(..) {
            future.reserve(earlier, None, self.spare);
        }
        match future.reserve(job, Some(wanted), self.spare) {
            Some((at, placement))
                if at == view.now() && self.head_has_room(plan.free(), job, &placement) =>
            {
                plan.start(job.id, placement).expect("what the future has free now is free");
                true
            }
            Some(_) | None => {
                explain(plan, job, Reason::WouldDelay { reserved: self.head.id });
                false
            }
        }
    }

    /// Whether the first that waits can start as early as without a job; books the job then.
    fn head_has_room(&mut self, free: &Capacity, job: &Job, placement: &Placement) -> bool {
        let (view, place, head, started) = (self.view, self.place, self.head, self.started);
        let shadow = self.shadow.get_or_insert_with(|| {
            let scratch = self.scratch.take().expect("the look ahead begins once");
            Shadow::new(view, place, head, started, free, scratch)
        });
        if shadow.falls_before(believed_end(view, job, placement, view.now()), free) {
            return shadow.room.take(free, &placement.parts);
        }
        shadow.room.ignore(free, placement);
        true
    }
}
