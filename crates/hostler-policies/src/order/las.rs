//! Least attained service.
//!
//! Ranks jobs by the GPU time that they have received, least first, in steps of a quantum: a job
//! that runs gives way to those that wait a step or more behind it. So newcomers run at once, long
//! jobs take turns, and nobody is stopped more often than once for each quantum that it received.
//! Whoever has received many quanta takes longer steps, of about a hundredth of what it received:
//! the differences that matter grow with what is compared, and a job of years has a bounded number
//! of steps. Needs no estimate. Long jobs may starve while new ones keep coming.

use hostler_core::job::Job;
use hostler_core::pipeline::{HalfLifeDays, Head, Pipeline, ShareRule};
use hostler_core::policy::PolicyDef;
use hostler_core::stage::Order;
use hostler_core::units::Time;
use hostler_core::view::View;

use super::rank::by_rank_if;
use super::steps::Steps;
use crate::place::PlaceRule;

/// Least attained service.
pub fn def() -> PolicyDef {
    let summary = "least GPU time received first, preempting";
    PolicyDef::new("las", summary, |config: Config| {
        let order = BySteps { steps: Steps::new(config.quantum_gpu_secs)? };
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
        /// GPU seconds by which jobs must differ to be ranked apart: the larger, the fewer jobs are
        /// stopped and the longer newcomers wait for those that are hardly older. A large gang must
        /// run for longer by it than a stop and a start take, or it does nothing else.
        quantum_gpu_secs: u64 = 14_400,
        /// Whether jobs take the place of running ones that have received more.
        preempt: bool = true,
        head: Head = Head::Skips,
        place: PlaceRule = PlaceRule::BestFit,
        sharing: ShareRule = ShareRule::Requests,
        fair_share_days: HalfLifeDays = HalfLifeDays::default(),
    }
}

/// Ranks by steps of GPU time.
struct BySteps {
    steps: Steps,
}

impl Order for BySteps {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        i64::try_from(self.steps.step_of(view, job).number).unwrap_or(i64::MAX)
    }

    fn keeps_rank(&self) -> bool {
        true
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        self.steps.next_at(view, job)
    }
}
