//! Where a job is: placements, their parts, and the lease that gives the right to be there.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::Share;
use crate::decision::{StopHow, StopWhy};
use crate::id::{DeviceId, JobId, LeaseId, NodeId};
use crate::job::Checkpoint;
use crate::units::{Mib, Milli, Rate, Span, Time};

/// Where all tasks of a job are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// One entry per role and node, in order of nodes once it is planned.
    pub parts: Vec<Part>,
}

/// Tasks of one role on one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Part {
    /// Which of the job's gangs.
    pub gang: u32,
    /// Where.
    pub node: NodeId,
    /// How many tasks.
    pub tasks: u32,
    /// CPU of all these tasks.
    pub cpu: Milli,
    /// Memory of all these tasks.
    pub mem: Mib,
    /// GPU shares of all these tasks, task by task.
    pub slices: Vec<Slice>,
}

/// A share of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slice {
    /// The device.
    pub device: DeviceId,
    /// The part of it.
    pub share: Share,
}

/// The right of a job to be on its machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Its number.
    pub id: LeaseId,
    /// Whose.
    pub job: JobId,
    /// Where.
    pub placement: Arc<Placement>,
    /// Since when the resources are booked.
    pub since: Time,
    /// When the executor confirmed the start.
    pub started: Option<Time>,
    /// Ends at this time unless it is extended.
    pub until: Option<Time>,
    /// When the policy believes that the job will be done; `Time::NEVER` without an estimate.
    pub expected_end: Time,
    /// Believed speed there while it works.
    pub rate: Rate,
    /// Time that it takes to load what was saved before work goes on.
    pub load: Span,
    /// Reference work that was done, and safe or in memory, when the stay began.
    pub base: Span,
    /// The stay that it goes on from, where that was suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<LeaseId>,
    /// Reference work done in this stay as of the last report, and when that was.
    pub progress: Option<(Time, Span)>,
    /// Up to when its time is in the accounts of shares.
    pub settled: Time,
    /// Time of the stay in which it had nothing to do, as of the last report.
    pub idle: Span,
    /// The stop that was asked for.
    pub stop: Option<Stop>,
    /// Whether it was found that it cannot be suspended: then it is not asked to a second time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
}

/// A stop that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// What becomes of its state.
    pub how: StopHow,
    /// Why.
    pub why: StopWhy,
    /// How often it was asked for.
    pub asked: u32,
    /// When it is asked for again.
    pub deadline: Time,
}

impl Placement {
    /// Tasks over all parts.
    pub fn tasks(&self) -> u32 {
        self.parts.iter().map(|part| part.tasks).sum()
    }

    /// Tasks of one role. Asked before anybody has checked the numbers.
    pub fn tasks_of(&self, gang: u32) -> u32 {
        let parts = self.parts.iter().filter(|part| part.gang == gang);
        parts.map(|part| part.tasks).fold(0, u32::saturating_add)
    }

    /// The parts on one node, of a placement that is planned.
    pub fn on(&self, node: NodeId) -> &[Part] {
        let first = self.parts.partition_point(|part| part.node < node);
        let count = self.parts[first..].iter().take_while(|part| part.node == node).count();
        &self.parts[first..first + count]
    }

    /// GPUs that its tasks are on, each part of one counted as one.
    pub fn gpus(&self) -> u32 {
        self.parts.iter().map(|part| part.slices.len() as u32).sum()
    }

    /// Number of different nodes. Parts of one role never repeat a node.
    pub fn node_count(&self) -> usize {
        if self.parts.len() < 2 {
            return self.parts.len();
        }
        let mut nodes: Vec<NodeId> = self.parts.iter().map(|part| part.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }
}

impl Part {
    /// The same without main memory.
    pub(crate) fn without_mem(&self) -> Part {
        Part { mem: Mib(0), ..self.clone() }
    }

    /// The main memory of it alone.
    pub(crate) fn only_mem(&self) -> Part {
        Part { cpu: Milli::ZERO, slices: Vec::new(), ..self.clone() }
    }
}

impl Lease {
    /// Whether it was told to let itself be suspended.
    pub fn is_suspending(&self) -> bool {
        self.stop.is_some_and(|stop| stop.how == StopHow::Suspend)
    }

    /// Whether it goes on from memory, and nobody has said yet that it does: who ends it now ends
    /// all that the job did since it was saved.
    pub fn is_resuming(&self) -> bool {
        self.resumes.is_some() && self.started.is_none()
    }

    /// Reference work believed done by `now`, over all stays of the job, which saves so.
    pub fn believed_done(&self, checkpoint: Checkpoint, now: Time) -> Span {
        self.base + self.believed_work(checkpoint, now).1
    }

    /// Reference work of this stay believed done by `now`, and when it was done: before `now` only
    /// while the job saves by itself.
    pub fn believed_work(&self, checkpoint: Checkpoint, now: Time) -> (Time, Span) {
        let (seen, done) = match (self.progress, self.started) {
            (Some(report), _) => report,
            (None, Some(started)) => (started + self.load, Span::ZERO),
            (None, None) => return (now, Span::ZERO),
        };
        let more = checkpoint.work_in(done, now.since(seen), self.rate);
        let is_due = |(every, _): (Span, Span)| (done + more).0.is_multiple_of(every.0);
        if done + more > Span::ZERO && checkpoint.rhythm().is_some_and(is_due) {
            let reached = seen + checkpoint.time_for(done, more, self.rate);
            return (reached.min(now), done + more);
        }
        (now, done + more)
    }
}
