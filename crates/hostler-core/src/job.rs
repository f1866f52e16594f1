//! What is asked for and what became of it: specifications, jobs and their accounts.
//!
//! Plain data. Only `ClusterState::apply` changes a [`Job`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::gate::{After, ArrayLimit, Gates};
use crate::id::{
    Features, GroupId, JobId, LeaseId, ModelId, ModelSet, ProfileKey, QueueId, TenantId, WindowId,
};
use crate::placement::Part;
use crate::reason::Reason;
use crate::suspend::Parked;
use crate::target::ShareAccounts;
use crate::units::{Mib, Milli, Span, Time};
use crate::window::StayBound;

mod checkpoint;

pub use checkpoint::Checkpoint;

/// What a user submits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// For people; need not be unique.
    pub name: Box<str>,
    /// Who pays.
    pub tenant: TenantId,
    /// Jobs of one group do the same thing again.
    pub group: Option<GroupId>,
    /// Where it was sent, where there are several such places. Only predictors look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueId>,
    /// What sort of work it is.
    pub kind: JobKind,
    /// Roles that start together.
    pub gangs: Box<[Gang]>,
    /// Larger is more important.
    pub priority: i32,
    /// Time by which it should be done.
    pub deadline: Option<Time>,
    /// Running longer than this ends it.
    pub time_limit: Option<Span>,
    /// Run time that the user expects.
    pub user_estimate: Option<Span>,
    /// Range of tasks of the first gang, when it can grow and shrink.
    pub elastic: Option<Elastic>,
    /// Cost and rhythm of saving its state.
    pub checkpoint: Checkpoint,
    /// Whether it shares GPUs.
    pub sharing: Sharing,
    /// Throughput table that applies to it.
    pub profile: Option<ProfileKey>,
    /// Steps to do, when counted in steps.
    pub work: Option<u64>,
    /// How much of its model its largest tensor is, in thousandths, if known: the more, the more it
    /// loses on several nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<Milli>,
    /// Jobs that must have come so far before it may start.
    #[serde(default, skip_serializing_if = "<[After]>::is_empty")]
    pub after: Box<[After]>,
    /// The array that it is part of, when only some of that may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayLimit>,
}

/// What sort of work a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobKind {
    /// Trains a model: long, checkpoints.
    Training,
    /// Runs to an end without a checkpoint.
    #[default]
    Batch,
}

/// Tasks of one role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gang {
    /// Tasks that start together.
    pub count: u32,
    /// What each task asks for.
    pub demand: Demand,
}

/// What one task asks of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Demand {
    /// GPUs: below 1000 a part of one device, else a multiple of 1000.
    pub gpu: Milli,
    /// GPU memory on each device; zero means in proportion to `gpu`.
    pub gpu_mem: Mib,
    /// Share of a device that a packed task asked for, where `gpu` is only what it is expected to
    /// use; zero in all that users submit. Its memory is in proportion to this.
    #[serde(default, skip_serializing_if = "Milli::is_zero")]
    pub packed_from: Milli,
    /// CPU cores.
    pub cpu: Milli,
    /// Main memory.
    pub mem: Mib,
    /// GPU models that will do.
    pub models: Models,
    /// How close the tasks of the gang must be.
    pub locality: Locality,
    /// The only window that it runs in; outside of windows when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowId>,
    /// How long it stays at most, where nodes may be kept for a window.
    #[serde(default, skip_serializing_if = "StayBound::is_none")]
    pub stay: StayBound,
    /// What the node must be able to do.
    #[serde(default, skip_serializing_if = "Features::is_none")]
    pub needs: Features,
    /// The only places that will do, where its processes wait; none in all that users submit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Arc<[Part]>>,
}

impl Demand {
    /// Whether only nodes with certain GPUs will do: it asks for GPUs, or for a place beside them.
    pub fn names_models(&self) -> bool {
        self.gpu.0 > 0 || self.models != Models::Any
    }

    /// The demand with memory rounded down to two leading bits: traces have as many memory sizes as
    /// jobs, and jobs that ask for about the same are looked at together.
    pub fn coarse(&self) -> Demand {
        let mem = self.mem.0;
        let drop = (32 - mem.leading_zeros()).saturating_sub(2);
        Demand { mem: Mib(mem >> drop << drop), ..self.clone() }
    }

    /// GPU memory that a task holds of each device with `device_mem`.
    pub fn device_mem(&self, device_mem: Mib) -> Mib {
        if self.gpu_mem.0 > 0 {
            return self.gpu_mem;
        }
        let asked = if self.packed_from.is_zero() { self.gpu } else { self.packed_from };
        Mib((u64::from(device_mem.0) * u64::from(asked.0.min(1000)) / 1000) as u32)
    }
}

/// GPU models that will do.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Models {
    /// Any model.
    #[default]
    Any,
    /// Any of these.
    OneOf(ModelSet),
    /// These, best first.
    Ordered(Box<[ModelId]>),
}

impl Models {
    /// The models that will do, without their order.
    pub fn set(&self) -> ModelSet {
        match self {
            Models::Any => ModelSet::ALL,
            Models::OneOf(set) => *set,
            Models::Ordered(models) => {
                models.iter().fold(ModelSet::NONE, |set, model| set.with(ModelSet::one(*model)))
            }
        }
    }
}

/// How close the tasks of a gang must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Locality {
    /// Anywhere.
    #[default]
    Any,
    /// One rack.
    Rack,
    /// One node.
    Node,
    /// One group of GPUs with fast links inside a node.
    Island,
    /// A node for each task.
    Apart,
}

