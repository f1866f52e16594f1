//! Waiting jobs with their terms, by what they ask for: a cache that follows the journal.
//!
//! Jobs whose tasks ask for the same on the same machines form a shape. A shape keeps a bound on
//! how many of its tasks fit: exact after a search that failed, raised by what freed nodes hold,
//! never too low. A job whose terms change with time moves to another shape when the time comes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hostler_core::capacity::Capacity;
use hostler_core::id::{JobId, NodeId};
use hostler_core::job::{Demand, JobSpec, Phase};
use hostler_core::state::Change;
use hostler_core::units::Time;
use hostler_core::view::View;

use super::class_access::{Class, ClassAccess, Fleet, Rules};
use crate::limits::FREED_COUNTED_MAX;

/// Waiting jobs, by id and by shape.
#[derive(Default)]
pub(super) struct Queue {
    seen: Option<u64>,
    waiting: BTreeMap<JobId, Waiting>,
    ids: BTreeMap<Ask, usize>,
    shapes: Vec<Shape>,
    unused: Vec<usize>,
    /// When terms change.
    times: BTreeSet<(Time, JobId)>,
    /// Jobs with several roles.
    pub(super) complex: BTreeSet<JobId>,
}

/// What a task asks for, where it may go, and whether the top class is kept from it.
type Ask = (Demand, Arc<[Class]>, bool);

/// A job that waits.
pub(super) struct Waiting {
    pub(super) spec: Arc<JobSpec>,
    pub(super) terms: ClassAccess,
    shape: Option<usize>,
}

/// Jobs whose tasks ask for the same, but for the lower digits of memory.
pub(super) struct Shape {
    /// What every job of the shape asks for at least.
    pub(super) least: Demand,
    /// Where it may go.
    pub(super) classes: Arc<[Class]>,
    /// Whether the top class among them is kept from it.
    kept: bool,
    /// At most this many tasks fit.
    pub(super) bound: u32,
    /// Jobs by number of tasks.
    pub(super) gangs: BTreeMap<u32, BTreeSet<JobId>>,
}

/// What changed since the last question.
#[derive(Default)]
pub(super) struct News {
    /// The cache started anew.
    pub(super) all: bool,
    /// Jobs that began to wait, or whose terms are others now.
    pub(super) came: BTreeSet<JobId>,
    pub(super) freed: BTreeSet<NodeId>,
}

impl Queue {
    /// Follows the journal and the time, or starts anew when the journal does not reach back far
    /// enough or `grew` says that the machines are others.
    pub(super) fn sync(
        &mut self,
        view: &View<'_>,
        fleet: &Fleet,
        rules: &Rules,
        grew: bool,
    ) -> News {
        let journal = view.journal();
        let changes = self.seen.and_then(|seen| journal.since(seen)).filter(|_| !grew);
        self.seen = Some(journal.end());
        let mut news = News::default();
        let Some(changes) = changes else {
            *self = Queue { seen: self.seen, ..Queue::default() };
            news.all = true;
            news.came = view.pending().clone();
            news.came.iter().for_each(|id| self.add(view, fleet, rules, *id));
            return news;
        };
        for change in changes {
            match change {
                Change::Queued(id) => _ = news.came.insert(*id),
                Change::Unqueued(id) => self.remove(*id),
                Change::Freed(node) => _ = news.freed.insert(*node),
            }
        }
        let due = self.times.iter().take_while(|(at, _)| *at <= view.now());
        news.came.extend(due.map(|(_, id)| *id));
        news.came.retain(|id| view.job(*id).is_some_and(|job| job.phase == Phase::Pending));
        for id in &news.came {
            self.remove(*id);
            self.add(view, fleet, rules, *id);
        }
        news
    }

    /// The waiting jobs in order of submission.
    pub(super) fn iter(&self) -> impl Iterator<Item = (JobId, &Waiting)> {
        self.waiting.iter().map(|(id, waiting)| (*id, waiting))
    }

