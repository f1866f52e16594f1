//! Which nodes have room, by GPU class and by how much of it is free.
//!
//! A class is one GPU model, or the nodes without GPUs. Inside a class, nodes are sorted by the
//! number of untouched devices (`levels`) or by the largest rest of a touched one (`rests`), and
//! then by free CPU cores in powers of two: a search touches only nodes that can hold the GPU part
//! of a demand and have about enough CPU. GPUs stranded without CPU are common, and a search that
//! looked at them each time would spend most of its time there.

use super::bitset::BitSet;
use super::{DeviceFree, NodeFree};
use crate::job::Demand;
use crate::units::Milli;

/// Rests are sorted in steps of this many thousandths of a device.
const REST_STEP: u16 = 100;
const REST_CLASSES: usize = 11;
/// Devices are counted by rest in finer steps, for the bound on fractions.
const COUNT_STEP: u16 = 50;
const COUNT_CLASSES: usize = 21;
/// Free cores: none, 1, 2-3, 4-7 and so on; the last class has no upper end.
const CORE_CLASSES: usize = 8;

/// Order in which a search visits nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Least free first: keeps large holes whole.
    Tightest,
    /// Most free first.
    Roomiest,
    /// By node number.
    ById,
}

/// Nodes of equal GPU room by free cores.
type ByCores = [BitSet; CORE_CLASSES];

/// Nodes of one GPU class by free room.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ClassIndex {
    levels: Vec<ByCores>,
    rests: [ByCores; REST_CLASSES],
    counts: [Counts; CORE_CLASSES],
    /// Free compute on nodes that are kept for nothing, in thousandths of a device.
    open: u64,
}

impl Clone for ClassIndex {
    fn clone(&self) -> ClassIndex {
        let mut copy = ClassIndex::default();
        copy.clone_from(self);
        copy
    }

    fn clone_from(&mut self, source: &ClassIndex) {
        self.levels.clone_from(&source.levels);
        self.rests.clone_from(&source.rests);
        self.counts.clone_from(&source.counts);
        self.open = source.open;
    }
}

/// What the nodes with about equally many free cores have, for bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    nodes: u32,
    whole_devices: u32,
    touched_devices: [u32; COUNT_CLASSES],
}

fn core_class(cpu: Milli) -> usize {
    let cores = cpu.0 / 1000;
    ((32 - cores.leading_zeros()) as usize).min(CORE_CLASSES - 1)
}

/// At most this many tasks that ask for `cpu` fit a node of the class.
fn tasks_by_cores(class: usize, cpu: Milli) -> u32 {
    if class == CORE_CLASSES - 1 {
        return u32::MAX;
    }
    ((1000u32 << class) - 1).checked_div(cpu.0).unwrap_or(u32::MAX)
}

impl ClassIndex {
    pub(super) fn add_node(&mut self, id: u32, node: &NodeFree, devices: &[DeviceFree]) {
        let (level, cores) = (usize::from(node.whole), core_class(node.cpu));
        if level >= self.levels.len() {
            self.levels.resize_with(level + 1, ByCores::default);
        }
        self.levels[level][cores].insert(id);
        if node.rest > 0 {
            self.rests[usize::from(node.rest / REST_STEP)][cores].insert(id);
        }
        self.open += open(node);
        let counts = &mut self.counts[cores];
        counts.nodes += 1;
        counts.whole_devices += u32::from(node.whole);
        for device in devices.iter().filter(|device| device.is_touched()) {
            counts.touched_devices[usize::from(device.compute / COUNT_STEP)] += 1;
        }
    }

    pub(super) fn remove_node(&mut self, id: u32, node: &NodeFree, devices: &[DeviceFree]) {
        let cores = core_class(node.cpu);
        self.levels[usize::from(node.whole)][cores].remove(id);
        if node.rest > 0 {
            self.rests[usize::from(node.rest / REST_STEP)][cores].remove(id);
        }
        self.open -= open(node);
        let counts = &mut self.counts[cores];
        counts.nodes -= 1;
        counts.whole_devices -= u32::from(node.whole);
        for device in devices.iter().filter(|device| device.is_touched()) {
            counts.touched_devices[usize::from(device.compute / COUNT_STEP)] -= 1;
        }
    }

