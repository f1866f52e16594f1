//! The pass by rank: a job that does not fit takes the place of running jobs that rank after it.
//!
//! Nothing is remembered between questions. A job whose victims are still being stopped finds, at
//! the next question, that what is free plus what is being freed holds it, and keeps that room.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::backlog::{BacklogChanges, Rank};
use super::{Cache, Head, Pipeline, explain, explain_newcomers};
use crate::capacity::{Capacity, Overlay};
use crate::decision::StopHow;
use crate::fit_bound::FitBound;
use crate::id::LeaseId;
use crate::job::JobSpec;
use crate::limits::PREEMPTORS_PER_STEP_MAX;
use crate::placement::{Lease, Placement};
use crate::plan::Plan;
use crate::policy::Cadence;
use crate::reason::Reason;
use crate::stage::{may_fit, place_job};
use crate::view::View;

/// A running job that could give way.
struct Runner {
    rank: Rank,
    lease: LeaseId,
    placement: Arc<Placement>,
}

/// What one pass knows.
#[derive(Default)]
struct Pass {
    /// What will be free once everything that is being stopped is gone, less what is kept for
    /// jobs that wait for it. None while it is the same as what is free.
    later: Option<Capacity>,
    /// Memory for it; what is in it means nothing.
    spare: Capacity,
    /// Running jobs, best first; those that were told to stop are gone.
    runners: Option<Vec<Runner>>,
    /// Jobs that looked for victims.
    tried: usize,
    /// Memory for a look at nodes without those who give way; what is in it means nothing.
    without: Overlay,
}

impl Pipeline {
    pub(super) fn by_rank(&mut self, view: &View<'_>, news: &BacklogChanges, plan: &mut Plan<'_>) {
        let Cache { shapes, backlog, .. } = &mut self.cache;
        shapes.follow(view, backlog, news);
        // Passes between rounds go by the bounds of shapes; without rounds there are none.
        let between = matches!(self.cadence, Cadence::Rounds(_));
        shapes.raise_bounds(plan.free(), if between { &news.freed } else { &[] });
        let spare = std::mem::take(&mut self.cache.spare);
        let mut pass = Pass { spare, ..Pass::default() };
        match self.head {
            Head::Blocks => self.strictly_by_rank(view, plan, &mut pass),
            Head::Skips => self.greedily_by_rank(view, plan, &mut pass),
        }
        self.cache.spare = pass.later.unwrap_or(pass.spare);
        explain_newcomers(view, plan, &self.cache.backlog, news);
    }

    fn strictly_by_rank(&self, view: &View<'_>, plan: &mut Plan<'_>, pass: &mut Pass) {
        for rank in self.cache.backlog.iter() {
            if !plan.has_job(rank.1) && !self.get_in(view, plan, pass, rank) {
                break;
            }
        }
    }

    /// Goes by queues of jobs that ask for the same: one that does not get in stands for those
    /// behind it that ask for as much.
    fn greedily_by_rank(&self, view: &View<'_>, plan: &mut Plan<'_>, pass: &mut Pass) {
        let shapes = &self.cache.shapes;
        let mut heap: BinaryHeap<_> = shapes.heads().map(Reverse).collect();
        while let Some(Reverse((rank, queue))) = heap.pop() {
            let next = if plan.has_job(rank.1) || self.get_in(view, plan, pass, rank) {
                shapes.next(queue, rank, self.cache.backlog.spec(view, rank.1))
            } else {
                shapes.next_smaller(view, &self.cache.backlog, queue, rank)
            };
            heap.extend(next.map(|next| Reverse((next, queue))));
        }
    }

