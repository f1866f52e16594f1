//! Shortest job first, and nobody overtaken for ever.
//!
//! Ranks jobs by what they may well take, least first: the believed run time and as much of its
//! spread as `caution` says, so that a job of which little is known does not pass for a short one.
//! Jobs without an estimate come last. Of the oldest job that waits, those that were submitted
//! after it and run are the overtakers: together they hold at most a part of the GPUs that it could
//! have (of its models, in its pool), half of them with a `stretch` of 2 and three quarters with 4.
//! What is free of these beyond that is for the oldest job, and while it does not fit although no
//! job before it runs there, nothing else starts there. Never preempts.
//!
//! What that promises: whenever a job starts, of the GPUs that the oldest could have jobs that were
//! submitted after it hold at most that part. Where every job asks for one of N equal GPUs and
//! none fails, it follows that no job waits longer than `stretch` times as long as it would under
//! strict `fifo` and two of the longest runs more. For while a job waits, no GPU is idle, and at
//! least N / `stretch` of them work off what was submitted before it; under `fifo` all N do; and
//! what two policies that leave no GPU idle have left to do differs by less than N of the longest
//! runs. Gangs may have to wait longer, until enough GPUs of one node are free, but not for ever.
//! Jobs of which what they need is down or kept for others hold nobody back; behind very many of
//! them, or of very many kinds (`limits`), nobody is held back at all.
//!
//! The price: in an overload short jobs have a part of the GPUs to themselves, not all of them.
//! Looks at one waiting job of each kind that may fit; what running jobs hold is counted as they
//! come and go.

use std::collections::{BTreeMap, BTreeSet};

use hostler_core::admit::EmptyCluster;
use hostler_core::capacity::{Capacity, Overlay};
use hostler_core::id::JobId;
use hostler_core::job::{Demand, Job, Locality};
use hostler_core::pipeline::{Backlog, Rank, ShareRule};
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, PolicyDef, Wake};
use hostler_core::predict::EstimateSource;
use hostler_core::reason::Reason;
use hostler_core::stage::{Order, Place, place_job};
use hostler_core::units::Span;
use hostler_core::view::View;

use super::candidates::Candidate;
use super::gap_queues::{GapQueues, mem_of};
use super::holders::Holders;
use super::outlook::{explain, explain_no_capacity};
use super::rank::key_of;
use crate::limits::{LOOKED_AT_MAX, SET_ASIDE_MAX};
use crate::place::PlaceRule;

/// Shortest job first within bounds.
pub fn def() -> PolicyDef {
    let summary = "shortest job first; those that overtake the oldest hold a part of all GPUs";
    PolicyDef::new("bounded-sjf", summary, |config: Config| {
        let Config { stretch, caution, estimate, place } = config;
        Ok(Box::new(BoundedSjf {
            stretch: milli("stretch", stretch, 1.0)?,
            order: Cautious { caution: milli("caution", caution, 0.0)? },
            estimate,
            place: place.build(),
            backlog: Backlog::default(),
            queues: GapQueues::default(),
            holders: Holders::default(),
            empty_cluster: EmptyCluster::default(),
            emptied: Overlay::default(),
        }))
    })
}

hostler_core::settings! {
    struct Config {
        /// How much longer a job may wait than in the order of submission: those that overtake it
        /// hold at most 1 - 1 / `stretch` of all GPUs. 1: nobody overtakes.
        stretch: f64 = 4.0,
        /// How much of the spread of its estimate a job ranks by, besides the estimate.
        caution: f64 = 1.0,
        estimate: EstimateSource = EstimateSource::Oracle,
        place: PlaceRule = PlaceRule::BestFit,
    }
}

/// The largest factor: more is for ever.
const FACTOR_MAX: f64 = 1e6;

/// A factor in thousandths: what a decision depends on is whole.
fn milli(name: &str, value: f64, least: f64) -> Result<u64, String> {
    match (least..=FACTOR_MAX).contains(&value) {
        true => Ok((value * 1000.0) as u64),
        false => Err(format!("`{name}`: {value}; use a number from {least} to {FACTOR_MAX}")),
    }
}

struct BoundedSjf {
    stretch: u64,
    order: Cautious,
    estimate: EstimateSource,
    place: Box<dyn Place>,
    backlog: Backlog,
    queues: GapQueues,
    holders: Holders,
    empty_cluster: EmptyCluster,
    /// Memory for a node on which nothing runs; what is in it means nothing.
    emptied: Overlay,
}

