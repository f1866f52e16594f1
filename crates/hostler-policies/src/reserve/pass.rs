//! The policy behind this family: jobs in order of submission, each on the terms that it has.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Bound;

use hostler_core::id::JobId;
use hostler_core::job::JobSpec;
use hostler_core::pipeline::Head;
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, Wake};
use hostler_core::reason::Reason;
use hostler_core::view::View;

use super::place::{Taste, place_job, room};
use super::queue::{News, Queue};
use super::terms::{Fleet, Rules};
use crate::place::scored::Role;

/// Keeps the top class for high jobs and places by taste.
pub(super) struct Reserving {
    rules: Rules,
    head: Head,
    taste: Box<dyn Taste>,
    fleet: Fleet,
    queue: Queue,
}

/// First job of a queue that may fit: shape and number of tasks; none for jobs with several roles.
type Candidate = Reverse<(JobId, Option<(usize, u32)>)>;

/// Jobs that the plan starts or rejects.
type Gone = BTreeSet<JobId>;

impl Policy for Reserving {
    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        let grew = self.fleet.refresh(view);
        let mut news = self.queue.sync(view, &self.fleet, &self.rules, grew);
        let mut gone = Gone::new();
        self.turn_away(view, &mut news, plan, &mut gone);
        match self.head {
            Head::Blocks => self.strict(view, &news, plan, &mut gone),
            Head::Skips => self.greedy(view, &news, plan, &mut gone),
        }
        if let Some(at) = self.queue.next_time(&gone) {
            plan.wake_at(at);
        }
    }
}

impl Reserving {
    pub(super) fn new(rules: Rules, head: Head, taste: Box<dyn Taste>) -> Reserving {
        Reserving { rules, head, taste, fleet: Fleet::default(), queue: Queue::default() }
    }

    /// Rejects newcomers that can never run.
    fn turn_away(&self, view: &View<'_>, news: &mut News, plan: &mut Plan<'_>, gone: &mut Gone) {
        news.came.retain(|id| {
            let objection = self.fleet.census.objection(view, &self.queue.get(*id).spec);
            let Some(reason) = objection else { return true };
            plan.reject(*id, reason).expect("a waiting job can be turned away");
            gone.insert(*id);
            false
        });
    }

    /// Jobs start in order until one does not fit.
    fn strict(&self, view: &View<'_>, news: &News, plan: &mut Plan<'_>, gone: &mut Gone) {
        let mut head = None;
        for (id, _) in self.queue.iter() {
            if !gone.contains(&id) && !self.start(plan, id, gone) {
                head = Some(id);
                break;
            }
        }
        let Some(head) = head else { return };
        self.explain(view, plan, head);
        for id in news.came.iter().filter(|id| **id > head) {
            if view.job(*id).is_some_and(|job| job.reason == Reason::New) {
                plan.hold(*id, Reason::Behind { head });
            }
        }
    }

    /// Jobs start in order; those that do not fit are passed over.
    fn greedy(&mut self, view: &View<'_>, news: &News, plan: &mut Plan<'_>, gone: &mut Gone) {
        let mut heap: BinaryHeap<Candidate> =
            self.queue.complex.iter().map(|id| Reverse((*id, None))).collect();
        for id in self.queue.gained(view, plan.free(), news) {
            let shape = self.queue.shape(id);
            for (count, jobs) in shape.gangs.range(..=shape.bound) {
                heap.extend(jobs.first().map(|job| Reverse((*job, Some((id, *count))))));
            }
        }
        while let Some(Reverse((id, queue))) = heap.pop() {
            match queue {
                Some((shape, count)) => {
                    let next = self.try_shape(plan, id, shape, count, gone);
                    heap.extend(next.map(|next| Reverse((next, queue))));
                }
                None if gone.contains(&id) => {}
                None => _ = self.start(plan, id, gone),
            }
        }
        for id in news.came.iter().filter(|id| !gone.contains(id)) {
            self.explain(view, plan, *id);
        }
    }

    /// Tries one job of a shape; the answer is the next of its queue that is worth trying.
    fn try_shape(
        &mut self,
        plan: &mut Plan<'_>,
        id: JobId,
        at: usize,
        count: u32,
        gone: &mut Gone,
    ) -> Option<JobId> {
        let shape = self.queue.shape(at);
        shape.bound = shape.bound.min(plan.free().slots_bound(&shape.least));
        if shape.bound < count {
            return None;
        }
        let role = Role { gang: 0, demand: &shape.least, count };
        let room = room(&self.fleet, plan.free(), role, &shape.classes);
        if room < count {
            shape.bound = room;
            return None;
        }
        let started = gone.contains(&id) || self.start(plan, id, gone);
        let mem = self.queue.get(id).spec.gangs[0].demand.mem;
        // Where memory alone was in the way, a job that asks for less may fit.
        let may_fit =
            |next: &&JobId| started || self.queue.get(**next).spec.gangs[0].demand.mem < mem;
        let jobs = self.queue.jobs(at, count);
        jobs.range((Bound::Excluded(id), Bound::Unbounded)).find(may_fit).copied()
    }

    /// Starts a job if it fits.
    fn start(&self, plan: &mut Plan<'_>, id: JobId, gone: &mut Gone) -> bool {
        let waiting = self.queue.get(id);
        let (spec, plans) = (&waiting.spec, &waiting.terms.plans);
        if !may_fit(plan, spec) {
            return false;
        }
        let Ok(placement) = place_job(&*self.taste, &self.fleet, plan.free_mut(), spec, plans)
        else {
            return false;
        };
        plan.start(id, placement).expect("a waiting job starts on free nodes");
        gone.insert(id);
        true
    }

    /// Tells a job why it waits, when nobody did or when that has changed.
    fn explain(&self, view: &View<'_>, plan: &mut Plan<'_>, id: JobId) {
        let job = view.job(id).expect("a waiting job is not over");
        if !matches!(job.reason, Reason::New | Reason::Reserved { .. }) {
            return;
        }
        let until = self.queue.get(id).terms.until.filter(|_| may_fit(plan, &job.spec));
        let reason =
            until.map_or_else(|| no_capacity(plan, &job.spec), |until| Reason::Reserved { until });
        plan.hold(id, reason);
    }
}

fn may_fit(plan: &Plan<'_>, spec: &JobSpec) -> bool {
    spec.gangs.iter().all(|gang| plan.free().slots_bound(&gang.demand) >= gang.count)
}

/// That a job does not fit, with a bound on how much of it would.
fn no_capacity(plan: &Plan<'_>, spec: &JobSpec) -> Reason {
    let bounds = spec.gangs.iter().map(|gang| plan.free().slots_bound(&gang.demand));
    let tasks = spec.tasks();
    let fit = bounds.min().unwrap_or(0).min(tasks.saturating_sub(1));
    Reason::NoCapacity { tasks, fit }
}
