//! `AlloX`: the least sum of completion times, by matching jobs to places in the queues of GPUs.
//!
//! Who has started stays where it is until it is done. Knows single GPUs only: with larger jobs
//! about, everybody gets an equal part instead, and the solution counts as a fallback. Goes by
//! steps left, or by estimates.

use hostler_core::policy::{Need, PolicyDef, PolicyError, defaults, settings};

use super::by_name;
use super::rounds::Rounds;
use super::settings::round_settings;
use super::solver::FairQuestion;
use crate::allocate::Allox;

const KIND: &str = "allox";

/// Least sum of completion times.
pub const DEF: PolicyDef = PolicyDef {
    kind: KIND,
    summary: "jobs matched to GPUs so that completion times sum to the least; single GPUs",
    needs: &[Need::Speeds, Need::SingleGpus],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let config: Config = settings(KIND, table)?;
        let (alpha, ahead) = (config.alpha, config.ahead);
        if !(0.0..=1.0).contains(&alpha) {
            let fault = format!("`alpha`: {alpha}; give a number from 0 to 1");
            return Err(PolicyError::Settings { kind: KIND.to_owned(), fault });
        }
        Ok(Box::new(Rounds::new(config.rules(!ahead), FairQuestion::new(), move |view| {
            Box::new(Allox { alpha, tie_order: by_name(view), ahead })
        })))
    },
};

round_settings! {
    struct Config {
        /// Part of the waiting jobs, the oldest, that is looked at.
        alpha: f64 = 1.0,
        /// Whether a job may wait for a GPU that is in use if it is done sooner there, while
        /// others are idle; only where the end of that use is known.
        ahead: bool = true,
    }
}
