//! The whole of it with real processes: a daemon with an agent, made-up GPUs, and the command line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod cluster;
mod enrol;
mod jobs;
mod log;
mod operators;
mod rehearsal;
mod secrets;
