//! First come, first served, each job on the fastest GPUs that are left.
//!
//! Dealt out anew whenever something changes, so a job may move to faster GPUs; unless it is not
//! `aware`: then it gets any model and keeps it. Never overtakes: the first job that finds no room
//! ends the list. With `packed`, those behind it join jobs that suit them.

use hostler_core::policy::PolicyDef;
use hostler_core::view::View;

use super::by_name;
use super::rounds::Rounds;
use super::settings::{round_settings, sharing_time};
use super::solver::FairQuestion;
use crate::allocate::{Allocate, Fifo, FifoPacked, FifoPerf};

/// In order of submission, on the fastest GPUs.
pub fn def() -> PolicyDef {
    let summary = "in order of submission, each job on its fastest free GPUs, in rounds";
    sharing_time("fifo-fastest", summary, |config: Config| {
        let Config { aware, packed, seed, .. } = config;
        let question = match aware && !packed {
            // Who is behind the first that finds no room gets nothing, whatever it asks for.
            true => FairQuestion { in_order: true, alone: None, ..FairQuestion::new() },
            false => FairQuestion { packed, ..FairQuestion::new() },
        };
        let make = move |view: &View<'_>| -> Box<dyn Allocate> {
            let alone = FifoPerf { tie_order: by_name(view) };
            match (packed, aware) {
                (true, _) => Box::new(FifoPacked { alone }),
                (false, true) => Box::new(alone),
                (false, false) => Box::new(Fifo { seed }),
            }
        };
        Ok(Box::new(Rounds::new(config.rules(false), question, make)))
    })
}

round_settings! {
    struct Config {
        /// Whether it knows how fast jobs are on which GPU model.
        aware: bool = true,
        /// Whether jobs that are willing share GPUs where that pays.
        packed: bool = false,
        /// Seed of the models that are drawn when it is not aware.
        seed: u64 = 0,
    }
}
