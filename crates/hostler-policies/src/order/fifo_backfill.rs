//! First in, first out with backfilling (the "EASY" rule).
//!
//! Jobs start in the order of their submission. The first that does not fit, the head, gets a
//! reservation: a place, and the earliest time at which running jobs are believed to have left it.
//! A job behind it starts now if it fits and either is believed to end by that time or leaves the
//! reserved place alone. So GPUs that would idle are used, and only the head is protected: jobs
//! further back may be delayed by those that overtake them (`conservative-backfill` protects all).
//!
//! Needs estimates. Jobs without one are believed to run for ever: they are waited for last, and
//! start early only beside the reserved place. A job that outlasts its estimate is believed to
//! need a tenth more than it has run so far. When no end of a running job makes room for the head
//! (its nodes are down), there is nothing to protect and all that fits starts.
//!
//! Never preempts. Remembers nothing: the reservation is worked out anew at each question, on a
//! copy of the free capacity, node by node, and only when some job could make use of a gap.

use std::iter::Peekable;

use hostler_core::capacity::Capacity;
use hostler_core::fit_bound::FitBound;
use hostler_core::job::{Job, JobSpec};
use hostler_core::pipeline::HalfLifeDays;
use hostler_core::placement::Placement;
use hostler_core::plan::Plan;
use hostler_core::policy::PolicyDef;
use hostler_core::predict::EstimateSource;
use hostler_core::reason::Reason;
use hostler_core::stage::{Place, place_job};
use hostler_core::units::Time;
use hostler_core::view::View;

use super::backfill::{Backfill, FillGaps, Line, Waiting};
use super::hopeless::Hopeless;
use super::outlook::{Ending, Started, believed_end, endings, explain, explain_no_capacity};
use crate::place::PlaceRule;

/// Its name.
pub const KIND: &str = "fifo-backfill";

/// First in, first out with backfilling.
pub fn def() -> PolicyDef {
    let summary = "first in, first out; others fill gaps if they do not delay the first that waits";
    PolicyDef::new(KIND, summary, |config: Config| {
        let Config { depth, estimate, place, fair_share_days } = config;
        Ok(Backfill::<BesideHead>::new(place, depth, estimate, fair_share_days))
    })
}

hostler_core::settings! {
    struct Config {
        /// Waiting jobs behind the head that are considered: a hundred find nearly all gaps, and
        /// bound what a question costs on a long queue.
        depth: u32 = 100,
        estimate: EstimateSource = EstimateSource::Oracle,
        place: PlaceRule = PlaceRule::BestFit,
        fair_share_days: HalfLifeDays = HalfLifeDays::default(),
    }
}

/// Those start that do not delay the head.
#[derive(Default)]
struct BesideHead {
    /// Memory for the look ahead; what is in it means nothing.
    scratch: Capacity,
}

impl FillGaps for BesideHead {
    fn fill<'a>(&mut self, waiting: Waiting<'a>, line: Line<'a>, plan: &mut Plan<'_>) {
        let Waiting { view, place, hopeless, head, started } = waiting;
        let later = &mut self.scratch;
        let mut gaps = Gaps { view, place, hopeless, head, started, shadow: None, later };
        line.offer(plan, |plan, job| gaps.starts(plan, job));
    }
}

/// The search for jobs that fill gaps without delaying the head.
struct Gaps<'a> {
    view: &'a View<'a>,
    place: &'a dyn Place,
    hopeless: &'a mut Hopeless,
    head: &'a Job,
    /// Jobs that this question started before it came to the head.
    started: &'a [Started],
    /// The look ahead, once somebody asked for it.
    shadow: Option<Shadow<'a>>,
    /// What is free at the time that the look ahead has come to.
    later: &'a mut Capacity,
}

