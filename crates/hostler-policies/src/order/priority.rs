//! Highest priority first.
//!
//! Ranks jobs by the priority that they were submitted with, largest first, then by submission.
//! Needs no estimate. By default running jobs are left alone; with `preempt = true` a job takes
//! the place of running ones with lower priority, never of equals. Jobs of low priority may
//! starve: priorities do not grow with waiting.

use hostler_core::job::Job;
use hostler_core::pipeline::{HalfLifeDays, Head, Pipeline, ShareRule};
use hostler_core::policy::{Need, PolicyDef};
use hostler_core::stage::Order;
use hostler_core::view::View;

use super::rank::by_rank_if;
use crate::place::PlaceRule;

/// Highest priority first.
pub fn def() -> PolicyDef {
    let summary = "highest priority first, then by submission";
    let def = PolicyDef::new("priority", summary, |config: Config| {
        let order = Pipeline {
            head: config.head,
            preempt: by_rank_if(config.preempt),
            sharing: config.sharing,
            ..Pipeline::new(ByPriority, config.place.build())
        };
        Ok(Box::new(order.with_fair_share(config.fair_share_days)))
    });
    PolicyDef { needs: vec![Need::Priorities], ..def }
}

hostler_core::settings! {
    struct Config {
        /// Whether jobs take the place of running ones with lower priority.
        preempt: bool = false,
        head: Head = Head::Skips,
        place: PlaceRule = PlaceRule::BestFit,
        sharing: ShareRule = ShareRule::Requests,
        fair_share_days: HalfLifeDays = HalfLifeDays::default(),
    }
}

struct ByPriority;

impl Order for ByPriority {
    fn key(&self, _: &View<'_>, job: &Job) -> i64 {
        -i64::from(job.spec.priority)
    }

    fn keeps_rank(&self) -> bool {
        true
    }
}
