//! Limits on what a trace may hold, each with the reason for the number.

/// Longest CSV record. A placement list of 400 nodes is under 20 KiB; a longer record is damage.
pub const RECORD_BYTES_MAX: u64 = 1 << 20;

/// Longest single field. Bounds what one row may add to the text pool.
pub const FIELD_BYTES_MAX: usize = 1 << 16;

/// Most rows of one table. Row numbers are `u32`; the largest published table has 7.5 million.
pub const ROWS_MAX: usize = 100_000_000;

/// Most bytes of distinct text in one trace. Text positions are `u32`.
pub const TEXT_BYTES_MAX: usize = u32::MAX as usize - 1;

/// Faults collected before reading stops. More do not help a person to find the cause.
pub const FAULTS_MAX: usize = 100;

/// Characters of a bad value that a message quotes.
pub const QUOTE_CHARS_MAX: usize = 60;

/// Largest time in milliseconds: exact as a double, and its microseconds fit in `u64`.
pub const TIME_MS_MAX: u64 = 1 << 53;

/// Largest value of the 32-bit columns (milli-CPU, MiB, counts); `u32::MAX` means "not known".
pub const NUMBER_MAX: u64 = u32::MAX as u64 - 1;

/// Most instances of one task. The largest published gang has a few thousand.
pub const COUNT_MAX: u64 = 1_000_000;

/// Most GPUs of one node. The largest machines hold 16.
pub const NODE_GPUS_MAX: u32 = 128;

/// Most nodes of one cluster.
pub const NODES_MAX: usize = 1_000_000;

/// Most GPU models of one cluster.
pub const GPU_MODELS_MAX: usize = 64;

/// Largest TOML file (meta, cluster) that is read.
pub const TOML_BYTES_MAX: u64 = 16 << 20;

/// Most rows of one throughput table: a thousand workloads in pairs on one model.
pub const THROUGHPUT_ROWS_MAX: usize = 1_000_000;

/// Most unpacked bytes of a throughput table in JSON; the published one has 1 MiB.
pub const THROUGHPUT_BYTES_MAX: u64 = 64 << 20;

/// Comparisons that the validator spends on "fits no node" before it gives that rule up.
pub const FIT_COMPARISONS_MAX: u64 = 100_000_000;

/// Most jobs that the generator makes.
pub const GENERATED_JOBS_MAX: u32 = 10_000_000;

/// Longest generated trace, in hours (over a thousand years): bounds the loop over quiet hours.
pub const GENERATED_HOURS_MAX: f64 = 1e7;
