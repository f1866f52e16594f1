//! The least that is free on one node during a time, device by device.

use std::ops::Range;

use hostler_core::units::Milli;

use super::node::{Device, Step};

/// What is free all the time. Used again for one search after the other.
#[derive(Default)]
pub(super) struct Window {
    pub(super) cpu: u32,
    pub(super) mem: u32,
    devices: Vec<Device>,
}

impl Window {
    /// Begins with one step; devices of the set are not there.
    pub(super) fn start(&mut self, step: &Step, devices: &[Device], without: u128) {
        (self.cpu, self.mem) = (step.free.cpu, step.free.mem);
        self.devices.clear();
        self.devices.extend_from_slice(devices);
        if without != 0 {
            for (local, device) in self.devices.iter_mut().enumerate() {
                if without & (1 << local) != 0 {
                    *device = Device { compute: 0, holders: 1, mem: 0 };
                }
            }
        }
    }

    /// Goes on with the next step.
    pub(super) fn narrow(&mut self, step: &Step, devices: &[Device]) {
        self.cpu = self.cpu.min(step.free.cpu);
        self.mem = self.mem.min(step.free.mem);
        for (least, device) in self.devices.iter_mut().zip(devices) {
            least.compute = least.compute.min(device.compute);
            least.mem = least.mem.min(device.mem);
            least.holders = least.holders.max(device.holders);
        }
    }

    /// Tasks that some of the devices hold.
    pub(super) fn slots(&self, devices: Range<usize>, gpu: Milli, mem: u32) -> u32 {
        if !gpu.is_fraction() {
            return self.whole(devices) as u32 / gpu.whole();
        }
        let able = self.devices[devices].iter().filter(|device| holds(device, gpu, mem));
        let tasks = |device: &Device| {
            let by_mem = device.mem.checked_div(mem).unwrap_or(u32::MAX);
            (u32::from(device.compute) / gpu.0).min(by_mem)
        };
        able.map(tasks).sum()
    }

    /// Devices that nobody holds a part of.
    pub(super) fn whole(&self, devices: Range<usize>) -> usize {
        self.devices[devices].iter().filter(|device| device.holders == 0).count()
    }

    /// Takes a part of the first device that has it.
    pub(super) fn take_share(&mut self, devices: Range<usize>, gpu: Milli, mem: u32) -> usize {
        let mut inside = devices.clone();
        let local = inside.find(|local| holds(&self.devices[*local], gpu, mem));
        let local = local.expect("room on a device was counted");
        let device = &mut self.devices[local];
        device.compute -= gpu.0 as u16;
        device.mem -= mem;
        device.holders += 1;
        local
    }

    /// Takes the first devices that nobody holds a part of.
    pub(super) fn take_whole(&mut self, devices: Range<usize>, count: usize) -> Vec<usize> {
        let free = devices.filter(|local| self.devices[*local].holders == 0);
        let taken: Vec<usize> = free.take(count).collect();
        assert_eq!(taken.len(), count, "free devices were counted");
        taken.iter().for_each(|local| self.devices[*local].holders = 1);
        taken
    }
}

fn holds(device: &Device, gpu: Milli, mem: u32) -> bool {
    u32::from(device.compute) >= gpu.0 && device.mem >= mem
}
