//! The program as its users meet it: every test starts the binary and reads what it prints.
//!
//! What policies decide is tested where they live; here are the commands, their words, their exit
//! codes and what they do with bad input.

mod analyze;
mod bad_clusters;
mod bad_scenarios;
mod bad_tables;
mod compare;
mod help;
mod loads;
mod logs;
mod pairs;
mod predict;
mod program;
mod rejected;
mod scenarios;
mod sharing;
mod simulate;
mod throughputs;
mod traces;
