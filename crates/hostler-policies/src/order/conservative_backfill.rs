//! Conservative backfilling: every job that waits has a reservation.
//!
//! Jobs are looked at in the order of their submission, or of what their tenants used before. Each
//! gets the earliest instant at which a place is believed to be free for as long as it runs, beside
//! all that runs and the reservations of those before it, and starts now if that instant is now. So
//! nobody is delayed by a job that overtakes it; gaps are filled less eagerly than by
//! `fifo-backfill`, which protects only the first. Ends count to the microsecond, and all who wait
//! have a reservation, unless `depth` says otherwise.
//!
//! What a place is, and which one:
//!
//! - A task holds its cores, memory and GPUs for the whole of its run, the same devices all the
//!   time. A part of a GPU is on one device, and several parts share it while compute and memory
//!   last; a whole GPU is one of which nobody holds a part.
//! - Nodes stand in an order: those without GPUs, then by model, low tiers first or as the job
//!   asks, then those with few GPUs first, then by number. A role goes to the first node that holds
//!   all its tasks; else to the nodes in their order, each with as many tasks as it holds. Those
//!   that must be near each other go to the first node, or to the rack of the lowest number, that
//!   holds all of them. On a node, tasks take the first devices that have enough; several GPUs the
//!   first island that has them all.
//! - Several roles are placed one after the other, each beside those before it, at the first of
//!   these instants at which all find room: now, and those at which more becomes free somewhere.
//! - Where speeds by GPU model are known, a job with one role goes to a model by which it can start
//!   the earliest, else to several, and is reserved for as long as it takes on the slowest of them,
//!   with its tasks as far apart as they may be.
//!
//! The order of nodes does not depend on who else is there, so there is no placement rule to set:
//! as long as all goes as planned, a place that was the first one stays the first one. That is why
//! nobody with one role starts later than was first planned, if estimates are true; and why plans
//! can be kept from one question to the next. Times for which nodes are kept (windows) are in no
//! plan before they come near: who counted on such a node may have to start later.
//!
//! Needs estimates. A job without one is believed to run until the end of time: at that last
//! instant all that runs now is over, and so are those that start before anybody has to wait;
//! others that have no end stay. A job that outlasts its estimate is believed to need a tenth more
//! than it has run by then, at least a second; one that outlasts that too, again. A job for which
//! no end makes room (its nodes are down) has no reservation, and nothing is kept for it.
//!
//! Never preempts. While jobs wait that another policy suspended, those go first, and others start
//! in strict order. Remembers the reservations as long as they follow from the state: see `agenda`.
//! Where they do not any more, because a job ended early or late, they are worked out anew, as far
//! as somebody behind could start now. A reservation is a plan, not a promise.

use hostler_core::admit::EmptyCluster;
use hostler_core::id::JobId;
use hostler_core::job::Job;
use hostler_core::pipeline::{
    Backlog, BacklogChanges, HalfLifeDays, Rank, ShareRule, by_past, weigh_in_time,
};
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, PolicyDef, Wake};
use hostler_core::predict::EstimateSource;
use hostler_core::reason::Reason;
use hostler_core::stage::{Order, place_job};
use hostler_core::units::Span;
use hostler_core::view::View;

use super::agenda::Agenda;
use super::choices::choices;
use super::fifo::BySubmission;
use super::gap_queues::GapQueues;
use super::outlook::explain_no_capacity;
use crate::limits::PLACED_AHEAD_MAX;
use crate::place::first_fit::FirstFit;

/// Conservative backfilling.
pub fn def() -> PolicyDef {
    let summary = "first in, first out; others fill gaps if they delay nobody who was there before";
    PolicyDef::new("conservative-backfill", summary, |config: Config| {
        Ok(Box::new(ConservativeBackfill::new(config)))
    })
}

hostler_core::settings! {
    struct Config {
        /// Waiting jobs behind the head that are considered; 0: all.
        depth: u32 = 0,
        estimate: EstimateSource = EstimateSource::Oracle,
        fair_share_days: HalfLifeDays = HalfLifeDays::default(),
    }
}

struct ConservativeBackfill {
    /// Jobs that may have a reservation for a later time; none: any number.
    reserved_max: Option<usize>,
    estimate: EstimateSource,
    order: Box<dyn Order>,
    /// After how long what a tenant used counts half; none when the past does not count.
    half_life: Option<Span>,
    backlog: Backlog,
    queues: GapQueues,
    empty_cluster: EmptyCluster,
    agenda: Agenda,
}

impl ConservativeBackfill {
    fn new(config: Config) -> ConservativeBackfill {
        let Config { depth, estimate, fair_share_days } = config;
        let half_life = fair_share_days.span();
        let order: Box<dyn Order> = Box::new(BySubmission);
        ConservativeBackfill {
            reserved_max: (depth > 0).then_some(depth as usize + 1),
            estimate,
            order: if half_life.is_some() { by_past(order) } else { order },
            half_life,
            backlog: Backlog::default(),
            queues: GapQueues::default(),
            empty_cluster: EmptyCluster::default(),
            agenda: Agenda::default(),
        }
    }
}

impl Policy for ConservativeBackfill {
    fn estimates(&self) -> EstimateSource {
        self.estimate
    }

    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        let mut news = self.backlog.sync(view, &*self.order, ShareRule::Requests);
        self.queues.follow(view, &news, plan.free());
        self.agenda.follow(view, plan.free(), &news);
        self.empty_cluster.refresh(view);
        news.came.retain(|(_, id)| {
            let spec = &waiting(view, *id).spec;
            self.empty_cluster.admits(view, plan, *id, spec, &self.agenda.rule())
        });
        if let Some(half_life) = self.half_life {
            weigh_in_time(view, half_life, plan);
        }
        if view.keeps_suspended() {
            self.agenda = Agenda::default();
            return self.resume_first(view, &news, plan);
        }
        for (rank, placement) in self.agenda.due_now(view.now()) {
            plan.start(rank.1, placement.clone()).expect("what was planned is free");
        }
        for _ in 0..PLACED_AHEAD_MAX {
            let Some(next) = self.next(view, plan) else { break };
            self.place(view, plan, next);
        }
        if self.next(view, plan).is_some() {
            self.look_further(view, plan);
        }
        self.explain(view, &news, plan);
    }
}

