//! Run times from a regression tree, grown anew as jobs finish.
//!
//! The tree splits on what a job asks for (GPUs, cores, memory, tasks) and, for who sends it, what
//! it repeats and which GPU models will do, on the median run time of those before it. That puts
//! names in an order a tree can split, and a name nobody has seen stands where its sender does, or
//! all. A leaf says by what factor jobs were off the closest median that was known, so that a tree
//! that has little to add leaves the medians as they are. The numbers of a job are those known
//! before its own run time was: a tree grown on them trusts a median no more than it deserves.
//! Errors are those of logarithms: a job of a minute and one of a day count alike.
//!
//! Learns only from jobs that are over. Until the first tree has grown, the median of like jobs
//! counts.

use std::collections::VecDeque;

use hostler_core::id::JobId;
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::predict::{Predict, UserEstimate};
use hostler_core::units::Span;

use crate::features::{FeatureSet, Features, Key, Learner};
use crate::limits::{
    DEPTH_MAX, LEAF_MIN, REFIT_FIRST, REFIT_MAX, RUN_MAX, SAMPLES_MIN, WINDOW_MAX,
};
use crate::medians::Medians;
use crate::tree::{FeatureRow, Growth, Leaf, Sample, Tree};
use crate::waiting::Waiting;

/// Numbers that the tree of a job may split on.
pub const WIDTH: usize = 9;

/// The number that is the closest median, and that leaves are relative to.
const CLOSEST: usize = 0;

/// How a predictor learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CartSettings {
    /// How far the tree grows.
    pub growth: Growth,
    /// Run times that a median needs before it is believed.
    pub samples_min: usize,
    /// Jobs that a tree is grown from: the latest that finished.
    pub window_max: usize,
    /// Whether the tree is grown anew as jobs finish; else only when [`CartRun::grow`] says so.
    pub by_itself: bool,
}

impl Default for CartSettings {
    fn default() -> CartSettings {
        CartSettings {
            growth: Growth { depth_max: DEPTH_MAX, leaf_min: LEAF_MIN },
            samples_min: SAMPLES_MIN,
            window_max: WINDOW_MAX,
            by_itself: true,
        }
    }
}

/// A regression tree over medians and demands.
#[derive(Clone, Debug)]
pub struct CartRun {
    settings: CartSettings,
    medians: Medians,
    /// The latest jobs that finished, oldest first.
    window: VecDeque<Sample<WIDTH>>,
    tree: Option<Tree>,
    lessons: usize,
    grow_at: usize,
    waiting: Waiting,
}

impl Default for CartRun {
    fn default() -> CartRun {
        CartRun::new(CartSettings::default())
    }
}

impl CartRun {
    /// A predictor that knows nothing yet.
    pub fn new(settings: CartSettings) -> CartRun {
        assert!(settings.window_max > 0, "a tree needs a sample");
        CartRun {
            settings,
            medians: Medians::new(settings.samples_min),
            window: VecDeque::new(),
            tree: None,
            lessons: 0,
            grow_at: REFIT_FIRST,
            waiting: Waiting::default(),
        }
    }

    /// Grows the tree anew from the latest jobs.
    pub fn grow(&mut self) {
        self.tree = Tree::fit(self.window.make_contiguous(), self.settings.growth);
    }

    /// The medians that the tree splits on.
    pub fn medians(&self) -> &Medians {
        &self.medians
    }

    /// The tree, once there is one.
    pub fn tree(&self) -> Option<&Tree> {
        self.tree.as_ref()
    }

    /// Trees grow after a quarter more jobs than the last one had, so that the work of growing is
    /// in proportion to the jobs; never rarer than every [`REFIT_MAX`] jobs.
    fn grow_when_due(&mut self) {
        if self.settings.by_itself && self.lessons >= self.grow_at {
            self.grow();
            self.grow_at = self.lessons + (self.lessons / 4).clamp(1, REFIT_MAX);
        }
    }
}

impl Learner for CartRun {
    fn belief(&self, features: &Features) -> Option<Estimate> {
        let known = |key| self.medians.belief(key);
        match &self.tree {
            Some(tree) => Some(belief(tree, &row(features, known)?)),
            None => features.keys(FeatureSet::UserGroupGpu).find_map(known),
        }
    }

    fn learn(&mut self, features: &Features, run: Span) {
        if let Some(row) = row(features, |key| self.medians.belief(key)) {
            if self.window.len() == self.settings.window_max {
                self.window.pop_front();
            }
            self.window.push_back(Sample { row, value: log_micro(run) - row[CLOSEST] });
        }
        self.lessons += 1;
        for key in keys(features) {
            self.medians.teach(key, run);
        }
        self.grow_when_due();
    }
}

impl Predict for CartRun {
    fn estimate(&mut self, job: JobId, spec: &JobSpec) -> Option<Estimate> {
        let features = Features::of(spec);
        self.waiting.tell(job, &features);
        let belief = self.belief(&features);
        belief.or_else(|| UserEstimate.estimate(job, spec))
    }

    fn observe(&mut self, job: JobId, spec: &JobSpec, run: Span) -> Vec<JobId> {
        let features = Features::of(spec);
        self.learn(&features, run);
        self.waiting.finish(job, &features)
    }
}

/// Every key that a number of the row may come from.
fn keys(features: &Features) -> impl Iterator<Item = Key> + use<> {
    features.keys(FeatureSet::UserGroupGpu).chain([Key::Gpu(features.models)])
}

/// A job as numbers; none before anything is known. What else nobody knows is zero, which stands
/// below all that is known.
pub(crate) fn row(
    features: &Features,
    known: impl Fn(Key) -> Option<Estimate>,
) -> Option<FeatureRow<WIDTH>> {
    let closest = features.keys(FeatureSet::UserGroupGpu).find(|key| known(*key).is_some())?;
    let number = |belief: Option<Estimate>| belief.map_or(0, |belief| log_micro(belief.run));
    let of_set = |set: FeatureSet| number(features.keys(set).find_map(&known));
    let amount = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
    Some([
        of_set(FeatureSet::UserGroupGpu),
        distance(closest),
        of_set(FeatureSet::UserGroup),
        of_set(FeatureSet::User),
        number(known(Key::Gpu(features.models))),
        amount(features.gpu_milli),
        amount(features.cpu_milli),
        amount(features.mem_mib),
        i64::from(features.tasks),
    ])
}

/// What a tree makes of a job's numbers.
pub(crate) fn belief(tree: &Tree, row: &FeatureRow<WIDTH>) -> Estimate {
    let Leaf { middle, spread } = tree.belief(row);
    let run = libm::exp(row[CLOSEST].saturating_add(middle) as f64 / 1e6);
    let half = run * libm::sinh(spread as f64 / 1e6);
    // Casts of floats saturate.
    let span = |micros: f64| Span((libm::round(micros) as u64).min(RUN_MAX.0));
    Estimate { run: span(run).max(Span(1)), spread: span(half) }
}

/// The logarithm of a run time, in millionths.
fn log_micro(run: Span) -> i64 {
    libm::round(libm::log(run.0.max(1) as f64) * 1e6) as i64
}

/// How far from a job's own kind the closest median is that anybody knows.
fn distance(closest: Key) -> i64 {
    match closest {
        Key::UserGroupGpu(..) => 0,
        Key::UserGroup(..) => 1,
        Key::Group(_) => 2,
        Key::User(_) => 3,
        Key::Gpu(_) => 4,
        Key::All => 5,
    }
}

#[cfg(test)]
mod tests;
