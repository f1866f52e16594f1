//! What an executor can do and its operator allows, as data: policies look at it before they
//! decide, `verify` after.
//!
//! A fact of the log like any other, so a replay or a fork of a real cluster decides as the cluster
//! did. A simulated cluster can do all of it but suspend jobs,
//! unless the scenario says otherwise.

use serde::{Deserialize, Serialize};

use crate::suspend::SuspendCost;
use crate::units::Span;

/// What an executor can do with jobs and machines besides starting and stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// Moves, grows and shrinks jobs that run, and changes their shares.
    pub resize: bool,
    /// Switches nodes off and on.
    pub power: bool,
    /// Divides devices another way.
    pub repartition: bool,
    /// Gives a job a part of a device.
    pub shares: bool,
    /// Nodes that nobody knows yet may join: what fits nowhere is set aside until then, not turned
    /// away for good.
    pub grows: bool,
    /// Says itself when a node is gone; nobody else concludes it from stops that were not answered.
    pub tells_nodes: bool,
    /// Suspends jobs on nodes that can ([`Features::SUSPENDS`](crate::id::Features::SUSPENDS)), and
    /// what that is believed to cost. None: nobody is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<SuspendCost>,
    /// Work that a job which cannot be saved may lose in all by being stopped in favour of others.
    /// None: such jobs are never stopped for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_work_max: Option<Span>,
}

impl Default for Abilities {
    /// Those of a simulated cluster.
    fn default() -> Abilities {
        Abilities {
            resize: true,
            power: true,
            repartition: true,
            shares: true,
            grows: false,
            tells_nodes: false,
            suspend: None,
            lost_work_max: None,
        }
    }
}
