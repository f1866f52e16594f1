//! Shortest remaining time first.
//!
//! Ranks jobs by the run time that is believed to be left, shortest first. By default a job with
//! less left takes the place of running ones with more; such a job keeps what it has saved and
//! waits for its next turn. Needs estimates: jobs without one come last. Long jobs may starve
//! while short ones keep coming.

use hostler_core::job::Job;
use hostler_core::policy::PolicyDef;
use hostler_core::stage::Order;
use hostler_core::view::View;

use super::rank::{key_of, run_time_settings};

/// Shortest remaining time first.
pub fn def() -> PolicyDef {
    let summary = "shortest believed remaining run time first, preempting";
    PolicyDef::new("srtf", summary, |config: Config| Ok(config.pipeline(ByRemaining)))
}

run_time_settings! {
    struct Config {
        /// Whether jobs with less left take the place of running ones with more.
        preempt: bool = true,
    }
}

struct ByRemaining;

impl Order for ByRemaining {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        key_of(view.remaining(job))
    }

    fn keeps_rank(&self) -> bool {
        true
    }
}
