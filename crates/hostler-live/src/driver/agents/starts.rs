//! Starts that fail on a node: one on which job after job cannot start rests, or it would take the
//! whole queue and fail it.
//!
//! Not for machines that know that they are at fault: those rest at once.

use std::collections::{BTreeMap, BTreeSet};

use hostler_core::id::{JobId, LeaseId, NodeId};

use super::AgentDriver;
use super::gang::PartStage;
use crate::host::Desk;

/// Different jobs in a row whose start fails on a node, after which the node is to blame.
const JOBS_IN_A_ROW: usize = 3;

/// Jobs that are remembered of a node: more say nothing more.
const JOBS_REMEMBERED_MAX: usize = 64;

/// Jobs that could not start on a node since one could, and whose they were.
#[derive(Default)]
pub(super) struct FailedStarts(BTreeMap<NodeId, BTreeMap<JobId, String>>);

impl FailedStarts {
    /// A job runs on a node: nothing is wrong with it.
    pub(super) fn went_well(&mut self, node: NodeId) {
        self.0.remove(&node);
    }
}

impl AgentDriver {
    /// A stay never began, for a reason that may be the job's or the node's.
    pub(super) fn start_failed(&mut self, desk: &mut Desk, lease: LeaseId) {
        let Some(run) = self.lease_runs.get(&lease) else { return };
        let job = run.job;
        let nodes = self.nodes_with(lease, &PartStage::NotStarted);
        desk.start_failed(lease);
        self.forget_ended(desk);
        for node in nodes {
            self.blame(desk, node, job, false);
        }
    }

    /// Nodes whose part of a stay stands so.
    pub(super) fn nodes_with(&self, lease: LeaseId, stage: &PartStage) -> Vec<NodeId> {
        let parts = self.lease_runs.get(&lease).into_iter().flat_map(|run| &run.parts);
        parts.filter(|(_, part)| *part == stage).map(|(node, _)| *node).collect()
    }

    /// Notes that a job could not start on a node. Where it names what is not there, that may be
    /// its own mistake: jobs of one user alone do not speak against the node then.
    pub(super) fn blame(&mut self, desk: &mut Desk, node: NodeId, job: JobId, its_own: bool) {
        let user = desk.job_row(job).map_or_else(String::new, |row| row.user.clone());
        let jobs = self.failed_starts.0.entry(node).or_default();
        jobs.insert(job, user);
        let users = jobs.values().collect::<BTreeSet<_>>().len();
        if jobs.len() > JOBS_REMEMBERED_MAX {
            jobs.pop_first();
        }
        if jobs.len() >= JOBS_IN_A_ROW && (users > 1 || !its_own) {
            self.failed_starts.0.remove(&node);
            let why = format!("{JOBS_IN_A_ROW} jobs in a row could not start there");
            self.quarantine(desk, node, why);
        }
    }
}
