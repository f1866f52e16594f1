//! A shim's order for tests of this module; what shims do is tested with real processes in the
//! tests of the binary.

use super::*;
use crate::wire::TaskOrder;
use hostler_core::id::JobId;

/// An order to run a command as one task.
pub(in crate::agent) fn shim_order(command: &[&str]) -> ShimOrder {
    ShimOrder {
        order: StartOrder {
            lease: LeaseId(7),
            job: JobId(3),
            restart: 0,
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            env: Default::default(),
            workdir: String::new(),
            tasks: vec![TaskOrder { rank: 0, local_rank: 0, gpus: vec![], gpu_mem_mib: 0 }],
            world_size: 1,
            master_addr: "10.0.0.1".into(),
            master_port: 29500,
            cpu_milli: 0,
            mem_mib: 0,
            array_index: None,
            grace_ms: 0,
            tenant: 0,
            limit_ms: None,
            script: String::new(),
            person: None,
            umask: None,
            image: String::new(),
            mounts: Vec::new(),
            interactive: None,
            resumes: None,
        },
        workdir: "/data/jobs/3".into(),
        checkpoint_dir: "/data/checkpoints/3".into(),
        socket: "/data/leases/7/socket".into(),
        agent_socket: "/data/agent.sock".into(),
        alive: "/data/alive".into(),
        path: "/usr/bin:/bin".into(),
        user: None,
        cgroup: None,
        mps_pipes: None,
        segment_bytes: 1 << 20,
        segments_max: 4,
        container: None,
    }
}