impl Locality {
    /// Tasks that one node may have, at most.
    pub fn tasks_per_node(self) -> u32 {
        match self {
            Locality::Apart => 1,
            Locality::Any | Locality::Rack | Locality::Node | Locality::Island => u32::MAX,
        }
    }
}

/// Range of tasks of an elastic job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elastic {
    /// Fewest tasks that make progress.
    pub min: u32,
    /// Most tasks that are of use.
    pub max: u32,
}

/// Whether a job shares GPUs with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Its devices are its own (a fraction still packs with other fractions).
    #[default]
    Never,
    /// It may be packed with others if that pays.
    Willing,
}

/// Believed run time at reference speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Median belief.
    pub run: Span,
    /// Half the width of the middle half of the belief; zero means certain.
    pub spread: Span,
}

/// A job of the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its number, in order of submission.
    pub id: JobId,
    /// What was asked for.
    pub spec: Arc<JobSpec>,
    /// When it was submitted.
    pub submitted: Time,
    /// What had been summed up of other jobs by then; `ClusterState::crowd_since` tells the rest.
    #[serde(default)]
    pub crowd_before: u64,
    /// Where it stands.
    pub phase: Phase,
    /// What it received so far.
    pub ledger: Ledger,
    /// Believed run time; none when nobody gave one.
    pub estimate: Option<Estimate>,
    /// Compute that it is expected to use of each device: the most that like jobs were seen to use
    /// before it was submitted. None when too few were.
    pub gpu_use: Option<Milli>,
    /// Why it does not run.
    pub reason: Reason,
    /// Since when it has been in this phase.
    pub phase_since: Time,
    /// What keeps it from the policy.
    #[serde(default, skip_serializing_if = "Gates::is_open")]
    pub gates: Gates,
    /// Whether a start of it was ever confirmed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub started: bool,
    /// A cancellation waits for its stop to be confirmed.
    pub cancelled: bool,
    /// Where its processes wait, while it is suspended: what it asks for is what it lacks then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<Box<Parked>>,
    /// What rounds keep of it; none where nobody shares time out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_accounts: Option<Box<ShareAccounts>>,
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Waits for its turn.
    Pending,
    /// Kept from the policy by a gate.
    Held,
    /// Its resources are booked, its start is not confirmed.
    Starting(LeaseId),
    /// Runs.
    Running(LeaseId),
    /// Asked to stop; its resources are still booked.
    Stopping(LeaseId),
    /// Over.
    Done(Ending),
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It did its work.
    Finished,
    /// It failed by itself, or could not be started.
    Failed,
    /// A person cancelled it.
    Cancelled,
    /// It ran into its time limit.
    TimedOut,
    /// It can never run here.
    Rejected,
}

/// What a job received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// GPU time by model (device-microseconds), for models that served it.
    pub served: Vec<(ModelId, u64)>,
    /// Wall-clock time with resources, over all stays.
    pub ran: Span,
    /// Wall-clock time without resources, up to the last start.
    pub waited: Span,
    /// Reference work that is safe: a restart goes on from here.
    pub done: Span,
    /// Reference work thrown away at stops.
    pub lost_work: Span,
    /// First time it got resources.
    pub first_start: Option<Time>,
    /// Times that a policy took its resources away.
    pub preemptions: u32,
    /// Times it started again.
    pub restarts: u32,
    /// Starts that failed.
    pub start_failures: u32,
    /// Starts that failed on half of its GPUs, beside another job.
    #[serde(default)]
    pub packed_failures: u32,
}

impl Ledger {
    /// GPU time over all models (device-microseconds).
    pub fn gpu_time(&self) -> u64 {
        self.served.iter().map(|(_, time)| time).sum()
    }
}

impl JobSpec {
    /// Tasks over all roles.
    pub fn tasks(&self) -> u32 {
        self.gangs.iter().map(|gang| gang.count).sum()
    }

    /// Thousandths of GPUs over all tasks.
    pub fn gpu_milli(&self) -> u64 {
        let gpu = |gang: &Gang| u64::from(gang.count) * u64::from(gang.demand.gpu.0);
        self.gangs.iter().map(gpu).sum()
    }

    /// GPUs that its tasks are on, a part of one counted as one.
    pub fn gpus(&self) -> u32 {
        let gpus = |gang: &Gang| gang.count.saturating_mul(gang.demand.gpu.0.div_ceil(1000));
        self.gangs.iter().map(gpus).fold(0, u32::saturating_add)
    }
}

impl Job {
    /// The lease it holds, if any.
    pub fn lease(&self) -> Option<LeaseId> {
        match self.phase {
            Phase::Starting(lease) | Phase::Running(lease) | Phase::Stopping(lease) => Some(lease),
            Phase::Pending | Phase::Held | Phase::Done(_) => None,
        }
    }

    /// Whether its processes wait in the memory of its nodes.
    pub fn is_suspended(&self) -> bool {
        self.parked.is_some() && self.lease().is_none()
    }

    /// What was asked for when it was submitted, whether or not it is suspended.
    pub fn asked(&self) -> &Arc<JobSpec> {
        self.parked.as_ref().map_or(&self.spec, |parked| &parked.asked)
    }

    /// Reference work from which it goes on at its next start.
    pub fn done(&self) -> Span {
        self.parked.as_ref().map_or(self.ledger.done, |parked| parked.done)
    }

    /// Believed work that is left at reference speed, as of its last stop.
    pub fn remaining(&self) -> Option<Span> {
        self.estimate.map(|estimate| estimate.run.saturating_sub(self.done()))
    }
}
