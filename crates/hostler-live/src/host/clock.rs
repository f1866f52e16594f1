//! The time of the daemon: that of the wall, but even.
//!
//! Nodes are given up by this clock, so it must not jump when somebody sets the wall clock. It runs
//! by the monotonic clock and approaches the wall clock slowly.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hostler_core::units::Time;

/// It runs faster or slower by at most one part in this many.
const SLEW: i64 = 2_000;

/// Reads time that went by since some instant, for figures only: the host itself has no clock.
pub(super) type Stopwatch = Box<dyn Fn() -> Duration + Send>;

/// A stopwatch that runs.
pub(super) fn running() -> Stopwatch {
    let begun = Instant::now();
    Box::new(move || begun.elapsed())
}

/// One that stands still, for hosts in simulations.
pub(super) fn standing() -> Stopwatch {
    Box::new(|| Duration::ZERO)
}

/// An even clock.
pub(super) struct Clock {
    at: Time,
    seen: Instant,
}

impl Clock {
    /// A clock that starts now, and not before `least`.
    pub(super) fn new(least: Time) -> Clock {
        Clock { at: wall().max(least), seen: Instant::now() }
    }

    /// The time; it never goes back.
    pub(super) fn now(&mut self) -> Time {
        let seen = Instant::now();
        let passed = u64::try_from((seen - self.seen).as_micros()).unwrap_or(u64::MAX / 2);
        self.seen = seen;
        self.at = advance(self.at, passed, wall());
        self.at
    }
}

/// The time after `passed` microseconds, somewhat closer to the wall clock.
fn advance(at: Time, passed: u64, wall: Time) -> Time {
    let next = at.0.saturating_add(passed);
    let most = i64::try_from(passed).unwrap_or(i64::MAX) / SLEW;
    let gap = i64::try_from(i128::from(wall.0) - i128::from(next)).unwrap_or(0);
    Time(next.saturating_add_signed(gap.clamp(-most, most)))
}

/// Unix time in microseconds.
pub(super) fn wall() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_micros()).unwrap_or(u64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_that_jumps_is_approached_slowly() {
        let hour = 3_600_000_000;
        let ahead = advance(Time(1_000_000), 2_000_000, Time(hour));
        assert_eq!(ahead, Time(3_001_000));
        let back = advance(Time(hour), 2_000_000, Time(0));
        assert_eq!(back, Time(hour + 1_999_000));
        assert_eq!(advance(Time(5), 10, Time(15)), Time(15));
    }
}