    pub(super) fn get(&self, id: JobId) -> &Waiting {
        self.waiting.get(&id).expect("the queue follows the waiting jobs")
    }

    pub(super) fn shape(&mut self, id: usize) -> &mut Shape {
        &mut self.shapes[id]
    }

    /// The jobs of a shape with so many tasks, of which there is one at least.
    pub(super) fn jobs(&self, shape: usize, count: u32) -> &BTreeSet<JobId> {
        self.shapes[shape].gangs.get(&count).expect("one of them was just looked at")
    }

    /// When the terms of a waiting job change next; those in `gone` wait no more.
    pub(super) fn next_time(&self, gone: &BTreeSet<JobId>) -> Option<Time> {
        let mut times = self.times.iter();
        times.find(|(_, id)| !gone.contains(id)).map(|(at, _)| *at)
    }

    /// Shapes that may have gained, with their bounds raised.
    pub(super) fn gained(&mut self, view: &View<'_>, free: &Capacity, news: &News) -> Vec<usize> {
        if news.all {
            return self.ids.values().copied().collect();
        }
        let came = news.came.iter().filter_map(|id| self.waiting.get(id)?.shape);
        let mut gained: BTreeSet<usize> = came.collect();
        let anew = news.freed.len() > FREED_COUNTED_MAX;
        for id in self.ids.values() {
            let shape = &mut self.shapes[*id];
            let before = shape.bound;
            if anew {
                shape.bound = free.slots_bound(&shape.least);
            } else {
                news.freed.iter().for_each(|node| shape.freed(view, free, *node));
            }
            if anew || shape.bound > before {
                gained.insert(*id);
            }
        }
        gained.into_iter().collect()
    }

    fn add(&mut self, view: &View<'_>, fleet: &Fleet, rules: &Rules, id: JobId) {
        let job = view.job(id).expect("a waiting job is not over");
        let terms = rules.terms(view, fleet, job);
        self.times.extend(terms.kept.as_ref().map(|kept| (kept.until, id)));
        let shape = if let [gang] = &*job.spec.gangs {
            let classes = Arc::clone(&terms.plans[0].classes);
            let shape = self.shape_of((gang.demand.coarse(), classes, terms.kept.is_some()));
            self.shapes[shape].gangs.entry(gang.count).or_default().insert(id);
            Some(shape)
        } else {
            self.complex.insert(id);
            None
        };
        self.waiting.insert(id, Waiting { spec: Arc::clone(&job.spec), terms, shape });
    }

    fn shape_of(&mut self, ask: Ask) -> usize {
        if let Some(known) = self.ids.get(&ask) {
            return *known;
        }
        let (least, classes, kept) = ask.clone();
        let shape = Shape { least, classes, kept, bound: u32::MAX, gangs: BTreeMap::new() };
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
        self.ids.insert(ask, id);
        id
    }

    fn remove(&mut self, id: JobId) {
        let Some(waiting) = self.waiting.remove(&id) else { return };
        if let Some(kept) = &waiting.terms.kept {
            self.times.remove(&(kept.until, id));
        }
        let Some(at) = waiting.shape else {
            self.complex.remove(&id);
            return;
        };
        let shape = &mut self.shapes[at];
        let count = waiting.spec.gangs[0].count;
        if let Some(jobs) = shape.gangs.get_mut(&count) {
            jobs.remove(&id);
            if jobs.is_empty() {
                shape.gangs.remove(&count);
            }
        }
        if shape.gangs.is_empty() {
            let ask = (shape.least.clone(), Arc::clone(&shape.classes), shape.kept);
            self.ids.remove(&ask);
            self.unused.push(at);
        }
    }
}

impl Shape {
    fn freed(&mut self, view: &View<'_>, free: &Capacity, node: NodeId) {
        let class = view.node(node).map(|node| node.spec.gpu_model);
        if class.is_some_and(|class| self.classes.contains(&class)) {
            let slots = free.slots(node, &self.least, u32::MAX);
            self.bound = self.bound.saturating_add(slots);
        }
    }
}
