//! What keeps a waiting job from the policy: a person, jobs that it comes after, a start that
//! failed just now, no node that could hold it, its tenant's quota or budget, the limit of its
//! array, a window that has not begun, or what runs the jobs.
//!
//! Plain data. Only `ClusterState::apply` opens and closes gates; a job behind one is held,
//! whatever policy decides, in a simulation and on a real cluster alike.

use serde::{Deserialize, Serialize};

use crate::id::JobId;

/// Something that keeps a job from the policy, in the order in which people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// A person holds it.
    Person,
    /// Jobs that it comes after have not come so far.
    After,
    /// Its start failed; it is tried again soon.
    Pause,
    /// No node can hold it; others may join.
    NoNode,
    /// As many jobs of its array as may run at once have been let through.
    Array,
    /// Jobs of its tenant that were let through before take all GPUs of the quota.
    Quota,
    /// Its tenant has used up the GPU time of its budget.
    Budget,
    /// The window that it runs in has not begun, or is over.
    Window,
    /// What runs the jobs keeps it back.
    Engine,
}

impl Gate {
    /// All of them, in order.
    pub const ALL: [Gate; 9] = [
        Gate::Person,
        Gate::After,
        Gate::Pause,
        Gate::NoNode,
        Gate::Array,
        Gate::Quota,
        Gate::Budget,
        Gate::Window,
        Gate::Engine,
    ];

    fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// A set of gates that are closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gates(u16);

impl Gates {
    /// Whether none is closed.
    pub fn is_open(&self) -> bool {
        self.0 == 0
    }

    /// Whether this one is closed.
    pub fn has(self, gate: Gate) -> bool {
        self.0 & gate.bit() != 0
    }

    /// The first that is closed.
    pub fn first(self) -> Option<Gate> {
        Gate::ALL.into_iter().find(|gate| self.has(*gate))
    }

    pub(crate) fn close(&mut self, gate: Gate) {
        self.0 |= gate.bit();
    }

    pub(crate) fn open(&mut self, gate: Gate) {
        self.0 &= !gate.bit();
    }

    /// Whether one is closed that does not open by others making room.
    pub(crate) fn holds_by_itself(self) -> bool {
        Gate::ALL.into_iter().any(|gate| match gate {
            Gate::Array | Gate::Quota => false,
            Gate::Person
            | Gate::After
            | Gate::Pause
            | Gate::NoNode
            | Gate::Budget
            | Gate::Window
            | Gate::Engine => self.has(gate),
        })
    }
}

/// Another job that one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct After {
    /// The other job. One that is over counts as come so far: whoever submits knows how it ended.
    pub job: JobId,
    /// How far it must have come.
    pub when: AfterWhen,
}

/// How far a job must have come before another may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterWhen {
    /// It finished well.
    #[default]
    Finished,
    /// It is over, however it ended.
    Over,
    /// It is over and did not finish well.
    Failed,
    /// It runs, or ran.
    Started,
}

/// How many jobs of an array may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayLimit {
    /// The first job of the array.
    pub first: JobId,
    /// At most this many.
    pub most: u32,
}
