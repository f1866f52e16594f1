//! Shortest remaining time first.
//!
//! Ranks jobs by the run time that is believed to be left, shortest first. By default a job with
//! less left takes the place of running ones with more; such a job keeps what it has saved and
//! waits for its next turn. Needs estimates: jobs without one come last. Long jobs may starve
//! while short ones keep coming.

use hostler_core::job::Job;
use hostler_core::pipeline::{Cache, Head, Pipeline, ShareRule};
use hostler_core::policy::{Cadence, PolicyDef, defaults, settings};
use hostler_core::predict::EstimateSource;
use hostler_core::stage::Order;
use hostler_core::view::View;

use super::rank::{by_rank_if, key_of};
use crate::place::PlaceRule;

/// Shortest remaining time first.
pub const DEF: PolicyDef = PolicyDef {
    kind: "srtf",
    summary: "shortest believed remaining run time first, preempting",
    needs: &[],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings("srtf", table)?;
        Ok(Box::new(Pipeline {
            order: Box::new(ByRemaining),
            place: config.place.build(),
            head: config.head,
            preempt: by_rank_if(config.preempt),
            sharing: config.sharing,
            cadence: Cadence::EveryEvent,
            estimates: config.estimate,
            cache: Cache::default(),
        }))
    },
};

hostler_core::settings! {
    struct Config {
        /// Whether jobs with less left take the place of running ones with more.
        preempt: bool = true,
        /// Whose run times count. Few traces carry what users said, so the truth is the default;
        /// on a real cluster nobody knows it.
        estimate: EstimateSource = EstimateSource::Oracle,
        /// What happens behind a job that does not fit.
        head: Head = Head::Skips,
        /// Which nodes a job gets.
        place: PlaceRule = PlaceRule::BestFit,
        /// What jobs book that ask for a part of a GPU.
        sharing: ShareRule = ShareRule::Requests,
    }
}

struct ByRemaining;

impl Order for ByRemaining {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        key_of(view.remaining(job))
    }
}
