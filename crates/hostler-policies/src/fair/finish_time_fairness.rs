//! Finish-time fairness: nobody ends much later than with a part of the cluster to himself.
//!
//! The worst ratio of expected to isolated completion time is as small as possible. What a job has
//! done before counts at the speed that was its isolated one then. Goes by steps left, or by
//! estimates of run times. Preempts at the end of rounds.

use std::sync::Arc;

use hostler_core::policy::PolicyDef;

use super::rate_knowledge;
use super::rounds::Rounds;
use super::settings::{round_settings, sharing_time};
use super::solver::FairQuestion;
use crate::allocate::FinishTime;

/// Finish-time fairness.
pub fn def() -> PolicyDef {
    let summary = "the worst delay against an equal part of the cluster is as small as possible";
    sharing_time("finish-time-fairness", summary, |config: Config| {
        let finish_time = FinishTime {
            rate_knowledge: rate_knowledge(config.aware, config.packed),
            weighted: config.weighted,
        };
        let question = FairQuestion {
            packed: config.packed,
            weighted: config.weighted,
            alone: Some(Arc::new(move |instance| finish_time.isolated_rates(instance))),
            ..FairQuestion::new()
        };
        Ok(Box::new(Rounds::new(config.rules(true), question, move |_| Box::new(finish_time))))
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
