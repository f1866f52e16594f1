//! First in, first out with backfilling (the "EASY" rule).
//!
//! Jobs start in the order of their submission, or of what their tenants used before. The first
//! that does not fit, the head, gets a reservation: the earliest time at which enough running jobs
//! are believed to be over. A job behind it starts now if it fits and the head still can start at
//! that time: because the job is believed to be over by then, or because the head fits beside it.
//! So GPUs that would idle are used, and only the head is protected: jobs further back may be
//! delayed by those that overtake them (`conservative-backfill` protects all).
//!
//! Needs estimates. Jobs without one are believed to run for ever: they are waited for last, and
//! start early only where the head does not miss them. A job that outlasts its estimate is believed
//! to need a tenth more than it has run so far. When no end of a running job makes room for the
//! head (its nodes are down), there is nothing to protect and all that fits starts.
//!
//! Nothing is kept for the head but room. Whether a job finds a place that the head does not miss
//! is answered exactly where both have one role, but for parts of GPUs, where the choice among the
//! devices of a node is not tried through, and for gangs of hundreds of tasks on thousands of
//! nodes. All who wait are considered: those that ask for the same wait in
//! one line, and of a line only those are looked at that are short enough.
//!
//! Never preempts. Remembers what asks for what, and which of it fits; the reservation is worked
//! out anew at each question, and only when some job could make use of a gap.

use hostler_core::admit::EmptyCluster;
use hostler_core::capacity::Capacity;
use hostler_core::id::JobId;
use hostler_core::job::Job;
use hostler_core::pipeline::{
    Backlog, BacklogChanges, HalfLifeDays, Rank, ShareRule, by_past, weigh_in_time,
};
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, PolicyDef, Wake};
use hostler_core::predict::EstimateSource;
use hostler_core::reason::Reason;
use hostler_core::stage::{Order, Place};
use hostler_core::units::Span;
use hostler_core::view::View;

use super::beside::{beside, divides_alike};
use super::candidates::{Candidate, Candidates};
use super::fifo::BySubmission;
use super::gap_queues::GapQueues;
use super::outlook::{Started, believed_end, explain, explain_no_capacity};
use super::shadow::{Scratch, Shadow};
use crate::place::PlaceRule;

/// Its name.
pub const KIND: &str = "fifo-backfill";

/// First in, first out with backfilling.
pub fn def() -> PolicyDef {
    let summary = "first in, first out; others fill gaps if they do not delay the first that waits";
    PolicyDef::new(KIND, summary, |config: Config| Ok(Box::new(FifoBackfill::new(config))))
}

hostler_core::settings! {
    struct Config {
        /// Waiting jobs behind the head that are considered; 0: all.
        depth: u32 = 0,
        estimate: EstimateSource = EstimateSource::Oracle,
        place: PlaceRule = PlaceRule::BestFit,
        fair_share_days: HalfLifeDays = HalfLifeDays::default(),
    }
}

struct FifoBackfill {
    place: Box<dyn Place>,
    /// None: all.
    depth: Option<usize>,
    estimate: EstimateSource,
    order: Box<dyn Order>,
    /// After how long what a tenant used counts half; none when the past does not count.
    half_life: Option<Span>,
    backlog: Backlog,
    queues: GapQueues,
    empty_cluster: EmptyCluster,
    scratch: Scratch,
}

impl FifoBackfill {
    fn new(config: Config) -> FifoBackfill {
        let Config { depth, estimate, place, fair_share_days } = config;
        let half_life = fair_share_days.span();
        let order: Box<dyn Order> = Box::new(BySubmission);
        FifoBackfill {
            place: place.build(),
            depth: (depth > 0).then_some(depth as usize),
            estimate,
            order: if half_life.is_some() { by_past(order) } else { order },
            half_life,
            backlog: Backlog::default(),
            queues: GapQueues::default(),
            empty_cluster: EmptyCluster::default(),
            scratch: Scratch::default(),
        }
    }
}

impl Policy for FifoBackfill {
    fn estimates(&self) -> EstimateSource {
        self.estimate
    }

    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        let mut news = self.backlog.sync(view, &*self.order, ShareRule::Requests);
        self.queues.follow(view, &news, plan.free());
        self.empty_cluster.refresh(view);
        news.came.retain(|(_, id)| {
            let spec = &waiting(view, *id).spec;
            self.empty_cluster.admits(view, plan, *id, spec, &*self.place)
        });
        if let Some(half_life) = self.half_life {
            weigh_in_time(view, half_life, plan);
        }
        let mut started = Vec::new();
        let Some(head) = self.start_in_order(view, plan, &mut started) else { return };
        explain_no_capacity(plan, waiting(view, head.1));
        let last = self.fill_gaps(view, head, &started, plan);
        self.explain_newcomers(view, head, last, &news, plan);
    }
}

