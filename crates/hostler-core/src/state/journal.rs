//! What changed since the policy was last asked, for caches that follow the state.
//!
//! A cache that missed something (it is new, or the journal was cut) starts anew from the state,
//! so the journal never decides anything.

use crate::id::{JobId, LeaseId, NodeId};
use crate::limits::JOURNAL_MAX;

/// A change that matters to a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The job waits: it is new, was stopped, or its rank may be another now.
    Queued(JobId),
    /// The job waits no more.
    Unqueued(JobId),
    /// A stay of the job is over.
    Ended(JobId),
    /// More is free on the node than before.
    Freed(NodeId),
    /// The same, by what a lease held there that has ended, or is elsewhere now.
    Vacated(NodeId, LeaseId),
    /// More is left of a running job than was believed: it may rank after what it did.
    Slipped(LeaseId),
    /// A running job is believed to end at another time than before.
    Rescheduled(LeaseId),
    /// The node may take no new jobs, other than before.
    Closed(NodeId),
}

/// The changes since the last question.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    start: u64,
    changes: Vec<Change>,
}

impl Journal {
    pub(crate) fn push(&mut self, change: Change) {
        if self.changes.len() >= JOURNAL_MAX {
            self.clear();
            // One number goes missing, so that every cache notices the cut.
            self.start += 1;
        }
        self.changes.push(change);
    }

    pub(crate) fn clear(&mut self) {
        self.start += self.changes.len() as u64;
        self.changes.clear();
    }

    /// The changes after number `seen`; none when some of them are gone.
    pub fn since(&self, seen: u64) -> Option<&[Change]> {
        let from = seen.checked_sub(self.start)?;
        self.changes.get(usize::try_from(from).ok()?..)
    }

    /// Whether a job began to wait after number `seen`, as far as can be told.
    pub(crate) fn queued_since(&self, seen: u64) -> bool {
        let queued = |change: &Change| matches!(change, Change::Queued(_));
        self.since(seen).is_none_or(|changes| changes.iter().any(queued))
    }

    /// Number of the next change.
    pub fn end(&self) -> u64 {
        self.start + self.changes.len() as u64
    }
}

#[cfg(test)]
mod tests;
