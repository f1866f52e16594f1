//! What there is: GPU models, tenants, nodes and their condition.
//!
//! A node has GPUs of one model. Machines that mix models enter as one node per model; published
//! traces have none.

use serde::{Deserialize, Serialize};

use crate::account::Budget;
use crate::id::{DeviceId, Features, JobId, LeaseId, ModelId, NodeId};
use crate::units::{Mib, Milli};
use crate::window::Kept;

/// A GPU model of the catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuModel {
    /// For people and for the border, which turns names into ids.
    pub name: Box<str>,
    /// Memory of one device.
    pub mem: Mib,
    /// Rank by worth: placements that may choose use low tiers first.
    pub tier: u32,
    /// Slices that the device can be cut into; zero when it cannot.
    pub mig_slices: u32,
    /// Power draw of an idle device.
    pub idle_watts: u32,
    /// Power draw of a busy device.
    pub busy_watts: u32,
}

/// Someone whose jobs are accounted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// For people.
    pub name: Box<str>,
    /// Share of the cluster that is due to it, relative to the others.
    pub weight: u32,
    /// GPUs that its jobs may have at once; any number when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus_max: Option<u32>,
    /// GPU time that its jobs may use in each period; any when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

impl Tenant {
    /// A tenant of weight 1, without a quota or budget.
    pub fn named(name: impl Into<Box<str>>) -> Tenant {
        Tenant { name: name.into(), weight: 1, gpus_max: None, budget: None }
    }
}

/// What a node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// For people.
    pub name: Box<str>,
    /// CPU cores.
    pub cpu: Milli,
    /// Main memory.
    pub mem: Mib,
    /// Model of its GPUs; none when it has no GPU.
    pub gpu_model: Option<ModelId>,
    /// Number of GPUs.
    pub gpus: u32,
    /// GPUs that share fast links; zero means all of the node.
    pub island_gpus: u32,
    /// Rack, for locality.
    pub rack: u32,
    /// Power draw without its GPUs.
    pub base_watts: u32,
    /// What else it can do; the only thing of these that may change while it is there.
    #[serde(default, skip_serializing_if = "Features::is_none")]
    pub features: Features,
}

/// A node of the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// What it has.
    pub spec: NodeSpec,
    /// Whether jobs may run there.
    pub health: Health,
    /// Whether it is switched on.
    pub power: Power,
    /// Its first GPU; the others follow.
    pub first_device: DeviceId,
    /// Leases with a part here, ascending.
    pub leases: Vec<LeaseId>,
    /// Jobs whose processes wait in its memory, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parked: Vec<JobId>,
    /// Whether it never comes back.
    #[serde(default)]
    pub retired: bool,
    /// What it is kept for next, or now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// Whether jobs may run on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// Takes jobs.
    Up,
    /// Runs what it has, takes nothing new.
    Draining,
    /// Gone.
    Down,
}

/// Whether a node is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// Ready.
    On,
    /// Saves power.
    Sleeping,
    /// On its way up.
    Waking,
}

/// How a device is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// By time and memory, in any proportion.
    #[default]
    Shared,
    /// In hardware slices.
    Mig,
}

/// The part of a device that a task holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// All of it.
    Whole,
    /// A part of its time and memory.
    Fraction {
        /// Part of its compute.
        compute: Milli,
        /// Memory.
        mem: Mib,
    },
    /// A guaranteed part of its memory, and compute by expected use instead of by request: the
    /// requests of packed jobs on one device may exceed it.
    Packed {
        /// Compute that its job is expected to use.
        compute: Milli,
        /// Memory, as the request guarantees it.
        mem: Mib,
    },
    /// Adjacent hardware slices.
    Mig {
        /// First slice.
        start: u32,
        /// Number of slices.
        slices: u32,
        /// Memory that comes with them.
        mem: Mib,
    },
}

impl Share {
    /// Whether it is a part of a device at all.
    pub fn is_sane(self) -> bool {
        match self {
            Share::Whole => true,
            Share::Fraction { compute, .. } | Share::Packed { compute, .. } => {
                compute.0 > 0 && compute <= Milli::ONE
            }
            Share::Mig { start, slices, .. } => slices > 0 && start < 8 && slices <= 8 - start,
        }
    }

    /// Compute that is booked, on a device that can be cut into `mig_slices`.
    pub fn compute(self, mig_slices: u32) -> Milli {
        match self {
            Share::Whole => Milli::ONE,
            Share::Fraction { compute, .. } | Share::Packed { compute, .. } => compute,
            Share::Mig { slices, .. } => Milli(slices * 1000 / mig_slices.max(1)),
        }
    }

    /// Memory that is booked, on a device with `device_mem`.
    pub fn mem(self, device_mem: Mib) -> Mib {
        match self {
            Share::Whole => device_mem,
            Share::Fraction { mem, .. } | Share::Packed { mem, .. } | Share::Mig { mem, .. } => mem,
        }
    }
}

impl Node {
    /// Whether nobody is there, running or suspended.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty() && self.parked.is_empty()
    }

    /// Whether new jobs may be placed here.
    pub fn usable(&self) -> bool {
        self.health == Health::Up && self.power == Power::On
    }

    /// The group of GPUs with fast links that the `local`-th GPU belongs to.
    pub fn island(&self, local: u32) -> u32 {
        local.checked_div(self.spec.island_gpus).unwrap_or(0)
    }
}
