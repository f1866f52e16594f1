//! Every bound of the predictors in one place, with the reason for the number.

use hostler_core::units::Span;

/// Run times remembered for each key: enough that a median is steady, few enough that jobs whose
/// code has changed are believed again within days.
pub const RECENT_MAX: usize = 50;

/// Run times that a key needs before it is believed: with fewer, one aborted trial run would speak
/// for all of a user's work.
pub const SAMPLES_MIN: usize = 3;

/// Run times that a group as a whole needs before it is believed: its jobs do the same work, and
/// most groups are too small to wait for more (a third of the jobs of the PAI trace are in groups
/// below five).
pub const GROUP_SAMPLES_MIN: usize = 1;

/// Keys that are remembered, about a kilobyte each when full. Published traces have some ten
/// thousand groups and a thousand users.
pub const KEYS_MAX: usize = 100_000;

/// Jobs that were told a run time and are not over, of which it is remembered who said what, a
/// third of a kilobyte each: more than run and wait at once on any cluster that is not drowning.
pub const NOTED_MAX: usize = 100_000;

/// Splits on the way to a leaf: enough for a thousand leaves and some that are lopsided.
pub const DEPTH_MAX: usize = 12;

/// Samples of a leaf: with fewer, the factor by which medians are corrected is mostly chance.
pub const LEAF_MIN: usize = 20;

/// Longest run time that a tree believes in: a hundred years, so that sums do not overflow.
pub const RUN_MAX: Span = Span::from_secs(100 * 365 * 86_400);

/// Finished jobs that an online tree is grown from: weeks of a busy cluster, grown in a fraction of
/// a second.
pub const WINDOW_MAX: usize = 20_000;

/// Finished jobs that a tree trained from a trace is grown from: the latest that fit in a hundred
/// megabytes.
pub const TRAINED_MAX: usize = 1_000_000;

/// Finished jobs in a file from which a blend is taught: the latest that are read and taught in
/// about a second. Of each likeness fifty count.
pub const LESSONS_KEPT_MAX: usize = 100_000;

/// Finished jobs before the first online tree: with fewer, medians say as much.
pub const REFIT_FIRST: usize = 100;

/// Most jobs that finish between two online trees: a quarter of the window.
pub const REFIT_MAX: usize = WINDOW_MAX / 4;

/// Estimates that a shuffled one is drawn from: jobs of the last hours, not only of one burst.
pub const SHUFFLED_MAX: usize = 1000;

/// Nodes of a tree in a file: above what [`TRAINED_MAX`] jobs grow.
pub const NODES_MAX: usize = 1 << 20;

/// Speeds that are remembered: a thousand workloads on ten models in ten gangs or pairs.
pub const SPEEDS_MAX: usize = 100_000;

/// Factors of a table of pairs: more than kinds of behaviour were ever told apart.
pub const FACTOR_RANK: usize = 10;

/// Turns of the factorisation: a bound on what a new workload costs.
pub const FACTOR_ITERATIONS: usize = 30;

/// Entries of a table of pairs, measured or not: 250 workloads on three GPU models are factorised
/// in a second or two.
pub const PAIR_ENTRIES_MAX: usize = 200_000;

/// Waiting jobs of one group that are told anew when one of the group finishes: the bound on what
/// one fact may add to the log. The others keep what they were told.
pub const REVISED_MAX: usize = 1000;
