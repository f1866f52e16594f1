//! `hostler predict eval`, the part about order: what predictors are worth to a policy that ranks
//! by run time.

use anyhow::{Context, Result};
use hostler_core::id::TenantId;
use hostler_core::metrics::{Metrics, Summary};
use hostler_core::predict::Predict;
use hostler_core::registry::Registry;
use hostler_predict::Features;
use hostler_predict::evaluate::Past;
use hostler_sim::lower::Workload;
use hostler_sim::report::data::JobCounts;
use hostler_sim::{history, run};
use serde::Serialize;

use super::rejected;
use crate::settings::Chosen;

/// Less of a difference, as a share of the larger time, is chance: hardly anybody waits.
const DIFFERENCE_MIN: f64 = 0.01;

/// Mean completion times of the judged jobs at both ends.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ends {
    /// In the order of submission, passing over what does not fit.
    pub by_submission_s: f64,
    /// By the true run times.
    pub by_truth_s: f64,
    /// Judged jobs that can never run on these machines, so that both times are of the others.
    pub rejected: u64,
}

impl Ends {
    /// How much of the way from one end to the other a time is; none where they hardly differ.
    pub fn share(&self, jct_s: f64) -> Option<f64> {
        let gap = self.by_submission_s - self.by_truth_s;
        let matters = gap > DIFFERENCE_MIN * self.by_submission_s;
        matters.then(|| (self.by_submission_s - jct_s) / gap)
    }
}

/// Simulates the judged jobs.
pub struct Judge<'a> {
    workload: &'a Workload,
    by_run_time: Chosen,
    by_submission: Chosen,
}

impl<'a> Judge<'a> {
    /// One for these jobs.
    pub fn new(registry: &Registry, workload: &'a Workload) -> Result<Judge<'a>> {
        Ok(Judge {
            workload,
            by_run_time: Chosen::parse(registry, hostler_policies::BY_RUN_TIME)?,
            by_submission: Chosen::parse(registry, hostler_policies::BY_SUBMISSION)?,
        })
    }

    /// What there is to gain, and what came of the jobs.
    pub fn ends(&self) -> Result<(Ends, JobCounts)> {
        let figures = |chosen: &Chosen| {
            let (estimates, truth) = (&self.workload.estimates, &self.workload.truth);
            let source = chosen.build().estimates();
            self.simulated(chosen, estimates.predictor(source, truth))
        };
        // The simulator's own choice for a policy by run times is the truth.
        let (first, shortest) = (figures(&self.by_submission)?, figures(&self.by_run_time)?);
        let (by_submission_s, by_truth_s) = (first.avg_jct_s, shortest.avg_jct_s);
        let ends = Ends { by_submission_s, by_truth_s, rejected: first.jobs_rejected };
        Ok((ends, rejected::counts(&first)))
    }

    /// Mean completion time by what a predictor says, in seconds.
    pub fn jct_s(&self, predict: Box<dyn Predict>) -> Result<f64> {
        Ok(self.simulated(&self.by_run_time, predict)?.avg_jct_s)
    }

    fn simulated(&self, chosen: &Chosen, predict: Box<dyn Predict>) -> Result<Summary> {
        let watch = Metrics::default();
        let finished = run::simulate_by(self.workload, chosen.build(), predict, watch, None)
            .with_context(|| format!("policy `{}` breaks a rule", chosen.def.kind))?;
        Ok(finished.watch.summary(&finished.state))
    }
}

/// Jobs of a workload, in order of submission, with the numbers that their senders have in another
/// one: tenants are numbered as they appear.
pub fn renamed(past: &[&Past], of: &Workload, to: &Workload) -> Vec<Past> {
    let here = history::names(to).users;
    let number = |tenant: TenantId| {
        let known = here.get(&*of.site.tenants[tenant.index()].name).copied();
        // Those who send nothing any more stay apart.
        known.unwrap_or(TenantId(u32::MAX - tenant.0))
    };
    let rename = |job: &&Past| {
        let features = Features { tenant: number(job.features.tenant), ..job.features };
        Past { features, ..**job }
    };
    let mut renamed: Vec<Past> = past.iter().map(rename).collect();
    renamed.sort_by_key(|job| job.submitted);
    renamed
}
