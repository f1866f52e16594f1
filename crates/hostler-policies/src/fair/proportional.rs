//! All of its time for each job, on the GPU models in proportion to their number.
//!
//! Takes no account of how many jobs there are, so with more jobs than GPUs everybody is behind his
//! share and turns go round; nobody gains from the GPUs that suit him. The yardstick by which
//! max-min fairness measures a job. Preempts at the end of rounds.

use hostler_core::policy::{Need, PolicyDef, defaults, settings};

use super::rounds::Rounds;
use super::settings::round_settings;
use super::solver::FairQuestion;
use crate::allocate::Proportional;

const KIND: &str = "proportional";

/// Time on each model in proportion to its GPUs.
pub const DEF: PolicyDef = PolicyDef {
    kind: KIND,
    summary: "each job spends its time on the GPU models in proportion to their number, in rounds",
    needs: &[Need::Speeds],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings(KIND, table)?;
        let question = FairQuestion { weighted: config.weighted, ..FairQuestion::new() };
        Ok(Box::new(Rounds::new(config.rules(true), question, |_| Box::new(Proportional))))
    },
};

round_settings! {
    struct Config {
    }
}
