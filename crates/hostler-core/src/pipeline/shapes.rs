//! The backlog by what jobs ask for: jobs with one role by shape, the others by all their roles.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::backlog::{Backlog, BacklogChanges, Rank};
use super::reach::{QueueId, Wanted};
use crate::capacity::Capacity;
use crate::id::NodeId;
use crate::job::{Demand, JobSpec};
use crate::shapes::{Shape, Shapes};
use crate::stage::{Place, Shortfall};
use crate::units::Mib;
use crate::view::View;

/// Queues of jobs that ask for the same.
#[derive(Default)]
pub(super) struct ShapeQueues {
    /// Any shape may go anywhere.
    shapes: Shapes<(), Rank>,
    /// Jobs with several roles by all that they ask for, each best first.
    roles: BTreeMap<Box<[(Demand, u32)]>, BTreeSet<Rank>>,
}

/// Where a job waits: among jobs with one role of a shape and a number of tasks, or among those
/// with the same several roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShapeQueue {
    Shape(usize, u32),
    Roles,
}

impl ShapeQueues {
    /// Adds a job; the answer is its shape, unless it has several roles.
    fn add(&mut self, rank: Rank, spec: &JobSpec) -> Option<usize> {
        let [gang] = &*spec.gangs else {
            self.roles.entry(roles_of(spec)).or_default().insert(rank);
            return None;
        };
        Some(self.shapes.add(gang, (), rank))
    }

    fn remove(&mut self, rank: Rank, spec: &JobSpec) {
        let [gang] = &*spec.gangs else {
            let key = roles_of(spec);
            if let Some(jobs) = self.roles.get_mut(&key) {
                jobs.remove(&rank);
                if jobs.is_empty() {
                    self.roles.remove(&key);
                }
            }
            return;
        };
        self.shapes.remove(gang, (), rank);
    }

    pub(super) fn get(&self, id: usize) -> &Shape<(), Rank> {
        self.shapes.get(id)
    }

    /// Whether jobs wait in a queue that asks for this.
    pub(super) fn lives(&self, (id, count): QueueId, wanted: &Wanted) -> bool {
        let shape = self.shapes.get(id);
        shape.gangs.contains_key(&count) && shape.least == wanted.demand.coarse()
    }

    pub(super) fn get_mut(&mut self, id: usize) -> &mut Shape<(), Rank> {
        self.shapes.get_mut(id)
    }

    /// Takes in who left and who came, and lists the shapes of those who came.
    pub(super) fn follow(&mut self, view: &View<'_>, backlog: &Backlog, news: &BacklogChanges) {
        if news.all {
            *self = ShapeQueues::default();
        }
        for (rank, spec) in &news.left {
            self.remove(*rank, spec);
        }
        for rank in &news.came {
            if let Some(shape) = self.add(*rank, backlog.spec(view, rank.1)) {
                self.shapes.list(shape);
            }
        }
    }

    /// The heads of the queues that may fit and may have gained since the last question.
    pub(super) fn gained(
        &mut self,
        free: &Capacity,
        news: &BacklogChanges,
    ) -> Vec<(Rank, ShapeQueue)> {
        self.shapes.freed(free, &news.freed, |(), _| true);
        let mut heads: Vec<(Rank, ShapeQueue)> = self.role_heads().collect();
        for id in self.shapes.take_listed() {
            let queues = self.shapes.get(id).heads();
            heads.extend(queues.map(|(count, rank)| (rank, ShapeQueue::Shape(id, count))));
        }
        heads
    }

    /// Raises the bounds of shapes that fit what nodes have freed, for a pass that looks at all.
    pub(super) fn raise_bounds(&mut self, free: &Capacity, nodes: &[NodeId]) {
        self.shapes.freed(free, nodes, |(), _| true);
        self.shapes.take_listed();
    }

    /// The best job of every queue.
    pub(super) fn heads(&self) -> impl Iterator<Item = (Rank, ShapeQueue)> {
        let shapes = self.shapes.ids().flat_map(|id| {
            let queues = self.shapes.get(id).gangs.iter();
            queues.filter_map(move |(count, jobs)| {
                Some((*jobs.first()?, ShapeQueue::Shape(id, *count)))
            })
        });
        shapes.chain(self.role_heads())
    }

    /// The best of the jobs with several roles, one for each list of roles.
    fn role_heads(&self) -> impl Iterator<Item = (Rank, ShapeQueue)> {
        self.roles.values().filter_map(|jobs| Some((*jobs.first()?, ShapeQueue::Roles)))
    }

    /// The next job of a queue after one that started.
    pub(super) fn next(&self, queue: ShapeQueue, rank: Rank, spec: &JobSpec) -> Option<Rank> {
        match queue {
            ShapeQueue::Shape(id, count) => self.shapes.next((id, count), rank),
            ShapeQueue::Roles => {
                let after = (Bound::Excluded(rank), Bound::Unbounded);
                self.roles.get(&roles_of(spec))?.range(after).next().copied()
            }
        }
    }

    /// The next job of a queue after one for which a search found too little.
    pub(super) fn next_after_failure(
        &mut self,
        (view, backlog): (&View<'_>, &Backlog),
        queue: QueueId,
        failed: (Rank, Shortfall),
        room: (&Capacity, &dyn Place),
    ) -> Option<Rank> {
        let mem = |rank: Rank| memory(view, backlog, rank);
        self.shapes.next_after_failure(queue, failed, room, mem)
    }

    /// The next job of a queue after one that did not fit: one that asks for less memory.
    pub(super) fn next_smaller(
        &self,
        view: &View<'_>,
        backlog: &Backlog,
        queue: ShapeQueue,
        rank: Rank,
    ) -> Option<Rank> {
        match queue {
            ShapeQueue::Shape(..) => {
                let mem = memory(view, backlog, rank);
                self.next_below(view, backlog, queue, rank, mem)
            }
            ShapeQueue::Roles => None,
        }
    }

    /// The next job of a queue with one role that asks for less than so much memory.
    pub(super) fn next_below(
        &self,
        view: &View<'_>,
        backlog: &Backlog,
        queue: ShapeQueue,
        rank: Rank,
        most: Mib,
    ) -> Option<Rank> {
        match queue {
            ShapeQueue::Shape(id, count) => {
                let mem = |rank: Rank| memory(view, backlog, rank);
                self.shapes.next_below((id, count), rank, most, mem)
            }
            ShapeQueue::Roles => None,
        }
    }
}

/// Memory that a task of a job with one role asks for.
fn memory(view: &View<'_>, backlog: &Backlog, rank: Rank) -> Mib {
    backlog.spec(view, rank.1).gangs[0].demand.mem
}

fn roles_of(spec: &JobSpec) -> Box<[(Demand, u32)]> {
    spec.gangs.iter().map(|gang| (gang.demand.clone(), gang.count)).collect()
}
