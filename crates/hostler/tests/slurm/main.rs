//! The driver of Slurm against a real one: a cluster of its own on loopback, with made-up GPUs.
//!
//! Needs root and Slurm's programs; says so by name where either is missing. A step of its own of
//! `cargo xtask test`.

#![allow(clippy::unwrap_used, reason = "helpers of tests stop with the fault, as tests do")]

#[path = "../harness/mod.rs"]
mod harness;

mod crash;
mod door;
mod lab;
mod operator;
mod scenarios;