impl FifoBackfill {
    /// Starts jobs until one does not fit: that is the head.
    fn start_in_order(
        &mut self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        started: &mut Vec<Started>,
    ) -> Option<Rank> {
        for rank in self.backlog.iter() {
            if plan.has_job(rank.1) {
                continue;
            }
            let job = waiting(view, rank.1);
            let Some(placement) = self.queues.place(&*self.place, plan, rank, &job.spec) else {
                return Some(rank);
            };
            let at = believed_end(view, job, &placement, view.now());
            started.push(Started { at, placement: placement.clone() });
            plan.start(rank.1, placement).expect("a waiting job starts on free nodes");
        }
        None
    }

    /// Starts jobs behind the head that do not delay it; the answer is the first that was too far
    /// behind to be considered.
    fn fill_gaps(
        &mut self,
        view: &View<'_>,
        head: Rank,
        started: &[Started],
        plan: &mut Plan<'_>,
    ) -> Option<Rank> {
        let mut last = self.depth.and_then(|depth| self.backlog.behind(head).nth(depth));
        let mut candidates = self.queues.candidates(head);
        let (place, queues) = (&*self.place, &mut self.queues);
        let scratch = Some(&mut self.scratch);
        let mut gaps = Gaps { view, place, queues, head, started, scratch, shadow: None };
        while let Some(mut candidate) = candidates.pop(gaps.queues) {
            if last.is_some_and(|last| candidate.rank >= last) {
                break;
            }
            if gaps.offer(plan, &mut candidates, &mut candidate) {
                // Those that start do not count.
                last = last.and_then(|last| self.backlog.behind(last).next());
            }
            candidates.go_on(gaps.queues, candidate);
        }
        last
    }

    fn explain_newcomers(
        &self,
        view: &View<'_>,
        head: Rank,
        last: Option<Rank>,
        news: &BacklogChanges,
        plan: &mut Plan<'_>,
    ) {
        for rank in &news.came {
            let job = waiting(view, rank.1);
            match job.reason == Reason::New && *rank > head && !plan.has_job(rank.1) {
                false => {}
                true if last.is_some_and(|last| *rank >= last) => {
                    plan.hold(rank.1, Reason::Behind { head: head.1 })
                }
                true if self.queues.may_fit(*rank) => {
                    plan.hold(rank.1, Reason::WouldDelay { reserved: head.1 });
                }
                true => explain_no_capacity(plan, job),
            }
        }
    }
}

fn waiting<'a>(view: &View<'a>, id: JobId) -> &'a Job {
    view.job(id).expect("a waiting job is not over")
}

/// The search for jobs that fill gaps without delaying the head.
struct Gaps<'a> {
    view: &'a View<'a>,
    place: &'a dyn Place,
    queues: &'a mut GapQueues,
    head: Rank,
    /// Jobs that this question started before it came to the head.
    started: &'a [Started],
    /// Memory for the look ahead, until it begins.
    scratch: Option<&'a mut Scratch>,
    /// The look ahead, once somebody asked for it.
    shadow: Option<Shadow<'a>>,
}

impl<'a> Gaps<'a> {
    /// Starts a job if it fits and does not delay the head; whether it did.
    fn offer(
        &mut self,
        plan: &mut Plan<'_>,
        candidates: &mut Candidates,
        candidate: &mut Candidate,
    ) -> bool {
        let rank = candidate.rank;
        if plan.has_job(rank.1) {
            return false;
        }
        let job = waiting(self.view, rank.1);
        let Some(wanted) = self.queues.place(self.place, plan, rank, &job.spec) else {
            candidates.does_not_fit(candidate, &job.spec);
            return false;
        };
        let (now, reserved) = (self.view.now(), self.head.1);
        let end = believed_end(self.view, job, &wanted, now);
        let shadow = self.look_ahead(plan.free());
        let placement = if shadow.falls_before(end, plan.free()) {
            beside(&mut shadow.room, plan, &job.spec, wanted)
        } else {
            shadow.room.ignore(plan.free(), &wanted);
            Some(wanted)
        };
        let Some(placement) = placement else {
            explain(plan, job, Reason::WouldDelay { reserved });
            // Nor would others that ask for as much, unless they are over by then.
            let Some(start) = shadow.at else { return false };
            let too_long = start.since(now) + Span(1);
            match divides_alike(&shadow.room, plan.free(), &job.spec) {
                true => candidates.rule_out(candidate, &job.spec, 0, too_long),
                false => candidate.rule_out_alike(&job.spec, too_long),
            }
            return false;
        };
        plan.start(job.id, placement).expect("a waiting job starts on free nodes");
        true
    }

    /// Jobs that start behind the head are in its reservation or gone by then, so the look ahead
    /// begins once and goes on from where it was.
    fn look_ahead(&mut self, free: &Capacity) -> &mut Shadow<'a> {
        self.shadow.get_or_insert_with(|| {
            let scratch = self.scratch.take().expect("the look ahead begins once");
            let head = waiting(self.view, self.head.1);
            Shadow::new(self.view, self.place, head, self.started, free, scratch)
        })
    }
}
