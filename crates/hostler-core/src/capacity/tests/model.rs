//! A naive book of what is free: plain vectors, every answer by a full scan.

use crate::cluster::{Layout, NodeSpec, Share};
use crate::job::{Demand, Locality};
use crate::placement::{Part, Placement};

pub(super) struct Node {
    pub(super) spec: NodeSpec,
    pub(super) usable: bool,
    pub(super) cpu: u32,
    pub(super) mem: u32,
    pub(super) first: u32,
    pub(super) devices: Vec<Device>,
}

#[derive(Clone)]
pub(super) struct Device {
    pub(super) compute: u32,
    mem: u32,
    pub(super) holders: u32,
    pub(super) layout: Layout,
}

pub(super) struct Model(pub(super) Vec<Node>);

/// Memory of a device by its model, as the test kit has them.
fn device_mem(spec: &NodeSpec) -> u32 {
    spec.gpu_model.map_or(0, |model| [1000, 2000][model.index()])
}

impl Model {
    pub(super) fn new(specs: Vec<NodeSpec>) -> Model {
        let mut first = 0;
        let node = |spec: NodeSpec| {
            let mem = device_mem(&spec);
            let device = Device { compute: 1000, mem, holders: 0, layout: Layout::Shared };
            let devices = vec![device; spec.gpus as usize];
            let node =
                Node { usable: true, cpu: spec.cpu.0, mem: spec.mem.0, first, devices, spec };
            first += node.spec.gpus;
            node
        };
        Model(specs.into_iter().map(node).collect())
    }

    pub(super) fn book(&mut self, placement: &Placement) -> bool {
        for (at, part) in placement.parts.iter().enumerate() {
            if !self.part(part, true) {
                placement.parts[..at].iter().for_each(|part| self.give_back(part));
                return false;
            }
        }
        true
    }

    pub(super) fn release(&mut self, placement: &Placement) {
        placement.parts.iter().for_each(|part| self.give_back(part));
    }

    fn give_back(&mut self, part: &Part) {
        assert!(self.part(part, false));
    }

    fn part(&mut self, part: &Part, take: bool) -> bool {
        let node = &mut self.0[part.node.index()];
        let sign = if take { -1 } else { 1 };
        let changed = |has: u32, by: u32| u32::try_from(i64::from(has) + sign * i64::from(by));
        if take && !node.usable {
            return false;
        }
        let (Ok(cpu), Ok(mem)) = (changed(node.cpu, part.cpu.0), changed(node.mem, part.mem.0))
        else {
            return false;
        };
        let mut devices = node.devices.clone();
        for slice in &part.slices {
            let device = &mut devices[(slice.device.0 - node.first) as usize];
            let alone = slice.share != Share::Whole || device.holders == 0;
            if take && (!alone || device.layout != Layout::Shared) {
                return false;
            }
            let compute = changed(device.compute, slice.share.compute(4).0);
            let mem = slice.share.mem(crate::units::Mib(device_mem(&node.spec))).0;
            let (Ok(compute), Ok(mem)) = (compute, changed(device.mem, mem)) else {
                return false;
            };
            device.holders = if take { device.holders + 1 } else { device.holders - 1 };
            (device.compute, device.mem) = (compute, mem);
        }
        (node.cpu, node.mem, node.devices) = (cpu, mem, devices);
        true
    }
}

impl Node {
    /// Tasks that fit: one after the other, until one does not.
    pub(super) fn slots(&self, demand: &Demand) -> u32 {
        let allowed = self.spec.gpu_model.is_some_and(|model| demand.models.set().contains(model));
        if !self.usable || !self.spec.features.cover(demand.needs) {
            return 0;
        }
        if demand.names_models() && !allowed {
            return 0;
        }
        let mem = demand.device_mem(crate::units::Mib(device_mem(&self.spec))).0;
        if demand.gpu.0 > 0 && demand.gpu_mem.0 > device_mem(&self.spec) {
            return 0;
        }
        let island = match (demand.locality, self.spec.island_gpus) {
            (Locality::Island, size) if size > 0 => size as usize,
            _ => self.devices.len().max(1),
        };
        let by_gpu = |devices: &[Device]| {
            let whole = devices.iter().filter(|device| device.is_whole()).count() as u32;
            let rest = |device: &Device| {
                let by_mem = device.mem.checked_div(mem).unwrap_or(u32::MAX);
                (device.compute / demand.gpu.0.max(1)).min(by_mem)
            };
            match demand.gpu.0 {
                0 => u32::MAX,
                gpu if gpu < 1000 => {
                    let shared = |device: &&Device| device.layout == Layout::Shared;
                    devices.iter().filter(shared).map(rest).sum()
                }
                gpu => whole / (gpu / 1000),
            }
        };
        let gpus = self.devices.chunks(island).map(by_gpu).max();
        let gpus = gpus.unwrap_or(if demand.gpu.0 == 0 { u32::MAX } else { 0 });
        let cpu = self.cpu.checked_div(demand.cpu.0).unwrap_or(u32::MAX);
        let mem = self.mem.checked_div(demand.mem.0).unwrap_or(u32::MAX);
        gpus.min(cpu).min(mem).min(demand.locality.tasks_per_node())
    }
}

impl Device {
    pub(super) fn is_whole(&self) -> bool {
        self.holders == 0 && self.layout == Layout::Shared
    }
}
