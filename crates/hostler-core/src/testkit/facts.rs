//! Facts and placements, each in one short call.

use std::sync::Arc;

use crate::cluster::{GpuModel, NodeSpec, Share};
use crate::event::{Event, Outcome};
use crate::id::{DeviceId, Features, JobId, LeaseId, ModelId, NodeId};
use crate::job::{Demand, Gang, JobKind, JobSpec};
use crate::placement::{Part, Placement, Slice};
use crate::units::{Mib, Milli, Span, Time};

pub(crate) fn secs(secs: u64) -> Time {
    Time::from_secs(secs)
}

/// Devices of model 0 have 1000 MiB and can be cut in four; those of model 1 are worth more, have
/// 2000 MiB and cannot be cut.
pub(crate) fn gpu_model(id: u32) -> Event {
    let [mem, mig_slices] = if id == 0 { [1000, 4] } else { [2000, 0] };
    let spec = GpuModel {
        name: ["h200", "b200"][id as usize].into(),
        mem: Mib(mem),
        tier: id,
        mig_slices,
        idle_watts: 100,
        busy_watts: 500,
    };
    Event::ModelAdded { model: ModelId(id), spec }
}

/// A node of 200 W with GPUs of model 0, 100 cores and 1000 MiB.
pub(crate) fn node_spec(id: u32, gpus: u32) -> NodeSpec {
    NodeSpec {
        name: format!("n{id}").into(),
        cpu: Milli(100_000),
        mem: Mib(1000),
        gpu_model: (gpus > 0).then_some(ModelId(0)),
        gpus,
        island_gpus: 0,
        rack: 0,
        base_watts: 200,
        features: Features::default(),
    }
}

pub(crate) fn node_up(id: u32, gpus: u32) -> Event {
    Event::NodeUp { node: NodeId(id), spec: node_spec(id, gpus) }
}

pub(crate) fn node_down(id: u32) -> Event {
    Event::NodeDown { node: NodeId(id) }
}

/// A training job of one task with one core.
pub(crate) fn job(name: &str, gpu: u32) -> JobSpec {
    let gangs = [gang(1, gpu)].into();
    JobSpec { name: name.into(), kind: JobKind::Training, gangs, ..JobSpec::default() }
}

pub(crate) fn gang(count: u32, gpu: u32) -> Gang {
    Gang { count, demand: Demand { gpu: Milli(gpu), cpu: Milli(1000), ..Demand::default() } }
}

pub(crate) fn submit(id: u32, spec: JobSpec) -> Event {
    Event::Submitted { job: JobId(id), spec: Arc::new(spec) }
}

pub(crate) fn cancel(id: u32) -> Event {
    Event::Cancelled { job: JobId(id) }
}

pub(crate) fn held(id: u32, held: bool) -> Event {
    Event::HoldChanged { job: JobId(id), held }
}

pub(crate) fn kept_back(id: u32, kept: bool) -> Event {
    Event::KeptBack { job: JobId(id), kept }
}

/// A job was found to run, and to have done so many seconds of work.
pub(crate) fn adopted(lease: u32, job: u32, placement: Placement, done: u64) -> Event {
    let (lease, job, done) = (LeaseId(lease), JobId(job), Span::from_secs(done));
    Event::Adopted { lease, job, placement: Arc::new(placement), done }
}

pub(crate) fn started(lease: u32) -> Event {
    Event::Started { lease: LeaseId(lease) }
}

pub(crate) fn start_failed(lease: u32) -> Event {
    Event::StartFailed { lease: LeaseId(lease) }
}

pub(crate) fn finished(lease: u32, done: u64) -> Event {
    stopped(lease, Outcome::Finished, done, 0)
}

pub(crate) fn stopped(lease: u32, outcome: Outcome, done: u64, lost: u64) -> Event {
    let (done, lost) = (Span::from_secs(done), Span::from_secs(lost));
    Event::Stopped { lease: LeaseId(lease), outcome, done, lost }
}

/// Whole devices of one node for one task.
pub(crate) fn whole(node: u32, devices: &[u32]) -> Placement {
    tasks(node, 1, devices)
}

/// Whole devices of one node for some tasks.
pub(crate) fn tasks(node: u32, tasks: u32, devices: &[u32]) -> Placement {
    shared(node, tasks, devices.iter().map(|id| (*id, Share::Whole)))
}

/// A part of one device, with as many MiB as thousandths.
pub(crate) fn fraction(node: u32, device: u32, compute: u32) -> Placement {
    let (compute, mem) = (Milli(compute), Mib(compute));
    shared(node, 1, [(device, Share::Fraction { compute, mem })])
}

/// Tasks without GPU.
pub(crate) fn cpu(node: u32, tasks: u32) -> Placement {
    shared(node, tasks, [])
}

/// Tasks on shares of devices of one node.
pub(crate) fn shared(
    node: u32,
    tasks: u32,
    shares: impl IntoIterator<Item = (u32, Share)>,
) -> Placement {
    let slice = |(device, share)| Slice { device: DeviceId(device), share };
    let part = Part {
        gang: 0,
        node: NodeId(node),
        tasks,
        cpu: Milli(1000 * tasks),
        mem: Mib(0),
        slices: shares.into_iter().map(slice).collect(),
    };
    Placement { parts: vec![part] }
}

/// Placements of one role, as one.
pub(crate) fn together(placements: impl IntoIterator<Item = Placement>) -> Placement {
    Placement { parts: placements.into_iter().flat_map(|placement| placement.parts).collect() }
}

/// The same for another role of the job.
pub(crate) fn as_role(gang: u32, mut placement: Placement) -> Placement {
    placement.parts.iter_mut().for_each(|part| part.gang = gang);
    placement
}
