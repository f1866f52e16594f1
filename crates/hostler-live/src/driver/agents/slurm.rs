//! The variables of Slurm for jobs that were written for it.
//!
//! What differs from task to task (`SLURM_PROCID`, `SLURM_LOCALID`) is the agent's business.

use std::collections::BTreeMap;

use hostler_core::id::{LeaseId, NodeId};

use super::AgentDriver;
use crate::host::Desk;
use crate::job::Indices;

/// Bytes of a list of nodes that is told: it is part of an order, which has a limit.
const NODELIST_BYTES_MAX: usize = 8 << 10;

impl AgentDriver {
    /// The job's own variables and, where it wants them, those of Slurm below them.
    pub(super) fn variables(
        &self,
        desk: &Desk,
        lease: LeaseId,
        node: NodeId,
    ) -> BTreeMap<String, String> {
        let state = desk.state();
        let known = state.lease(lease).expect("only leases that are not over are started");
        let row = desk.job_row(known.job).expect("a lease belongs to a live job");
        let request = &row.request;
        if !request.slurm {
            return request.env.clone();
        }
        let parts = &known.placement.parts;
        let mut nodes: Vec<NodeId> = parts.iter().map(|part| part.node).collect();
        nodes.dedup();
        let names: Vec<&str> = nodes.iter().map(|node| &*state.node(*node).spec.name).collect();
        let here: u32 = parts.iter().filter(|part| part.node == node).map(|part| part.tasks).sum();
        let all: u32 = parts.iter().map(|part| part.tasks).sum();
        let cpus = (request.cpus.ceil() as u32).max(1);
        let spec = &state.job(known.job).expect("a lease belongs to a job").spec;
        let job = row.array_of.unwrap_or(known.job.0);
        let mut slurm: Vec<(&str, String)> = vec![
            ("SLURM_JOB_ID", known.job.0.to_string()),
            ("SLURM_JOBID", known.job.0.to_string()),
            ("SLURM_JOB_NAME", spec.name.to_string()),
            ("SLURM_JOB_USER", row.user.clone()),
            ("SLURM_JOB_ACCOUNT", row.tenant.clone()),
            ("SLURM_CLUSTER_NAME", "hostler".to_owned()),
            ("SLURM_NTASKS", all.to_string()),
            ("SLURM_NPROCS", all.to_string()),
            ("SLURM_NTASKS_PER_NODE", here.to_string()),
            ("SLURM_CPUS_PER_TASK", cpus.to_string()),
            ("SLURM_CPUS_ON_NODE", (cpus * here).to_string()),
            ("SLURM_NNODES", nodes.len().to_string()),
            ("SLURM_JOB_NUM_NODES", nodes.len().to_string()),
            ("SLURMD_NODENAME", state.node(node).spec.name.to_string()),
            ("SLURM_RESTART_COUNT", row.facts.restarts.to_string()),
        ];
        let names = names.join(",");
        if names.len() <= NODELIST_BYTES_MAX {
            slurm.push(("SLURM_JOB_NODELIST", names.clone()));
            slurm.push(("SLURM_NODELIST", names));
        }
        let place = nodes.iter().position(|other| *other == node).unwrap_or(0);
        slurm.push(("SLURM_NODEID", place.to_string()));
        if request.gpus >= 1.0 {
            slurm.push(("SLURM_GPUS_ON_NODE", (request.gpus as u32 * here).to_string()));
        }
        if request.mem_mib > 0 {
            slurm.push((
                "SLURM_MEM_PER_NODE",
                (u64::from(request.mem_mib) * u64::from(here)).to_string(),
            ));
        }
        if let Some(index) = row.facts.array_index {
            let indices = Indices::of(request);
            slurm.push(("SLURM_ARRAY_JOB_ID", job.to_string()));
            slurm.push(("SLURM_ARRAY_TASK_ID", index.to_string()));
            slurm.push(("SLURM_ARRAY_TASK_COUNT", indices.count.to_string()));
            slurm.push(("SLURM_ARRAY_TASK_MIN", indices.first.to_string()));
            let last = indices.at(indices.count.saturating_sub(1));
            slurm.push(("SLURM_ARRAY_TASK_MAX", last.to_string()));
        }
        let mut env: BTreeMap<String, String> =
            slurm.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        env.extend(request.env.clone());
        env
    }
}
