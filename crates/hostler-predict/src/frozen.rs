//! A learner that learns nothing more.

use hostler_core::id::JobId;
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::predict::{Predict, UserEstimate};

use crate::features::{Features, Learner};

/// A learner that keeps to what it has learnt.
pub struct Frozen(pub Box<dyn Learner + Send>);

impl Predict for Frozen {
    fn estimate(&mut self, job: JobId, spec: &JobSpec) -> Option<Estimate> {
        let belief = self.0.belief(&Features::of(spec));
        belief.or_else(|| UserEstimate.estimate(job, spec))
    }
}
