//! Agents with real processes: the program as it is, against a daemon that the test plays.
//!
//! Every wait has an end. Jobs that a failing test leaves behind end by the fence, because their
//! agent is killed with the test.

#![allow(clippy::unwrap_used, reason = "helpers of tests stop with the fault, as tests do")]

mod adopt;
mod apart;
mod daemon;
mod end;
mod people;
mod rights;
mod start;
