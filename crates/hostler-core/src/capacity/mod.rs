//! What is free: the book of every node and device, and the index over it.
//!
//! A [`Capacity`] refuses to book what is taken. The state owns one; a plan borrows it for one
//! question; backfilling policies look ahead on an [`Overlay`].

mod bitset;
mod fit;
mod index;
mod overlay;
mod search;

pub use index::Walk;
pub use overlay::Overlay;

use index::ClassIndex;
use serde::{Deserialize, Serialize};

use crate::cluster::{GpuModel, Layout, Node, Share};
use crate::id::{DeviceId, Features, ModelId, NodeId};
use crate::placement::{Part, Placement, Slice};
use crate::units::{Mib, Milli};
use crate::window::Kept;

/// Free resources of every node and device.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    nodes: Vec<NodeFree>,
    /// CPU and memory that each node has in all.
    sizes: Vec<(Milli, Mib)>,
    devices: Vec<DeviceFree>,
    classes: Vec<ClassIndex>,
    /// What all nodes of a class have and have free, by class.
    totals: Vec<ClassTotals>,
    /// GPU classes from low to high tier; the class without GPUs first.
    by_tier: Vec<u8>,
    models: Vec<ModelSize>,
}

impl Clone for Capacity {
    fn clone(&self) -> Capacity {
        let mut copy = Capacity::default();
        copy.clone_from(self);
        copy
    }

    /// Uses the memory that it has: much cheaper than a copy into fresh memory, because the index
    /// is many small sets.
    fn clone_from(&mut self, source: &Capacity) {
        let Capacity { nodes, sizes, devices, classes, totals, by_tier, models } = source;
        self.nodes.clone_from(nodes);
        self.sizes.clone_from(sizes);
        self.devices.clone_from(devices);
        self.classes.clone_from(classes);
        self.totals.clone_from(totals);
        self.by_tier.clone_from(by_tier);
        self.models.clone_from(models);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ModelSize {
    mem: Mib,
    mig_slices: u32,
    tier: u32,
}

/// What the nodes of a class have and have free, whether they take jobs or not: compute of their
/// devices and cores, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTotals {
    /// Compute in all.
    pub gpu: u64,
    /// Compute that is free.
    pub gpu_free: u64,
    /// Cores in all.
    pub cpu: u64,
    /// Cores that are free.
    pub cpu_free: u64,
}

/// Free resources of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFree {
    /// CPU cores.
    pub cpu: Milli,
    /// Main memory.
    pub mem: Mib,
    /// Devices that nobody holds a part of.
    pub whole: u8,
    /// Whether new jobs may be placed here.
    pub usable: bool,
    /// What it is kept for: not all jobs may be placed here then.
    pub kept: Option<Kept>,
    /// Largest free part of a device that somebody holds a part of, in thousandths.
    rest: u16,
    /// Free compute of all its devices.
    compute: u32,
    class: u8,
    device_count: u8,
    island_gpus: u8,
    first_device: u32,
    rack: u32,
    pub(crate) features: Features,
}

/// Free part of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeviceFree {
    compute: u16,
    holders: u16,
    mem: u32,
    slices: u8,
    layout: Layout,
}

impl DeviceFree {
    fn is_whole(&self) -> bool {
        self.holders == 0 && self.layout == Layout::Shared
    }

    fn is_touched(&self) -> bool {
        self.holders > 0 && self.layout == Layout::Shared
    }

    /// Takes a share, if it is free.
    fn take(&mut self, share: Share, size: ModelSize) -> bool {
        let compute = share.compute(size.mig_slices).0;
        let mem = share.mem(size.mem).0;
        let mask = slice_mask(share);
        let layout = match share {
            Share::Mig { .. } => Layout::Mig,
            Share::Whole | Share::Fraction { .. } | Share::Packed { .. } => Layout::Shared,
        };
        let alone = share != Share::Whole || self.holders == 0;
        let fits = compute <= u32::from(self.compute) && mem <= self.mem && self.slices & mask == 0;
        if !alone || !fits || layout != self.layout {
            return false;
        }
        self.compute -= compute as u16;
        self.mem -= mem;
        self.slices |= mask;
        self.holders += 1;
        true
    }

