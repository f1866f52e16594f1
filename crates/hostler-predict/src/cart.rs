//! Run times from a regression tree, grown anew as jobs finish.
//!
//! The tree splits on what a job asks for (GPUs, cores, memory, tasks) and, for who sends it, what
//! it repeats and which GPU models will do, on the median run time of those before it. That puts
//! names in an order a tree can split, and a name nobody has seen stands where its sender does, or
//! all. The numbers of a job are those known before its own run time was: a tree grown on them
//! does not trust a median more than it deserves. Learns only from jobs that are over. Until the
//! first tree has grown, the median of like jobs counts.

use std::collections::VecDeque;

use hostler_core::id::JobId;
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::predict::{Predict, UserEstimate};
use hostler_core::units::Span;

use crate::features::{FeatureSet, Features, Key, Learner};
use crate::limits::{DEPTH_MAX, LEAF_MIN, REFIT_FIRST, REFIT_MAX, SAMPLES_MIN, WINDOW_MAX};
use crate::medians::Medians;
use crate::tree::{Growth, Row, Sample, Tree, log_micro};

/// Numbers that the tree of a job may split on.
pub const WIDTH: usize = 8;

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
            Some(tree) => Some(tree.belief(&row(features, known))),
            None => features.keys(FeatureSet::UserGroupGpu).find_map(known),
        }
    }

    fn learn(&mut self, features: &Features, run: Span) {
        let row = row(features, |key| self.medians.belief(key));
        if self.window.len() == self.settings.window_max {
            self.window.pop_front();
        }
        self.window.push_back(Sample { row, run });
        self.lessons += 1;
        for key in keys(features) {
            self.medians.teach(key, run);
        }
        self.grow_when_due();
    }
}

impl Predict for CartRun {
    fn estimate(&mut self, job: JobId, spec: &JobSpec) -> Option<Estimate> {
        let belief = self.belief(&Features::of(spec));
        belief.or_else(|| UserEstimate.estimate(job, spec))
    }

    fn observe(&mut self, _: JobId, spec: &JobSpec, run: Span) {
        self.learn(&Features::of(spec), run);
    }
}

/// Every key that a number of the row may come from.
fn keys(features: &Features) -> impl Iterator<Item = Key> + use<> {
    features.keys(FeatureSet::UserGroupGpu).chain([Key::Gpu(features.models)])
}

/// A job as numbers. What nobody knows is zero, which stands below all that is known.
pub(crate) fn row(features: &Features, known: impl Fn(Key) -> Option<Estimate>) -> Row<WIDTH> {
    let number = |belief: Option<Estimate>| belief.map_or(0, |belief| log_micro(belief.run));
    let of_set = |set: FeatureSet| number(features.keys(set).find_map(&known));
    let amount = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
    [
        of_set(FeatureSet::UserGroupGpu),
        of_set(FeatureSet::UserGroup),
        of_set(FeatureSet::User),
        number(known(Key::Gpu(features.models))),
        amount(features.gpu_milli),
        amount(features.cpu_milli),
        amount(features.mem_mib),
        i64::from(features.tasks),
    ]
}

#[cfg(test)]
mod tests;
