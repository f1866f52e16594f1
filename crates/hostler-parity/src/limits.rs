//! Every bound of this crate in one place, with the reason for the number.

/// Jobs that are put in pairs one by one where results are to be as published: beyond, the
/// programme takes seconds, and classes of jobs make it small again.
pub const PUBLISHED_PAIR_JOBS_MAX: usize = 128;

/// Points of the path to the middle of the best finish-time shares: each is ten times nearer.
pub const PATH_STEPS_MAX: usize = 30;

/// Newton steps from one point of that path to the next; it needs five to fifteen.
pub const NEWTON_STEPS_MAX: usize = 100;

/// Times that a step of that path is cut: then it is a millionth of itself.
pub const STEP_CUTS_MAX: usize = 28;

/// Windows of the published search for a makespan: the last ends after 30 million years.
pub const MAKESPAN_WINDOWS_MAX: usize = 10;
