//! The environment of one task: small, the job's own on top, what Hostler says last.
//!
//! Ranks and addresses have the names that torchrun gives them, so that programs written for it
//! find each other without change.

use std::collections::BTreeMap;

use super::shim::ShimOrder;
use crate::wire::TaskOrder;

/// All variables of a task.
pub fn environment(shim: &ShimOrder, task: &TaskOrder) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    env.insert("PATH".to_owned(), shim.path.clone());
    env.insert("LANG".to_owned(), "C.UTF-8".to_owned());
    env.insert("SHELL".to_owned(), "/bin/sh".to_owned());
    if let Some(user) = &shim.user {
        env.insert("USER".to_owned(), user.name.clone());
        env.insert("LOGNAME".to_owned(), user.name.clone());
        env.insert("HOME".to_owned(), user.home.clone());
        if !user.shell.is_empty() {
            env.insert("SHELL".to_owned(), user.shell.clone());
        }
    }
    env.extend(shim.order.env.clone());
    let own = gang(shim, task).into_iter().chain(own(shim)).chain(gpus(shim, task));
    let own = own.chain(slurm(shim, task));
    env.extend(own.map(|(name, value)| (name.to_owned(), value)));
    env
}

/// What Slurm would say of a task, for jobs that are told the rest, too.
fn slurm(shim: &ShimOrder, task: &TaskOrder) -> Vec<(&'static str, String)> {
    if !shim.order.env.contains_key("SLURM_JOB_ID") {
        return Vec::new();
    }
    let gpus: Vec<String> = task.gpus.iter().map(|(gpu, _)| gpu.to_string()).collect();
    vec![
        ("SLURM_PROCID", task.rank.to_string()),
        ("SLURM_LOCALID", task.local_rank.to_string()),
        ("SLURM_STEP_GPUS", gpus.join(",")),
        ("SLURM_JOB_GPUS", gpus.join(",")),
    ]
}

fn gang(shim: &ShimOrder, task: &TaskOrder) -> Vec<(&'static str, String)> {
    let order = &shim.order;
    vec![
        ("RANK", task.rank.to_string()),
        ("WORLD_SIZE", order.world_size.to_string()),
        ("LOCAL_RANK", task.local_rank.to_string()),
        ("LOCAL_WORLD_SIZE", order.tasks.len().to_string()),
        ("MASTER_ADDR", order.master_addr.clone()),
        ("MASTER_PORT", order.master_port.to_string()),
    ]
}

fn own(shim: &ShimOrder) -> Vec<(&'static str, String)> {
    let order = &shim.order;
    let mut own = vec![
        ("HOSTLER_JOB", order.job.0.to_string()),
        ("HOSTLER_LEASE", order.lease.0.to_string()),
        ("HOSTLER_RESTART", order.restart.to_string()),
        ("HOSTLER_CHECKPOINT_DIR", shim.checkpoint_dir.display().to_string()),
        ("HOSTLER_SOCKET", shim.socket.display().to_string()),
    ];
    own.extend(order.array_index.map(|index| ("HOSTLER_ARRAY_INDEX", index.to_string())));
    own
}

/// Which GPUs a task sees. One without any is told so, or it would see all.
fn gpus(shim: &ShimOrder, task: &TaskOrder) -> Vec<(&'static str, String)> {
    let numbers: Vec<String> = task.gpus.iter().map(|(gpu, _)| gpu.to_string()).collect();
    let mut variables = vec![
        // The order in which NVML counts.
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()),
        ("CUDA_VISIBLE_DEVICES", numbers.join(",")),
    ];
    let fraction = task.gpus.iter().map(|(_, milli)| *milli).filter(|milli| *milli < 1000).max();
    let (Some(milli), Some(pipes)) = (fraction, &shim.mps_pipes) else { return variables };
    variables.push(("CUDA_MPS_PIPE_DIRECTORY", pipes.display().to_string()));
    variables.push(("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", milli.div_ceil(10).to_string()));
    if task.gpu_mem_mib > 0 {
        // Devices are counted among those that are visible.
        let limits: Vec<String> =
            (0..task.gpus.len()).map(|seen| format!("{seen}={}M", task.gpu_mem_mib)).collect();
        variables.push(("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limits.join(",")));
    }
    variables
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::agent::shim::tests::shim_order;

    fn check(mut shim: ShimOrder, task: TaskOrder, expected: Expect) {
        shim.order.tasks = vec![task.clone()];
        let lines = environment(&shim, &task).into_iter();
        let text: String = lines.map(|(name, value)| format!("{name}={value}\n")).collect();
        expected.assert_eq(&text);
    }

    #[test]
    fn a_task_with_two_gpus_sees_them_and_its_gang() {
        let mut shim = shim_order(&["train"]);
        shim.order.world_size = 4;
        shim.order.restart = 2;
        shim.order.array_index = Some(5);
        // The job's own words go over the small ones, and Hostler's over the job's.
        shim.order.env = [("LANG", "de_DE"), ("RANK", "9"), ("DATA", "/d")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let task =
            TaskOrder { rank: 3, local_rank: 1, gpus: vec![(2, 1000), (5, 1000)], gpu_mem_mib: 0 };
        check(
            shim,
            task,
            expect![[r#"
            CUDA_DEVICE_ORDER=PCI_BUS_ID
            CUDA_VISIBLE_DEVICES=2,5
            DATA=/d
            HOSTLER_ARRAY_INDEX=5
            HOSTLER_CHECKPOINT_DIR=/data/checkpoints/3
            HOSTLER_JOB=3
            HOSTLER_LEASE=7
            HOSTLER_RESTART=2
            HOSTLER_SOCKET=/data/leases/7/socket
            LANG=de_DE
            LOCAL_RANK=1
            LOCAL_WORLD_SIZE=1
            MASTER_ADDR=10.0.0.1
            MASTER_PORT=29500
            PATH=/usr/bin:/bin
            RANK=3
            SHELL=/bin/sh
            WORLD_SIZE=4
        "#]],
        );
    }

    #[test]
    fn a_fraction_is_kept_to_its_share_by_mps() {
        let mut shim = shim_order(&["train"]);
        shim.mps_pipes = Some("/data/mps".into());
        let task = TaskOrder { rank: 0, local_rank: 0, gpus: vec![(1, 333)], gpu_mem_mib: 4096 };
        check(
            shim,
            task,
            expect![[r#"
            CUDA_DEVICE_ORDER=PCI_BUS_ID
            CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=34
            CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4096M
            CUDA_MPS_PIPE_DIRECTORY=/data/mps
            CUDA_VISIBLE_DEVICES=1
            HOSTLER_CHECKPOINT_DIR=/data/checkpoints/3
            HOSTLER_JOB=3
            HOSTLER_LEASE=7
            HOSTLER_RESTART=0
            HOSTLER_SOCKET=/data/leases/7/socket
            LANG=C.UTF-8
            LOCAL_RANK=0
            LOCAL_WORLD_SIZE=1
            MASTER_ADDR=10.0.0.1
            MASTER_PORT=29500
            PATH=/usr/bin:/bin
            RANK=0
            SHELL=/bin/sh
            WORLD_SIZE=1
        "#]],
        );
    }
}
