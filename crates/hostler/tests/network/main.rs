//! Cuts of the network between daemon and agents, with namespaces of the kernel: a daemon in one
//! and an agent in each of two others.
//!
//! Needs root and the command `ip`; says so by name where either is missing.

#![allow(clippy::unwrap_used, reason = "helpers of tests stop with the fault, as tests do")]

#[path = "../harness/mod.rs"]
mod harness;

mod cuts;
mod namespaces;
