//! Belief about run times and speeds: the interface of predictors.
//!
//! What a predictor says enters the log as an event, so a replay needs none.

use serde::{Deserialize, Serialize};

use crate::id::{JobId, ModelId, ProfileKey};
use crate::job::{Estimate, JobSpec};
use crate::policy::SettingType;
use crate::profile::Profile;
use crate::units::{Rate, Span};

/// Believes to know run times.
pub trait Predict: Send {
    /// Run time of a job that was submitted just now, or that waits and is looked at again.
    fn estimate(&mut self, job: JobId, spec: &JobSpec) -> Option<Estimate>;

    /// Learns from a job that finished: its run time at reference speed. The answer is whose run
    /// times should be estimated anew, if they still wait.
    fn observe(&mut self, job: JobId, spec: &JobSpec, run: Span) -> Vec<JobId> {
        let _ = (job, spec, run);
        Vec::new()
    }

    /// Whether it learns speeds: looking at a stay costs a look at its neighbours.
    fn wants_speeds(&self) -> bool {
        false
    }

    /// Learns how fast a stay was; the answer is what to believe of profiles from now on.
    fn observe_speed(&mut self, observed: &Observed) -> Vec<(ProfileKey, Profile)> {
        let _ = observed;
        Vec::new()
    }
}

/// How fast one stay of a job was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The profile of the job.
    pub key: ProfileKey,
    /// The GPU model that it was on.
    pub model: ModelId,
    /// GPUs of the gang.
    pub gpus: u32,
    /// Whether these were in several nodes.
    pub spread: bool,
    /// Who was beside it on its GPUs.
    pub partner: Option<ProfileKey>,
    /// Its speed, relative to the reference run; zero where it could not start beside its partner.
    pub rate: Rate,
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
    /// What several ways to look at like jobs say, each heard by how right it was before.
    Blend,
    /// A model that was trained before on other jobs and learns nothing more.
    Trained,
}

impl SettingType for EstimateSource {
    const TAKES: &'static str =
        "\"user\" | \"oracle\" | \"median\" | \"cart\" | \"blend\" | \"trained\"";
    const HELP: &'static str = "Whose run times count. Few traces carry what users said, so the \
        truth is the default; a real cluster refuses it, and goes by `user` unless told otherwise.";
}

/// The estimate that came with the job.
pub struct UserEstimate;

impl Predict for UserEstimate {
    fn estimate(&mut self, _: JobId, spec: &JobSpec) -> Option<Estimate> {
        spec.user_estimate.map(|run| Estimate { run, spread: Span::ZERO })
    }
}
