//! Why a job does not run, as a type: what `explain` says to the person who waits.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::JobId;
use crate::units::{Milli, Time};

/// Why a job does not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "because")]
pub enum Reason {
    /// It runs, or nothing stands in its way.
    #[default]
    None,
    /// No question has been put to the policy since it was submitted.
    New,
    /// The free part of the cluster cannot hold it now.
    NoCapacity {
        /// Tasks it needs.
        tasks: u32,
        /// Tasks that would fit now.
        fit: u32,
    },
    /// Another job comes first and the order is strict.
    Behind {
        /// The job that comes first.
        head: JobId,
    },
    /// It would delay a job with a reservation.
    WouldDelay {
        /// The job with the reservation.
        reserved: JobId,
    },
    /// The GPUs that are free are kept for jobs that gain more from them.
    Reserved {
        /// When it may have them all the same.
        until: Time,
    },
    /// It waits for jobs that are being stopped in its favour.
    Preempting {
        /// How many are being stopped.
        victims: u32,
    },
    /// It was stopped in favour of another job.
    Preempted,
    /// It was suspended in favour of another job, and goes on where it was.
    Suspended,
    /// Its node failed; it starts again.
    NodeFailed,
    /// Its node was wanted for something else; it starts again.
    Evicted,
    /// Its start failed; it is tried again.
    StartFailed,
    /// A person holds it.
    Held,
    /// What runs the jobs keeps it back.
    KeptBack,
    /// Its next turn is in a later round.
    NotThisRound,
    /// Jobs of its tenant that were let through before take its quota.
    OverQuota,
    /// It asks for more than the whole quota of its tenant.
    QuotaTooSmall,
    /// Its tenant has used up its budget.
    OverBudget,
    /// The window that it runs in has not begun, or is over.
    OutsideWindow,
    /// As many jobs of its array as may run at once do.
    ArrayLimit,
    /// It waits for another job.
    After {
        /// The other job.
        job: JobId,
    },
    /// A job that it waited for ended otherwise than it should have.
    NeverComes {
        /// The other job.
        after: JobId,
    },
    /// It asks for more than the whole cluster has.
    TooLarge {
        /// Tasks it needs.
        tasks: u32,
        /// Tasks that the empty cluster could hold.
        fit: u32,
    },
    /// No node has the GPU model it asks for.
    NoSuchModel,
    /// No node can do what it needs.
    NoSuchFeature,
    /// A task asks for more GPUs than any allowed node has.
    NodeTooSmall {
        /// GPUs that each task asks for.
        gpu: Milli,
    },
}

impl Reason {
    /// Whether no machine that is known can hold the job: what only other machines can change.
    pub fn is_of_machines(&self) -> bool {
        matches!(
            self,
            Reason::TooLarge { .. }
                | Reason::NoSuchModel
                | Reason::NoSuchFeature
                | Reason::NodeTooSmall { .. }
        )
    }

    /// The reason without its numbers: what jobs that were turned away have in common.
    pub fn kind(&self) -> &'static str {
        match self {
            Reason::None => "nothing stands in its way",
            Reason::New => "not considered yet",
            Reason::NoCapacity { .. } => "not all of its tasks would fit",
            Reason::Behind { .. } => "another job comes first",
            Reason::WouldDelay { .. } => "it would delay a job with a reservation",
            Reason::Reserved { .. } => "free GPUs are kept for others",
            Reason::Preempting { .. } => "jobs are being stopped for it",
            Reason::Preempted => "it was stopped in favour of another job",
            Reason::Suspended => "it was suspended in favour of another job",
            Reason::NodeFailed => "its node failed",
            Reason::Evicted => "its node was wanted for something else",
            Reason::StartFailed => "its start failed",
            Reason::Held => "a person holds it",
            Reason::KeptBack => "what runs the jobs keeps it back",
            Reason::NotThisRound => "its turn is in a later round",
            Reason::OverQuota => "jobs before it take its tenant's quota",
            Reason::QuotaTooSmall => "it asks for more than its tenant's quota",
            Reason::OutsideWindow => "its time has not come, or is over",
            Reason::OverBudget => "its tenant has used up its budget",
            Reason::ArrayLimit => "as many of its array run as may at once",
            Reason::After { .. } => "it waits for another job",
            Reason::NeverComes { .. } => "a job that it waited for ended otherwise",
            Reason::TooLarge { .. } => "it asks for more than the whole cluster has",
            Reason::NoSuchModel => "no node has the GPU model that it asks for",
            Reason::NoSuchFeature => "no node can do what it needs",
            Reason::NodeTooSmall { .. } => {
                "no node that it accepts has the GPUs, cores and memory that a task asks for"
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::None => write!(f, "nothing stands in its way"),
            Reason::New => write!(f, "not considered yet"),
            Reason::NoCapacity { tasks, fit } => {
                write!(f, "{fit} of its {tasks} tasks would fit now")
            }
            Reason::Behind { head } => write!(f, "job {} comes first", head.0),
            Reason::WouldDelay { reserved } => {
                write!(f, "it would delay job {}, which has a reservation", reserved.0)
            }
            Reason::Reserved { until } => {
                write!(f, "what is free is kept for jobs that gain more from it, until {until} s")
            }
            Reason::Preempting { victims } => {
                write!(f, "{victims} jobs are being stopped in its favour")
            }
            Reason::Preempted => write!(f, "stopped in favour of another job"),
            Reason::Suspended => {
                write!(f, "suspended in favour of another job; it goes on where it was")
            }
            Reason::NodeFailed => write!(f, "its node failed; it starts again"),
            Reason::Evicted => {
                write!(f, "its node was wanted for something else; it starts again")
            }
            Reason::StartFailed => write!(f, "its start failed; it is tried again"),
            Reason::Held => write!(f, "held by a person"),
            Reason::KeptBack => write!(f, "kept back by what runs the jobs"),
            Reason::NotThisRound => write!(f, "its turn is in a later round"),
            Reason::OverQuota => write!(f, "jobs before it take its tenant's quota"),
            Reason::QuotaTooSmall => write!(f, "it asks for more than its tenant's whole quota"),
            Reason::OutsideWindow => {
                write!(f, "the time that it was submitted for has not come, or is over")
            }
            Reason::OverBudget => write!(f, "its tenant has used up its budget"),
            Reason::ArrayLimit => write!(f, "as many of its array run as may at once"),
            Reason::After { job } => write!(f, "it waits for job {}", job.0),
            Reason::NeverComes { after } => {
                write!(f, "job {}, which it waited for, ended otherwise", after.0)
            }
            Reason::TooLarge { tasks, fit } => {
                write!(f, "{fit} of its {tasks} tasks would fit the empty cluster")
            }
            Reason::NoSuchModel => write!(f, "no node has a GPU model that it accepts"),
            Reason::NoSuchFeature => write!(f, "no node can do what it needs"),
            Reason::NodeTooSmall { gpu } => {
                write!(f, "no node that it accepts has {gpu} GPUs and the CPU and memory it asks")
            }
        }
    }
}