impl ConservativeBackfill {
    /// Lets jobs go on that another policy suspended, and starts others in strict order: memory
    /// that is taken until somebody goes on is in no calendar.
    fn resume_first(&self, view: &View<'_>, news: &BacklogChanges, plan: &mut Plan<'_>) {
        for job in view.suspended() {
            if let Ok(placement) = place_job(&FirstFit, plan, &job.spec) {
                plan.start(job.id, placement).expect("a waiting job starts on free nodes");
            }
        }
        let open = |id: &JobId| !waiting(view, *id).is_suspended();
        for id in self.backlog.iter().map(|rank| rank.1).filter(open) {
            if plan.has_job(id) {
                continue;
            }
            let Ok(placement) = place_job(&FirstFit, plan, &waiting(view, id).spec) else {
                explain_no_capacity(plan, waiting(view, id));
                return explain_behind(view, id, news, plan);
            };
            plan.start(id, placement).expect("a waiting job starts on free nodes");
        }
    }

    /// The next job to get a reservation.
    fn next(&self, view: &View<'_>, plan: &Plan<'_>) -> Option<Rank> {
        let full = |most: usize| self.agenda.waiting(view.now()) >= most;
        if self.reserved_max.is_some_and(full) {
            return None;
        }
        // Those that are turned away have not left yet.
        let open = |rank: &Rank| !plan.has_job(rank.1);
        match self.agenda.last() {
            Some(last) => self.backlog.behind(last).find(open),
            None => self.backlog.iter().find(open),
        }
    }

    /// Gives a job its reservation, and starts it if that is for now.
    fn place(&mut self, view: &View<'_>, plan: &mut Plan<'_>, rank: Rank) -> bool {
        let job = waiting(view, rank.1);
        let now = self.agenda.place(view, rank, job);
        if let Some(placement) = now {
            plan.start(rank.1, placement.clone()).expect("what the calendar has free is free");
        }
        now.is_some()
    }

    /// Looks for jobs further behind that could start now: only for their sake more reservations
    /// have to be known.
    fn look_further(&mut self, view: &View<'_>, plan: &mut Plan<'_>) {
        let Some(last) = self.agenda.last() else { return };
        let mut candidates = self.queues.candidates(last);
        while let Some(mut candidate) = candidates.pop(&self.queues) {
            let rank = candidate.rank;
            let job = waiting(view, rank.1);
            let one_role = job.spec.gangs.len() == 1;
            // Where one role does not fit now, nor does another that asks for as much.
            if one_role && self.queues.place(&FirstFit, plan, rank, &job.spec).is_none() {
                candidates.does_not_fit(&mut candidate, &job.spec);
                candidates.go_on(&self.queues, candidate);
                continue;
            }
            let mut starts = plan.has_job(rank.1);
            if !starts && self.agenda.fits_now(view, job) {
                while let Some(next) = self.next(view, plan).filter(|next| *next < rank) {
                    self.place(view, plan, next);
                }
                if self.next(view, plan) != Some(rank) {
                    return;
                }
                starts = self.place(view, plan, rank);
            }
            // Nor do others that ask for as much and run as long, unless they are divided into
            // roles another way then.
            if !starts && one_role {
                let longer = longest_run(view, job);
                candidates.rule_out(&mut candidate, &job.spec, u32::MAX, longer);
            }
            candidates.go_on(&self.queues, candidate);
        }
    }

    /// Tells newcomers why they wait, and the first that waits.
    fn explain(&self, view: &View<'_>, news: &BacklogChanges, plan: &mut Plan<'_>) {
        let Some(head) = self.agenda.head(view.now()) else { return };
        explain_no_capacity(plan, waiting(view, head.1));
        let full = self.reserved_max.is_some_and(|most| self.agenda.waiting(view.now()) >= most);
        for rank in &news.came {
            let job = waiting(view, rank.1);
            match job.reason == Reason::New && *rank > head && !plan.has_job(rank.1) {
                false => {}
                true if full && self.agenda.last().is_some_and(|last| *rank > last) => {
                    plan.hold(rank.1, Reason::Behind { head: head.1 });
                }
                true if place_job(&FirstFit, plan, &job.spec).is_ok() => {
                    plan.hold(rank.1, Reason::WouldDelay { reserved: head.1 });
                }
                true => explain_no_capacity(plan, job),
            }
        }
    }
}

/// Tells newcomers whom they wait behind.
fn explain_behind(view: &View<'_>, head: JobId, news: &BacklogChanges, plan: &mut Plan<'_>) {
    for (_, id) in &news.came {
        if waiting(view, *id).reason == Reason::New && *id != head && !plan.has_job(*id) {
            plan.hold(*id, Reason::Behind { head });
        }
    }
}

fn waiting<'a>(view: &View<'a>, id: JobId) -> &'a Job {
    view.job(id).expect("a waiting job is not over")
}

/// How long a job is believed to run at most, wherever it is placed.
fn longest_run(view: &View<'_>, job: &Job) -> Span {
    let runs = choices(view, job).into_iter().map(|choice| choice.run.unwrap_or(Span::MAX));
    runs.max().unwrap_or(Span::MAX)
}
