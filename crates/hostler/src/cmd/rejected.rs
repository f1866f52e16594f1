//! Jobs that a policy turned away: counted by reason, and an exit code of their own where they are
//! so many that the figures are about something else.

use std::collections::BTreeMap;

use anyhow::Result;
use hostler_core::job::{Ending, Job, Phase};
use hostler_core::metrics::Summary;
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_core::watch::Watch;
use hostler_sim::report::data::JobCounts;

use crate::ExitWith;

/// Exit code when a policy turned half of the jobs away, or more. The results are printed all the
/// same.
const MOSTLY_REJECTED: u8 = 3;

/// How many jobs were turned away for each reason, and the first of them.
#[derive(Default)]
pub struct Rejected(BTreeMap<String, (u64, String)>);

impl Watch for Rejected {
    fn retired(&mut self, _: Time, _: &ClusterState, job: &Job) {
        if job.phase == Phase::Done(Ending::Rejected) {
            let first = || (0, job.spec.name.to_string());
            self.0.entry(job.reason.kind().to_owned()).or_insert_with(first).0 += 1;
        }
    }
}

impl Rejected {
    /// A line for each reason.
    pub fn lines(&self) -> Vec<String> {
        let line = |(reason, (count, first)): (&String, &(u64, String))| match count {
            1 => format!("1: {reason} (job `{first}`)"),
            _ => format!("{count}: {reason} (job `{first}` and others)"),
        };
        self.0.iter().map(line).collect()
    }
}

/// What came of the jobs of a run.
pub fn counts(summary: &Summary) -> JobCounts {
    JobCounts {
        submitted: summary.jobs_submitted,
        done: summary.jobs_done,
        rejected: summary.jobs_rejected,
    }
}

/// Fails where a policy turned half of the jobs away, or more.
pub fn refuse_most<'a>(runs: impl IntoIterator<Item = (&'a str, JobCounts)>) -> Result<()> {
    let Some((policy, jobs)) = runs.into_iter().find(|(_, jobs)| jobs.mostly_rejected()) else {
        return Ok(());
    };
    let words = format!(
        "`{policy}` rejected {} of {} jobs, half of them or more, because they can never run on \
         this cluster; name another with `--cluster`, or give `--any-gpu` if only the GPU models \
         that the trace asks for are missing",
        jobs.rejected, jobs.submitted
    );
    Err(ExitWith { code: MOSTLY_REJECTED, words }.into())
}
