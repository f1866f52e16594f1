//! The pass by rank: a job that does not fit takes the place of running jobs that rank after it.
//!
//! Who waits for whom is not remembered between questions. A job whose victims are still being
//! stopped finds, at the next question, that what is free plus what is being freed holds it, and
//! keeps that room. What is remembered saves searches that would fail ([`Reach`]).

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::backlog::{BacklogChanges, Rank};
use super::leaving::{Leave, Leaving, Trial};
use super::reach::{Looking, Now, Reach};
use super::runners::Runners;
use super::shapes::ShapeQueue;
use super::stirs::Stirs;
use super::touched::Touched;
use super::{Cache, Head, Pipeline, explain, explain_newcomers};
use crate::capacity::{Capacity, Overlay};
use crate::decision::Decision;
use crate::fit_bound::FitBound;
use crate::id::LeaseId;
use crate::job::JobSpec;
use crate::limits::{LIFTS_ON_TRIAL, SEARCHES_PER_PASS_MAX};
use crate::placement::{Lease, Placement};
use crate::plan::Plan;
use crate::policy::Cadence;
use crate::reason::Reason;
use crate::stage::{Shortfall, may_fit, place_job};
use crate::view::View;

/// What one pass knows.
#[derive(Default)]
struct Pass {
    /// What will be free once everything that is being stopped is gone, less what is kept for
    /// jobs that wait for it. None while it is the same as what is free.
    later: Option<Capacity>,
    /// Memory for it; what is in it means nothing.
    spare: Capacity,
    /// Memory for those who leave on trial; what is in it means nothing.
    without: Overlay,
    runners: Runners,
    reach: Reach,
    stirs: Stirs,
    touched: Touched,
    /// Leases that housekeeping or this pass told to stop.
    stopped: BTreeSet<LeaseId>,
    /// Searches for victims, where nothing is remembered of those that failed.
    searches: usize,
}

impl Pipeline {
    pub(super) fn by_rank(&mut self, view: &View<'_>, news: &BacklogChanges, plan: &mut Plan<'_>) {
        let Cache { shapes, backlog, .. } = &mut self.cache;
        shapes.follow(view, backlog, news);
        // Passes between rounds go by the bounds of shapes; without rounds there are none.
        let between = matches!(self.cadence, Cadence::Rounds(_));
        shapes.raise_bounds(plan.free(), if between { &news.freed } else { &[] });
        let mut pass = Pass {
            spare: std::mem::take(&mut self.cache.spare),
            without: std::mem::take(&mut self.cache.without),
            runners: std::mem::take(&mut self.cache.runners),
            reach: std::mem::take(&mut self.cache.reach),
            stirs: std::mem::take(&mut self.cache.stirs),
            stopped: told_to_stop(plan),
            ..Pass::default()
        };
        self.follow_runners(view, news, plan, &mut pass);
        match self.head {
            Head::Blocks => self.strictly_by_rank(view, plan, &mut pass),
            Head::Skips => self.greedily_by_rank(view, plan, &mut pass),
        }
        self.cache.spare = pass.later.unwrap_or(pass.spare);
        self.cache.without = pass.without;
        (self.cache.runners, self.cache.reach) = (pass.runners, pass.reach);
        self.cache.stirs = pass.stirs;
        explain_newcomers(view, plan, &self.cache.backlog, news);
    }

    /// Takes in what happened to running jobs since the last pass.
    fn follow_runners(
        &self,
        view: &View<'_>,
        news: &BacklogChanges,
        plan: &Plan<'_>,
        pass: &mut Pass,
    ) {
        let order = &*self.order;
        if news.all || self.misses_news() {
            pass.runners.forget();
            pass.stirs = Stirs::default();
            return pass.reach.clear();
        }
        let slips = pass.runners.follow(view, order, news);
        let now = Now { view, order, free: plan.free(), stopped: &pass.stopped };
        let stirs = pass.stirs.follow(&now, (news, &slips), &mut pass.runners);
        let lives = |id, wanted: &_| self.cache.shapes.lives(id, wanted);
        pass.reach.follow(&now, (&stirs, &pass.runners), lives);
    }

