//! An equal part of the cluster for each job: what a job could count on if nobody helped anybody.
//!
//! Every job spends the same part of its time on each GPU model, however fast it is there. A
//! yardstick for the other policies of this family. Preempts at the end of rounds.

use hostler_core::policy::{Need, PolicyDef, defaults, settings};

use super::rounds::Rounds;
use super::settings::round_settings;
use super::solver::FairQuestion;
use crate::allocate::Isolated;

const KIND: &str = "isolated";

/// Equal parts.
pub const DEF: PolicyDef = PolicyDef {
    kind: KIND,
    summary: "an equal part of every GPU model for each job, in rounds",
    needs: &[Need::Speeds],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings(KIND, table)?;
        let question = FairQuestion { weighted: config.weighted, ..FairQuestion::new() };
        Ok(Box::new(Rounds::new(config.rules(true), question, |_| Box::new(Isolated))))
    },
};

round_settings! {
    struct Config {
    }
}
