//! How many tasks of a demand one node can hold, and on which of its devices.

use super::{Capacity, DeviceFree, NodeFree};
use crate::cluster::{Layout, Share};
use crate::id::{DeviceId, ModelId, NodeId};
use crate::job::{Demand, Locality};
use crate::limits::DEVICES_PER_NODE_MAX;
use crate::placement::{Part, Slice};
use crate::units::{Mib, Milli};
use crate::window::Kept;

impl Capacity {
    /// Tasks of `demand` that fit the free part of a node, capped at `most`.
    pub fn slots(&self, id: NodeId, demand: &Demand, most: u32) -> u32 {
        self.slots_of(&self.nodes[id.index()], self.devices_of(id), demand, most)
    }

    /// The same for a node of which so much is free.
    pub(super) fn slots_of(
        &self,
        node: &NodeFree,
        devices: &[DeviceFree],
        demand: &Demand,
        most: u32,
    ) -> u32 {
        // Most nodes that are asked about hold none, for want of cores.
        if node.cpu < demand.cpu || node.mem < demand.mem || most == 0 {
            return 0;
        }
        let covers = node.features.cover(demand.needs);
        if !node.usable || !covers || !Kept::admits(node.kept, demand) {
            return 0;
        }
        if demand.names_models() && !self.model_allowed(node, demand) {
            return 0;
        }
        let mut most = most.min(demand.locality.tasks_per_node());
        // One fits; to know how many do takes divisions.
        if most > 1 {
            most = most.min(per(node.cpu.0, demand.cpu.0)).min(per(node.mem.0, demand.mem.0));
        }
        if demand.gpu.0 == 0 {
            return most;
        }
        if let Some(pinned) = &demand.pinned {
            return most.min(pinned_slots(node, devices, pinned));
        }
        let by_gpu = match (demand.locality, demand.gpu.is_fraction()) {
            (Locality::Island, _) => self.island_slots(node, devices, demand).max().unwrap_or(0),
            (_, true) if most == 1 => u32::from(self.holds_fraction(node, devices, demand)),
            (_, true) => self.fraction_slots(node, devices, demand),
            (_, false) if most == 1 => u32::from(u32::from(node.whole) >= demand.gpu.whole()),
            (_, false) => u32::from(node.whole) / demand.gpu.whole(),
        };
        most.min(by_gpu)
    }

    /// The largest GPU demand of one task that the node may hold: its untouched devices, or the
    /// largest rest of a touched one.
    pub fn largest_gpu(&self, id: NodeId) -> Milli {
        let node = &self.nodes[id.index()];
        match (node.usable, node.whole) {
            (false, _) => Milli::ZERO,
            (true, 0) => Milli(u32::from(node.rest)),
            (true, whole) => Milli(u32::from(whole) * 1000),
        }
    }

    /// Places `tasks` tasks of a gang on one node; none when they do not fit.
    pub fn fit(&self, id: NodeId, gang: u32, demand: &Demand, tasks: u32) -> Option<Part> {
        if tasks == 0 || self.slots(id, demand, tasks) < tasks {
            return None;
        }
        let slices = if demand.gpu.0 == 0 {
            Vec::new()
        } else if let Some(pinned) = &demand.pinned {
            let part = pinned.iter().find(|part| part.node == id)?;
            let each = part.slices.len() / part.tasks as usize;
            part.slices[..each * tasks as usize].to_vec()
        } else if demand.gpu.is_fraction() {
            self.fraction_slices(id, demand, tasks)
        } else {
            self.whole_slices(id, demand, tasks)
        };
        let cpu = Milli(demand.cpu.0 * tasks);
        let mem = Mib(demand.mem.0 * tasks);
        Some(Part { gang, node: id, tasks, cpu, mem, slices })
    }

    /// Devices of a node of which nobody holds a part, so many of them; none where there are fewer.
    pub fn untouched(&self, id: NodeId, count: u32) -> Option<Vec<DeviceId>> {
        let first = self.nodes[id.index()].first_device;
        let devices = self.devices_of(id).iter().zip(first..);
        let whole = devices.filter(|(device, _)| device.is_whole()).map(|(_, id)| DeviceId(id));
        let found: Vec<DeviceId> = whole.take(count as usize).collect();
        (found.len() == count as usize).then_some(found)
    }

