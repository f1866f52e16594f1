//! Waiting jobs that take part, model by model, most urgent first among those that ask for the
//! same: what becomes free inside a round goes to them, and finding who may have it costs what
//! changed, not the number of those who wait.
//!
//! A cache: who waits follows from the journal, and how urgent he is from the accounts, which no
//! more than a solution changes while he waits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hostler_core::capacity::Capacity;
use hostler_core::id::{JobId, ModelId, NodeId};
use hostler_core::job::{Gang, Phase};
use hostler_core::shapes::Shapes;
use hostler_core::stage::{Place, Shortfall};
use hostler_core::target::Turn;
use hostler_core::units::Mib;
use hostler_core::view::View;

use super::pick::{Ranking, Urgency};
use super::roster::{Roster, RosterNews, demand_on, gpu_gang};
use crate::limits::LINE_CHANGES_MAX;

/// Jobs that ask for the same on a model: number of their shape, and of their tasks.
pub(super) type LineQueue = (usize, u32);

/// The most urgent of each queue.
pub(super) type Heads = BinaryHeap<Reverse<(Urgency, LineQueue)>>;

/// Waiting jobs that take part.
#[derive(Default)]
pub(super) struct Lines {
    /// By model.
    shapes: Vec<Shapes<(), Urgency>>,
    /// Number of the solution that the jobs of each shape stand in order by, by model. A solution
    /// ranks everybody anew, but only where somebody may start does anybody look at the order.
    ranked: Vec<Vec<u64>>,
    /// Where each job stands.
    standing: BTreeMap<JobId, Standing>,
    /// Number of the solution that ranks go by.
    solves: u64,
    /// What happened since the last look.
    changed: Vec<JobId>,
    freed: Vec<NodeId>,
    stale: bool,
}

/// Where a job stands, on each model that it can run on. It may be over by now.
struct Standing {
    gang: Gang,
    ranks: Vec<(ModelId, Urgency)>,
}

impl Lines {
    /// Notes what changed, to be followed at the next look.
    pub(super) fn note(&mut self, news: RosterNews) {
        self.changed.extend(news.changed);
        self.freed.extend(news.freed);
        self.stale |= news.all || self.changed.len() + self.freed.len() > LINE_CHANGES_MAX;
        if self.stale {
            self.changed.clear();
            self.freed.clear();
        }
    }

    /// Follows the state, as far as that was not done yet.
    pub(super) fn follow(&mut self, view: &View<'_>, roster: &Roster, ranking: &Ranking) {
        let solved = std::mem::replace(&mut self.solves, view.solves()) != view.solves();
        // Where nobody without a share takes part, a solution says who does.
        self.stale |= solved && !ranking.fillers;
        if std::mem::take(&mut self.stale) || self.shapes.len() != view.models().len() {
            self.standing.clear();
            self.shapes.clear();
            self.shapes.resize_with(view.models().len(), Shapes::default);
            self.ranked = vec![Vec::new(); view.models().len()];
            let waits = |id: &&JobId| view.pending().contains(id);
            self.changed = match ranking.fillers {
                true => view.pending().iter().copied().collect(),
                false => view.in_rounds().iter().filter(waits).copied().collect(),
            };
        }
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        for id in &changed {
            self.remove(*id);
        }
        for id in changed {
            self.add(view, roster, ranking, id);
        }
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.standing.is_empty()
    }

    fn remove(&mut self, job: JobId) {
        let Some(Standing { mut gang, ranks }) = self.standing.remove(&job) else { return };
        for (model, rank) in ranks {
            gang.demand = demand_on(&gang.demand, model);
            self.shapes[model.index()].remove(&gang, (), rank);
        }
    }

