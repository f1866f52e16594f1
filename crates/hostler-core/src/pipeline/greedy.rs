//! The greedy pass: jobs start in order of rank, those that do not fit are passed over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::backlog::{BacklogChanges, Rank};
use super::shapes::ShapeQueue;
use super::{Cache, Pipeline, explain_newcomers};
use crate::plan::Plan;
use crate::stage::place_job;
use crate::view::View;

/// The best job of a queue that may fit.
type Candidate = Reverse<(Rank, ShapeQueue)>;

impl Pipeline {
    pub(super) fn greedy(&mut self, view: &View<'_>, news: &BacklogChanges, plan: &mut Plan<'_>) {
        let mut heap = self.candidates(view, news, plan);
        while let Some(Reverse((rank, queue))) = heap.pop() {
            let next = match queue {
                ShapeQueue::Shape(shape, count) => self.try_shape(view, plan, rank, shape, count),
                ShapeQueue::Roles => self.try_roles(view, plan, rank),
            };
            heap.extend(next.map(|next| Reverse((next, queue))));
        }
        explain_newcomers(view, plan, &self.cache.backlog, news);
    }

    /// Heads of the queues that may have gained since the last question.
    fn candidates(
        &mut self,
        view: &View<'_>,
        news: &BacklogChanges,
        plan: &Plan<'_>,
    ) -> BinaryHeap<Candidate> {
        let Cache { shapes, backlog, .. } = &mut self.cache;
        shapes.follow(view, backlog, news);
        shapes.gained(plan.free(), news).into_iter().map(Reverse).collect()
    }

    /// Tries one job of a shape; the answer is the next of its queue that is worth trying.
    fn try_shape(
        &mut self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        rank: Rank,
        id: usize,
        count: u32,
    ) -> Option<Rank> {
        let shape = self.cache.shapes.get_mut(id);
        shape.bound = shape.bound.min(plan.free().slots_bound(&shape.least));
        if shape.bound < count {
            return None;
        }
        let queue = ShapeQueue::Shape(id, count);
        let spec = self.cache.backlog.spec(view, rank.1);
        if plan.has_job(rank.1) {
            return self.cache.shapes.next(queue, rank, spec);
        }
        let short = match place_job(&*self.place, plan, spec) {
            Ok(placement) => {
                plan.start(rank.1, placement).expect("a waiting job starts on free nodes");
                return self.cache.shapes.next(queue, rank, spec);
            }
            Err(short) => short,
        };
        let Cache { shapes, backlog, .. } = &mut self.cache;
        let room = (plan.free(), &*self.place);
        shapes.next_after_failure((view, backlog), (id, count), (rank, short), room)
    }

    /// Tries one job with several roles. One that does not fit stands for all that ask for the
    /// same, in this pass.
    fn try_roles(&mut self, view: &View<'_>, plan: &mut Plan<'_>, rank: Rank) -> Option<Rank> {
        let spec = self.cache.backlog.spec(view, rank.1);
        if !plan.has_job(rank.1) {
            let bounded = |gang: &crate::job::Gang| plan.free().may_hold(&gang.demand, gang.count);
            if !spec.gangs.iter().all(bounded) {
                return None;
            }
            let placement = place_job(&*self.place, plan, spec).ok()?;
            plan.start(rank.1, placement).expect("a waiting job starts on free nodes");
        }
        self.cache.shapes.next(ShapeQueue::Roles, rank, spec)
    }
}
