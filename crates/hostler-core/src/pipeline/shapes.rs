//! Waiting jobs by what they ask for.
//!
//! Jobs whose tasks ask for the same form a shape. When a task of a shape fits nowhere, no job of
//! the shape can start, and only a node that frees something can change that. So each shape keeps
//! a bound on how many of its tasks fit: exact when a search failed, raised by what freed nodes
//! hold, never too low. A pass over a long queue costs the shapes that may have gained, not the
//! queue.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::backlog::{Backlog, BacklogChanges, Rank};
use crate::capacity::{Capacity, NodeFree};
use crate::id::NodeId;
use crate::job::{Demand, JobSpec};
use crate::units::Milli;
use crate::view::View;

/// Waiting jobs by shape.
#[derive(Default)]
pub(super) struct Shapes {
    ids: BTreeMap<Demand, usize>,
    shapes: Vec<Shape>,
    unused: Vec<usize>,
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

/// Jobs whose tasks ask for the same, but for the lower digits of memory.
pub(super) struct Shape {
    /// What every job of the shape asks for at least.
    pub(super) least: Demand,
    /// At most this many tasks fit.
    pub(super) bound: u32,
    /// Jobs by number of tasks, each best first.
    pub(super) gangs: BTreeMap<u32, BTreeSet<Rank>>,
    pub(super) listed: bool,
}

/// Freed nodes that are counted one by one.
const NODES_COUNTED_MAX: usize = 64;

impl Shapes {
    fn clear(&mut self) {
        *self = Shapes::default();
    }

    /// Adds a job; the answer is its shape, unless it has several roles.
    fn add(&mut self, rank: Rank, spec: &JobSpec) -> Option<usize> {
        let [gang] = &*spec.gangs else {
            self.roles.entry(roles_of(spec)).or_default().insert(rank);
            return None;
        };
        let least = gang.demand.coarse();
        let id = match self.ids.get(&least) {
            Some(id) => *id,
            None => self.add_shape(least),
        };
        self.shapes[id].gangs.entry(gang.count).or_default().insert(rank);
        Some(id)
    }

    fn add_shape(&mut self, least: Demand) -> usize {
        let shape =
            Shape { least: least.clone(), bound: u32::MAX, gangs: BTreeMap::new(), listed: false };
        let id = match self.unused.pop() {
            Some(id) => {
                self.shapes[id] = shape;
                id
            }
            None => {
                self.shapes.push(shape);
                self.shapes.len() - 1
            }
        };
        self.ids.insert(least, id);
        id
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
        let least = gang.demand.coarse();
        let Some(&id) = self.ids.get(&least) else {
            return;
        };
        let shape = &mut self.shapes[id];
        if let Some(jobs) = shape.gangs.get_mut(&gang.count) {
            jobs.remove(&rank);
            if jobs.is_empty() {
                shape.gangs.remove(&gang.count);
            }
        }
        if shape.gangs.is_empty() {
            self.ids.remove(&least);
            self.unused.push(id);
        }
    }

    pub(super) fn get(&mut self, id: usize) -> &mut Shape {
        &mut self.shapes[id]
    }

    /// Takes in who left and who came; the answer is the shapes of those who came.
    pub(super) fn follow(
        &mut self,
        view: &View<'_>,
        backlog: &Backlog,
        news: &BacklogChanges,
    ) -> Vec<usize> {
        if news.all {
            self.clear();
        }
        for (rank, spec) in &news.left {
            self.remove(*rank, spec);
        }
        let came = news.came.iter();
        let came = came.filter_map(|rank| self.add(*rank, backlog.spec(view, rank.1)));
        came.collect()
    }

    /// The best job of every queue.
    pub(super) fn heads(&self) -> impl Iterator<Item = (Rank, ShapeQueue)> {
        let shapes = self.ids.values().flat_map(|&id| {
            let queues = self.shapes[id].gangs.iter();
            queues.filter_map(move |(count, jobs)| {
                Some((*jobs.first()?, ShapeQueue::Shape(id, *count)))
            })
        });
        shapes.chain(self.role_heads())
    }

