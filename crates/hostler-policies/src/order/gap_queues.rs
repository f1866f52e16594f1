//! Waiting jobs by what they ask for, by memory and by how long they run at least: who may fill a
//! gap is found without a look at all who wait. No policy of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hostler_core::capacity::Capacity;
use hostler_core::job::{Demand, Job, JobSpec};
use hostler_core::pipeline::{BacklogChanges, Rank};
use hostler_core::placement::Placement;
use hostler_core::plan::Plan;
use hostler_core::shapes::{Shape, Shapes};
use hostler_core::stage::{Place, may_fit, place_job};
use hostler_core::units::{Mib, Milli, Rate, Span};
use hostler_core::view::View;

use super::candidates::{Candidate, Candidates};
use super::line::{Entry, Line, RuledOut};

/// Jobs that ask for the same, but for memory where they have one role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// One role: its shape and tasks.
    One { shape: usize, count: u32 },
    /// Several roles.
    Roles(Arc<[(Demand, u32)]>),
}

impl Kind {
    /// Tasks that start together.
    fn tasks(&self) -> u32 {
        match self {
            Kind::One { count, .. } => *count,
            Kind::Roles(roles) => roles.iter().map(|(_, count)| count).sum(),
        }
    }
}

/// Lines of jobs that ask for the same.
#[derive(Default)]
pub(super) struct GapQueues {
    /// How many tasks of each shape fit at most.
    shapes: Shapes<(), Rank>,
    lines: BTreeMap<Kind, Line>,
    /// Shapes of which the smallest job may fit, by what they ask for besides sizes.
    hopeful: BTreeMap<Demand, BTreeSet<usize>>,
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
            self.lines.entry(kind.clone()).or_default().insert(entry(view, *rank, job));
            self.kinds.insert(*rank, kind);
        }
        for rank in &news.stayed {
            let line = self.kinds.get(rank).and_then(|kind| self.lines.get_mut(kind));
            if let (Some(line), Some(job)) = (line, view.job(rank.1)) {
                line.remove(*rank);
                line.insert(entry(view, *rank, job));
            }
        }
        self.shapes.freed(free, &news.freed, |(), _| true);
        for shape in self.shapes.take_listed() {
            self.look_at(shape);
        }
    }

    /// Notes whether the smallest job of a shape may fit.
    fn look_at(&mut self, id: usize) {
        let shape = self.shapes.get(id);
        let family = family_of(&shape.least);
        if shape.is_hopeful() {
            self.hopeful.entry(family).or_default().insert(id);
        } else if let Some(shapes) = self.hopeful.get_mut(&family) {
            shapes.remove(&id);
            if shapes.is_empty() {
                self.hopeful.remove(&family);
            }
        }
    }

    fn kind_of(&mut self, rank: Rank, spec: &JobSpec) -> Kind {
        match &*spec.gangs {
            [gang] => {
                let shape = self.shapes.add(gang, (), rank);
                self.shapes.list(shape);
                Kind::One { shape, count: gang.count }
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
        if let ([gang], Kind::One { shape, .. }) = (&*spec.gangs, kind) {
            self.shapes.remove(gang, (), rank);
            self.look_at(shape);
        }
    }

    /// All after a rank that may fit.
    pub(super) fn candidates(&self, after: Rank) -> Candidates {
        self.candidates_among(after, |_, _| true)
    }

    /// The same of those kinds that may start by their GPUs, cores and tasks: whoever may not with
    /// one task may not with more.
    pub(super) fn candidates_among(
        &self,
        after: Rank,
        may_start: impl Fn(&Demand, u32) -> bool,
    ) -> Candidates {
        let mut candidates = Vec::new();
        let hopeful = self.hopeful.iter().enumerate();
        for (family, (demand, shapes)) in hopeful.filter(|(_, (demand, _))| may_start(demand, 1)) {
            for &shape in shapes {
                let Shape { bound, least, .. } = self.shapes.get(shape);
                let (first, last) =
                    (Kind::One { shape, count: 0 }, Kind::One { shape, count: *bound });
                let lines = self.lines.range(first..=last);
                let able = lines.filter(|(kind, _)| may_start(demand, kind.tasks()));
                let heads =
                    able.filter_map(|(kind, line)| Some((kind, line.next(after, false, &[])?)));
                candidates.extend(heads.map(|(kind, rank)| {
                    Candidate::new(rank, kind.clone(), Some((family, least.cpu)))
                }));
            }
        }
        let with_roles = self.lines.range(Kind::Roles(Arc::default())..);
        let heads =
            with_roles.filter_map(|(kind, line)| Some((kind, line.next(after, false, &[])?)));
        candidates.extend(heads.map(|(kind, rank)| Candidate::new(rank, kind.clone(), None)));
        candidates.into_iter().collect()
    }

    /// Whether nobody waits who may fit.
    pub(super) fn is_hopeless(&self) -> bool {
        self.hopeful.is_empty() && self.lines.range(Kind::Roles(Arc::default())..).next().is_none()
    }

    /// The next job of a kind after one that was looked at, or from it on, of those that are not
    /// ruled out.
    pub(super) fn next(
        &self,
        kind: &Kind,
        rank: Rank,
        itself: bool,
        ruled_out: &[RuledOut],
    ) -> Option<Rank> {
        let line = self.lines.get(kind).filter(|_| self.has_hope(kind))?;
        line.next(rank, itself, ruled_out)
    }

    /// What a waiting job asks for.
    pub(super) fn kind(&self, rank: Rank) -> Option<&Kind> {
        self.kinds.get(&rank)
    }

    /// Whether nothing is known against a job.
    pub(super) fn may_fit(&self, rank: Rank) -> bool {
        self.kinds.get(&rank).is_none_or(|kind| self.has_hope(kind))
    }

    fn has_hope(&self, kind: &Kind) -> bool {
        match kind {
            Kind::One { shape, count } => self.shapes.get(*shape).bound >= *count,
            Kind::Roles(_) => true,
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
        let Some(Kind::One { shape, count }) = self.kinds.get(&rank) else {
            return may_fit(plan.free(), spec).then(|| place_job(place, plan, spec).ok()).flatten();
        };
        let (id, count) = (*shape, *count);
        let placed = self.place_one(place, plan, (id, count), spec);
        if !self.shapes.get(id).is_hopeful() {
            self.look_at(id);
        }
        placed
    }

    fn place_one(
        &mut self,
        place: &dyn Place,
        plan: &mut Plan<'_>,
        (shape, count): (usize, u32),
        spec: &JobSpec,
    ) -> Option<Placement> {
        let shape = self.shapes.get_mut(shape);
        shape.bound = shape.bound.min(plan.free().slots_bound(&shape.least));
        if shape.bound < count {
            return None;
        }
        let short = match place_job(place, plan, spec) {
            Ok(placement) => return Some(placement),
            Err(short) if spec.gangs[0].demand.mem == shape.least.mem => Some(short),
            // Memory alone may be in the way: others of the shape ask for less.
            Err(_) => place.choose(plan.free(), 0, &shape.least, count).err(),
        };
        if let Some(short) = short {
            shape.bound = short.fit;
        }
        None
    }
}

/// What a task asks for besides sizes.
fn family_of(demand: &Demand) -> Demand {
    Demand { cpu: Milli(0), mem: Mib(0), ..demand.clone() }
}

fn entry(view: &View<'_>, rank: Rank, job: &Job) -> Entry {
    Entry { rank, mem: mem_of(&job.spec), run: least_run(view, job) }
}

/// Memory by which jobs of a kind differ: that of a task; of no meaning with several roles.
pub(super) fn mem_of(spec: &JobSpec) -> Mib {
    match &*spec.gangs {
        [gang] => gang.demand.mem,
        _ => Mib(0),
    }
}

/// The least time that a job is believed to run, wherever it is placed.
fn least_run(view: &View<'_>, job: &Job) -> Span {
    let profile = job.spec.profile.and_then(|key| view.profile(key));
    let rate = profile.map_or(Rate::FULL, |profile| profile.rate_max());
    let left = job.remaining().map_or(Span(u64::MAX), |left| left.at(rate));
    left.min(job.spec.time_limit.unwrap_or(Span(u64::MAX)))
}
