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
    fn amounts_print_without_trailing_zeros() {
        assert_eq!(Span::from_millis(1500).to_string(), "1.5");
        assert_eq!(Milli(250).to_string(), "0.25");
        assert_eq!(Milli(2000).to_string(), "2");
    }
}
