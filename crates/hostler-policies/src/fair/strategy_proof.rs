//! Strategy-proof sharing: the greatest product of throughputs, and who takes from others pays.
//!
//! Each job gets a discount by what its presence costs the others, so that telling wrong speeds
//! does not help. The discount leaves GPUs unused; others fill them. Solves once more for every
//! job: for tens of jobs, not for thousands. Preempts at the end of rounds.

use hostler_core::policy::{Need, PolicyDef, defaults, settings};

use super::rounds::Rounds;
use super::settings::round_settings;
use super::solver::FairQuestion;
use crate::allocate::StrategyProof;

const KIND: &str = "strategy-proof";

/// Strategy-proof sharing.
pub const DEF: PolicyDef = PolicyDef {
    kind: KIND,
    summary: "the greatest product of throughputs, discounted by what each job costs the others",
    needs: &[Need::Speeds],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings(KIND, table)?;
        let question = FairQuestion { weighted: config.weighted, ..FairQuestion::new() };
        Ok(Box::new(Rounds::new(config.rules(true), question, |_| Box::new(StrategyProof))))
    },
};

round_settings! {
    struct Config {
    }
}
