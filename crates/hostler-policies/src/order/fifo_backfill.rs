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
use hostler_core::placement::Placement;
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, PolicyDef, Wake, defaults, settings};
use hostler_core::predict::EstimateSource;
use hostler_core::reason::Reason;
use hostler_core::stage::{Place, place_job};
use hostler_core::units::Time;
use hostler_core::view::View;

use super::hopeless::Hopeless;
use super::outlook::{
    Ending, News, Started, believed_end, blocked, endings, explain, explain_no_capacity,
    explain_rest,
};
use crate::place::PlaceRule;

/// First in, first out with backfilling.
pub const DEF: PolicyDef = PolicyDef {
    kind: "fifo-backfill",
    summary: "first in, first out; others fill gaps if they do not delay the first that waits",
    needs: &[],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings("fifo-backfill", table)?;
        Ok(Box::new(FifoBackfill {
            place: config.place.build(),
            depth: config.depth as usize,
            estimate: config.estimate,
            news: News::default(),
            scratch: Capacity::default(),
        }))
    },
};

hostler_core::settings! {
    struct Config {
        /// Waiting jobs behind the head that are considered: a hundred find nearly all gaps, and
        /// bound what a question costs on a long queue.
        depth: u32 = 100,
        /// Whose run times count. Few traces carry what users said, so the truth is the default;
        /// on a real cluster nobody knows it.
        estimate: EstimateSource = EstimateSource::Oracle,
        /// Which nodes a job gets.
        place: PlaceRule = PlaceRule::BestFit,
    }
}

struct FifoBackfill {
    place: Box<dyn Place>,
    depth: usize,
    estimate: EstimateSource,
    news: News,
    /// Memory for the look ahead; what is in it means nothing.
    scratch: Capacity,
}

impl Policy for FifoBackfill {
    fn estimates(&self) -> EstimateSource {
        self.estimate
    }

    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        let came = self.news.follow(view, plan, &*self.place);
        let hopeless = &mut self.news.hopeless;
        let mut started = Vec::new();
        let mut line = view.pending().iter();
        let place = &*self.place;
        let head = line.find_map(|id| blocked(place, hopeless, view, plan, *id, &mut started));
        let Some(head) = head else { return };
        explain_no_capacity(plan, head);
        let mut gaps = Gaps {
            view,
            place,
            hopeless,
            head,
            started: &started,
            shadow: None,
            later: &mut self.scratch,
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
            if !gaps.starts(plan, job) {
                left -= 1;
            }
        }
        explain_rest(view, plan, &came, head.id);
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
