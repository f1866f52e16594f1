//! The allocation policies on instances with known answers.
//!
//! `testdata/gavel` holds the instances. Those that need the published table of rates run when the
//! folder that `HOSTLER_PARITY_DATA` names has it, and are reported as skipped by name otherwise.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    reason = "a test may read files and say what it skips"
)]

#[path = "allocate/bad_input.rs"]
mod bad_input;
#[path = "allocate/random.rs"]
mod random;
#[path = "allocate/solve_instances.rs"]
mod solve_instances;
#[path = "allocate/vectors.rs"]
mod vectors;
