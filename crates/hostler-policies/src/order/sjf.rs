//! Shortest job first.
//!
//! Ranks jobs by their believed total run time, shortest first; time that a job has run already
//! does not count (`srtf` ranks by what remains). Needs estimates: jobs without one come last.
//! By default running jobs are left alone; with `preempt = true` a shorter job takes the place of
//! longer ones. Long jobs may starve: nothing here makes a job more urgent because it waited.

use hostler_core::job::Job;
use hostler_core::pipeline::{Cache, Head, Pipeline, ShareRule};
use hostler_core::policy::{Cadence, PolicyDef, defaults, settings};
use hostler_core::predict::EstimateSource;
use hostler_core::stage::Order;
use hostler_core::view::View;

use super::rank::{by_rank_if, key_of};
use crate::place::PlaceRule;

/// Shortest job first.
pub const DEF: PolicyDef = PolicyDef {
    kind: "sjf",
    summary: "shortest believed run time first",
    needs: &[],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings("sjf", table)?;
        Ok(Box::new(Pipeline {
            order: Box::new(ByTotal),
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
        /// Whether shorter jobs take the place of running longer ones.
        preempt: bool = false,
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

/// Ranks by believed total run time.
pub struct ByTotal;

impl Order for ByTotal {
    fn key(&self, _: &View<'_>, job: &Job) -> i64 {
        key_of(job.estimate.map(|estimate| estimate.run))
    }
}