    /// The best of the jobs with several roles, one for each list of roles.
    pub(super) fn role_heads(&self) -> impl Iterator<Item = (Rank, ShapeQueue)> {
        self.roles.values().filter_map(|jobs| Some((*jobs.first()?, ShapeQueue::Roles)))
    }

    /// The next job of a queue after one that started.
    pub(super) fn next(&self, queue: ShapeQueue, rank: Rank, spec: &JobSpec) -> Option<Rank> {
        self.after(queue, rank, spec).next()
    }

    /// The next job of a queue after one that did not fit: one that asks for less memory.
    pub(super) fn next_smaller(
        &self,
        view: &View<'_>,
        backlog: &Backlog,
        queue: ShapeQueue,
        rank: Rank,
    ) -> Option<Rank> {
        let spec = backlog.spec(view, rank.1);
        let mem = match queue {
            ShapeQueue::Shape(..) => spec.gangs[0].demand.mem,
            ShapeQueue::Roles => return None,
        };
        self.after(queue, rank, spec)
            .find(|next| backlog.spec(view, next.1).gangs[0].demand.mem < mem)
    }

    fn after(&self, queue: ShapeQueue, rank: Rank, spec: &JobSpec) -> impl Iterator<Item = Rank> {
        let jobs = match queue {
            ShapeQueue::Shape(id, count) => self.shapes[id].gangs.get(&count),
            ShapeQueue::Roles => self.roles.get(&roles_of(spec)),
        };
        let after = (Bound::Excluded(rank), Bound::Unbounded);
        jobs.into_iter().flat_map(move |jobs| jobs.range(after).copied())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.ids.values().copied()
    }

    /// Raises the bounds of shapes that fit what nodes have freed, and lists those with a job that
    /// may start now.
    pub(super) fn freed(&mut self, free: &Capacity, nodes: &[NodeId], listed: &mut Vec<usize>) {
        if nodes.len() > NODES_COUNTED_MAX {
            self.bound_anew(free, listed);
            return;
        }
        for node in nodes {
            self.freed_one(free, *node, listed);
        }
    }

    /// Raises the bounds of shapes that fit what nodes have freed.
    pub(super) fn raise_bounds(&mut self, free: &Capacity, nodes: &[NodeId]) {
        let mut listed = Vec::new();
        self.freed(free, nodes, &mut listed);
        listed.into_iter().for_each(|id| self.shapes[id].listed = false);
    }

    fn freed_one(&mut self, free: &Capacity, node: NodeId, listed: &mut Vec<usize>) {
        let end = Demand { gpu: Milli(free.largest_gpu(node).0 + 1), ..Demand::default() };
        let NodeFree { cpu, mem, .. } = *free.node(node);
        let able = self.ids.range(..end).filter(|(least, _)| least.cpu <= cpu && least.mem <= mem);
        for (_, &id) in able {
            let shape = &mut self.shapes[id];
            let gained = free.slots(node, &shape.least, u32::MAX);
            if gained > 0 {
                shape.bound = shape.bound.saturating_add(gained);
                list(shape, id, listed);
            }
        }
    }

    /// When many nodes are free at once, a bound over the whole cluster costs less than a count of
    /// each.
    fn bound_anew(&mut self, free: &Capacity, listed: &mut Vec<usize>) {
        for &id in self.ids.values() {
            let shape = &mut self.shapes[id];
            shape.bound = free.slots_bound(&shape.least);
            list(shape, id, listed);
        }
    }

    /// Puts a shape on the list of those to look at, once.
    pub(super) fn list(&mut self, id: usize, listed: &mut Vec<usize>) {
        list(&mut self.shapes[id], id, listed);
    }
}

fn list(shape: &mut Shape, id: usize, listed: &mut Vec<usize>) {
    let smallest = shape.gangs.first_key_value().map(|(count, _)| *count);
    let hopeful = smallest.is_some_and(|count| count <= shape.bound);
    if hopeful && !shape.listed {
        shape.listed = true;
        listed.push(id);
    }
}

fn roles_of(spec: &JobSpec) -> Box<[(Demand, u32)]> {
    spec.gangs.iter().map(|gang| (gang.demand.clone(), gang.count)).collect()
}
