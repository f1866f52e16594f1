//! Starts that fail: the job waits a while before it is tried again, and a node on which one job
//! after the other cannot start rests, or it would take the whole queue and fail it.
//!
//! Not for machines that know that they are at fault: those rest at once.

use std::collections::{BTreeMap, BTreeSet};

use hostler_core::event::Event;
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::units::{Span, Time};

use super::Host;
use super::gang::PartStage;

/// Time after the first failed start before the next; it doubles with each. All tries of a job that
/// never starts take about a minute, in which somebody may mount what is missing.
const PAUSE: Span = Span::from_secs(2);

/// Different jobs in a row whose start fails on a node, after which the node is to blame.
const JOBS_IN_A_ROW: usize = 3;

/// What came of failed starts.
#[derive(Default)]
pub(super) struct FailedStarts {
    /// Jobs that wait for their next try, and until when.
    paused: BTreeMap<u32, Time>,
    /// Jobs that could not start on a node since one could.
    nodes: BTreeMap<NodeId, BTreeSet<u32>>,
}

impl FailedStarts {
    pub(super) fn is_paused(&self, job: u32) -> bool {
        self.paused.contains_key(&job)
    }

    /// A job runs on a node: nothing is wrong with it.
    pub(super) fn went_well(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }
}

impl Host {
    /// A stay never began, for a reason that may be the job's or the node's.
    pub(super) fn start_failed(&mut self, lease: LeaseId) {
        let Some(run) = self.lease_runs.get(&lease) else { return };
        let job = run.job;
        let failed = run.parts.iter().filter(|(_, part)| **part == PartStage::NotStarted);
        let nodes: Vec<NodeId> = failed.map(|(node, _)| *node).collect();
        let before = self.engine.state().job(job).map_or(0, |job| job.ledger.start_failures);
        let pause = Span(PAUSE.0 << before.min(8));
        self.failed_starts.paused.insert(job.0, self.now + pause);
        self.fact(Event::StartFailed { lease });
        self.consider(job.0);
        self.drain();
        for node in nodes {
            self.blame(node, job);
        }
    }

    fn blame(&mut self, node: NodeId, job: JobId) {
        let jobs = self.failed_starts.nodes.entry(node).or_default();
        jobs.insert(job.0);
        if jobs.len() >= JOBS_IN_A_ROW {
            self.failed_starts.nodes.remove(&node);
            self.quarantine(node);
        }
    }

    /// Lets jobs go whose pause is over.
    pub(super) fn resume_paused(&mut self) {
        let due = self.failed_starts.paused.iter().filter(|(_, until)| **until <= self.now);
        let due: Vec<u32> = due.map(|(job, _)| *job).collect();
        for job in due {
            self.failed_starts.paused.remove(&job);
            self.consider(job);
        }
        self.drain();
    }
}
