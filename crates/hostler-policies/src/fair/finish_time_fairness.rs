//! Finish-time fairness: nobody ends much later than with a part of the cluster to himself.
//!
//! The worst ratio of expected to isolated completion time is as small as possible. What a job has
//! done before counts at the speed that was its isolated one then. Goes by steps left, or by
//! estimates of run times. Preempts at the end of rounds.

use std::sync::Arc;

use hostler_core::policy::{Need, PolicyDef, defaults, settings};

use super::rate_knowledge;
use super::rounds::Rounds;
use super::settings::round_settings;
use super::solver::FairQuestion;
use crate::allocate::FinishTime;

const KIND: &str = "finish-time-fairness";

/// Finish-time fairness.
pub const DEF: PolicyDef = PolicyDef {
    kind: KIND,
    summary: "the worst delay against an equal part of the cluster is as small as possible",
    needs: &[Need::Speeds],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings(KIND, table)?;
        let finish_time = FinishTime {
            rate_knowledge: rate_knowledge(config.aware, config.packed),
            weighted: config.weighted,
        };
        let question = FairQuestion {
            packed: config.packed,
            weighted: config.weighted,
            alone: Arc::new(move |instance| finish_time.isolated_rates(instance)),
            ..FairQuestion::new()
        };
        Ok(Box::new(Rounds::new(config.rules(true), question, move |_| Box::new(finish_time))))
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