    /// Whether ranks of running jobs change without a word: by the order, or between passes.
    fn misses_news(&self) -> bool {
        !self.order.keeps_rank() || matches!(self.cadence, Cadence::Rounds(_))
    }

    fn strictly_by_rank(&self, view: &View<'_>, plan: &mut Plan<'_>, pass: &mut Pass) {
        for rank in self.cache.backlog.iter() {
            let spec = self.cache.backlog.spec(view, rank.1);
            let looking = Looking { rank, queue: None, spec };
            if !plan.has_job(rank.1) && !self.get_in(view, plan, pass, &looking) {
                break;
            }
        }
        let Pass { later, touched, .. } = pass;
        self.resume_suspended(view, plan, |_, placement| {
            let kept = later.as_mut().is_some_and(|later| later.book(&placement).is_err());
            touched.add(&placement);
            (!kept).then_some(placement)
        });
    }

    /// Goes by queues of jobs that ask for the same: one that does not get in stands for those
    /// behind it that ask for as much.
    fn greedily_by_rank(&self, view: &View<'_>, plan: &mut Plan<'_>, pass: &mut Pass) {
        let mut heap: BinaryHeap<_> = self.cache.shapes.heads().map(Reverse).collect();
        while let Some(Reverse((rank, queue))) = heap.pop() {
            let next = self.try_queue(view, plan, pass, rank, queue);
            heap.extend(next.map(|next| Reverse((next, queue))));
        }
    }

    /// Tries one job of a queue; the answer is the next of it that is worth trying.
    fn try_queue(
        &self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        pass: &mut Pass,
        rank: Rank,
        queue: ShapeQueue,
    ) -> Option<Rank> {
        let Cache { shapes, backlog, .. } = &self.cache;
        let spec = backlog.spec(view, rank.1);
        if plan.has_job(rank.1) {
            return shapes.next(queue, rank, spec);
        }
        let id = match queue {
            ShapeQueue::Shape(shape, count) if !self.misses_news() => Some((shape, count)),
            ShapeQueue::Shape(..) | ShapeQueue::Roles => None,
        };
        let looking = Looking { rank, queue: id, spec };
        let too_much = {
            let Pass { reach, runners, later, touched, stopped, .. } = &mut *pass;
            let now = Now { view, order: &*self.order, free: plan.free(), stopped };
            reach.too_much(&looking, &now, later.as_ref(), (touched, runners))
        };
        if let Some(mem) = too_much {
            return shapes.next_below(view, backlog, queue, rank, mem);
        }
        if self.get_in(view, plan, pass, &looking) {
            return shapes.next(queue, rank, spec);
        }
        shapes.next_smaller(view, backlog, queue, rank)
    }

    /// Starts a job, or keeps room for it; tells whether it could.
    fn get_in(
        &self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        pass: &mut Pass,
        looking: &Looking<'_>,
    ) -> bool {
        let Looking { rank, spec, .. } = *looking;
        self.start_now(plan, pass, rank, spec) || self.take_place(view, plan, pass, looking)
    }

    /// Starts a job on what is free, leaving alone what is kept for others.
    fn start_now(&self, plan: &mut Plan<'_>, pass: &mut Pass, rank: Rank, spec: &JobSpec) -> bool {
        if !may_fit(plan.free(), spec) {
            return false;
        }
        let Ok(placement) = place_job(&*self.place, plan, spec) else {
            return false;
        };
        let placement = match &mut pass.later {
            None => placement,
            Some(later) => match self.beside_claims(later, plan, spec, placement) {
                Some(placement) => placement,
                None => return false,
            },
        };
        pass.touched.add(&placement);
        plan.start(rank.1, placement).expect("a waiting job starts on free nodes");
        true
    }

