//! The driver of Slurm without a Slurm: what the real one does at a bad moment is said by a script,
//! so that each race is reached every time.

#![allow(clippy::unwrap_used, reason = "helpers of tests stop with the fault, as tests do")]

mod changes;
mod looks;
mod stops;
mod there;
