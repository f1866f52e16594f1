//! The whole of it with real processes: a daemon with an agent, made-up GPUs, and the command line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod arrays;
mod cluster;
mod common;
mod enrol;
mod interactive;
mod jobs;
mod lists;
mod log;
mod mistakes;
mod operators;
mod rehearsal;
mod scripts;
mod secrets;
mod short_commands;
mod slurm;
mod terminal;
