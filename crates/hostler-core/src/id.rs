//! Identifiers: small integers that index tables of the state.
//!
//! Names are for people and live in the catalogue; no behaviour depends on them.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the table that this id indexes.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

ids! {
    /// A job; ids are given in order of submission.
    JobId "job";
    /// A machine.
    NodeId "node";
    /// A GPU, numbered over the whole cluster; those of one node are adjacent.
    DeviceId "gpu";
    /// One stay of a job on its machines; it makes every effect idempotent.
    LeaseId "lease";
    /// A GPU model of the catalogue; at most 64.
    ModelId "model";
    /// A tenant (user, account, organisation) of the catalogue.
    TenantId "tenant";
    /// A recurrence group: jobs that do the same thing again.
    GroupId "group";
    /// A queue, virtual cluster or account that jobs are sent to.
    QueueId "queue";
    /// A throughput profile.
    ProfileKey "profile";
    /// A time for which nodes are kept.
    WindowId "window";
}

/// A set of GPU models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelSet(pub u64);

impl ModelSet {
    /// Every model.
    pub const ALL: ModelSet = ModelSet(u64::MAX);
    /// No model.
    pub const NONE: ModelSet = ModelSet(0);

    /// The set of one model.
    pub fn one(model: ModelId) -> ModelSet {
        assert!(model.0 < 64, "{model:?} is beyond the catalogue's limit");
        ModelSet(1 << model.0)
    }

    /// Whether `model` is in the set.
    pub const fn contains(self, model: ModelId) -> bool {
        model.0 < 64 && self.0 & (1 << model.0) != 0
    }

    /// The union of both sets.
    pub const fn with(self, other: ModelSet) -> ModelSet {
        ModelSet(self.0 | other.0)
    }
}

/// What nodes can do beyond their sizes, and what jobs need of that. Which of the lower 32 bits
/// means what is the border's business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Features(pub u64);

impl Features {
    /// A node keeps jobs that are suspended in its memory.
    pub const SUSPENDS: Features = Features(1 << 32);

    /// All of both.
    pub const fn with(self, others: Features) -> Features {
        Features(self.0 | others.0)
    }

    /// Whether there are none.
    pub const fn is_none(&self) -> bool {
        self.0 == 0
    }

    /// Whether all of `needed` are among these.
    pub const fn cover(self, needed: Features) -> bool {
        self.0 & needed.0 == needed.0
    }
}