/// What may start at this question besides the oldest job.
struct Allowance {
    oldest: Option<JobId>,
    /// The classes of nodes that could hold the oldest.
    classes: Vec<usize>,
    /// GPUs of these that others may take, in thousandths.
    left: u64,
}

impl Allowance {
    fn of(oldest: JobId, classes: Vec<usize>, left: u64) -> Allowance {
        Allowance { oldest: Some(oldest), classes, left }
    }

    /// Whether enough is left for so many tasks of some job other than the oldest.
    fn allows_tasks(&self, demand: &Demand, tasks: u32, holders: &Holders) -> bool {
        let asked = u64::from(tasks) * u64::from(demand.gpu.0);
        let enough = self.left > 0 && asked <= self.left;
        enough || self.oldest.is_none() || !holders.serve_tasks(&self.classes, demand)
    }

    /// What a job takes of what others may take.
    fn takes(&self, job: &Job, holders: &Holders) -> u64 {
        if self.would_overtake(job, holders) { job.spec.gpu_milli() } else { 0 }
    }

    /// Whoever could go where the oldest could is taken to go there.
    fn would_overtake(&self, job: &Job, holders: &Holders) -> bool {
        let other = self.oldest.is_some_and(|oldest| oldest != job.id);
        other && holders.serve(&self.classes, &job.spec)
    }

    /// Whether enough is left for a job.
    fn allows(&self, job: &Job, holders: &Holders) -> bool {
        let enough = self.left > 0 && job.spec.gpu_milli() <= self.left;
        enough || !self.would_overtake(job, holders)
    }
}

impl Policy for BoundedSjf {
    fn estimates(&self) -> EstimateSource {
        self.estimate
    }

    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        let mut news = self.backlog.sync(view, &self.order, ShareRule::Requests);
        self.queues.follow(view, &news, plan.free());
        self.holders.follow(view, &news);
        self.empty_cluster.refresh(view);
        news.came.retain(|(_, id)| {
            let spec = &waiting(view, *id).spec;
            self.empty_cluster.admits(view, plan, *id, spec, &*self.place)
        });
        let mut oldest = None;
        if !self.queues.is_hopeless() {
            let mut allowance = self.start_oldest(view, plan);
            self.start_shortest(view, &mut allowance, plan);
            oldest = allowance.oldest;
        }
        for rank in &news.came {
            let job = waiting(view, rank.1);
            match oldest.filter(|_| self.queues.may_fit(*rank)) {
                _ if plan.has_job(rank.1) => {}
                Some(reserved) if reserved != rank.1 => {
                    explain(plan, job, Reason::WouldDelay { reserved });
                }
                Some(_) | None => explain_no_capacity(plan, job),
            }
        }
    }
}

/// Before all ranks that jobs have.
const FIRST: Rank = (i64::MIN, JobId(0));

impl BoundedSjf {
    /// Starts the oldest jobs on what is not for those that overtake them.
    fn start_oldest(&mut self, view: &View<'_>, plan: &mut Plan<'_>) -> Allowance {
        // What those take that start here, by class.
        let mut started: BTreeMap<usize, u64> = BTreeMap::new();
        let mut set_aside = BTreeSet::new();
        for oldest in view.pending().iter().copied().take(LOOKED_AT_MAX) {
            let job = waiting(view, oldest);
            let rank = (self.order.key(view, job), oldest);
            let kind = self.queues.kind(rank).map(|kind| (kind.clone(), mem_of(&job.spec)));
            if plan.has_job(oldest) || kind.as_ref().is_some_and(|kind| set_aside.contains(kind)) {
                continue;
            }
            let classes = self.holders.serving(&job.spec);
            let left = self.left_for_others(&classes, oldest);
            let taken: u64 = classes.iter().filter_map(|class| started.get(class)).sum();
            let held = self.holders.held(&classes) + taken;
            // All that is free may go to others.
            if self.holders.usable(&classes).saturating_sub(held) <= left {
                return Allowance::of(oldest, classes, left);
            }
            if let Some(placement) = self.queues.place(&*self.place, plan, rank, &job.spec) {
                for (class, gpus) in self.holders.taken(&job.spec, &placement) {
                    *started.entry(class).or_default() += gpus;
                }
                plan.start(oldest, placement).expect("a waiting job starts on free nodes");
                continue;
            }
            // It gets its room as those before it end.
            let earlier_start = classes.iter().any(|class| started.contains_key(class));
            if earlier_start || self.holders.any_before(&classes, oldest) {
                return Allowance::of(oldest, classes, left);
            }
            if set_aside.len() == SET_ASIDE_MAX {
                break;
            }
            if self.could_run(view, job, plan) {
                return Allowance::of(oldest, classes, 0);
            }
            // Nodes that it needs are down or kept for others; so it is with all of its kind.
            set_aside.extend(kind);
        }
        Allowance { oldest: None, classes: Vec::new(), left: u64::MAX }
    }

