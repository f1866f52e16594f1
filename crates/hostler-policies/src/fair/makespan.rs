//! Makespan: all jobs that are there end as early as possible.
//!
//! Long jobs get the GPUs that suit them best, and short ones wait for it: for batches whose last
//! result counts. Goes by steps left, or by estimates. Preempts at the end of rounds.

use hostler_core::policy::{Need, PolicyDef, defaults, settings};

use super::rate_knowledge;
use super::rounds::Rounds;
use super::settings::round_settings;
use super::solver::FairQuestion;
use crate::allocate::Makespan;

const KIND: &str = "makespan";

/// Makespan.
pub const DEF: PolicyDef = PolicyDef {
    kind: KIND,
    summary: "all jobs that are there end as early as possible",
    needs: &[Need::Speeds],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings(KIND, table)?;
        let makespan = Makespan { rate_knowledge: rate_knowledge(config.aware, config.packed) };
        let question = FairQuestion { packed: config.packed, ..FairQuestion::new() };
        Ok(Box::new(Rounds::new(config.rules(true), question, move |_| Box::new(makespan))))
    },
};

round_settings! {
    struct Config {
        /// Whether it knows how fast jobs are on which GPU model.
        aware: bool = true,
        /// Whether jobs that are willing share GPUs where that pays.
        packed: bool = false,
    }
}
