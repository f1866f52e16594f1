//! Max-min fairness over GPU models: the job that is worst off is as well off as possible.
//!
//! Everybody is measured against what an average GPU would give him, so a job that gains much from
//! fast GPUs gets them and one that does not makes way. Needs throughputs of jobs to differ from
//! time slicing; knows nothing of run times. Preempts at the end of rounds.

use hostler_core::policy::PolicyDef;

use super::rate_knowledge;
use super::rounds::Rounds;
use super::settings::{round_settings, sharing_time};
use super::solver::FairQuestion;
use crate::allocate::MaxMin;

/// Max-min fairness.
pub fn def() -> PolicyDef {
    let summary = "the job that is worst off, against an average GPU, is as well off as possible";
    sharing_time("max-min-fairness", summary, |config: Config| {
        let knowledge = rate_knowledge(config.aware, config.packed);
        let (packed, weighted) = (config.packed, config.weighted);
        let question = FairQuestion { packed, weighted, ..FairQuestion::new() };
        let max_min = MaxMin::new(knowledge);
        Ok(Box::new(Rounds::new(config.rules(true), question, move |_| Box::new(max_min))))
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
