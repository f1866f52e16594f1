//! Facts: what happened in the world. The state changes only by these and by decisions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ability::Abilities;
use crate::cluster::{GpuModel, NodeSpec, Power, Tenant};
use crate::id::{Features, JobId, LeaseId, ModelId, NodeId, ProfileKey, TenantId, WindowId};
use crate::job::{Estimate, JobSpec};
use crate::placement::Placement;
use crate::profile::Profile;
use crate::target::Solution;
use crate::units::{Milli, Span, Time};
use crate::window::Window;

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// A GPU model entered the catalogue; ids count up from zero.
    ModelAdded {
        /// Its number.
        model: ModelId,
        /// What it is.
        spec: GpuModel,
    },
    /// A tenant entered the catalogue; ids count up from zero.
    TenantAdded {
        /// Its number.
        tenant: TenantId,
        /// Who it is.
        spec: Tenant,
    },
    /// Something else is due to a tenant from now on, or it may use more or less.
    TenantChanged {
        /// Its number.
        tenant: TenantId,
        /// Who it is, as of now.
        spec: Tenant,
    },
    /// What the executor can do, from now on.
    AbilitiesChanged {
        /// All of it.
        abilities: Abilities,
    },
    /// A node joined, or came back; new ids count up from zero.
    NodeUp {
        /// Its number.
        node: NodeId,
        /// What it has; unchanged when it comes back.
        spec: NodeSpec,
    },
    /// A node is gone with everything on it.
    NodeDown {
        /// Its number.
        node: NodeId,
    },
    /// A node that is gone never comes back, not as what it was: its machine has another number.
    NodeRetired {
        /// Its number.
        node: NodeId,
    },
    /// A node is to take nothing new, or may again.
    NodeDrain {
        /// Its number.
        node: NodeId,
        /// Whether it drains.
        draining: bool,
    },
    /// Nodes are kept for a time, or for another time than was said before.
    WindowSet {
        /// Its number.
        window: WindowId,
        /// Which nodes and when.
        spec: Window,
    },
    /// Nodes are not kept any more, before the time is over.
    WindowEnded {
        /// Its number.
        window: WindowId,
    },
    /// A node can do other things than before.
    FeaturesChanged {
        /// Its number.
        node: NodeId,
        /// All of them.
        features: Features,
    },
    /// A node reached a power state.
    PowerChanged {
        /// Its number.
        node: NodeId,
        /// The state.
        power: Power,
    },
    /// A job was submitted; ids count up.
    Submitted {
        /// Its number.
        job: JobId,
        /// What it asks for.
        spec: Arc<JobSpec>,
    },
    /// Numbers of leases below this one were given out before, by a history that a restored backup
    /// does not know.
    LeasesSkipped {
        /// The least number that the next lease may have.
        next: LeaseId,
    },
    /// Numbers of jobs below this one were given out before, by such a history, too.
    JobsSkipped {
        /// The least number that the next job may have.
        next: JobId,
    },
    /// A person cancelled a job.
    Cancelled {
        /// Its number.
        job: JobId,
    },
    /// A person holds a job back, or lets it go.
    HoldChanged {
        /// Its number.
        job: JobId,
        /// Whether it is held.
        held: bool,
    },
    /// A job is not to be tried before a time: its start failed for a reason that may pass.
    Paused {
        /// Its number.
        job: JobId,
        /// When it may be tried again.
        until: Time,
    },
    /// What runs the jobs keeps one of them back, or lets it go: it was held there, or waits for
    /// something that only it knows.
    KeptBack {
        /// Its number.
        job: JobId,
        /// Whether it is kept back.
        kept: bool,
    },
    /// A job that nobody here started was found to run: it holds what it holds.
    Adopted {
        /// The new lease.
        lease: LeaseId,
        /// The job.
        job: JobId,
        /// Where it runs.
        placement: Arc<Placement>,
        /// Reference work that it is believed to have done before it was found.
        done: Span,
    },
    /// All tasks of a lease run.
    Started {
        /// The lease.
        lease: LeaseId,
    },
    /// A lease could not be started; nothing of it runs.
    StartFailed {
        /// The lease.
        lease: LeaseId,
    },
    /// Work done in this stay, so far.
    Progress {
        /// The lease.
        lease: LeaseId,
        /// Reference work of this stay.
        done: Span,
        /// Time of this stay in which it had nothing to do: shares do not count it as received.
        #[serde(default)]
        idle: Span,
    },
    /// The job saved its state; a restart goes on from there.
    Checkpointed {
        /// The lease.
        lease: LeaseId,
        /// Reference work that is safe, over all stays.
        done: Span,
    },
    /// A stay cannot be suspended as it was told: it goes on.
    SuspendRefused {
        /// The lease.
        lease: LeaseId,
    },
    /// What a suspended job had in the memory of its nodes is gone; the nodes are not.
    SuspendedLost {
        /// The job.
        job: JobId,
    },
    /// Nothing of a lease runs any more.
    Stopped {
        /// The lease.
        lease: LeaseId,
        /// How it ended.
        outcome: Outcome,
        /// Reference work that is safe, over all stays; that is done, where it is suspended.
        done: Span,
        /// Reference work of this stay that is thrown away.
        lost: Span,
    },
    /// Somebody believes to know a job's run time.
    Estimated {
        /// The job.
        job: JobId,
        /// The belief.
        estimate: Estimate,
    },
    /// Throughput of a kind of job is known, or known better.
    Profiled {
        /// Which.
        key: ProfileKey,
        /// The table.
        profile: Profile,
    },
    /// What a stay really used of its GPUs, as the executor measured it.
    Used {
        /// The lease.
        lease: LeaseId,
        /// Mean compute used of each device that it held a part of.
        gpu: Milli,
    },
    /// A solver answered.
    Solved {
        /// Step of the state that it looked at.
        based_on: u64,
        /// The answer.
        solution: Arc<Solution>,
    },
    /// Another policy decides from now on.
    PolicyChanged {
        /// Its settings, as TOML.
        settings: Box<str>,
    },
    /// The policy broke a rule and is not listened to any more.
    PolicyBroke {
        /// What it did, in words.
        fault: Box<str>,
        /// Settings of the one that takes over, as TOML. Without one nobody decides until a
        /// person says who.
        fallback: Option<Box<str>>,
    },
    /// Nothing more will come of this round: the next may begin before its time.
    RoundEnded,
}