    fn give_back(&mut self, slice: &Slice, size: ModelSize) {
        assert!(self.holders > 0, "{:?} is given back twice", slice.device);
        self.compute += slice.share.compute(size.mig_slices).0 as u16;
        self.mem += slice.share.mem(size.mem).0;
        self.slices &= !slice_mask(slice.share);
        self.holders -= 1;
        assert!(self.compute <= 1000, "{:?} has more than itself free", slice.device);
    }
}

impl NodeFree {
    /// Counts again what its devices have free.
    fn recount(&mut self, devices: &[DeviceFree]) {
        (self.whole, self.rest, self.compute) = (0, 0, 0);
        for device in devices {
            self.compute += u32::from(device.compute);
            if device.is_whole() {
                self.whole += 1;
            } else if device.is_touched() {
                self.rest = self.rest.max(device.compute);
            }
        }
    }
}

/// Why a booking was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    /// The node takes no new jobs.
    #[error("{0:?} takes no new jobs")]
    Unusable(NodeId),
    /// Too little CPU is free.
    #[error("{0:?} has too little free CPU")]
    Cpu(NodeId),
    /// Too little memory is free.
    #[error("{0:?} has too little free memory")]
    Mem(NodeId),
    /// The part of the device is taken, or the device is elsewhere.
    #[error("{0:?} is taken")]
    Device(DeviceId),
}

impl Capacity {
    pub(crate) fn add_model(&mut self, model: &GpuModel) {
        let size = ModelSize { mem: model.mem, mig_slices: model.mig_slices, tier: model.tier };
        self.models.push(size);
        self.classes.resize_with(self.models.len() + 1, ClassIndex::default);
        self.totals.resize(self.models.len() + 1, ClassTotals::default());
        let mut by_tier: Vec<u8> = (0..=self.models.len() as u8).collect();
        by_tier.sort_by_key(|&class| match class {
            0 => (0, 0),
            gpu => (1, self.models[usize::from(gpu) - 1].tier),
        });
        self.by_tier = by_tier;
    }

    pub(crate) fn add_node(&mut self, node: &Node) {
        if self.classes.is_empty() {
            self.classes.push(ClassIndex::default());
            self.totals.push(ClassTotals::default());
            self.by_tier.push(0);
        }
        assert_eq!(node.first_device.index(), self.devices.len(), "devices are numbered in order");
        let class = node.spec.gpu_model.map_or(0, |model| model.0 as u8 + 1);
        let device_mem = match class {
            0 => 0,
            gpu => self.models[usize::from(gpu) - 1].mem.0,
        };
        let device = DeviceFree {
            compute: 1000,
            holders: 0,
            mem: device_mem,
            slices: 0,
            layout: Layout::Shared,
        };
        self.devices.extend(std::iter::repeat_n(device, node.spec.gpus as usize));
        self.sizes.push((node.spec.cpu, node.spec.mem));
        let totals = &mut self.totals[usize::from(class)];
        let (gpu, cpu) = (u64::from(node.spec.gpus) * 1000, u64::from(node.spec.cpu.0));
        (totals.gpu, totals.gpu_free) = (totals.gpu + gpu, totals.gpu_free + gpu);
        (totals.cpu, totals.cpu_free) = (totals.cpu + cpu, totals.cpu_free + cpu);
        self.nodes.push(NodeFree {
            cpu: node.spec.cpu,
            mem: node.spec.mem,
            whole: node.spec.gpus as u8,
            usable: false,
            kept: node.kept,
            rest: 0,
            compute: 0,
            class,
            device_count: node.spec.gpus as u8,
            island_gpus: node.spec.island_gpus as u8,
            first_device: node.first_device.0,
            rack: node.spec.rack,
            features: node.spec.features,
        });
        self.list(node.id);
        self.set_usable(node.id, node.usable());
    }

    pub(crate) fn set_usable(&mut self, id: NodeId, usable: bool) {
        if self.nodes[id.index()].usable != usable {
            self.unlist(id);
            self.nodes[id.index()].usable = usable;
            self.list(id);
        }
    }

    pub(crate) fn set_kept(&mut self, id: NodeId, kept: Option<Kept>) {
        self.unlist(id);
        self.nodes[id.index()].kept = kept;
        self.list(id);
    }

    pub(crate) fn set_features(&mut self, id: NodeId, features: Features) {
        self.nodes[id.index()].features = features;
    }

