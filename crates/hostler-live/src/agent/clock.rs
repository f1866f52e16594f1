//! The clock of fences: it never goes back, counts sleep, and all processes of a machine share it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::processes::boot_id;
use crate::wire::Moment;

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

/// This moment, for whoever asks later how long ago it was.
pub fn moment() -> Moment {
    Moment { boot: boot_id(), boot_ms: boot_ms(), unix_ms: unix_ms() }
}

/// Milliseconds since a moment. After another start of the machine only the wall clock knows, which
/// may have been set meanwhile: then as little as it says.
pub fn ago_ms(moment: &Moment) -> u64 {
    match moment.boot == boot_id() {
        true => boot_ms().saturating_sub(moment.boot_ms),
        false => unix_ms().saturating_sub(moment.unix_ms),
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