    fn add(&mut self, view: &View<'_>, roster: &Roster, ranking: &Ranking, id: JobId) {
        let waits = view.job(id).filter(|job| job.phase == Phase::Pending && !job.cancelled);
        let Some((job, row)) = waits.zip(roster.row(id)) else { return };
        let models = row.rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0);
        let ranks = models.map(|(model, _)| {
            let model = ModelId(model as u32);
            (model, ranking.of_waiting(view, id, model))
        });
        let asks = |(_, rank): &(ModelId, Urgency)| ranking.fillers || rank.has_share();
        let ranks: Vec<(ModelId, Urgency)> = ranks.filter(asks).collect();
        if ranks.is_empty() {
            return;
        }
        let mut gang = gpu_gang(&job.spec).expect("who takes part has one role").clone();
        for (model, rank) in &ranks {
            gang.demand = demand_on(&gang.demand, *model);
            let shapes = &mut self.shapes[model.index()];
            let shape = shapes.add(&gang, (), *rank);
            shapes.list(shape);
        }
        self.standing.insert(id, Standing { gang, ranks });
    }

    /// Puts the jobs of a shape where the last solution wants them.
    fn rank_anew(&mut self, view: &View<'_>, ranking: &Ranking, model: ModelId, shape: usize) {
        let ranked = &mut self.ranked[model.index()];
        if ranked.len() <= shape {
            ranked.resize(shape + 1, 0);
        }
        if std::mem::replace(&mut ranked[shape], self.solves) == self.solves {
            return;
        }
        let standing = &mut self.standing;
        self.shapes[model.index()].rank_anew(shape, |rank| {
            let job = rank.team.first;
            let now = ranking.of_waiting(view, job, model);
            let ranks = standing.get_mut(&job).map(|standing| &mut standing.ranks);
            let own = ranks.into_iter().flatten().find(|(other, _)| *other == model);
            own.expect("who is in a queue stands there").1 = now;
            now
        });
    }

    /// Counts what nodes freed for those who wait.
    pub(super) fn raise_bounds(&mut self, free: &Capacity) {
        let mut freed = std::mem::take(&mut self.freed);
        freed.sort_unstable();
        freed.dedup();
        for (model, shapes) in self.shapes.iter_mut().enumerate() {
            let on_model = |node: &&NodeId| free.model(**node) == Some(ModelId(model as u32));
            let nodes: Vec<NodeId> = freed.iter().filter(on_model).copied().collect();
            shapes.freed(free, &nodes, |(), _| true);
        }
    }

    /// The most urgent of each queue that may have gained on a model since the last look.
    pub(super) fn heads(&mut self, view: &View<'_>, ranking: &Ranking, model: ModelId) -> Heads {
        let mut heads = Heads::new();
        for id in self.shapes[model.index()].take_listed() {
            self.rank_anew(view, ranking, model, id);
            let queues = self.shapes[model.index()].get(id).heads();
            heads.extend(queues.map(|(count, rank)| Reverse((rank, (id, count)))));
        }
        heads
    }

    /// Whether the jobs of a queue may fit.
    pub(super) fn may_fit(&mut self, model: ModelId, queue: LineQueue, free: &Capacity) -> bool {
        let shape = self.shapes[model.index()].get_mut(queue.0);
        shape.bound = shape.bound.min(free.slots_bound(&shape.least));
        shape.bound >= queue.1
    }

    /// Looks at a queue again next time, whether it gains or not.
    pub(super) fn look_again(&mut self, model: ModelId, queue: LineQueue) {
        self.shapes[model.index()].list(queue.0);
    }

    /// The next of a queue.
    pub(super) fn next(&self, model: ModelId, queue: LineQueue, rank: Urgency) -> Option<Urgency> {
        self.shapes[model.index()].next(queue, rank)
    }

    /// The next of a queue after one for which a search found too little.
    pub(super) fn next_after_failure(
        &mut self,
        view: &View<'_>,
        turn: Turn,
        queue: LineQueue,
        failed: (Urgency, Shortfall),
        room: (&Capacity, &dyn Place),
    ) -> Option<Urgency> {
        let mem = |rank: Urgency| {
            let job = view.job(rank.team.first).and_then(|job| gpu_gang(&job.spec));
            job.map_or(Mib(0), |gang| gang.demand.mem)
        };
        self.shapes[turn.model.index()].next_after_failure(queue, failed, room, mem)
    }
}

#[cfg(test)]
mod tests;
