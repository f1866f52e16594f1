//! Waiting jobs by what a task of theirs asks for.
//!
//! Jobs whose tasks ask for the same, and may go to the same nodes, form a shape. When a task of a
//! shape fits nowhere, no job of the shape can start, and only a node that frees something can
//! change that. So each shape keeps a bound on how many of its tasks fit: exact when a search
//! failed, raised by what freed nodes hold, never too low. A pass over a long queue costs the
//! shapes that may have gained, not the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::capacity::{Capacity, NodeFree};
use crate::id::NodeId;
use crate::job::{Demand, Gang};
use crate::limits::FREED_COUNTED_MAX;
use crate::stage::{Place, Shortfall};
use crate::units::{Mib, Milli};

/// Waiting jobs by shape: `A` says where a shape may go, `R` is the rank of a job.
pub struct Shapes<A, R> {
    ids: BTreeMap<(Demand, A), usize>,
    shapes: Vec<Shape<A, R>>,
    /// What each shape in use asks for at least, by GPUs: one look at all of them is a walk over
    /// little memory.
    glances: Vec<Glance>,
    unused: Vec<usize>,
    /// Shapes with a job that may start, each once.
    listed: Vec<usize>,
}

/// The sizes of a shape, GPUs first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Glance {
    gpu: Milli,
    id: usize,
    cpu: Milli,
    mem: Mib,
}

impl Glance {
    fn new(id: usize, least: &Demand) -> Glance {
        Glance { gpu: least.gpu, id, cpu: least.cpu, mem: least.mem }
    }
}

/// Jobs whose tasks ask for the same, but for the lower digits of memory.
pub struct Shape<A, R> {
    /// What every job of the shape asks for at least.
    pub least: Demand,
    /// Where it may go.
    pub access: A,
    /// At most this many tasks fit.
    pub bound: u32,
    /// Jobs by number of tasks, each best first.
    pub gangs: BTreeMap<u32, BTreeSet<R>>,
    listed: bool,
}

impl<A, R> Default for Shapes<A, R> {
    fn default() -> Shapes<A, R> {
        let (shapes, glances, unused, listed) = Default::default();
        Shapes { ids: BTreeMap::new(), shapes, glances, unused, listed }
    }
}

impl<A: Ord + Clone, R: Ord + Copy> Shapes<A, R> {
    /// Adds a job with one role; the answer is its shape.
    pub fn add(&mut self, gang: &Gang, access: A, rank: R) -> usize {
        let key = (gang.demand.coarse(), access);
        let id = match self.ids.get(&key) {
            Some(id) => *id,
            None => self.add_shape(key),
        };
        self.shapes[id].gangs.entry(gang.count).or_default().insert(rank);
        id
    }

    fn add_shape(&mut self, key: (Demand, A)) -> usize {
        let (least, access) = key.clone();
        let mut shape =
            Shape { least, access, bound: u32::MAX, gangs: BTreeMap::new(), listed: false };
        let id = match self.unused.pop() {
            Some(id) => {
                // The number may still be on the list, on behalf of the shape before.
                shape.listed = self.shapes[id].listed;
                self.shapes[id] = shape;
                id
            }
            None => {
                self.shapes.push(shape);
                self.shapes.len() - 1
            }
        };
        let glance = Glance::new(id, &key.0);
        let at = self.glances.partition_point(|other| *other < glance);
        self.glances.insert(at, glance);
        self.ids.insert(key, id);
        id
    }

    /// Removes a job that waits no more, and its shape when it was the last of it.
    pub fn remove(&mut self, gang: &Gang, access: A, rank: R) {
        let key = (gang.demand.coarse(), access);
        let Some(&id) = self.ids.get(&key) else { return };
        let shape = &mut self.shapes[id];
        if let Some(jobs) = shape.gangs.get_mut(&gang.count) {
            jobs.remove(&rank);
            if jobs.is_empty() {
                shape.gangs.remove(&gang.count);
            }
        }
        if shape.gangs.is_empty() {
            if let Ok(at) = self.glances.binary_search(&Glance::new(id, &key.0)) {
                self.glances.remove(at);
            }
            self.ids.remove(&key);
            self.unused.push(id);
        }
    }

    /// A shape by its number.
    pub fn get(&self, id: usize) -> &Shape<A, R> {
        &self.shapes[id]
    }

    /// A shape by its number, to lower its bound.
    pub fn get_mut(&mut self, id: usize) -> &mut Shape<A, R> {
        &mut self.shapes[id]
    }

    /// The numbers of all shapes.
    pub fn ids(&self) -> impl Iterator<Item = usize> {
        self.ids.values().copied()
    }

