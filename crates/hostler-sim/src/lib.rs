//! Trace-driven simulator of GPU clusters.

pub mod trace;
