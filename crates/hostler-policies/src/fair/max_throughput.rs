//! The most steps per second of all jobs together, or per dollar.
//!
//! Steps of different jobs count alike, so jobs with small steps win; with `per_cost`, cheap GPUs
//! gain. With `deadlines`, jobs that have one get the throughput that meets it. Not fair at all.
//! Preempts at the end of rounds.

use hostler_core::policy::PolicyDef;

use super::Prices;
use super::rounds::Rounds;
use super::settings::{round_settings, sharing_time};
use super::solver::FairQuestion;
use crate::allocate::{Grouped, SumThroughput};

/// The most steps.
pub fn def() -> PolicyDef {
    let summary = "the most steps per second of all jobs together, or per dollar";
    sharing_time("max-throughput", summary, |config: Config| {
        let sum = SumThroughput {
            priced: config.per_cost,
            deadlines: config.deadlines,
            packed: config.packed,
            programmes: Grouped::default(),
        };
        let rules = config.rules(true);
        let prices = config.prices.0;
        let question = FairQuestion { packed: config.packed, prices, ..FairQuestion::new() };
        Ok(Box::new(Rounds::new(rules, question, move |_| Box::new(sum))))
    })
}

round_settings! {
    struct Config {
        /// Whether steps count per dollar.
        per_cost: bool = false,
        /// Whether jobs with a deadline get what meets it.
        deadlines: bool = false,
        /// Whether jobs that are willing share GPUs where that pays.
        packed: bool = false,
        /// Price of a GPU hour by model; others cost 1.
        prices: Prices = Prices::default(),
    }
}
