//! The live scheduler: a daemon that keeps the log, agents that run jobs, and the interface
//! between them and people.
//!
//! Three state machines without sockets, threads or clocks (`host`, `agent::core` and the
//! connection between them, `wire`) hold everything that can go wrong; the rest of the crate moves
//! bytes. Scheduling itself is the engine's business: nothing here knows a policy by name.

#[cfg(not(unix))]
compile_error!("agents rely on process groups and file locks of Unix");

pub mod agent;
pub mod api;
pub mod client;
pub mod driver;
pub mod host;
pub mod image;
pub mod job;
pub mod limits;
pub mod need;
pub mod notice;
pub mod person;
pub mod reservation;
pub mod selection;
pub mod server;
mod shapes;
pub mod store;
pub mod stream;
pub mod usage;
pub mod wire;