    /// Books a job beside what is kept for others: where the rule wants it now, else where it
    /// would want it later, if that is free now.
    fn beside_claims(
        &self,
        later: &mut Capacity,
        plan: &mut Plan<'_>,
        spec: &JobSpec,
        wanted: Placement,
    ) -> Option<Placement> {
        if later.book(&wanted).is_ok() {
            return Some(wanted);
        }
        let other = place_job(&*self.place, later, spec).ok()?;
        if !plan.has_room(&other) {
            return None;
        }
        later.book(&other).expect("the rule chose free resources");
        Some(other)
    }

    /// Keeps room for a job that fits once others are gone: those that are being stopped, or else
    /// those that rank after it, which are then told to stop.
    fn take_place(
        &self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        pass: &mut Pass,
        looking: &Looking<'_>,
    ) -> bool {
        let mut later = pass.later.take().unwrap_or_else(|| {
            let mut later = std::mem::take(&mut pass.spare);
            after_stops(view, &mut later, plan);
            later
        });
        let found = match place_job(&*self.place, &mut later, looking.spec) {
            Ok(claim) => {
                later.book(&claim).expect("the rule chose free resources");
                Some((claim, Vec::new()))
            }
            Err(short) => self.find_victims(view, plan, pass, &mut later, looking, short),
        };
        pass.later = Some(later);
        let Some((claim, victims)) = found else { return false };
        pass.touched.add(&claim);
        for leaving in &victims {
            plan.stop(leaving.lease.id, leaving.how()).expect("it runs, and there is memory");
            pass.stopped.insert(leaving.lease.id);
            let job = view.job(leaving.lease.job).expect("a lease belongs to a job");
            pass.touched.add_stop(self.order.key(view, job), &leaving.lease.placement);
        }
        let victims = victims.len() as u32;
        explain(view, plan, &looking.rank, Reason::Preempting { victims });
        true
    }

    /// Where a job finds room, and who leaves it; that is booked in `later`, which is as before
    /// when there is none. Who is suspended leaves its GPUs but not its memory: where that is not
    /// enough all are saved who can be.
    fn find_victims<'v>(
        &self,
        view: &View<'v>,
        plan: &mut Plan<'_>,
        pass: &mut Pass,
        later: &mut Capacity,
        looking: &Looking<'_>,
        short: Shortfall,
    ) -> Option<(Placement, Vec<Leaving<'v>>)> {
        if self.misses_news() {
            if pass.searches == SEARCHES_PER_PASS_MAX {
                return None;
            }
            pass.searches += 1;
        }
        for leave in [Leave::Cheaply, Leave::Entirely] {
            let bound = FitBound::new(looking.spec, short);
            let tried = match self.lift_until_fit(view, plan, pass, later, looking, (leave, bound))
            {
                Ok((claim, lifted)) => match make_way(plan, later, claim, lifted) {
                    Ok(found) => return Some(found),
                    Err(tried) => tried,
                },
                Err(tried) => tried,
            };
            if !tried.iter().any(|leaving| leaving.could_leave_more(view)) {
                break;
            }
        }
        None
    }

    /// Lifts running jobs, last first, until one that waits fits; the answer is where, and who was
    /// lifted. When it never fits, `later` is as before, and who was lifted is told if other ways
    /// to leave could help.
    fn lift_until_fit<'v>(
        &self,
        view: &View<'v>,
        plan: &Plan<'_>,
        pass: &mut Pass,
        later: &mut Capacity,
        looking: &Looking<'_>,
        (leave, mut bound): (Leave, FitBound<'_>),
    ) -> Result<(Placement, Vec<Leaving<'v>>), Vec<Leaving<'v>>> {
        let mut without = std::mem::take(&mut pass.without);
        without.clear();
        let mut trial = Trial::new(later, &mut without);
        let mut met = 0;
        let now = (view, &*self.order);
        let mut found = None;
        let mut lost = false;
        while let Some((_, id)) = pass.runners.last_but(met, looking.rank.0, now) {
            met += 1;
            let lease = view.lease(id).expect("a running job has a lease");
            if is_stopping(plan, lease) || !bound.concerns(trial.later(), &lease.placement) {
                continue;
            }
            if !trial.lift(view, lease, leave, &mut bound) {
                continue;
            }
            if !bound.is_lost() && may_fit(trial.lifted(), looking.spec) {
                found = place_job(&*self.place, trial.lifted(), looking.spec).ok();
            }
            if found.is_some() {
                break;
            }
            if trial.len() == LIFTS_ON_TRIAL {
                lost = trial.apart(|later| self.is_lost(view, plan, pass, later, looking));
                if lost {
                    break;
                }
            }
        }
        let few = trial.len() < LIFTS_ON_TRIAL;
        let ended = match found {
            Some(claim) => Ok((claim, trial.leave())),
            None => Err(trial.come_back()),
        };
        pass.without = without;
        ended.map_err(|lifted| {
            let lost = lost || few && self.is_lost(view, plan, pass, later, looking);
            if lost { Vec::new() } else { lifted }
        })
    }

    /// Whether a job would not fit without all that rank after it; its queue remembers.
    fn is_lost(
        &self,
        view: &View<'_>,
        plan: &Plan<'_>,
        pass: &mut Pass,
        later: &Capacity,
        looking: &Looking<'_>,
    ) -> bool {
        let Pass { reach, runners, stopped, touched, .. } = pass;
        let now = Now { view, order: &*self.order, free: plan.free(), stopped };
        let least = looking.queue.map(|(shape, _)| &self.cache.shapes.get(shape).least);
        reach.is_lost(looking, least, &now, runners)
            || reach.too_much(looking, &now, Some(later), (touched, runners)).is_some()
    }
}

