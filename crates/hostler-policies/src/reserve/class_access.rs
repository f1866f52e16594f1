//! What a waiting job may have now: searches over GPU models, and how long some are kept from it.
//!
//! A job counts as high when GPUs of the top class speed it up by at least `theta`. High jobs try
//! the fastest model first. All others try the least booked or the slowest first, and the top class
//! is kept from them until they have waited for `reserve`, unless nothing else would ever hold
//! them. Whether it can be spared all the same, and where in a search a job goes, is not decided
//! here.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use hostler_core::admit::EmptyCluster;
use hostler_core::id::{ModelId, ModelSet};
use hostler_core::job::{Demand, Job, JobSpec, Models};
use hostler_core::policy::SettingType;
use hostler_core::profile::Profile;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;
use serde::{Deserialize, Serialize};

/// Machines with GPUs of one model, or those without GPUs.
pub(super) type Class = Option<ModelId>;

/// The order in which a role looks for room.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SearchOrder {
    /// Whether the role gains from fast GPUs.
    pub(super) high: bool,
    /// Machines that will do.
    pub(super) classes: Arc<[Class]>,
    /// Which of them come first.
    pub(super) order: ClassOrder,
}

/// Which machines of a search come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClassOrder {
    /// Those that are listed first.
    Listed,
    /// Those that are booked the least.
    LeastBooked,
}

/// What a job may have now.
pub(super) struct ClassAccess {
    /// For each role, with the top class.
    pub(super) searches: Box<[SearchOrder]>,
    /// What is left of them while the top class is kept from it.
    pub(super) kept: Option<Kept>,
}

impl ClassAccess {
    /// Whether it matters how much of each class is booked: counting that costs a look at every
    /// node.
    pub(super) fn ask_what_is_booked(&self) -> bool {
        self.kept.is_some()
            || self.searches.iter().any(|search| search.order == ClassOrder::LeastBooked)
    }
}

/// What a job may have while the top class is kept for others.
pub(super) struct Kept {
    /// For each role.
    pub(super) searches: Box<[SearchOrder]>,
    /// When it may have the top class like any other.
    pub(super) until: Time,
}

/// Which machines come first for jobs that gain nothing from fast ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LowFirst {
    /// Those of the model that is booked the least, so that jobs that name a model find room.
    LeastBooked,
    /// Those of the slowest model.
    Slowest,
}

impl SettingType for LowFirst {
    const TAKES: &'static str = "\"least-booked\" | \"slowest\"";
}

/// When a job gets GPUs of the top class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Least speed-up of a high job.
    pub(super) theta: f64,
    /// Wait after which the others may use the top class.
    pub(super) reserve: Span,
    /// Which machines come first for jobs that gain nothing from fast ones.
    pub(super) low_first: LowFirst,
    /// Part of the top class that must stay free behind a job that takes it before that.
    pub(super) part: f64,
}

/// The machines by class. A cache of the node table.
#[derive(Default)]
pub(super) struct Fleet {
    pub(super) empty_cluster: EmptyCluster,
    classes: BTreeSet<Class>,
    count: usize,
    top: ModelSet,
}

impl Fleet {
    /// Takes in nodes that were added; tells whether there were any.
    pub(super) fn refresh(&mut self, view: &View<'_>) -> bool {
        self.empty_cluster.refresh(view);
        // Nodes are never forgotten, so a number that did not change says that nothing did.
        let added = view.nodes().get(self.count..).unwrap_or_default();
        self.classes.extend(added.iter().map(|node| node.spec.gpu_model));
        self.count = view.nodes().len();
        let models = || self.classes.iter().flatten().copied();
        let tier = |model: ModelId| tier_of(view, model);
        let highest = models().map(tier).max();
        let top = models().filter(|model| Some(tier(*model)) == highest);
        self.top = top.fold(ModelSet::NONE, |set, model| set.with(ModelSet::one(model)));
        !added.is_empty()
    }

    /// The classes that there are nodes of.
    pub(super) fn classes(&self) -> impl Iterator<Item = Class> {
        self.classes.iter().copied()
    }

    /// Whether a class is the top one, or one of several.
    pub(super) fn is_top(&self, class: Class) -> bool {
        class.is_some_and(|model| self.top.contains(model))
    }

    /// Classes of which an empty node holds a task.
    fn feasible(&self, view: &View<'_>, demand: &Demand) -> Vec<Class> {
        self.classes()
            .filter(|class| self.empty_cluster.slots_on(view, demand, *class) > 0)
            .collect()
    }
}

impl Rules {
    /// The rules, if their numbers make sense.
    pub(super) fn checked(self) -> Result<Rules, String> {
        if self.theta.is_nan() || self.theta <= 0.0 {
            return Err(format!("`theta`: {}; give a number above 0", self.theta));
        }
        if !(0.0..=1.0).contains(&self.part) {
            return Err(format!("`reserve_part`: {}; give a number from 0 to 1", self.part));
        }
        Ok(self)
    }