    /// Raises the bounds of shapes that fit what nodes have freed, and lists those with a job that
    /// may start now. `may_use` tells whether a shape may go to a node.
    pub fn freed(
        &mut self,
        free: &Capacity,
        nodes: &[NodeId],
        may_use: impl Fn(&A, NodeId) -> bool,
    ) {
        if nodes.len() > FREED_COUNTED_MAX {
            return self.bound_anew(free);
        }
        for node in nodes {
            self.freed_one(free, *node, &may_use);
        }
    }

    fn freed_one(&mut self, free: &Capacity, node: NodeId, may_use: &impl Fn(&A, NodeId) -> bool) {
        let end = Milli(free.largest_gpu(node).0 + 1);
        let NodeFree { cpu, mem, .. } = *free.node(node);
        let few_gpus = self.glances.partition_point(|glance| glance.gpu < end);
        for glance in &self.glances[..few_gpus] {
            if glance.cpu > cpu || glance.mem > mem {
                continue;
            }
            let shape = &mut self.shapes[glance.id];
            if !may_use(&shape.access, node) {
                continue;
            }
            let gained = free.slots(node, &shape.least, u32::MAX);
            if gained > 0 {
                shape.bound = shape.bound.saturating_add(gained);
                list(shape, glance.id, &mut self.listed);
            }
        }
    }

    /// When many nodes are free at once, a bound over the whole cluster costs less than a count of
    /// each.
    fn bound_anew(&mut self, free: &Capacity) {
        for &id in self.ids.values() {
            let shape = &mut self.shapes[id];
            shape.bound = free.slots_bound(&shape.least);
            list(shape, id, &mut self.listed);
        }
    }

    /// Puts a shape on the list of those to look at, once, if a job of it may start.
    pub fn list(&mut self, id: usize) {
        list(&mut self.shapes[id], id, &mut self.listed);
    }

    /// Gives every job of a shape the rank that it has now.
    pub fn rank_anew(&mut self, id: usize, mut rank: impl FnMut(R) -> R) {
        for jobs in self.shapes[id].gangs.values_mut() {
            *jobs = jobs.iter().map(|job| rank(*job)).collect();
        }
    }

    /// The next job of a queue after one that started.
    pub fn next(&self, (id, count): (usize, u32), rank: R) -> Option<R> {
        self.after((id, count), rank).next()
    }

    /// The next job of a queue after one for which a search found too little: one that asks for
    /// less memory, where memory alone is in the way. `mem` tells what a job asks for.
    pub fn next_after_failure(
        &mut self,
        (id, count): (usize, u32),
        (rank, short): (R, Shortfall),
        (free, place): (&Capacity, &dyn Place),
        mem: impl Fn(R) -> Mib,
    ) -> Option<R> {
        let (shape, asked) = (&mut self.shapes[id], mem(rank));
        let short = match asked == shape.least.mem {
            true => Err(short),
            false => place.choose(free, 0, &shape.least, count).map(|_| ()),
        };
        if let Err(short) = short {
            shape.bound = short.fit;
            return None;
        }
        self.next_below((id, count), rank, asked, mem)
    }

    /// The next job of a queue that asks for less than so much memory.
    pub fn next_below(
        &self,
        (id, count): (usize, u32),
        rank: R,
        most: Mib,
        mem: impl Fn(R) -> Mib,
    ) -> Option<R> {
        if most <= self.shapes[id].least.mem {
            return None;
        }
        self.after((id, count), rank).find(|next| mem(*next) < most)
    }

    fn after(&self, (id, count): (usize, u32), rank: R) -> impl Iterator<Item = R> {
        let jobs = self.shapes[id].gangs.get(&count);
        let after = (Bound::Excluded(rank), Bound::Unbounded);
        jobs.into_iter().flat_map(move |jobs| jobs.range(after).copied())
    }

    /// The shapes listed since the last time.
    pub fn take_listed(&mut self) -> Vec<usize> {
        let listed = std::mem::take(&mut self.listed);
        listed.iter().for_each(|id| self.shapes[*id].listed = false);
        listed
    }
}

impl<A, R> Shape<A, R> {
    /// Whether its smallest job may fit.
    pub fn is_hopeful(&self) -> bool {
        let smallest = self.gangs.first_key_value().map(|(count, _)| *count);
        smallest.is_some_and(|count| count <= self.bound)
    }
}

impl<A, R: Ord + Copy> Shape<A, R> {
    /// The best job of each number of tasks that may fit.
    pub fn heads(&self) -> impl Iterator<Item = (u32, R)> {
        let gangs = self.gangs.range(..=self.bound);
        gangs.filter_map(|(count, jobs)| Some((*count, *jobs.first()?)))
    }
}

fn list<A, R>(shape: &mut Shape<A, R>, id: usize, listed: &mut Vec<usize>) {
    if shape.is_hopeful() && !shape.listed {
        shape.listed = true;
        listed.push(id);
    }
}
