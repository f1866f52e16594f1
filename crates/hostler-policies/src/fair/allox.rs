//! `AlloX`: the least sum of completion times, by matching jobs to places in the queues of GPUs.
//!
//! Who has started stays where it is until it is done. Knows single GPUs only: with larger jobs
//! about, everybody gets an equal part instead, and the solution counts as a fallback. Goes by
//! steps left, or by estimates.

use hostler_core::policy::{Need, PolicyDef};

use super::by_name;
use super::rounds::Rounds;
use super::settings::{round_settings, sharing_time};
use super::solver::FairQuestion;
use crate::allocate::Allox;

/// Least sum of completion times.
pub fn def() -> PolicyDef {
    let summary = "jobs matched to GPUs so that completion times sum to the least; single GPUs";
    let mut def = sharing_time("allox", summary, |config: Config| {
        let (alpha, ahead) = (config.alpha, config.ahead);
        if !(0.0..=1.0).contains(&alpha) {
            return Err(format!("`alpha`: {alpha}; give a number from 0 to 1"));
        }
        Ok(Box::new(Rounds::new(config.rules(!ahead), FairQuestion::new(), move |view| {
            Box::new(Allox { alpha, tie_order: by_name(view), ahead })
        })))
    });
    def.needs.push(Need::SingleGpus);
    def
}

round_settings! {
    struct Config {
        /// Part of the waiting jobs, the oldest, that is looked at.
        alpha: f64 = 1.0,
        /// Whether a job may wait for a GPU that is in use if it is done sooner there, while
        /// others are idle; only where the end of that use is known.
        ahead: bool = true,
    }
}
