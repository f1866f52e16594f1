//! The clock of fences: it never goes back, counts sleep, and all processes of a machine share it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since the machine was started.
pub fn boot_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let (secs, nanos) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    secs.unwrap_or(0) * 1000 + nanos.unwrap_or(0) / 1_000_000
}

/// How long it is from now until an instant of [`boot_ms`].
pub fn until(instant_ms: u64) -> Duration {
    Duration::from_millis(instant_ms.saturating_sub(boot_ms()))
}