    /// Whether a part asks for whole devices that nobody holds, and for cores and memory that are
    /// free, on a node that may take new jobs or not.
    pub(crate) fn is_untouched(&self, part: &Part) -> bool {
        let node = &self.nodes[part.node.index()];
        let devices = self.devices_of(part.node);
        let whole = |slice: &Slice| {
            let local = slice.device.0.checked_sub(node.first_device);
            let device = local.and_then(|local| devices.get(local as usize));
            slice.share == Share::Whole && device.is_some_and(DeviceFree::is_whole)
        };
        let mut ids: Vec<DeviceId> = part.slices.iter().map(|slice| slice.device).collect();
        ids.sort_unstable();
        ids.dedup();
        let once = ids.len() == part.slices.len();
        once && part.slices.iter().all(whole) && node.cpu >= part.cpu && node.mem >= part.mem
    }

    fn model_allowed(&self, node: &NodeFree, demand: &Demand) -> bool {
        node.class > 0
            && demand.models.set().contains(ModelId(u32::from(node.class) - 1))
            && (demand.gpu.0 == 0 || demand.gpu_mem <= self.size_of_class(node.class).mem)
    }

    /// GPU memory that each task books on a device of the node.
    fn device_mem(&self, node: &NodeFree, demand: &Demand) -> u32 {
        demand.device_mem(self.size_of_class(node.class).mem).0
    }

    /// Whether a device of the node holds a task that asks for a part of one.
    fn holds_fraction(&self, node: &NodeFree, devices: &[DeviceFree], demand: &Demand) -> bool {
        let mem = self.device_mem(node, demand);
        devices.iter().any(|device| {
            let fits = u32::from(device.compute) >= demand.gpu.0 && device.mem >= mem;
            fits && device.layout == Layout::Shared
        })
    }

    fn fraction_slots(&self, node: &NodeFree, devices: &[DeviceFree], demand: &Demand) -> u32 {
        let mem = self.device_mem(node, demand);
        // Most devices of a busy cluster are full: a comparison spares them two divisions.
        let able = devices.iter().filter(|device| {
            u32::from(device.compute) >= demand.gpu.0 && device.layout == Layout::Shared
        });
        able.map(|device| per(u32::from(device.compute), demand.gpu.0).min(per(device.mem, mem)))
            .sum()
    }

    fn island_of(&self, node: &NodeFree, local: usize) -> usize {
        if node.island_gpus == 0 { 0 } else { local / usize::from(node.island_gpus) }
    }

    /// Tasks that fit each island of the node, by GPUs alone.
    fn island_slots(
        &self,
        node: &NodeFree,
        devices: &[DeviceFree],
        demand: &Demand,
    ) -> impl Iterator<Item = u32> {
        let size = if node.island_gpus == 0 { devices.len() } else { node.island_gpus.into() };
        devices.chunks(size.max(1)).map(move |island| {
            if demand.gpu.is_fraction() {
                self.fraction_slots(node, island, demand)
            } else {
                let whole = island.iter().filter(|device| device.is_whole()).count() as u32;
                whole / demand.gpu.whole()
            }
        })
    }

    /// Each task goes to the touched device with the smallest sufficient rest, else to a fresh one.
    fn fraction_slices(&self, id: NodeId, demand: &Demand, tasks: u32) -> Vec<Slice> {
        let node = &self.nodes[id.index()];
        let mem = self.device_mem(node, demand);
        let (compute, packed) = (demand.gpu, !demand.packed_from.is_zero());
        let share = match packed {
            true => Share::Packed { compute, mem: Mib(mem) },
            false => Share::Fraction { compute, mem: Mib(mem) },
        };
        let island = self.island_for(id, demand, tasks);
        let inside = |local: usize| island.is_none_or(|only| self.island_of(node, local) == only);
        let slice =
            |local: usize| Slice { device: DeviceId(node.first_device + local as u32), share };
        if tasks == 1 {
            let local = tightest(self.devices_of(id), demand.gpu, mem, inside);
            return vec![slice(local)];
        }
        let mut devices = self.devices_of(id).to_vec();
        let take = |_| {
            let local = tightest(&devices, demand.gpu, mem, inside);
            let device = &mut devices[local];
            device.compute -= demand.gpu.0 as u16;
            device.mem -= mem;
            device.holders += 1;
            slice(local)
        };
        (0..tasks).map(take).collect()
    }