    /// How a device is divided.
    pub fn layout(&self, device: DeviceId) -> Layout {
        self.devices[device.index()].layout
    }

    pub(crate) fn set_layout(&mut self, node: NodeId, device: DeviceId, layout: Layout) {
        self.unlist(node);
        let free = &mut self.devices[device.index()];
        assert_eq!(free.holders, 0, "{device:?} is repartitioned while in use");
        free.layout = layout;
        self.list(node);
    }

    /// Free resources of a node.
    pub fn node(&self, id: NodeId) -> &NodeFree {
        &self.nodes[id.index()]
    }

    /// The GPU model of a node.
    pub fn model(&self, id: NodeId) -> Option<ModelId> {
        self.nodes[id.index()].class.checked_sub(1).map(|model| ModelId(model.into()))
    }

    /// The rack that a node is in.
    pub fn rack(&self, id: NodeId) -> u32 {
        self.nodes[id.index()].rack
    }

    /// Parts of a node that are booked: GPU compute, CPU, memory. None for what it does not have.
    pub fn booked_shares(&self, id: NodeId) -> [Option<f64>; 3] {
        let node = &self.nodes[id.index()];
        let (cpu, mem) = self.sizes[id.index()];
        // What is free is divided, not what is taken: the published simulator does so, and halves
        // of a per cent are rounded by the last bit.
        let share = |free: u32, all: u32| (all > 0).then(|| 1.0 - f64::from(free) / f64::from(all));
        let gpus = u32::from(node.device_count) * 1000;
        let gpu = if gpus == 0 { None } else { share(self.gpu_free(id).0, gpus) };
        [gpu, share(node.cpu.0, cpu.0), share(node.mem.0, mem.0)]
    }

    /// Number of nodes, usable or not.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Compute of the devices of a node, free or not.
    pub fn gpu_size(&self, id: NodeId) -> Milli {
        Milli(u32::from(self.nodes[id.index()].device_count) * 1000)
    }

    /// CPU cores and main memory of a node, free or not.
    pub fn size(&self, id: NodeId) -> (Milli, Mib) {
        self.sizes[id.index()]
    }

    /// Free compute on the devices of a node, over all of them.
    pub fn gpu_free(&self, id: NodeId) -> Milli {
        Milli(self.nodes[id.index()].compute)
    }

    /// What all nodes with GPUs of a model, or without GPUs, have and have free.
    pub fn totals(&self, model: Option<ModelId>) -> ClassTotals {
        let class = model.map_or(0, |model| model.index() + 1);
        self.totals.get(class).copied().unwrap_or_default()
    }

    /// Free compute on GPUs of a model, on nodes that take jobs and are kept for none.
    pub fn open_gpu(&self, model: ModelId) -> u64 {
        self.classes.get(model.index() + 1).map_or(0, ClassIndex::open)
    }

    /// Free compute on devices that are partly held: idle, but of no use to whole-GPU jobs.
    pub fn gpu_rest(&self, id: NodeId) -> Milli {
        let touched = self.devices_of(id).iter().filter(|device| device.holders > 0);
        Milli(touched.map(|device| u32::from(device.compute)).sum())
    }

