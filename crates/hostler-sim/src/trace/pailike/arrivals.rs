//! When jobs arrive: a Poisson process whose rate changes by the hour.

use libm::{cos, exp};

use super::PaiLike;
use super::draw::DrawnJob;
use crate::trace::random::Random;

const HOUR_SECS: f64 = 3600.0;

/// Gives the jobs their times, in order.
pub(super) fn assign(options: &PaiLike, jobs: &mut [DrawnJob]) {
    for (job, at) in jobs.iter_mut().zip(times(options)) {
        job.submit_secs = at;
    }
}

/// Arrival seconds, without end.
pub(super) fn times(options: &PaiLike) -> impl Iterator<Item = u64> {
    let mut random = Random::stream(options.seed, 1);
    let rate = options.per_hour / HOUR_SECS;
    let (mut hour, mut at) = (0u64, 0.0);
    let mut factor = hour_factor(hour, &mut random);
    std::iter::from_fn(move || {
        loop {
            let next = at + random.exponential() / (rate * factor);
            if next < (hour + 1) as f64 * HOUR_SECS {
                at = next;
                return Some(next as u64);
            }
            // The process has no memory: a gap that leaves the hour is drawn anew in the next.
            hour += 1;
            at = hour as f64 * HOUR_SECS;
            factor = hour_factor(hour, &mut random);
        }
    })
}

/// Busy afternoons, quiet weekends, and some noise with mean 1.
fn hour_factor(hour: u64, random: &mut Random) -> f64 {
    let angle = 2.0 * std::f64::consts::PI * ((hour % 24) as f64 - 15.0) / 24.0;
    let day = if (hour / 24) % 7 >= 5 { 0.85 } else { 1.06 };
    (1.0 + 0.35 * cos(angle)) * day * exp(0.12 * random.normal() - 0.0072)
}