    /// What a waiting job may have now.
    pub(super) fn access(&self, view: &View<'_>, fleet: &Fleet, job: &Job) -> ClassAccess {
        let high = efficiency(view, fleet, &job.spec) >= self.theta;
        let gangs = job.spec.gangs.iter();
        let all: Box<[SearchOrder]> =
            gangs.map(|gang| self.search(view, fleet, &job.spec, &gang.demand, high)).collect();
        let until = job.phase_since + self.reserve.saturating_sub(job.ledger.waited);
        if high || view.now() >= until {
            return ClassAccess { searches: all, kept: None };
        }
        let gangs = job.spec.gangs.iter().zip(&all);
        let searches: Box<[SearchOrder]> = gangs
            .map(|(gang, search)| without_top(view, fleet, &gang.demand, gang.count, search))
            .collect();
        let kept = (searches != all).then_some(Kept { searches, until });
        ClassAccess { searches: all, kept }
    }

    fn search(
        &self,
        view: &View<'_>,
        fleet: &Fleet,
        spec: &JobSpec,
        demand: &Demand,
        high: bool,
    ) -> SearchOrder {
        // A role without GPUs gains nothing from fast ones.
        let high = high && demand.gpu.0 > 0;
        let mut classes = fleet.feasible(view, demand);
        let profile = spec.profile.and_then(|key| view.profile(key)).filter(|_| demand.gpu.0 > 0);
        let gpus = spec.gpus();
        if let Some(profile) = profile {
            classes.retain(|class| class.is_none_or(|model| profile.fits(model, gpus)));
        }
        let speed = |class: &Class| {
            let model = class.map(|model| {
                let tier = tier_of(view, model);
                (profile.map_or(tier, |profile| profile.on(model, gpus).0), tier)
            });
            model.map_or((0, 0, 0), |(speed, tier)| (1, speed, tier))
        };
        match &demand.models {
            // The job says itself what it wants most.
            Models::Ordered(models) => {
                classes.sort_by_key(|class| models.iter().position(|model| Some(*model) == *class));
            }
            Models::Any | Models::OneOf(_) if high => {
                classes.sort_by_key(|class| Reverse(speed(class)))
            }
            Models::Any | Models::OneOf(_) => classes.sort_by_key(speed),
        }
        let listed = high
            || matches!(demand.models, Models::Ordered(_))
            || self.low_first == LowFirst::Slowest;
        let order = if listed { ClassOrder::Listed } else { ClassOrder::LeastBooked };
        SearchOrder { high, classes: classes.into(), order }
    }
}

/// How many times faster the job runs on the fastest model that will do than on the cheapest;
/// without a table of speeds: infinite for a job that names the top class, else 1.
fn efficiency(view: &View<'_>, fleet: &Fleet, spec: &JobSpec) -> f64 {
    let profile = spec.profile.and_then(|key| view.profile(key));
    let on_gpus = spec.gangs.iter().filter(|gang| gang.demand.gpu.0 > 0);
    let of_gang = |demand: &Demand| match profile {
        Some(profile) => speed_up(view, &fleet.feasible(view, demand), profile, spec.gpus()),
        None if names_top(fleet, &demand.models) => f64::INFINITY,
        None => 1.0,
    };
    on_gpus.map(|gang| of_gang(&gang.demand)).fold(1.0, f64::max)
}

fn tier_of(view: &View<'_>, model: ModelId) -> u32 {
    view.model(model).map_or(0, |model| model.tier)
}

fn speed_up(view: &View<'_>, feasible: &[Class], profile: &Profile, gpus: u32) -> f64 {
    let fits = |model: &ModelId| profile.fits(*model, gpus);
    let models = || feasible.iter().flatten().copied().filter(fits);
    let fastest = models().map(|model| profile.on(model, gpus)).max();
    let cheapest = models().map(|model| (tier_of(view, model), profile.on(model, gpus))).min();
    let both = fastest.zip(cheapest);
    both.map_or(1.0, |(fast, (_, slow))| f64::from(fast.0) / f64::from(slow.0.max(1)))
}

/// Whether a job insists on the top class, or wants it most.
fn names_top(fleet: &Fleet, models: &Models) -> bool {
    match models {
        Models::Any => false,
        Models::OneOf(set) => *set != ModelSet::NONE && fleet.top.0 & set.0 == set.0,
        Models::Ordered(models) => models.first().is_some_and(|model| fleet.top.contains(*model)),
    }
}

/// The search less the top class, if the rest could ever hold the role.
fn without_top(
    view: &View<'_>,
    fleet: &Fleet,
    demand: &Demand,
    count: u32,
    search: &SearchOrder,
) -> SearchOrder {
    let rest: Vec<Class> =
        search.classes.iter().copied().filter(|class| !fleet.is_top(*class)).collect();
    let slots = rest.iter().map(|class| fleet.empty_cluster.slots_on(view, demand, *class));
    if slots.fold(0, u32::saturating_add) < count || rest.len() == search.classes.len() {
        return search.clone();
    }
    SearchOrder { classes: rest.into(), ..search.clone() }
}