impl<'a> Gaps<'a> {
    /// Starts a job if it fits and does not delay the head; else tells it why not.
    fn starts(&mut self, plan: &mut Plan<'_>, job: &'a Job) -> bool {
        let Some(placement) = self.hopeless.place(self.place, plan, &job.spec) else {
            explain_no_capacity(plan, job);
            return false;
        };
        let end = believed_end(self.view, job, &placement, self.view.now());
        let placement = if self.delays(plan, end) {
            beside(self.place, self.later, plan, &job.spec, placement)
        } else {
            Some(placement)
        };
        let Some(placement) = placement else {
            explain(plan, job, Reason::WouldDelay { reserved: self.head.id });
            return false;
        };
        plan.start(job.id, placement).expect("a waiting job starts on free nodes");
        true
    }

    /// Whether the head is believed to start before `end`, and so could be delayed by a job that
    /// runs until then. Jobs that were started behind it are in its reservation already or gone by
    /// then, so the look ahead begins once and goes on from where it was.
    fn delays(&mut self, plan: &Plan<'_>, end: Time) -> bool {
        let shadow = self.shadow.get_or_insert_with(|| {
            self.later.clone_from(plan.free());
            Shadow::new(self.view, self.place, self.later, self.head, self.started)
        });
        shadow.falls_before(end, self.place, self.later)
    }
}

/// The look for the head's reservation: gives stays back in the order of their end until the head
/// fits, and books it there.
struct Shadow<'a> {
    head: &'a JobSpec,
    fit_bound: FitBound<'a>,
    ends: Peekable<Box<dyn Iterator<Item = Ending<'a>> + 'a>>,
    /// Stays that have ended elsewhere: given back once the head has its place, for those who
    /// then look for one beside it.
    elsewhere: Vec<&'a Placement>,
    /// When the head is believed to start, once that is known.
    at: Option<Time>,
}

impl<'a> Shadow<'a> {
    fn new(
        view: &'a View<'a>,
        place: &dyn Place,
        free: &mut Capacity,
        head: &'a Job,
        started: &'a [Started],
    ) -> Shadow<'a> {
        let ends: Box<dyn Iterator<Item = Ending<'a>> + 'a> = Box::new(endings(view, started));
        let placed = place_job(place, free, &head.spec);
        let short = placed.expect_err("the head does not fit what is free");
        let fit_bound = FitBound::new(&head.spec, short);
        let (head, ends) = (&*head.spec, ends.peekable());
        Shadow { head, fit_bound, ends, elsewhere: Vec::new(), at: None }
    }

    /// Whether the head is believed to start before `end`; looks no further ahead than that.
    fn falls_before(&mut self, end: Time, place: &dyn Place, free: &mut Capacity) -> bool {
        // A job that nobody knows the end of is in the way even of a head that has to wait for
        // another such.
        let in_time = |at: Time| at < end || end == Time::NEVER;
        while self.at.is_none()
            && let Some(at) = self.ends.peek().map(|ending| ending.at).filter(|at| in_time(*at))
        {
            while let Some(ending) = self.ends.next_if(|ending| ending.at == at) {
                if self.fit_bound.concerns(free, ending.placement) {
                    self.fit_bound.release(free, ending.placement);
                } else {
                    self.elsewhere.push(ending.placement);
                }
            }
            if self.fit_bound.is_worth_a_search(free)
                && let Ok(claim) = place_job(place, free, self.head)
            {
                free.book(&claim).expect("the rule chose free resources");
                self.elsewhere.drain(..).for_each(|placement| free.release(placement));
                self.at = Some(at);
            }
        }
        self.at.is_some_and(in_time)
    }
}

/// Books a job beside the head: where the rule wants it now, else where it would want it then, if
/// that is free now.
fn beside(
    place: &dyn Place,
    later: &mut Capacity,
    plan: &mut Plan<'_>,
    spec: &JobSpec,
    wanted: Placement,
) -> Option<Placement> {
    if later.book(&wanted).is_ok() {
        return Some(wanted);
    }
    let other = place_job(place, later, spec).ok()?;
    if !plan.has_room(&other) {
        return None;
    }
    later.book(&other).expect("the rule chose free resources");
    Some(other)
}
