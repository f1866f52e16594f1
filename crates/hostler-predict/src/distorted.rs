//! Wrong information on purpose: what a policy does when its estimates are off.
//!
//! Stands between a predictor and the engine and spoils what passes: mixes up jobs, adds noise,
//! scales. What happens to a job depends on the seed and its number alone, so every policy is told
//! the same, and twice the noise is the same noise twice as loud. Learning is left alone.

use std::collections::VecDeque;

use hostler_core::id::JobId;
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::predict::Predict;
use hostler_core::random::Random;
use hostler_core::units::Span;

use crate::limits::SHUFFLED_MAX;

/// How estimates are spoilt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distortion {
    /// Factor on every estimate.
    pub scale: f64,
    /// Standard deviation of the logarithm of a factor that differs from job to job.
    pub noise: f64,
    /// Chance that a job gets the estimate of one that was submitted before it.
    pub shuffle: f64,
    /// Seed of all chance.
    pub seed: u64,
}

impl Default for Distortion {
    fn default() -> Distortion {
        Distortion { scale: 1.0, noise: 0.0, shuffle: 0.0, seed: 0 }
    }
}

impl Distortion {
    /// Whether estimates stay as they are.
    pub fn is_none(&self) -> bool {
        self.scale == 1.0 && self.noise == 0.0 && self.shuffle == 0.0
    }

    /// Puts itself before a predictor.
    pub fn before(self, inner: Box<dyn Predict>) -> Box<dyn Predict> {
        match self.is_none() {
            true => inner,
            false => Box::new(Distorted { inner, how: self, earlier: VecDeque::new() }),
        }
    }
}

/// A predictor whose estimates are spoilt.
struct Distorted {
    inner: Box<dyn Predict>,
    how: Distortion,
    /// The latest estimates as they were, oldest first.
    earlier: VecDeque<Estimate>,
}

impl Predict for Distorted {
    fn estimate(&mut self, job: JobId, spec: &JobSpec) -> Option<Estimate> {
        let estimate = self.inner.estimate(job, spec)?;
        let mut random = Random::stream(self.how.seed, u64::from(job.0));
        // All are drawn whether they count or not, so that one setting leaves the others alone.
        let (swapped, place, error) = (random.uniform(), random.uniform(), random.normal());
        let other = self.earlier.get((place * self.earlier.len() as f64) as usize).copied();
        let shuffled = other.filter(|_| swapped < self.how.shuffle);
        if self.earlier.len() == SHUFFLED_MAX {
            self.earlier.pop_front();
        }
        self.earlier.push_back(estimate);
        let Estimate { run, spread } = shuffled.unwrap_or(estimate);
        let factor = self.how.scale * libm::exp(self.how.noise * error);
        Some(Estimate { run: times(run, factor).max(Span(1)), spread: times(spread, factor) })
    }

    fn observe(&mut self, job: JobId, spec: &JobSpec, run: Span) -> Vec<JobId> {
        self.inner.observe(job, spec, run)
    }
}

/// A product beyond the longest span is the longest span: casts of floats saturate.
fn times(span: Span, factor: f64) -> Span {
    Span(libm::round(span.0 as f64 * factor) as u64)
}

#[cfg(test)]
mod tests;
