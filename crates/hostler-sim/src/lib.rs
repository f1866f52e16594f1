//! The trace-driven simulator: traces, true speeds, faults, and the world that holds them.
//!
//! It does not know the policies; the program joins them.

pub mod analyze;
pub mod fixture;
pub mod history;
pub mod jobs;
pub mod lower;
mod parquet;
pub mod physics;
pub mod report;
pub mod run;
pub mod scenario;
pub mod trace;
pub mod world;