    /// Free compute on nodes that are kept for nothing.
    pub(super) fn open(&self) -> u64 {
        self.open
    }

    /// At most this many tasks of `demand` fit here: what the nodes hold, by free cores.
    pub(super) fn slots_bounds(&self, demand: &Demand) -> impl Iterator<Item = u32> {
        let least = core_class(demand.cpu);
        let classes = self.counts.iter().enumerate().skip(least);
        classes.filter(|(_, counts)| counts.nodes > 0).map(|(class, counts)| {
            let by_cores = counts.nodes.saturating_mul(tasks_by_cores(class, demand.cpu));
            by_cores.min(counts.by_gpu(demand.gpu))
        })
    }

    /// Visits nodes whose untouched devices number at least `least`, in the order of `walk`.
    pub(super) fn visit_levels(
        &self,
        walk: Walk,
        least: usize,
        cpu: Milli,
        visit: &mut impl FnMut(u32) -> bool,
    ) -> bool {
        let Some(levels) = self.levels.get(least..) else { return false };
        visit_sets(walk, levels, cpu, visit)
    }

    /// Visits nodes with a touched device that may have `rest` left, in the order of `walk`.
    pub(super) fn visit_rests(
        &self,
        walk: Walk,
        rest: Milli,
        cpu: Milli,
        visit: &mut impl FnMut(u32) -> bool,
    ) -> bool {
        visit_sets(walk, &self.rests[rest.0 as usize / usize::from(REST_STEP)..], cpu, visit)
    }

    /// Visits nodes with exactly `level` untouched devices, fewest free cores first.
    pub(super) fn visit_level(
        &self,
        level: usize,
        cpu: Milli,
        visit: &mut impl FnMut(u32) -> bool,
    ) -> bool {
        let Some(sets) = self.levels.get(level) else { return false };
        sets[core_class(cpu)..].iter().any(|set| set.visit(visit))
    }

    pub(super) fn level_count(&self) -> usize {
        self.levels.len()
    }
}

/// What a node adds to the free compute that is open to all.
fn open(node: &NodeFree) -> u64 {
    if node.kept.is_none() { u64::from(node.compute) } else { 0 }
}

fn visit_sets(
    walk: Walk,
    groups: &[ByCores],
    cpu: Milli,
    visit: &mut impl FnMut(u32) -> bool,
) -> bool {
    let least = core_class(cpu);
    match walk {
        Walk::Tightest => {
            groups.iter().any(|sets| sets[least..].iter().any(|set| set.visit(visit)))
        }
        Walk::Roomiest => {
            groups.iter().rev().any(|sets| sets[least..].iter().rev().any(|set| set.visit(visit)))
        }
        Walk::ById => {
            let mut all = BitSet::default();
            groups.iter().flat_map(|sets| &sets[least..]).for_each(|set| all.union(set));
            all.visit(visit)
        }
    }
}

impl Counts {
    fn by_gpu(&self, gpu: Milli) -> u32 {
        if gpu.0 >= 1000 {
            return self.whole_devices / gpu.whole();
        }
        let Some(per_whole) = 1000u32.checked_div(gpu.0) else { return u32::MAX };
        let per_rest = |(class, count): (usize, &u32)| {
            let most = (class as u32 * u32::from(COUNT_STEP) + u32::from(COUNT_STEP) - 1).min(1000);
            count.saturating_mul(most / gpu.0)
        };
        // Lower classes hold none; most of the others are empty, and a division costs.
        let least = gpu.0 as usize / usize::from(COUNT_STEP);
        let held = self.touched_devices.iter().enumerate().skip(least);
        let rests: u32 = held.filter(|(_, count)| **count > 0).map(per_rest).sum();
        rests + self.whole_devices * per_whole
    }
}
