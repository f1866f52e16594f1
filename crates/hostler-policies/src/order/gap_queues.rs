//! Waiting jobs by what they ask for and by how long they run at least: who may fill a gap is found
//! without a look at all who wait. No policy of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hostler_core::capacity::Capacity;
use hostler_core::job::{Demand, Job, JobSpec};
use hostler_core::pipeline::{BacklogChanges, Rank};
use hostler_core::placement::Placement;
use hostler_core::plan::Plan;
use hostler_core::shapes::Shapes;
use hostler_core::stage::{Place, may_fit, place_job};
use hostler_core::units::{Mib, Rate, Span};
use hostler_core::view::View;

use super::line::Line;

/// Jobs that ask for the very same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// One role: its shape, tasks and memory.
    One { shape: usize, count: u32, mem: Mib },
    /// Several roles.
    Roles(Arc<[(Demand, u32)]>),
}

/// Lines of jobs that ask for the same.
#[derive(Default)]
pub(super) struct GapQueues {
    /// How many tasks of each shape fit at most.
    shapes: Shapes<(), Rank>,
    lines: BTreeMap<Kind, Line>,
    /// Shapes of which the smallest job may fit, and some of which it does not any more: bounds
    /// rise only where something is freed, and those shapes are listed.
    hopeful: BTreeSet<usize>,
    /// Where each job is.
    kinds: BTreeMap<Rank, Kind>,
}

impl GapQueues {
    /// Takes in what happened since the last question.
    pub(super) fn follow(&mut self, view: &View<'_>, news: &BacklogChanges, free: &Capacity) {
        if news.all {
            *self = GapQueues::default();
        }
        news.left.iter().for_each(|(rank, spec)| self.remove(*rank, spec));
        for rank in &news.came {
            let job = view.job(rank.1).expect("a waiting job is not over");
            let kind = self.kind_of(*rank, &job.spec);
            self.lines.entry(kind.clone()).or_default().insert(*rank, least_run(view, job));
            self.kinds.insert(*rank, kind);
        }
        for rank in &news.stayed {
            let line = self.kinds.get(rank).and_then(|kind| self.lines.get_mut(kind));
            if let (Some(line), Some(job)) = (line, view.job(rank.1)) {
                line.remove(*rank);
                line.insert(*rank, least_run(view, job));
            }
        }
        self.shapes.freed(free, &news.freed, |(), _| true);
        self.hopeful.extend(self.shapes.take_listed());
        let shapes = &self.shapes;
        self.hopeful.retain(|shape| shapes.get(*shape).is_hopeful());
    }

    fn kind_of(&mut self, rank: Rank, spec: &JobSpec) -> Kind {
        match &*spec.gangs {
            [gang] => {
                let shape = self.shapes.add(gang, (), rank);
                self.shapes.list(shape);
                Kind::One { shape, count: gang.count, mem: gang.demand.mem }
            }
            gangs => {
                Kind::Roles(gangs.iter().map(|gang| (gang.demand.clone(), gang.count)).collect())
            }
        }
    }

    fn remove(&mut self, rank: Rank, spec: &JobSpec) {
        let Some(kind) = self.kinds.remove(&rank) else { return };
        if let Some(line) = self.lines.get_mut(&kind) {
            line.remove(rank);
            if line.is_empty() {
                self.lines.remove(&kind);
            }
        }
        if let [gang] = &*spec.gangs {
            self.shapes.remove(gang, (), rank);
        }
    }

    /// The first job after a rank of each kind that may fit.
    pub(super) fn heads(&self, after: Rank) -> impl Iterator<Item = (Rank, &Kind)> {
        let of_shape = |shape: &usize| {
            let (shape, bound) = (*shape, self.shapes.get(*shape).bound);
            let least = Kind::One { shape, count: 0, mem: Mib(0) };
            let most = Kind::One { shape, count: bound, mem: Mib(u32::MAX) };
            self.lines.range(least..=most)
        };
        let with_roles = self.lines.range(Kind::Roles(Arc::default())..);
        let lines = self.hopeful.iter().flat_map(of_shape).chain(with_roles);
        lines.filter_map(move |(kind, line)| Some((line.after(after)?, kind)))
    }

    pub(super) fn line(&self, kind: &Kind) -> &Line {
        &self.lines[kind]
    }

    /// What a waiting job asks for.
    pub(super) fn kind(&self, rank: Rank) -> Option<&Kind> {
        self.kinds.get(&rank)
    }

    /// Whether nothing is known against a job.
    pub(super) fn may_fit(&self, rank: Rank) -> bool {
        match self.kinds.get(&rank) {
            Some(Kind::One { shape, count, .. }) => self.shapes.get(*shape).bound >= *count,
            Some(Kind::Roles(_)) | None => true,
        }
    }

    /// Places a job, unless it is known not to fit.
    pub(super) fn place(
        &mut self,
        place: &dyn Place,
        plan: &mut Plan<'_>,
        rank: Rank,
        spec: &JobSpec,
    ) -> Option<Placement> {
        let Some(Kind::One { shape, count, .. }) = self.kinds.get(&rank) else {
            return may_fit(plan.free(), spec).then(|| place_job(place, plan, spec).ok()).flatten();
        };
        let shape = self.shapes.get_mut(*shape);
        shape.bound = shape.bound.min(plan.free().slots_bound(&shape.least));
        if shape.bound < *count {
            return None;
        }
        let short = match place_job(place, plan, spec) {
            Ok(placement) => return Some(placement),
            Err(short) if spec.gangs[0].demand.mem == shape.least.mem => Some(short),
            // Memory alone may be in the way: others of the shape ask for less.
            Err(_) => place.choose(plan.free(), 0, &shape.least, *count).err(),
        };
        if let Some(short) = short {
            shape.bound = short.fit;
        }
        None
    }
}

/// The least time that a job is believed to run, wherever it is placed.
fn least_run(view: &View<'_>, job: &Job) -> Span {
    let profile = job.spec.profile.and_then(|key| view.profile(key));
    let rate = profile.map_or(Rate::FULL, |profile| profile.rate_max());
    let left = job.remaining().map_or(Span(u64::MAX), |left| left.at(rate));
    left.min(job.spec.time_limit.unwrap_or(Span(u64::MAX)))
}
