//! Least attained service in a few queues, as Tiresias has it (Gu and others, NSDI 2019).
//!
//! A job begins in the first queue and sinks into the next one when the GPU time that it received
//! reaches a limit. Jobs of earlier queues come first and take the place of running jobs of later
//! ones; within a queue nobody is stopped for another, and those who wait go by submission. So
//! short jobs finish as if there were no long ones, and a job is stopped a few times at most.
//! Needs no estimate. Long jobs may starve while new ones keep coming, unless `promote` is set:
//! then waiting pays back what a job received, and whoever has waited long enough begins anew in
//! the first queue.

use hostler_core::job::Job;
use hostler_core::pipeline::{HalfLifeDays, Head, Pipeline, ShareRule};
use hostler_core::policy::PolicyDef;
use hostler_core::stage::Order;
use hostler_core::units::Time;
use hostler_core::view::View;

use super::queues::{Promote, QueueLimits, Queues};
use super::rank::by_rank_if;
use crate::place::PlaceRule;

/// Least attained service in a few queues.
pub fn def() -> PolicyDef {
    let summary = "least GPU time received first, in a few queues, preempting";
    PolicyDef::new("tiresias", summary, |config: Config| {
        let order = ByQueue { queues: Queues::new(&config.limits_gpu_secs, config.promote) };
        let pipeline = Pipeline {
            head: config.head,
            preempt: by_rank_if(config.preempt),
            sharing: config.sharing,
            ..Pipeline::new(order, config.place.build())
        };
        Ok(Box::new(pipeline.with_fair_share(config.fair_share_days)))
    })
}

hostler_core::settings! {
    struct Config {
        limits_gpu_secs: QueueLimits = QueueLimits::default(),
        promote: Promote = Promote::default(),
        /// Whether jobs take the place of running ones of later queues.
        preempt: bool = true,
        head: Head = Head::Skips,
        place: PlaceRule = PlaceRule::BestFit,
        sharing: ShareRule = ShareRule::Requests,
        fair_share_days: HalfLifeDays = HalfLifeDays::default(),
    }
}

/// Ranks by queue.
struct ByQueue {
    queues: Queues,
}

impl Order for ByQueue {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        self.queues.queue_of(view, job) as i64
    }

    fn keeps_rank(&self) -> bool {
        true
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        self.queues.moves_at(view, job)
    }
}
