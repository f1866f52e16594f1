//! What leases use of the GPUs that they have, read now and then while they run.
//!
//! Who shares a device is known by its processes only. One that has a device alone is measured by
//! the device where its processes are not told, as in a container with numbers of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hostler_core::id::LeaseId;
use tokio::sync::mpsc;

use super::core::AgentInput;
use super::folder::{LeaseFolder, read_json};
use super::gpus::{DeviceUse, Gpus};
use super::processes::{Process, processes};
use super::shell::{Incoming, folders};
use super::shim::{Remnants, ShimOrder};

/// Seconds between two looks at the use of the GPUs.
const GPU_USE_SECS: u64 = 5;

/// Reads the use of the GPUs until there is no agent, or nothing to read.
pub(super) async fn sample(gpus: Arc<Gpus>, leases: PathBuf, inbox: mpsc::Sender<Incoming>) {
    let leases = Arc::new(leases);
    let mut seen = Vec::new();
    while !inbox.is_closed() {
        let (reader, folder) = (gpus.clone(), leases.clone());
        let look = tokio::task::spawn_blocking(move || {
            let devices = reader.used(&mut seen);
            let held = if devices.is_empty() { Vec::new() } else { holders(&folder) };
            (devices, held, seen)
        });
        let Ok((devices, held, now_seen)) = look.await else { return };
        if devices.is_empty() {
            return;
        }
        seen = now_seen;
        let samples = samples(&devices, &held);
        let percent = devices.iter().map(|device| device.percent).collect();
        for input in [AgentInput::GpuUse(percent), AgentInput::LeaseUse(samples)] {
            let _ = inbox.send(Incoming::Happened(input)).await;
        }
        tokio::time::sleep(Duration::from_secs(GPU_USE_SECS)).await;
    }
}

/// A lease that has GPUs.
#[derive(Debug)]
struct Holder {
    lease: LeaseId,
    gpus: BTreeSet<usize>,
    pids: BTreeSet<u32>,
}

/// Leases that run on GPUs of this machine and are not suspended, as their folders tell.
fn holders(leases: &Path) -> Vec<Holder> {
    let all = processes();
    let holder = |lease: LeaseId| {
        let folder = LeaseFolder::at(&leases.join(lease.0.to_string()));
        if folder.end().exists() || folder.suspended().exists() {
            return None;
        }
        let shim: ShimOrder = read_json(&folder.order())?;
        let remnants: Remnants = read_json(&folder.pids())?;
        let gpus = shim.order.tasks.iter().flat_map(|task| &task.gpus);
        let gpus: BTreeSet<usize> = gpus.map(|(gpu, _)| *gpu as usize).collect();
        let pids = remnants.running(&all).iter().map(|process: &Process| process.pid).collect();
        (!gpus.is_empty()).then_some(Holder { lease, gpus, pids })
    };
    folders(leases).into_iter().filter_map(holder).collect()
}

/// Mean use of each lease's GPUs in thousandths, of those for which every GPU can be told.
fn samples(devices: &[DeviceUse], holders: &[Holder]) -> Vec<(LeaseId, u32)> {
    let sample = |holder: &Holder| {
        let percent = |gpu: &usize| percent_of(devices.get(*gpu)?, *gpu, holder, holders);
        let used: Option<Vec<u32>> = holder.gpus.iter().map(percent).collect();
        let used = used?;
        Some((holder.lease, used.iter().sum::<u32>() * 10 / used.len() as u32))
    };
    holders.iter().filter_map(sample).collect()
}

fn percent_of(device: &DeviceUse, gpu: usize, holder: &Holder, all: &[Holder]) -> Option<u32> {
    let by = |pids: &BTreeSet<u32>| -> Option<u32> {
        let own = device.by_process.iter().filter(|(pid, _)| pids.contains(pid));
        own.map(|(_, percent)| *percent).reduce(|sum, percent| sum + percent)
    };
    if let Some(percent) = by(&holder.pids) {
        return Some(percent.min(100));
    }
    let on_it = || all.iter().filter(|other| other.gpus.contains(&gpu));
    if on_it().count() == 1 {
        return Some(u32::from(device.percent));
    }
    // Processes of others are told, so this one's do nothing.
    on_it().any(|other| by(&other.pids).is_some()).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(lease: u32, gpus: &[usize], pids: &[u32]) -> Holder {
        let (gpus, pids) = (gpus.iter().copied().collect(), pids.iter().copied().collect());
        Holder { lease: LeaseId(lease), gpus, pids }
    }

    fn device(percent: u8, by_process: &[(u32, u32)]) -> DeviceUse {
        DeviceUse { percent, by_process: by_process.iter().copied().collect() }
    }

    fn sampled(devices: &[DeviceUse], holders: &[Holder]) -> Vec<(u32, u32)> {
        let samples = samples(devices, holders);
        samples.into_iter().map(|(lease, milli)| (lease.0, milli)).collect()
    }

    #[test]
    fn processes_tell_who_uses_a_shared_device() {
        let devices = [device(90, &[(10, 30), (11, 20), (20, 40), (99, 5)])];
        let three = [holder(1, &[0], &[10, 11]), holder(2, &[0], &[20]), holder(3, &[0], &[30])];
        assert_eq!(sampled(&devices, &three), [(1, 500), (2, 400), (3, 0)]);
    }

    #[test]
    fn without_processes_only_who_is_alone_is_measured() {
        let devices = [device(60, &[]), device(40, &[(7, 40)]), device(80, &[])];
        let leases = [holder(1, &[0, 1], &[10]), holder(2, &[2], &[20]), holder(3, &[2], &[30])];
        assert_eq!(sampled(&devices, &leases), [(1, 500)]);
    }

    #[test]
    fn a_device_that_is_not_there_tells_nothing() {
        assert_eq!(sampled(&[device(60, &[])], &[holder(1, &[0, 1], &[10])]), []);
    }
}
