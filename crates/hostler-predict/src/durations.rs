//! Run times from what ran before: the median of like jobs that finished most recently.
//!
//! Like are jobs of the same tenant and group that ask for the same GPU models; while too few of
//! those have finished, those of the tenant and group, then of the group whoever sends it (one is
//! enough there), then of the tenant, then all. A group is the same work whoever sends it, so it
//! says more than a sender who does many things. What the user said counts when nobody has finished
//! yet. Learns only from jobs that are over, so an estimate never knows the future; jobs that wait
//! are told anew as others of their group finish. Does not look at how much a job asks for: `cart`
//! does.

use hostler_core::id::JobId;
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::predict::{Predict, UserEstimate};
use hostler_core::units::Span;

use crate::features::{FeatureSet, Features, Learner};
use crate::limits::SAMPLES_MIN;
use crate::medians::Medians;
use crate::waiting::Waiting;

/// The median run time of like jobs.
#[derive(Clone, Debug)]
pub struct MedianRun {
    medians: Medians,
    set: FeatureSet,
    waiting: Waiting,
}

impl Default for MedianRun {
    fn default() -> MedianRun {
        MedianRun::new(SAMPLES_MIN)
    }
}

impl MedianRun {
    /// A predictor that believes a key once it has seen `samples_min` run times of it.
    pub fn new(samples_min: usize) -> MedianRun {
        let medians = Medians::new(samples_min);
        MedianRun { medians, set: FeatureSet::default(), waiting: Waiting::default() }
    }

    /// The same, looking no closer than `set`.
    pub fn going_by(self, set: FeatureSet) -> MedianRun {
        MedianRun { set, ..self }
    }

    /// What was learnt.
    pub fn medians(&self) -> &Medians {
        &self.medians
    }
}

impl Learner for MedianRun {
    fn belief(&self, features: &Features) -> Option<Estimate> {
        features.keys(self.set).find_map(|key| self.medians.belief(key))
    }

    fn learn(&mut self, features: &Features, run: Span) {
        for key in features.keys(self.set) {
            self.medians.teach(key, run);
        }
    }
}

impl Predict for MedianRun {
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

#[cfg(test)]
pub(crate) mod tests;