    /// Starts a job, or keeps room for it; tells whether it could.
    fn get_in(&self, view: &View<'_>, plan: &mut Plan<'_>, pass: &mut Pass, rank: Rank) -> bool {
        let spec = self.cache.backlog.spec(view, rank.1);
        self.start_now(plan, pass, rank, spec) || self.take_place(view, plan, pass, rank, spec)
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
        rank: Rank,
        spec: &JobSpec,
    ) -> bool {
        if pass.tried >= PREEMPTORS_PER_STEP_MAX {
            return false;
        }
        pass.tried += 1;
        let later = pass.later.get_or_insert_with(|| {
            let mut later = std::mem::take(&mut pass.spare);
            after_stops(view, plan, &mut later);
            later
        });
        let short = match place_job(&*self.place, later, spec) {
            Ok(claim) => {
                later.book(&claim).expect("the rule chose free resources");
                explain(view, plan, &rank, Reason::Preempting { victims: 0 });
                return true;
            }
            Err(short) => short,
        };
        let runners = pass.runners.get_or_insert_with(|| self.runners(view, plan, rank));
        let first = runners.partition_point(|runner| runner.rank.0 <= rank.0);
        let fit_bound = FitBound::new(spec, short);
        // The claim leaves all others their place.
        let of_use = |runner: &&Runner| fit_bound.concerns(later, &runner.placement);
        let of_use: Vec<&Runner> = runners[first..].iter().filter(of_use).collect();
        let placements = of_use.iter().map(|runner| &*runner.placement);
        if fit_bound.is_lost_without(later, &mut pass.without, placements) {
            return false;
        }
        let Some((lifted, claim)) = self.lift_until_fit(later, &of_use, spec, fit_bound) else {
            return false;
        };
        later.book(&claim).expect("the rule chose free resources");
        let lifted = &of_use[of_use.len() - lifted..];
        // The best of those lifted stay when the claim leaves them their place.
        let gives_way = |runner: &&&Runner| later.keep(&runner.placement).is_err();
        let victims: Vec<LeaseId> =
            lifted.iter().filter(gives_way).map(|runner| runner.lease).collect();
        runners.retain(|runner| !victims.contains(&runner.lease));
        for lease in &victims {
            plan.stop(*lease, StopHow::Checkpoint).expect("it runs");
        }
        explain(view, plan, &rank, Reason::Preempting { victims: victims.len() as u32 });
        true
    }

    /// Lifts runners, last first, until the job fits; the answer is how many and where. When it
    /// never fits, `later` is as before.
    fn lift_until_fit(
        &self,
        later: &mut Capacity,
        runners: &[&Runner],
        spec: &JobSpec,
        mut fit_bound: FitBound<'_>,
    ) -> Option<(usize, Placement)> {
        for (at, runner) in runners.iter().rev().enumerate() {
            fit_bound.release(later, &runner.placement);
            if fit_bound.is_worth_a_search(later)
                && let Ok(claim) = place_job(&*self.place, later, spec)
            {
                return Some((at + 1, claim));
            }
        }
        for runner in runners {
            later.book_again(&runner.placement);
        }
        None
    }

    /// Running jobs that rank after one that waits, best first. Those behind it in the line have
    /// no others to replace.
    fn runners(&self, view: &View<'_>, plan: &Plan<'_>, after: Rank) -> Vec<Runner> {
        let staying = view.leases().filter(|lease| !is_stopping(plan, lease));
        let staying = staying.filter(|lease| view.may_preempt(lease));
        let runners = staying.filter_map(|lease| {
            let job = view.job(lease.job).expect("a lease belongs to a job");
            let rank = (self.order.key(view, job), job.id);
            let placement = &lease.placement;
            (rank.0 > after.0).then(|| Runner {
                rank,
                lease: lease.id,
                placement: Arc::clone(placement),
            })
        });
        let mut runners: Vec<Runner> = runners.collect();
        runners.sort_by_key(|runner| runner.rank);
        runners
    }
}

/// Whether a stay was told to stop, before or in this very plan.
fn is_stopping(plan: &Plan<'_>, lease: &Lease) -> bool {
    lease.stop.is_some() || plan.has_lease(lease.id)
}

fn after_stops(view: &View<'_>, plan: &Plan<'_>, later: &mut Capacity) {
    later.clone_from(plan.free());
    for lease in view.leases().filter(|lease| is_stopping(plan, lease)) {
        later.release(&lease.placement);
    }
}
