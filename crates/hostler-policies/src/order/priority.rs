//! Highest priority first.
//!
//! Ranks jobs by the priority that they were submitted with, largest first, then by submission.
//! Needs no estimate. By default running jobs are left alone; with `preempt = true` a job takes
//! the place of running ones with lower priority, never of equals. Jobs of low priority may
//! starve: priorities do not grow with waiting.

use hostler_core::job::Job;
use hostler_core::pipeline::{Cache, Head, Pipeline, ShareRule};
use hostler_core::policy::{Cadence, Need, PolicyDef, defaults, settings};
use hostler_core::predict::EstimateSource;
use hostler_core::stage::Order;
use hostler_core::view::View;

use super::rank::by_rank_if;
use crate::place::PlaceRule;

/// Highest priority first.
pub const DEF: PolicyDef = PolicyDef {
    kind: "priority",
    summary: "highest priority first, then by submission",
    needs: &[Need::Priorities],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings("priority", table)?;
        Ok(Box::new(Pipeline {
            order: Box::new(ByPriority),
            place: config.place.build(),
            head: config.head,
            preempt: by_rank_if(config.preempt),
            sharing: config.sharing,
            cadence: Cadence::EveryEvent,
            estimates: EstimateSource::User,
            cache: Cache::default(),
        }))
    },
};

hostler_core::settings! {
    struct Config {
        /// Whether jobs take the place of running ones with lower priority.
        preempt: bool = false,
        /// What happens behind a job that does not fit.
        head: Head = Head::Skips,
        /// Which nodes a job gets.
        place: PlaceRule = PlaceRule::BestFit,
        /// What jobs book that ask for a part of a GPU.
        sharing: ShareRule = ShareRule::Requests,
    }
}

struct ByPriority;

impl Order for ByPriority {
    fn key(&self, _: &View<'_>, job: &Job) -> i64 {
        -i64::from(job.spec.priority)
    }
}
