//! What a waiting job may have now: plans over GPU models, and for how long some are kept from it.
//!
//! A job counts as high when GPUs of the top class speed it up by at least `theta`. High jobs try
//! the fastest model first. All others try the slowest first, and get the top class only after
//! they have waited for `reserve`, unless nothing else would ever hold them. Where in a plan a job
//! goes is not decided here.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use hostler_core::admit::Census;
use hostler_core::id::{ModelId, ModelSet, NodeId};
use hostler_core::job::{Demand, Job, JobSpec, Models};
use hostler_core::profile::Profile;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;

/// Machines with GPUs of one model, or those without GPUs.
pub(super) type Class = Option<ModelId>;

/// The order in which a role looks for room.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Plan {
    /// Whether the role gains from fast GPUs.
    pub(super) high: bool,
    /// Machines that will do, first choice first.
    pub(super) classes: Arc<[Class]>,
}

/// What a job may have now.
pub(super) struct Terms {
    /// For each role.
    pub(super) plans: Box<[Plan]>,
    /// When it may have more.
    pub(super) until: Option<Time>,
}

/// When a job gets GPUs of the top class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Least speed-up of a high job.
    pub(super) theta: f64,
    /// Wait after which the others may use the top class.
    pub(super) reserve: Span,
}

/// The machines by class. A cache of the node table.
#[derive(Default)]
pub(super) struct Fleet {
    pub(super) census: Census,
    nodes: BTreeMap<Class, Vec<NodeId>>,
    count: usize,
    top: ModelSet,
}

impl Fleet {
    /// Takes in nodes that were added; tells whether there were any.
    pub(super) fn refresh(&mut self, view: &View<'_>) -> bool {
        self.census.refresh(view);
        // Nodes are never forgotten, so a number that did not change says that nothing did.
        let added = view.nodes().get(self.count..).unwrap_or_default();
        for node in added {
            self.nodes.entry(node.spec.gpu_model).or_default().push(node.id);
        }
        self.count = view.nodes().len();
        let models = || self.nodes.keys().flatten().copied();
        let highest = models().map(|model| view.model(model).tier).max();
        let top = models().filter(|model| Some(view.model(*model).tier) == highest);
        self.top = top.fold(ModelSet::NONE, |set, model| set.with(ModelSet::one(model)));
        !added.is_empty()
    }

    /// The nodes of a class, by id.
    pub(super) fn nodes(&self, class: Class) -> &[NodeId] {
        self.nodes.get(&class).map_or(&[], Vec::as_slice)
    }

    fn is_top(&self, class: Class) -> bool {
        class.is_some_and(|model| self.top.contains(model))
    }

    /// Classes of which an empty node holds a task.
    fn feasible(&self, view: &View<'_>, demand: &Demand) -> Vec<Class> {
        let classes = self.nodes.keys().copied();
        classes.filter(|class| self.census.slots_on(view, demand, *class) > 0).collect()
    }
}

impl Rules {
    /// What a waiting job may have now.
    pub(super) fn terms(&self, view: &View<'_>, fleet: &Fleet, job: &Job) -> Terms {
        let high = efficiency(view, fleet, &job.spec) >= self.theta;
        let gangs = job.spec.gangs.iter();
        let all: Box<[Plan]> =
            gangs.map(|gang| plan(view, fleet, &job.spec, &gang.demand, high)).collect();
        let until = job.phase_since + self.reserve.saturating_sub(job.ledger.waited);
        if high || view.now() >= until {
            return Terms { plans: all, until: None };
        }
        let gangs = job.spec.gangs.iter().zip(&all);
        let kept: Box<[Plan]> = gangs
            .map(|(gang, plan)| without_top(view, fleet, &gang.demand, gang.count, plan))
            .collect();
        let until = (kept != all).then_some(until);
        Terms { plans: kept, until }
    }
}

/// How many times faster the job runs on the fastest model that will do than on the cheapest;
/// without a table of speeds: infinite for a job that names the top class, else 1.
fn efficiency(view: &View<'_>, fleet: &Fleet, spec: &JobSpec) -> f64 {
    let profile = spec.profile.and_then(|key| view.profile(key));
    let on_gpus = spec.gangs.iter().filter(|gang| gang.demand.gpu.0 > 0);
    let of_gang = |demand: &Demand| match profile {
        Some(profile) => speed_up(view, &fleet.feasible(view, demand), profile),
        None if names_top(fleet, &demand.models) => f64::INFINITY,
        None => 1.0,
    };
    on_gpus.map(|gang| of_gang(&gang.demand)).fold(1.0, f64::max)
}

fn speed_up(view: &View<'_>, feasible: &[Class], profile: &Profile) -> f64 {
    let models = || feasible.iter().flatten().copied();
    let fastest = models().map(|model| profile.on(model)).max();
    let cheapest = models().map(|model| (view.model(model).tier, profile.on(model))).min();
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

fn plan(view: &View<'_>, fleet: &Fleet, spec: &JobSpec, demand: &Demand, high: bool) -> Plan {
    // A role without GPUs gains nothing from fast ones.
    let high = high && demand.gpu.0 > 0;
    let mut classes = fleet.feasible(view, demand);
    let profile = spec.profile.and_then(|key| view.profile(key)).filter(|_| demand.gpu.0 > 0);
    let speed = |class: &Class| {
        let model = class.map(|model| {
            let tier = view.model(model).tier;
            (profile.map_or(tier, |profile| profile.on(model).0), tier)
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
    Plan { high, classes: classes.into() }
}

/// The plan less the top class, if the rest could ever hold the role.
fn without_top(view: &View<'_>, fleet: &Fleet, demand: &Demand, count: u32, plan: &Plan) -> Plan {
    let rest: Vec<Class> =
        plan.classes.iter().copied().filter(|class| !fleet.is_top(*class)).collect();
    let slots = rest.iter().map(|class| fleet.census.slots_on(view, demand, *class));
    if slots.fold(0, u32::saturating_add) < count || rest.len() == plan.classes.len() {
        return plan.clone();
    }
    Plan { high: plan.high, classes: rest.into() }
}
