//! Makespan: all jobs that are there end as early as possible.
//!
//! Long jobs get the GPUs that suit them best, and short ones wait for it: for batches whose last
//! result counts. Goes by steps left, or by estimates. Preempts at the end of rounds.

use hostler_core::policy::PolicyDef;

use super::rate_knowledge;
use super::rounds::Rounds;
use super::settings::{round_settings, sharing_time};
use super::solver::FairQuestion;
use crate::allocate::Makespan;

/// Makespan.
pub fn def() -> PolicyDef {
    let summary = "all jobs that are there end as early as possible";
    sharing_time("makespan", summary, |config: Config| {
        let makespan = Makespan { rate_knowledge: rate_knowledge(config.aware, config.packed) };
        let question = FairQuestion { packed: config.packed, ..FairQuestion::new() };
        Ok(Box::new(Rounds::new(config.rules(true), question, move |_| Box::new(makespan))))
    })
}

round_settings! {
    struct Config {
        /// Whether it knows how fast jobs are on which GPU model.
        aware: bool = true,
        /// Whether jobs that are willing share GPUs where that pays.
        packed: bool = false,
    }
}
