//! Shortest job first as an objective: the time until the first job ends is as short as possible.
//!
//! The one job that can end first has its fastest GPU model to itself; the others fill what is
//! left, in order of submission. Goes by steps left, or by estimates. Long jobs may wait for ever
//! while short ones come. Preempts at the end of rounds.

use hostler_core::policy::{Need, PolicyDef, defaults, settings};

use super::rounds::Rounds;
use super::settings::round_settings;
use super::solver::FairQuestion;
use crate::allocate::Shortest;

const KIND: &str = "first-finish";

/// The job that can end first.
pub const DEF: PolicyDef = PolicyDef {
    kind: KIND,
    summary: "the job that can end first runs on its fastest GPUs, the others on what is left",
    needs: &[Need::Speeds],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings(KIND, table)?;
        let question = FairQuestion { weighted: config.weighted, ..FairQuestion::new() };
        Ok(Box::new(Rounds::new(config.rules(true), question, |_| Box::new(Shortest))))
    },
};

round_settings! {
    struct Config {
    }
}
