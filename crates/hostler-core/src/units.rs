//! Quantities with their unit: instants, spans, shares, rates and memory.
//!
//! All are integers, so that sums are exact and equal on every platform. Not for parsing or for
//! formatting beyond `Display`.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// An instant, in microseconds since the origin of the log or trace.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

/// A length of time, in microseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(pub u64);

/// Thousandths of a GPU or of a CPU core.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Milli(pub u32);

/// Memory in MiB.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Mib(pub u32);

/// Speed relative to the reference run of a job, in millionths: 1,000,000 is as fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(pub u32);

/// Speed of a whole job in billionths of a step per second; zero where it does not fit.
///
/// Fine enough that a step of ten minutes is known to six digits.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Pace(pub u64);

const MICROS_PER_SEC: u64 = 1_000_000;

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// Later than any instant that occurs.
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `secs` seconds after the origin.
    pub const fn from_secs(secs: u64) -> Time {
        Time(secs.saturating_mul(MICROS_PER_SEC))
    }

    /// The instant `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1000))
    }

    /// Time passed since `earlier`; zero when `earlier` lies ahead.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Seconds since the origin, for reports.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / MICROS_PER_SEC as f64
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than any span that occurs.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of whole seconds.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(MICROS_PER_SEC))
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1000))
    }

    /// The span in seconds, for reports.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / MICROS_PER_SEC as f64
    }

    /// What is left after `other`, at least zero.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// This much reference work when the reference is not `old` but `new`, to the nearest
    /// microsecond.
    pub fn recounted(self, old: Pace, new: Pace) -> Span {
        let (old, new) = (u128::from(old.0), u128::from(new.0).max(1));
        let span = (u128::from(self.0) * old + new / 2) / new;
        Span(u64::try_from(span).unwrap_or(u64::MAX / 4).min(u64::MAX / 4))
    }

    /// The wall-clock time that this much reference work takes at `rate`, rounded up.
    pub fn at(self, rate: Rate) -> Span {
        assert!(rate.0 > 0, "work at rate zero never ends");
        if rate == Rate::FULL {
            return self;
        }
        let micros = (u128::from(self.0) * u128::from(Rate::FULL.0)).div_ceil(u128::from(rate.0));
        Span(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// The reference work done in this much wall-clock time at `rate`, rounded down.
    pub fn work_at(self, rate: Rate) -> Span {
        if rate == Rate::FULL {
            return self;
        }
        let micros = u128::from(self.0) * u128::from(rate.0) / u128::from(Rate::FULL.0);
        Span(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl Milli {
    /// Nothing.
    pub const ZERO: Milli = Milli(0);
    /// One whole GPU or core.
    pub const ONE: Milli = Milli(1000);

    /// Whole units, rounded down.
    pub const fn whole(self) -> u32 {
        self.0 / 1000
    }

    /// Whether this is nothing.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Whether this asks for a part of one device.
    pub const fn is_fraction(self) -> bool {
        self.0 > 0 && self.0 < 1000
    }
}

impl Rate {
    /// As fast as the reference run.
    pub const FULL: Rate = Rate(1_000_000);

    /// This rate slowed (or sped up) by `factor`; never below one millionth, so that work ends.
    pub fn times(self, factor: Rate) -> Rate {
        if factor == Rate::FULL {
            return self;
        }
        let product = u64::from(self.0) * u64::from(factor.0) / u64::from(Rate::FULL.0);
        Rate(u32::try_from(product).unwrap_or(u32::MAX).max(1))
    }
}

impl Pace {
    /// Does not fit, or makes no progress.
    pub const ZERO: Pace = Pace(0);
    /// Faster than anything measured: a million steps per second.
    pub const MAX: Pace = Pace(1_000_000 * Pace::PER_STEP);
    /// One step per second.
    pub const ONE: Pace = Pace(Pace::PER_STEP);

    const PER_STEP: u64 = 1_000_000_000;

    /// So many steps per second, to the nearest billionth; none for what is no number from 0 to
    /// [`Pace::MAX`]. What is above zero stays above zero.
    pub fn from_steps_per_sec(steps: f64) -> Option<Pace> {
        let max = Pace::MAX.0 as f64 / Pace::PER_STEP as f64;
        let least = u64::from(steps > 0.0);
        let sane = (0.0..=max).contains(&steps);
        sane.then(|| Pace(((steps * Pace::PER_STEP as f64).round() as u64).max(least)))
    }

    /// Steps per second.
    pub fn steps_per_sec(self) -> f64 {
        self.0 as f64 / Pace::PER_STEP as f64
    }

    /// This pace relative to `reference`; zero only where this is, or where the reference is.
    pub fn relative_to(self, reference: Pace) -> Rate {
        if self == reference {
            return if self == Pace::ZERO { Rate(0) } else { Rate::FULL };
        }
        let scaled = u128::from(self.0) * u128::from(Rate::FULL.0) + u128::from(reference.0) / 2;
        let rate = scaled.checked_div(u128::from(reference.0)).unwrap_or(0);
        let least = u32::from(self > Pace::ZERO && reference > Pace::ZERO);
        Rate(u32::try_from(rate).unwrap_or(u32::MAX).max(least))
    }

    /// The pace of `gpus` GPUs of which `of` run at this one, each as fast as before.
    pub fn scaled(self, gpus: u32, of: u32) -> Pace {
        let pace = u128::from(self.0) * u128::from(gpus) / u128::from(of.max(1));
        Pace(u64::try_from(pace).unwrap_or(u64::MAX))
    }

    /// Time that `steps` take, rounded up; for ever at pace zero.
    pub fn time_for(self, steps: u64) -> Span {
        let per_step = u128::from(Pace::PER_STEP) * u128::from(MICROS_PER_SEC);
        let scaled = u128::from(steps) * per_step;
        match self {
            Pace::ZERO => Span::MAX,
            Pace(pace) => Span(u64::try_from(scaled.div_ceil(pace.into())).unwrap_or(u64::MAX)),
        }
    }
}

impl Default for Rate {
    fn default() -> Rate {
        Rate::FULL
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Milli {
    type Output = Milli;
    fn sub(self, other: Milli) -> Milli {
        Milli(self.0 - other.0)
    }
}

impl Add for Milli {
    type Output = Milli;
    fn add(self, other: Milli) -> Milli {
        Milli(self.0 + other.0)
    }
}

impl AddAssign for Milli {
    fn add_assign(&mut self, other: Milli) {
        self.0 += other.0;
    }
}

impl SubAssign for Milli {
    fn sub_assign(&mut self, other: Milli) {
        self.0 -= other.0;
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

impl fmt::Display for Span {
    /// Seconds without trailing zeros: `30`, `1.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, micros) = (self.0 / MICROS_PER_SEC, self.0 % MICROS_PER_SEC);
        if micros == 0 {
            return write!(f, "{secs}");
        }
        let digits = format!("{micros:06}");
        write!(f, "{secs}.{}", digits.trim_end_matches('0'))
    }
}

impl fmt::Display for Milli {
    /// Units without trailing zeros: `2`, `0.25`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1000, self.0 % 1000);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{part:03}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_longer_at_half_rate_and_converts_back() {
        let work = Span::from_secs(30);
        assert_eq!(work.at(Rate(500_000)), Span::from_secs(60));
        assert_eq!(Span::from_secs(60).work_at(Rate(500_000)), work);
        assert_eq!(Span::MAX.at(Rate(1)), Span::MAX);
    }

    #[test]
    fn paces_keep_nine_digits_and_zero_means_that_it_does_not_fit() {
        let slow = Pace::from_steps_per_sec(0.000_123_456).expect("a pace");
        assert_eq!(slow, Pace(123_456));
        assert_eq!(slow.steps_per_sec(), 0.000_123_456);
        assert_eq!(Pace(2_000_000_000).relative_to(Pace(8_000_000_000)), Rate(250_000));
        assert_eq!(Pace::ZERO.relative_to(Pace::ONE), Rate(0));
        assert_eq!(Pace(1).relative_to(Pace::MAX), Rate(1));
        assert_eq!(Pace::from_steps_per_sec(f64::NAN), None);
        assert_eq!(Pace::from_steps_per_sec(-1.0), None);
        assert_eq!(Pace::from_steps_per_sec(1e-30), Some(Pace(1)));
        assert_eq!(Pace(4_000_000_000).time_for(10), Span::from_millis(2500));
        assert_eq!(Pace::ZERO.time_for(1), Span::MAX);
    }

    #[test]
    fn amounts_print_without_trailing_zeros() {
        assert_eq!(Span::from_millis(1500).to_string(), "1.5");
        assert_eq!(Milli(250).to_string(), "0.25");
        assert_eq!(Milli(2000).to_string(), "2");
    }
}