    /// Each task gets devices of one island where that is possible.
    fn whole_slices(&self, id: NodeId, demand: &Demand, tasks: u32) -> Vec<Slice> {
        let node = &self.nodes[id.index()];
        let only = self.island_for(id, demand, tasks);
        let mut free = [0u8; DEVICES_PER_NODE_MAX];
        let mut taken = 0u128;
        let last = self.island_of(node, usize::from(node.device_count) - 1);
        for (local, device) in self.devices_of(id).iter().enumerate() {
            let island = self.island_of(node, local);
            if device.is_whole() && only.is_none_or(|only| only == island) {
                free[island] += 1;
            } else {
                taken |= 1 << local;
            }
        }
        let mut slices = Vec::with_capacity((tasks * demand.gpu.whole()) as usize);
        for _ in 0..tasks {
            let mut needed = demand.gpu.whole() as u8;
            while needed > 0 {
                let island = best_island(&free[..=last], needed);
                // All that the island has is taken before another is looked for.
                let here = needed.min(free[island]);
                for _ in 0..here {
                    let from = (0..usize::from(node.device_count))
                        .find(|&at| taken & (1 << at) == 0 && self.island_of(node, at) == island)
                        .expect("the island has a free device");
                    taken |= 1 << from;
                    let device = DeviceId(node.first_device + from as u32);
                    slices.push(Slice { device, share: Share::Whole });
                }
                free[island] -= here;
                needed -= here;
            }
        }
        slices
    }

    /// The island that must hold all tasks, when the demand says so: the tightest that can.
    fn island_for(&self, id: NodeId, demand: &Demand, tasks: u32) -> Option<usize> {
        if demand.locality != Locality::Island {
            return None;
        }
        let node = &self.nodes[id.index()];
        let islands = self.island_slots(node, self.devices_of(id), demand).enumerate();
        let able = islands.filter(|&(_, slots)| slots >= tasks);
        able.min_by_key(|&(_, slots)| slots).map(|(island, _)| island)
    }
}

/// Tasks that go back to a node, if their devices are free.
fn pinned_slots(node: &NodeFree, devices: &[DeviceFree], pinned: &[Part]) -> u32 {
    let local = |slice: &Slice| slice.device.0.wrapping_sub(node.first_device) as usize;
    let here = |part: &&Part| part.slices.first().is_some_and(|one| local(one) < devices.len());
    let part = pinned.iter().find(here);
    let free = |part: &&Part| {
        let mut slices = part.slices.iter();
        slices.all(|slice| devices.get(local(slice)).is_some_and(DeviceFree::is_whole))
    };
    part.filter(free).map_or(0, |part| part.tasks)
}

fn per(free: u32, asked: u32) -> u32 {
    free.checked_div(asked).unwrap_or(u32::MAX)
}

/// Smallest sufficient island; when none suffices, the largest, to touch few of them.
fn best_island(free: &[u8], needed: u8) -> usize {
    let islands = || free.iter().copied().enumerate().filter(|&(_, count)| count > 0);
    let enough = islands().filter(|&(_, count)| count >= needed).min_by_key(|&(_, count)| count);
    let largest = || islands().max_by_key(|&(at, count)| (count, std::cmp::Reverse(at)));
    enough.or_else(largest).expect("slots counted the free devices").0
}

/// The device that a fraction leaves the least free: one in use before a fresh one.
fn tightest(devices: &[DeviceFree], gpu: Milli, mem: u32, inside: impl Fn(usize) -> bool) -> usize {
    let able = devices.iter().enumerate().filter(|(local, device)| {
        let fits = u32::from(device.compute) >= gpu.0 && device.mem >= mem;
        fits && device.layout == Layout::Shared && inside(*local)
    });
    let best = able.min_by_key(|(local, device)| (device.holders == 0, device.compute, *local));
    best.expect("slots counted room for it").0
}
