//! Which nodes have room, by GPU class and by how much of it is free.
//!
//! A class is one GPU model, or the nodes without GPUs. Inside a class, nodes are sorted by the
//! number of untouched devices (`levels`) and by the largest rest of a touched one (`rests`), so
//! that a search touches only nodes that can hold the GPU part of a demand.

use super::bitset::BitSet;
use super::{DeviceFree, NodeFree};
use crate::units::Milli;

/// Rests are sorted in steps of this many thousandths of a device.
const REST_STEP: u16 = 100;
const REST_CLASSES: usize = 11;
/// Devices are counted by rest in finer steps, for the bound on fractions.
const COUNT_STEP: u16 = 50;
const COUNT_CLASSES: usize = 21;

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

/// Nodes of one GPU class by free room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClassIndex {
    levels: Vec<BitSet>,
    rests: [BitSet; REST_CLASSES],
    whole_devices: u32,
    touched_devices: [u32; COUNT_CLASSES],
}

impl ClassIndex {
    pub(super) fn add_node(&mut self, id: u32, node: &NodeFree, devices: &[DeviceFree]) {
        let level = usize::from(node.whole);
        if level >= self.levels.len() {
            self.levels.resize_with(level + 1, BitSet::default);
        }
        self.levels[level].insert(id);
        if node.rest > 0 {
            self.rests[usize::from(node.rest / REST_STEP)].insert(id);
        }
        self.whole_devices += u32::from(node.whole);
        for device in devices.iter().filter(|device| device.is_touched()) {
            self.touched_devices[usize::from(device.compute / COUNT_STEP)] += 1;
        }
    }

    pub(super) fn remove_node(&mut self, id: u32, node: &NodeFree, devices: &[DeviceFree]) {
        self.levels[usize::from(node.whole)].remove(id);
        if node.rest > 0 {
            self.rests[usize::from(node.rest / REST_STEP)].remove(id);
        }
        self.whole_devices -= u32::from(node.whole);
        for device in devices.iter().filter(|device| device.is_touched()) {
            self.touched_devices[usize::from(device.compute / COUNT_STEP)] -= 1;
        }
    }

    /// At most this many tasks that ask for `gpu` can find their GPUs here.
    pub(super) fn slots_bound(&self, gpu: Milli) -> u32 {
        if gpu.0 >= 1000 {
            return self.whole_devices / gpu.whole();
        }
        let per_rest = |(class, count): (usize, &u32)| {
            let most = (class as u32 * u32::from(COUNT_STEP) + u32::from(COUNT_STEP) - 1).min(1000);
            count * (most / gpu.0)
        };
        let rests: u32 = self.touched_devices.iter().enumerate().map(per_rest).sum();
        rests + self.whole_devices * (1000 / gpu.0)
    }

    /// Visits nodes whose untouched devices number at least `least`, in the order of `walk`.
    pub(super) fn visit_levels(
        &self,
        walk: Walk,
        least: usize,
        visit: &mut impl FnMut(u32) -> bool,
    ) -> bool {
        let Some(levels) = self.levels.get(least..) else {
            return false;
        };
        match walk {
            Walk::Tightest => levels.iter().any(|level| level.visit(visit)),
            Walk::Roomiest => levels.iter().rev().any(|level| level.visit(visit)),
            Walk::ById => union_of(levels.iter()).visit(visit),
        }
    }

    /// Visits nodes with a touched device that may have `rest` left, in the order of `walk`.
    pub(super) fn visit_rests(
        &self,
        walk: Walk,
        rest: Milli,
        visit: &mut impl FnMut(u32) -> bool,
    ) -> bool {
        let rests = &self.rests[rest.0 as usize / usize::from(REST_STEP)..];
        match walk {
            Walk::Tightest => rests.iter().any(|class| class.visit(visit)),
            Walk::Roomiest => rests.iter().rev().any(|class| class.visit(visit)),
            Walk::ById => union_of(rests.iter()).visit(visit),
        }
    }

    /// Visits nodes with room for a fraction, by number.
    pub(super) fn visit_fraction_by_id(
        &self,
        rest: Milli,
        visit: &mut impl FnMut(u32) -> bool,
    ) -> bool {
        let rests = &self.rests[rest.0 as usize / usize::from(REST_STEP)..];
        union_of(rests.iter().chain(self.levels.iter().skip(1))).visit(visit)
    }

    /// Visits nodes with exactly `level` untouched devices, by number.
    pub(super) fn visit_level(&self, level: usize, visit: &mut impl FnMut(u32) -> bool) -> bool {
        self.levels.get(level).is_some_and(|set| set.visit(visit))
    }

    pub(super) fn level_count(&self) -> usize {
        self.levels.len()
    }
}

fn union_of<'a>(sets: impl Iterator<Item = &'a BitSet>) -> BitSet {
    sets.filter(|set| !set.is_empty())
        .fold(BitSet::default(), |mut all, set| {
            all.union(set);
            all
        })
}
