//! Every bound of the predictors in one place, with the reason for the number.

/// Run times remembered for each key: enough that a median is steady, few enough that jobs whose
/// code has changed are believed again within days.
pub const RECENT_MAX: usize = 50;

/// Run times that a key needs before it is believed: with fewer, one aborted trial run would speak
/// for all of a user's work.
pub const SAMPLES_MIN: usize = 3;

/// Keys that are remembered, about half a kilobyte each when full. Published traces have some ten
/// thousand groups and a thousand users.
pub const KEYS_MAX: usize = 100_000;
