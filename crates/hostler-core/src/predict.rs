//! Belief about run times: the interface of predictors.
//!
//! What a predictor says enters the log as an event, so a replay needs none.

use serde::{Deserialize, Serialize};

use crate::id::JobId;
use crate::job::{Estimate, JobSpec};
use crate::policy::SettingType;
use crate::units::Span;

/// Believes to know run times.
pub trait Predict: Send {
    /// Run time of a job that was submitted just now.
    fn estimate(&mut self, job: JobId, spec: &JobSpec) -> Option<Estimate>;

    /// Learns from a job that finished: its run time at reference speed.
    fn observe(&mut self, job: JobId, spec: &JobSpec, run: Span) {
        let _ = (job, spec, run);
    }
}

/// Whose run times a policy sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimateSource {
    /// What the user said at submission.
    #[default]
    User,
    /// The truth. Only a simulator can give it.
    Oracle,
    /// The median of like jobs that finished before.
    Median,
    /// A regression tree over those medians and what a job asks for, grown as jobs finish.
    Cart,
    /// A model that was trained before on other jobs and learns nothing more.
    Trained,
}

impl SettingType for EstimateSource {
    const TAKES: &'static str = "\"user\" | \"oracle\" | \"median\" | \"cart\" | \"trained\"";
}

/// The estimate that came with the job.
pub struct UserEstimate;

impl Predict for UserEstimate {
    fn estimate(&mut self, _: JobId, spec: &JobSpec) -> Option<Estimate> {
        spec.user_estimate.map(|run| Estimate { run, spread: Span::ZERO })
    }
}
