//! Water filling: max-min fairness, and what is left goes to those who can still gain.
//!
//! With `tenants`, the cluster is shared among tenants by their weight first, and each divides its
//! part among its jobs: fairly, or all to the oldest. Preempts at the end of rounds.

use hostler_core::policy::PolicyDef;

use super::rounds::Rounds;
use super::settings::{round_settings, sharing_time};
use super::solver::FairQuestion;
use super::{TenantRule, rate_knowledge};
use crate::allocate::WaterFilling;

/// Water filling.
pub fn def() -> PolicyDef {
    let summary = "max-min fairness level by level, among tenants first if wanted";
    sharing_time("water-filling", summary, |config: Config| {
        let rate_knowledge = rate_knowledge(config.aware, config.packed);
        let question = FairQuestion {
            packed: config.packed,
            weighted: config.weighted,
            tenants: config.tenants.inner(),
            ..FairQuestion::new()
        };
        Ok(Box::new(Rounds::new(config.rules(true), question, move |_| {
            Box::new(WaterFilling { rate_knowledge })
        })))
    })
}

round_settings! {
    struct Config {
        /// Whether it knows how fast jobs are on which GPU model.
        aware: bool = true,
        /// Whether jobs that are willing share GPUs where that pays.
        packed: bool = false,
        /// Whether tenants share first, and how each divides its part.
        tenants: TenantRule = TenantRule::None,
    }
}