/// Whether a stay was told to stop, before or in this very plan.
fn is_stopping(plan: &Plan<'_>, lease: &Lease) -> bool {
    lease.stop.is_some() || plan.has_lease(lease.id)
}

/// Books a claim, and has those leave whose place it takes; the best of those lifted stay when it
/// leaves them theirs. When they cannot leave so, nobody does, and the answer is who would have.
fn make_way<'v>(
    plan: &mut Plan<'_>,
    later: &mut Capacity,
    claim: Placement,
    lifted: Vec<Leaving<'v>>,
) -> Result<(Placement, Vec<Leaving<'v>>), Vec<Leaving<'v>>> {
    later.book(&claim).expect("the rule chose free resources");
    let gives_way = |leaving: &Leaving<'_>| !leaving.may_stay(later);
    let victims: Vec<Leaving<'_>> = lifted.into_iter().rev().filter(gives_way).collect();
    // Memory that is about to be free is not free yet.
    if plan.can_stop(victims.iter().map(|leaving| (leaving.lease, leaving.how()))) {
        return Ok((claim, victims));
    }
    later.release(&claim);
    Leaving::all_come_back(&victims, later);
    Err(victims)
}

/// Stays that the plan has told to stop.
fn told_to_stop(plan: &Plan<'_>) -> BTreeSet<LeaseId> {
    let stops = plan.decisions().iter().filter_map(|decision| {
        let Decision::Stop { lease, .. } = decision else { return None };
        Some(*lease)
    });
    stops.collect()
}

/// What is free once those are gone that were told to stop, before or in this very plan.
fn after_stops(view: &View<'_>, later: &mut Capacity, plan: &Plan<'_>) {
    later.clone_from(plan.free());
    let before = view.by_alarm().filter(|lease| lease.stop.is_some());
    let now = told_to_stop(plan).into_iter().filter_map(|id| view.lease(id));
    for lease in before.chain(now.filter(|lease| lease.stop.is_none())) {
        later.release(&lease.placement);
    }
}
