//! The whole of it with real processes: a daemon with an agent, made-up GPUs, and the command line.

mod cluster;
mod enrol;
mod jobs;
mod log;
mod operators;
mod rehearsal;
