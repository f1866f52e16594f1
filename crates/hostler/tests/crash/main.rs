//! What survives: kill -9 of everything at random points, a disk that is full, files that are torn.

#![allow(clippy::unwrap_used, reason = "helpers of tests stop with the fault, as tests do")]

#[path = "../harness/mod.rs"]
mod harness;

mod backup;
mod check;
mod disk;
mod lost;
mod rounds;
mod torn;
mod work;
