//! The greedy pass: jobs start in order of rank, those that do not fit are passed over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;

use super::backlog::{News, Rank};
use super::{Pipeline, explain, no_capacity};
use crate::plan::Plan;
use crate::stage::place_job;
use crate::view::View;

/// Best job of a queue that may fit: rank, shape, number of tasks. Jobs with several roles have no
/// shape.
type Candidate = Reverse<(Rank, Option<(usize, u32)>)>;

impl Pipeline {
    pub(super) fn greedy(&mut self, view: &View<'_>, news: &News, plan: &mut Plan<'_>) {
        let mut heap = self.candidates(view, news, plan);
        while let Some(Reverse((rank, queue))) = heap.pop() {
            match queue {
                Some((shape, count)) => {
                    if let Some(next) = self.try_shape(view, plan, rank, shape, count) {
                        heap.push(Reverse((next, queue)));
                    }
                }
                None => self.try_complex(view, plan, rank),
            }
        }
        for rank in &news.came {
            if !plan.has_job(rank.1) {
                let reason = no_capacity(plan, &view.job(rank.1).expect("it waits").spec);
                explain(view, plan, rank, reason);
            }
        }
    }

    /// Heads of the queues that may have gained since the last question.
    fn candidates(
        &mut self,
        view: &View<'_>,
        news: &News,
        plan: &Plan<'_>,
    ) -> BinaryHeap<Candidate> {
        let shapes = &mut self.cache.shapes;
        let mut listed = Vec::new();
        if news.all {
            shapes.clear();
        }
        for (rank, spec) in &news.left {
            shapes.remove(*rank, spec);
        }
        for rank in &news.came {
            let spec = &view.job(rank.1).expect("a waiting job is not over").spec;
            if let Some(id) = shapes.add(*rank, spec) {
                shapes.list(id, &mut listed);
            }
        }
        shapes.freed(plan.free(), &news.freed, &mut listed);
        if news.all {
            let all: Vec<usize> = shapes.all().collect();
            all.into_iter().for_each(|id| shapes.list(id, &mut listed));
        }
        let mut heap = BinaryHeap::new();
        for id in listed {
            let shape = shapes.get(id);
            shape.listed = false;
            for (count, jobs) in shape.gangs.range(..=shape.bound) {
                if let Some(rank) = jobs.first() {
                    heap.push(Reverse((*rank, Some((id, *count)))));
                }
            }
        }
        heap.extend(shapes.complex.iter().map(|rank| Reverse((*rank, None))));
        heap
    }

    /// Tries one job of a shape; the answer is the next of its queue that is worth trying.
    fn try_shape(
        &mut self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        rank: Rank,
        shape: usize,
        count: u32,
    ) -> Option<Rank> {
        let shape = self.cache.shapes.get(shape);
        shape.bound = shape.bound.min(plan.free().slots_bound(&shape.least));
        if shape.bound < count {
            return None;
        }
        let after = (Bound::Excluded(rank), Bound::Unbounded);
        let mut rest = shape.gangs.get(&count)?.range(after).copied();
        if plan.has_job(rank.1) {
            return rest.next();
        }
        let spec = &view.job(rank.1).expect("a waiting job is not over").spec;
        let short = match place_job(&*self.place, plan.free_mut(), spec) {
            Ok(placement) => {
                plan.start(rank.1, placement).expect("a waiting job starts on free nodes");
                return rest.next();
            }
            Err(short) => short,
        };
        if spec.gangs[0].demand.mem == shape.least.mem {
            shape.bound = short.fit;
            return None;
        }
        match self.place.choose(plan.free(), 0, &shape.least, count) {
            Err(short) => {
                shape.bound = short.fit;
                None
            }
            // Memory alone is in the way: a job of the queue that asks for less may fit.
            Ok(_) => {
                let mem = spec.gangs[0].demand.mem;
                rest.find(|next| {
                    let spec = &view.job(next.1).expect("a waiting job is not over").spec;
                    spec.gangs[0].demand.mem < mem
                })
            }
        }
    }

    fn try_complex(&mut self, view: &View<'_>, plan: &mut Plan<'_>, rank: Rank) {
        if plan.has_job(rank.1) {
            return;
        }
        let spec = &view.job(rank.1).expect("a waiting job is not over").spec;
        if let Ok(placement) = place_job(&*self.place, plan.free_mut(), spec) {
            plan.start(rank.1, placement).expect("a waiting job starts on free nodes");
        }
    }
}
