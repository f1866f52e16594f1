//! Max-min fairness over GPU models: the job that is worst off is as well off as possible.
//!
//! Everybody is measured against what an average GPU would give him, so a job that gains much from
//! fast GPUs gets them and one that does not makes way. Needs throughputs of jobs to differ from
//! time slicing; knows nothing of run times. Preempts at the end of rounds.

use hostler_core::policy::{Need, PolicyDef, defaults, settings};

use super::rate_knowledge;
use super::rounds::Rounds;
use super::settings::round_settings;
use super::solver::FairQuestion;
use crate::allocate::MaxMin;

const KIND: &str = "max-min-fairness";

/// Max-min fairness.
pub const DEF: PolicyDef = PolicyDef {
    kind: KIND,
    summary: "the job that is worst off, against an average GPU, is as well off as possible",
    needs: &[Need::Speeds],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings(KIND, table)?;
        let knowledge = rate_knowledge(config.aware, config.packed);
        let (packed, weighted) = (config.packed, config.weighted);
        let question = FairQuestion { packed, weighted, ..FairQuestion::new() };
        let max_min = MaxMin::new(knowledge);
        Ok(Box::new(Rounds::new(config.rules(true), question, move |_| Box::new(max_min))))
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
