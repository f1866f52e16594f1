//! Things to come, in order of (time, sequence).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hostler_core::event::Event;
use hostler_core::id::{Features, LeaseId, NodeId};
use hostler_core::units::Time;

/// Something that will happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Coming {
    /// The start of a stay is over.
    Start(LeaseId),
    /// The work of a stay is done, unless its plan changed since.
    Finish(LeaseId, u32),
    /// It is looked at how far a stay has come, unless its plan changed since.
    Look(LeaseId, u32),
    /// A stay has saved its state.
    Saved(LeaseId),
    /// A stay has left its GPUs for the memory of its nodes.
    Suspended(LeaseId),
    /// A node becomes part of another pool.
    Move(NodeId, Features),
    /// A node fails.
    Fail(NodeId),
    /// A node is back.
    Repair(NodeId),
    /// The end of a stay is said again, unless it was heard.
    Resend(LeaseId),
    /// A message arrives.
    Deliver(Box<Event>),
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    at: Time,
    sequence: u64,
    coming: Coming,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The heap of things to come.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at: Time, coming: Coming) {
        let sequence = self.sequence;
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence, coming }));
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    pub(super) fn pop_at(&mut self, at: Time) -> Option<Coming> {
        if self.next_at()? > at {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.coming)
    }
}
