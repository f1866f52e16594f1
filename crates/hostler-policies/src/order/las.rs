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
use hostler_core::units::{Span, Time};
use hostler_core::view::View;

use super::rank::by_rank_if;
use crate::place::PlaceRule;

/// Least attained service.
pub fn def() -> PolicyDef {
    let summary = "least GPU time received first, preempting";
    PolicyDef::new("las", summary, |config: Config| {
        if config.quantum_gpu_secs == 0 {
            return Err("`quantum_gpu_secs` must be at least 1".to_owned());
        }
        let order = BySteps { quantum: Span::from_secs(config.quantum_gpu_secs).0 };
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

/// Steps for each doubling of what was received; of less than twice as many quanta, each is one.
const FINE_STEPS: u64 = 64;

/// Ranks by steps of GPU time.
struct BySteps {
    /// In device-microseconds.
    quantum: u64,
}

impl BySteps {
    fn quanta(&self, view: &View<'_>, job: &Job) -> u64 {
        view.served(job) / self.quantum
    }
}

/// The step of so many quanta, and the quanta at which the next one begins.
fn step_of(quanta: u64) -> (u64, u64) {
    let doublings = (quanta / FINE_STEPS).checked_ilog2().unwrap_or(0);
    let within = quanta >> doublings;
    (within + u64::from(doublings) * FINE_STEPS, (within + 1) << doublings)
}

impl Order for BySteps {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        i64::try_from(step_of(self.quanta(view, job)).0).unwrap_or(i64::MAX)
    }

    fn keeps_rank(&self) -> bool {
        true
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        let (_, next) = step_of(self.quanta(view, job));
        view.served_at(job, next.saturating_mul(self.quantum))
    }
}

#[cfg(test)]
mod tests {
    use super::step_of;

    #[test]
    fn steps_follow_each_other_and_are_few() {
        for quanta in 0..100_000 {
            let (step, next) = step_of(quanta);
            assert!(next > quanta, "{quanta}");
            assert_eq!(step_of(next).0, step + 1, "{quanta}");
            assert_eq!(step_of(next - 1).0, step, "{quanta}");
        }
        assert_eq!(step_of(127), (127, 128));
        assert_eq!(step_of(1000), (64 * 3 + 125, 1008));
        assert!(step_of(u64::MAX / 1_000_000).0 < 3000);
    }
}
