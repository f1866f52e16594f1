//! Decisions: what the scheduler wants of the world.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::{Layout, Power};
use crate::id::{DeviceId, JobId, LeaseId, NodeId};
use crate::placement::Placement;
use crate::reason::Reason;
use crate::target::Turn;
use crate::units::{Span, Time};

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "decision")]
pub enum Decision {
    /// The job will never run.
    Reject {
        /// The job.
        job: JobId,
        /// Why.
        reason: Reason,
    },
    /// No node can hold the job: it is kept back until another one joins.
    SetAside {
        /// The job.
        job: JobId,
        /// Why no node can.
        reason: Reason,
    },
    /// Book the placement and start the job there.
    Start {
        /// The new lease.
        lease: LeaseId,
        /// The job.
        job: JobId,
        /// Where.
        placement: Arc<Placement>,
        /// When it is stopped, if it has not ended before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
    },
    /// End a stay; the resources are free once the executor confirms.
    Stop {
        /// The lease.
        lease: LeaseId,
        /// What becomes of its state.
        how: StopHow,
        /// Why.
        why: StopWhy,
    },
    /// Move a stay to another placement, let it grow or shrink, or change its shares.
    Resize {
        /// The lease.
        lease: LeaseId,
        /// Where it goes on.
        placement: Arc<Placement>,
    },
    /// Divide an empty device another way.
    Repartition {
        /// The device.
        device: DeviceId,
        /// The new way.
        layout: Layout,
    },
    /// Let an empty node sleep, or wake it.
    SetPower {
        /// The node.
        node: NodeId,
        /// `Sleeping` or `Waking`.
        power: Power,
    },
    /// The job goes on waiting; tell its owner why.
    Hold {
        /// The job.
        job: JobId,
        /// Why.
        reason: Reason,
    },
    /// Solve on the state as it is now, outside the step.
    Solve {
        /// Step of the state to look at.
        based_on: u64,
    },
    /// Begin a round: turns of the one before are over.
    BeginRound,
    /// Give turns in the round that goes on.
    Turns {
        /// Who runs where.
        turns: Vec<Turn>,
    },
    /// Weigh what tenants used in the past: what is a half-life old counts half.
    WeighPast {
        /// The half-life.
        half_life: Span,
    },
    /// Ask the policy again at this time.
    WakeAt {
        /// The time.
        at: Time,
    },
}

/// What becomes of the job's state at a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopHow {
    /// What it has on its GPUs goes to the memory of its nodes, where its processes wait: it goes
    /// on from there, on the same GPUs, and need not know.
    Suspend,
    /// Save first.
    Checkpoint,
    /// At once; work since the last save is lost.
    Kill,
}

/// Why a stay is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopWhy {
    /// Another job needs the place.
    Preempted,
    /// A person cancelled the job.
    Cancelled,
    /// The job ran into its time limit.
    TimeLimit,
    /// A node of the gang failed.
    NodeFailed,
    /// The start was never confirmed.
    NoAnswer,
    /// The lease ran out.
    LeaseEnded,
    /// The node is kept for something else.
    Evicted,
}