/// How a stay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The job did its work.
    Finished,
    /// The job failed by itself.
    Failed,
    /// It was stopped, or its machine failed.
    Interrupted,
    /// Its processes wait in the memory of its nodes.
    Suspended,
}

impl Event {
    /// Whether the fact may change what a policy decides.
    ///
    /// Confirmations do not: the decision that they confirm has changed the state already.
    pub fn wakes_policy(&self) -> bool {
        match self {
            Event::Started { .. }
            | Event::Progress { .. }
            | Event::Checkpointed { .. }
            | Event::Used { .. }
            | Event::LeasesSkipped { .. }
            | Event::JobsSkipped { .. }
            | Event::ModelAdded { .. }
            | Event::TenantAdded { .. } => false,
            Event::TenantChanged { .. }
            | Event::AbilitiesChanged { .. }
            | Event::NodeUp { .. }
            | Event::NodeDown { .. }
            | Event::NodeRetired { .. }
            | Event::NodeDrain { .. }
            | Event::WindowSet { .. }
            | Event::WindowEnded { .. }
            | Event::FeaturesChanged { .. }
            | Event::PowerChanged { .. }
            | Event::Submitted { .. }
            | Event::Cancelled { .. }
            | Event::HoldChanged { .. }
            | Event::KeptBack { .. }
            | Event::Adopted { .. }
            | Event::Paused { .. }
            | Event::StartFailed { .. }
            | Event::SuspendRefused { .. }
            | Event::SuspendedLost { .. }
            | Event::Stopped { .. }
            | Event::Estimated { .. }
            | Event::Profiled { .. }
            | Event::Solved { .. }
            | Event::PolicyChanged { .. }
            | Event::PolicyBroke { .. }
            | Event::RoundEnded => true,
        }
    }
}