    /// How much of these classes those may still take that overtake a job.
    fn left_for_others(&mut self, classes: &[usize], oldest: JobId) -> u64 {
        let (all, stretch) = (u128::from(self.holders.usable(classes)), u128::from(self.stretch));
        let for_others = (all * (stretch - 1000) / stretch) as u64;
        for_others.saturating_sub(self.holders.held_after(classes, oldest))
    }

    /// Whether a job would fit if nothing ran.
    fn could_run(&mut self, view: &View<'_>, job: &Job, plan: &mut Plan<'_>) -> bool {
        if self.fits_emptied_nodes(view, job, plan.free()) {
            return true;
        }
        let mark = plan.mark();
        for lease in view.leases() {
            plan.lift(lease.id).expect("the lease is one of the state's");
        }
        let fits = place_job(&*self.place, plan, &job.spec).is_ok();
        plan.undo_to(mark);
        fits
    }

    /// A quick yes, mostly: whether nodes that are emptied one by one hold a job. No says nothing
    /// about jobs with several roles, or in one rack.
    fn fits_emptied_nodes(&mut self, view: &View<'_>, job: &Job, free: &Capacity) -> bool {
        let [gang] = &*job.spec.gangs else { return false };
        let of_one_node = match gang.demand.locality {
            Locality::Node | Locality::Island => true,
            Locality::Any | Locality::Apart => false,
            Locality::Rack => return false,
        };
        let mut slots: u32 = 0;
        view.nodes().iter().any(|node| {
            self.emptied.clear();
            let leases = node.leases.iter().filter_map(|lease| view.lease(*lease));
            let parts = leases.flat_map(|lease| &lease.placement.parts);
            let here = parts.filter(|part| part.node == node.id);
            here.for_each(|part| self.emptied.release(free, part));
            let here = self.emptied.slots(free, node.id, &gang.demand, gang.count);
            slots = if of_one_node { here } else { slots.saturating_add(here) };
            slots >= gang.count
        })
    }

    /// Starts others by rank, as far as they may.
    fn start_shortest(&mut self, view: &View<'_>, allowance: &mut Allowance, plan: &mut Plan<'_>) {
        let may_start =
            |demand: &Demand, tasks| allowance.allows_tasks(demand, tasks, &self.holders);
        let mut candidates = self.queues.candidates_among(FIRST, may_start);
        // It may start whoever else may not.
        let oldest = allowance.oldest.and_then(|oldest| self.alone(view, oldest));
        oldest.into_iter().for_each(|oldest| candidates.push(oldest));
        while let Some(mut candidate) = candidates.pop(&self.queues) {
            let rank = candidate.rank;
            let job = waiting(view, rank.1);
            if !plan.has_job(rank.1) {
                // All of a kind ask for as many GPUs.
                if !allowance.allows(job, &self.holders) {
                    continue;
                }
                match self.queues.place(&*self.place, plan, rank, &job.spec) {
                    Some(placement) => {
                        plan.start(rank.1, placement).expect("a waiting job starts on free nodes");
                        allowance.left -= allowance.takes(job, &self.holders);
                    }
                    None => candidates.does_not_fit(&mut candidate, &job.spec),
                }
            }
            if !candidate.is_alone() {
                candidates.go_on(&self.queues, candidate);
            }
        }
    }

    /// A job that is looked at by itself.
    fn alone(&self, view: &View<'_>, id: JobId) -> Option<Candidate> {
        let rank = (self.order.key(view, waiting(view, id)), id);
        self.queues.kind(rank).map(|kind| Candidate::alone(rank, kind.clone()))
    }
}

fn waiting<'a>(view: &View<'a>, id: JobId) -> &'a Job {
    view.job(id).expect("a job that waits or runs is not over")
}

/// Ranks by what jobs may well take.
struct Cautious {
    caution: u64,
}

impl Order for Cautious {
    fn key(&self, _: &View<'_>, job: &Job) -> i64 {
        key_of(job.estimate.map(|estimate| {
            let wide = u128::from(estimate.spread.0) * u128::from(self.caution) / 1000;
            Span(estimate.run.0.saturating_add(u64::try_from(wide).unwrap_or(u64::MAX)))
        }))
    }
}
