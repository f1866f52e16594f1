//! The policy behind this family: jobs in order of submission, each with the access that it has.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Bound;

use hostler_core::id::JobId;
use hostler_core::pipeline::Head;
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, Wake};
use hostler_core::reason::Reason;
use hostler_core::stage::{self, may_fit, no_capacity};
use hostler_core::view::View;

use super::booked::Booked;
use super::class_access::{Fleet, Rules};
use super::place::{CostModel, place_job, room};
use super::queue::{Queue, QueueChanges};
use crate::place::best_fit::BestFit;
use crate::place::scored::Role;

/// Keeps the top class for high jobs and places by cost.
pub(super) struct Reserving {
    rules: Rules,
    head: Head,
    costs: Box<dyn CostModel>,
    fleet: Fleet,
    queue: Queue,
}

/// First job of a queue that may fit: shape and number of tasks; none for jobs with several roles.
type Candidate = Reverse<(JobId, Option<(usize, u32)>)>;

/// What one question has come to so far.
struct Pass<'a> {
    view: &'a View<'a>,
    /// Jobs that the plan starts or rejects.
    gone: BTreeSet<JobId>,
}

impl Policy for Reserving {
    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        let grew = self.fleet.refresh(view);
        let mut changes = self.queue.sync(view, &self.fleet, &self.rules, grew);
        let mut pass = Pass { view, gone: BTreeSet::new() };
        self.turn_away(&mut pass, &mut changes, plan);
        match self.head {
            Head::Blocks => self.strict(&mut pass, &changes, plan),
            Head::Skips => self.greedy(&mut pass, &changes, plan),
        }
        if let Some(at) = self.queue.next_time(&pass.gone) {
            plan.wake_at(at);
        }
    }
}

impl Reserving {
    pub(super) fn new(rules: Rules, head: Head, costs: Box<dyn CostModel>) -> Reserving {
        Reserving { rules, head, costs, fleet: Fleet::default(), queue: Queue::default() }
    }

    /// Rejects newcomers that can never run.
    fn turn_away(&mut self, pass: &mut Pass<'_>, changes: &mut QueueChanges, plan: &mut Plan<'_>) {
        let (empty_cluster, queue) = (&mut self.fleet.empty_cluster, &self.queue);
        changes.came.retain(|id| {
            let admitted =
                empty_cluster.admits(pass.view, plan, *id, &queue.get(*id).spec, &BestFit);
            if !admitted {
                pass.gone.insert(*id);
            }
            admitted
        });
    }

    /// Jobs start in order until one does not fit.
    fn strict(&self, pass: &mut Pass<'_>, changes: &QueueChanges, plan: &mut Plan<'_>) {
        let mut head = None;
        for (id, _) in self.queue.iter() {
            if !pass.gone.contains(&id) && !self.start(pass, plan, id) {
                head = Some(id);
                break;
            }
        }
        let Some(head) = head else { return };
        self.explain(pass.view, plan, head);
        for id in changes.came.iter().filter(|id| **id > head) {
            if pass.view.job(*id).is_some_and(|job| job.reason == Reason::New) {
                plan.hold(*id, Reason::Behind { head });
            }
        }
    }

    /// Jobs start in order; those that do not fit are passed over.
    fn greedy(&mut self, pass: &mut Pass<'_>, changes: &QueueChanges, plan: &mut Plan<'_>) {
        let mut heap: BinaryHeap<Candidate> =
            self.queue.complex.iter().map(|id| Reverse((*id, None))).collect();
        for id in self.queue.gained(pass.view, plan.free(), changes) {
            let heads = self.queue.shapes.get(id).heads();
            heap.extend(heads.map(|(count, job)| Reverse((job, Some((id, count))))));
        }
        while let Some(Reverse((id, queue))) = heap.pop() {
            match queue {
                Some((shape, count)) => {
                    let next = self.try_shape(pass, plan, id, (shape, count));
                    heap.extend(next.map(|next| Reverse((next, queue))));
                }
                None if pass.gone.contains(&id) => {}
                None => _ = self.start(pass, plan, id),
            }
        }
        for id in changes.came.iter().filter(|id| !pass.gone.contains(id)) {
            self.explain(pass.view, plan, *id);
        }
    }

    /// Tries one job of a shape; the answer is the next of its queue that is worth trying.
    fn try_shape(
        &mut self,
        pass: &mut Pass<'_>,
        plan: &mut Plan<'_>,
        id: JobId,
        (at, count): (usize, u32),
    ) -> Option<JobId> {
        let shape = self.queue.shapes.get_mut(at);
        shape.bound = shape.bound.min(plan.free().slots_bound(&shape.least));
        if shape.bound < count {
            return None;
        }
        let role = Role { gang: 0, demand: &shape.least, count };
        let room = room(plan.free(), role, &shape.access.classes);
        if room < count {
            shape.bound = room;
            return None;
        }
        let started = pass.gone.contains(&id) || self.start(pass, plan, id);
        let mem = self.queue.get(id).spec.gangs[0].demand.mem;
        // Where memory alone was in the way, a job that asks for less may fit.
        let may_fit =
            |next: &&JobId| started || self.queue.get(**next).spec.gangs[0].demand.mem < mem;
        let jobs = self.queue.shapes.get(at).gangs.get(&count)?;
        jobs.range((Bound::Excluded(id), Bound::Unbounded)).find(may_fit).copied()
    }

    /// Starts a job if it fits.
    fn start(&self, pass: &mut Pass<'_>, plan: &mut Plan<'_>, id: JobId) -> bool {
        let waiting = self.queue.get(id);
        let (spec, access) = (&waiting.spec, &waiting.access);
        if !may_fit(plan.free(), spec) {
            return false;
        }
        let booked = match access.ask_what_is_booked() {
            true => Booked::of(&self.fleet, plan.free()),
            false => Booked::default(),
        };
        let spared = || booked.can_spare(&self.fleet, spec.gpu_milli(), self.rules.part);
        let kept = access.kept.as_ref().filter(|_| !spared());
        let searches = kept.map_or(&access.searches, |kept| &kept.searches);
        let mut placed = place_job(&*self.costs, &self.fleet, &booked, plan, spec, searches);
        if placed.is_err() && spec.gangs.len() > 1 && kept.is_none() {
            // Roles that take each other's room by cost may fit together by the rule that said
            // that the job can run here at all.
            placed = stage::place_job(&BestFit, plan, spec);
        }
        let Ok(placement) = placed else { return false };
        plan.start(id, placement).expect("a waiting job starts on free nodes");
        pass.gone.insert(id);
        true
    }

    /// Tells a job why it waits, when nobody did or when that has changed.
    fn explain(&self, view: &View<'_>, plan: &mut Plan<'_>, id: JobId) {
        let job = view.job(id).expect("a waiting job is not over");
        if !matches!(job.reason, Reason::New | Reason::Reserved { .. }) {
            return;
        }
        let kept =
            self.queue.get(id).access.kept.as_ref().filter(|_| may_fit(plan.free(), &job.spec));
        let reason = kept.map_or_else(
            || no_capacity(plan.free(), &job.spec),
            |kept| Reason::Reserved { until: kept.until },
        );
        plan.hold(id, reason);
    }
}
