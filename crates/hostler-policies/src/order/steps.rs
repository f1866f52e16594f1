//! Steps of attained service: jobs that have received about as much are alike. No policy of its
//! own.
//!
//! Steps are a quantum long at first and grow with what was received: differences that matter grow
//! with what is compared, and a job of years has a bounded number of steps.

use hostler_core::job::Job;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;

/// Steps for each doubling of what was received; of less than twice as many quanta, each is one.
const FINE_STEPS: u64 = 64;

/// Steps of GPU time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// In device-microseconds.
    quantum: u64,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Its number, from zero.
    pub(super) number: u64,
    /// GPU time at which it begins (device-microseconds).
    pub(super) begins: u64,
    /// GPU time at which the next one does.
    pub(super) ends: u64,
}

impl Steps {
    /// Steps of so many GPU seconds at first.
    pub(super) fn new(quantum_gpu_secs: u64) -> Result<Steps, String> {
        match quantum_gpu_secs {
            0 => Err("`quantum_gpu_secs` must be at least 1".to_owned()),
            secs => Ok(Steps { quantum: Span::from_secs(secs).0 }),
        }
    }

    /// The step that a job is in.
    pub(super) fn step_of(&self, view: &View<'_>, job: &Job) -> Step {
        self.step_at(view.served(job))
    }

    fn step_at(&self, gpu_time: u64) -> Step {
        let quanta = gpu_time / self.quantum;
        let doublings = (quanta / FINE_STEPS).checked_ilog2().unwrap_or(0);
        let within = quanta >> doublings;
        let begins_at = |within: u64| (within << doublings).saturating_mul(self.quantum);
        Step {
            number: within + u64::from(doublings) * FINE_STEPS,
            begins: begins_at(within),
            ends: begins_at(within + 1),
        }
    }

    /// When a job comes to its next step, if it keeps its GPUs.
    pub(super) fn next_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        view.served_at(job, self.step_of(view, job).ends)
    }
}

#[cfg(test)]
mod tests {
    use super::Steps;

    #[test]
    fn steps_follow_each_other_and_are_few() {
        let steps = Steps { quantum: 1 };
        for quanta in 0..100_000 {
            let step = steps.step_at(quanta);
            assert!((step.begins..step.ends).contains(&quanta), "{quanta}");
            assert_eq!(steps.step_at(step.ends).number, step.number + 1, "{quanta}");
            assert_eq!(steps.step_at(step.ends - 1), step, "{quanta}");
            assert_eq!(steps.step_at(step.begins), step, "{quanta}");
        }
        let numbers = |quanta| (steps.step_at(quanta).number, steps.step_at(quanta).ends);
        assert_eq!(numbers(127), (127, 128));
        assert_eq!(numbers(1000), (64 * 3 + 125, 1008));
        assert!(Steps { quantum: 1_000_000 }.step_at(u64::MAX).number < 3000);
    }

    #[test]
    fn a_quantum_is_no_less_than_a_second() {
        assert!(Steps::new(0).is_err());
        assert_eq!(Steps::new(2).expect("it may").step_at(3_999_999).ends, 4_000_000);
    }
}
