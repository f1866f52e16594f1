//! What daemon and agents do together, with a daemon and agents in processes of their own: gangs
//! that meet, jobs that make room and go on, and the same on either store.

#![allow(clippy::unwrap_used, reason = "helpers of tests stop with the fault, as tests do")]

#[path = "../harness/mod.rs"]
mod harness;

mod attained;
mod copies;
mod ends;
mod gang;
mod images;
mod notices;
mod output;
mod people;
mod preemption;
mod progress;
mod starts;
mod stores;
mod suspension;
mod upgrade;
mod usage;
mod uses;