    /// Books all parts, or none.
    pub fn book(&mut self, placement: &Placement) -> Result<(), Refusal> {
        for (at, part) in placement.parts.iter().enumerate() {
            if let Err(refusal) = self.book_part(part) {
                placement.parts[..at].iter().for_each(|part| self.release_part(part));
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Books what was given back on trial, on nodes that may take no new jobs by now.
    pub(crate) fn book_again(&mut self, placement: &Placement) {
        self.keep(placement).expect("what was lifted is still free");
    }

    /// Books all parts of a job that is there already, or none: its nodes need not take new jobs.
    pub(crate) fn keep(&mut self, placement: &Placement) -> Result<(), Refusal> {
        for (at, part) in placement.parts.iter().enumerate() {
            let usable = self.nodes[part.node.index()].usable;
            self.set_usable(part.node, true);
            let kept = self.book_part(part);
            self.set_usable(part.node, usable);
            if let Err(refusal) = kept {
                placement.parts[..at].iter().for_each(|part| self.release_part(part));
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Gives all parts back.
    pub fn release(&mut self, placement: &Placement) {
        placement.parts.iter().for_each(|part| self.release_part(part));
    }

    /// Books one part, or nothing.
    pub fn book_part(&mut self, part: &Part) -> Result<(), Refusal> {
        let node = self.nodes[part.node.index()];
        if !node.usable {
            return Err(Refusal::Unusable(part.node));
        }
        if node.cpu < part.cpu {
            return Err(Refusal::Cpu(part.node));
        }
        if node.mem < part.mem {
            return Err(Refusal::Mem(part.node));
        }
        self.unlist(part.node);
        let refused = self.book_slices(&node, &part.slices);
        if refused.is_ok() {
            let free = &mut self.nodes[part.node.index()];
            free.cpu -= part.cpu;
            free.mem.0 -= part.mem.0;
            let compute = self.compute_of(part);
            let totals = &mut self.totals[usize::from(node.class)];
            totals.gpu_free -= compute;
            totals.cpu_free -= u64::from(part.cpu.0);
        }
        self.list(part.node);
        refused
    }

    /// Gives one part back.
    pub fn release_part(&mut self, part: &Part) {
        self.unlist(part.node);
        for slice in &part.slices {
            self.release_slice(slice, self.size_on(part.node));
        }
        let free = &mut self.nodes[part.node.index()];
        free.cpu += part.cpu;
        free.mem.0 += part.mem.0;
        let class = usize::from(free.class);
        let compute = self.compute_of(part);
        self.totals[class].gpu_free += compute;
        self.totals[class].cpu_free += u64::from(part.cpu.0);
        self.list(part.node);
    }

    /// Compute that a part books on its devices.
    fn compute_of(&self, part: &Part) -> u64 {
        let slices = self.size_on(part.node).mig_slices;
        part.slices.iter().map(|slice| u64::from(slice.share.compute(slices).0)).sum()
    }

    fn book_slices(&mut self, node: &NodeFree, slices: &[Slice]) -> Result<(), Refusal> {
        let devices = node.first_device..node.first_device + u32::from(node.device_count);
        let size = self.size_of_class(node.class);
        for (at, slice) in slices.iter().enumerate() {
            let inside = devices.contains(&slice.device.0);
            if !inside || !self.book_slice(slice, size) {
                slices[..at].iter().for_each(|slice| self.release_slice(slice, size));
                return Err(Refusal::Device(slice.device));
            }
        }
        Ok(())
    }

    fn book_slice(&mut self, slice: &Slice, size: ModelSize) -> bool {
        self.devices[slice.device.index()].take(slice.share, size)
    }

    fn release_slice(&mut self, slice: &Slice, size: ModelSize) {
        self.devices[slice.device.index()].give_back(slice, size);
    }

    /// Takes a node out of the index while it changes.
    fn unlist(&mut self, id: NodeId) {
        let node = &self.nodes[id.index()];
        if node.usable {
            let devices = devices_of(&self.devices, node);
            self.classes[usize::from(node.class)].remove_node(id.0, node, devices);
        }
    }

    /// Puts a node back into the index where it now belongs.
    fn list(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.index()];
        let devices = devices_of(&self.devices, node);
        node.recount(devices);
        if node.usable {
            self.classes[usize::from(node.class)].add_node(id.0, node, devices);
        }
    }

    fn devices_of(&self, id: NodeId) -> &[DeviceFree] {
        devices_of(&self.devices, &self.nodes[id.index()])
    }

    fn size_on(&self, id: NodeId) -> ModelSize {
        self.size_of_class(self.nodes[id.index()].class)
    }

    fn size_of_class(&self, class: u8) -> ModelSize {
        match class {
            0 => ModelSize { mem: Mib(0), mig_slices: 0, tier: 0 },
            gpu => self.models[usize::from(gpu) - 1],
        }
    }
}

fn devices_of<'a>(devices: &'a [DeviceFree], node: &NodeFree) -> &'a [DeviceFree] {
    let first = node.first_device as usize;
    &devices[first..first + usize::from(node.device_count)]
}

fn slice_mask(share: Share) -> u8 {
    match share {
        Share::Mig { start, slices, .. } => (((1u16 << slices) - 1) << start) as u8,
        Share::Whole | Share::Fraction { .. } | Share::Packed { .. } => 0,
    }
}

#[cfg(test)]
mod tests;
