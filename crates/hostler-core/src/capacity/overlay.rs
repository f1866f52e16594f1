//! A look ahead: what is free on a few nodes at another time, beside what is free now.
//!
//! A copy of a [`Capacity`] costs the cluster, and its index every change. Who only asks how many
//! tasks of one demand some nodes hold at another time copies these nodes alone.

use super::{Capacity, DeviceFree, NodeFree};
use crate::id::NodeId;
use crate::job::Demand;
use crate::placement::{Part, Slice};

/// Nodes as they are free at another time. All calls take the same capacity, that of now; a node
/// is copied when it is first changed here, and what becomes of it in the capacity afterwards does
/// not count.
#[derive(Debug, Default)]
pub struct Overlay {
    /// Which copy is that of a node, plus one; zero where there is none.
    copy_of: Vec<u32>,
    copies: Vec<Copied>,
    devices: Vec<DeviceFree>,
}

#[derive(Debug)]
struct Copied {
    id: NodeId,
    free: NodeFree,
    /// Where its devices are among those that were copied.
    first: usize,
}

impl Overlay {
    /// Forgets all copies, and keeps their memory.
    pub fn clear(&mut self) {
        for copied in self.copies.drain(..) {
            self.copy_of[copied.id.index()] = 0;
        }
        self.devices.clear();
    }

    /// Tasks of `demand` that fit a node at that time, capped at `most`.
    pub fn slots(&self, now: &Capacity, id: NodeId, demand: &Demand, most: u32) -> u32 {
        let copy = self.copy_of.get(id.index()).copied().unwrap_or(0);
        let Some(copied) = copy.checked_sub(1).map(|at| &self.copies[at as usize]) else {
            return now.slots(id, demand, most);
        };
        let last = copied.first + usize::from(copied.free.device_count);
        now.slots_of(&copied.free, &self.devices[copied.first..last], demand, most)
    }

    /// Copies a node as it is now, unless that was done before.
    pub fn touch(&mut self, now: &Capacity, id: NodeId) {
        self.copy(now, id);
    }

    /// Gives a part back: it is over by then.
    pub fn release(&mut self, now: &Capacity, part: &Part) {
        self.change(now, part, |free, devices, slices, size| {
            free.cpu += part.cpu;
            free.mem.0 += part.mem.0;
            slices.for_each(|(local, slice)| devices[local].give_back(slice, size));
        });
    }

    /// Books a part that is free: it lasts beyond that time.
    pub fn book(&mut self, now: &Capacity, part: &Part) {
        self.change(now, part, |free, devices, slices, size| {
            assert!(free.cpu >= part.cpu && free.mem >= part.mem, "{part:?} is free");
            free.cpu -= part.cpu;
            free.mem.0 -= part.mem.0;
            slices.for_each(|(local, slice)| {
                assert!(devices[local].take(slice.share, size), "{slice:?} is free");
            });
        });
    }

    fn copy(&mut self, now: &Capacity, id: NodeId) -> usize {
        if self.copy_of.len() <= id.index() {
            self.copy_of.resize(now.node_count().max(id.index() + 1), 0);
        }
        if let Some(at) = self.copy_of[id.index()].checked_sub(1) {
            return at as usize;
        }
        let first = self.devices.len();
        self.devices.extend_from_slice(now.devices_of(id));
        self.copies.push(Copied { id, free: now.nodes[id.index()], first });
        self.copy_of[id.index()] = self.copies.len() as u32;
        self.copies.len() - 1
    }

    fn change(
        &mut self,
        now: &Capacity,
        part: &Part,
        how: impl FnOnce(
            &mut NodeFree,
            &mut [DeviceFree],
            &mut dyn Iterator<Item = (usize, &Slice)>,
            super::ModelSize,
        ),
    ) {
        let at = self.copy(now, part.node);
        let Copied { free, first, .. } = &mut self.copies[at];
        let devices = &mut self.devices[*first..*first + usize::from(free.device_count)];
        let first_device = free.first_device;
        let mut slices =
            part.slices.iter().map(|slice| ((slice.device.0 - first_device) as usize, slice));
        how(free, devices, &mut slices, now.size_on(part.node));
        free.recount(devices);
    }
}
