//! The scheduling core of Hostler: state, engine, policy interface, metrics.
//!
//! State is the fold of a log of facts and decisions; a policy is a function from a read-only view
//! to a plan; everything that touches the world stands behind [`executor::Executor`]. Nothing here
//! reads a clock, a file or a socket, and nothing depends on hash order.

pub mod ability;
pub mod account;
pub mod admit;
pub mod border;
pub mod capacity;
pub mod cluster;
pub mod decision;
pub mod engine;
pub mod event;
pub mod executor;
pub mod fit_bound;
pub mod gate;
pub mod id;
pub mod job;
pub mod limits;
pub mod metrics;
mod observe;
pub mod pipeline;
pub mod placement;
pub mod plan;
pub mod policy;
pub mod predict;
pub mod profile;
pub mod random;
pub mod reason;
pub mod record;
pub mod registry;
pub mod replay;
pub mod service;
pub mod shapes;
pub mod solve;
pub mod stage;
pub mod state;
pub mod suspend;
pub mod table;
pub mod target;
#[cfg(test)]
mod testkit;
pub mod units;
pub mod verify;
pub mod view;
pub mod watch;
pub mod window;
