//! Shortest job first.
//!
//! Ranks jobs by their believed total run time, shortest first; time that a job has run already
//! does not count (`srtf` ranks by what remains). Needs estimates: jobs without one come last.
//! By default running jobs are left alone; with `preempt = true` a shorter job takes the place of
//! longer ones. Long jobs may starve: nothing here makes a job more urgent because it waited.

use hostler_core::job::Job;
use hostler_core::policy::PolicyDef;
use hostler_core::stage::Order;
use hostler_core::view::View;

use super::rank::{key_of, run_time_settings};

/// Its name.
pub const KIND: &str = "sjf";

/// Shortest job first.
pub fn def() -> PolicyDef {
    let summary = "shortest believed run time first";
    PolicyDef::new(KIND, summary, |config: Config| Ok(config.pipeline(ByTotal)))
}

run_time_settings! {
    struct Config {
        /// Whether shorter jobs take the place of running longer ones.
        preempt: bool = false,
    }
}

/// Ranks by believed total run time.
pub struct ByTotal;

impl Order for ByTotal {
    fn key(&self, _: &View<'_>, job: &Job) -> i64 {
        key_of(job.estimate.map(|estimate| estimate.run))
    }

    fn keeps_rank(&self) -> bool {
        true
    }
}
