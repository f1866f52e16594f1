//! What is free on one node from now on: a step function of time. Knows no jobs.

use std::ops::Range;

use hostler_core::cluster::{Node, Share};
use hostler_core::id::{DeviceId, Features};
use hostler_core::job::{Demand, Gang, Locality};
use hostler_core::placement::{Part, Slice};
use hostler_core::units::{Mib, Milli, Span, Time};
use hostler_core::window::Kept;

use super::window::Window;

/// Free resources of one node over time.
pub(super) struct NodeCalendar {
    /// What may be placed here, if anything.
    pub(super) open: Option<Open>,
    pub(super) rack: u32,
    pub(super) node: hostler_core::id::NodeId,
    first_device: u32,
    devices_here: usize,
    island_gpus: usize,
    device_mem: Mib,
    mig_slices: u32,
    /// Devices that are cut in hardware: nothing is planned there.
    divided: u128,
    /// By time; the first begins before now, the last one lasts for ever.
    steps: Vec<Step>,
    /// Those of the first step, then those of the second, and so on.
    devices: Vec<Device>,
}

/// For whom a node is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    kept: Option<Kept>,
    features: Features,
}

impl Open {
    pub(super) fn of(node: &Node) -> Option<Open> {
        let open = Open { kept: node.kept, features: node.spec.features };
        node.usable().then_some(open)
    }
}

/// What is free from a time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) at: Time,
    pub(super) free: Sizes,
}

/// How much is free, as far as can be told at a glance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) cpu: u32,
    pub(super) mem: u32,
    /// Devices that nobody holds a part of.
    whole: u8,
    /// The largest free part of a device, in thousandths.
    largest: u16,
}

impl Sizes {
    /// The most of each of two.
    pub(super) fn most(self, other: Sizes) -> Sizes {
        Sizes {
            cpu: self.cpu.max(other.cpu),
            mem: self.mem.max(other.mem),
            whole: self.whole.max(other.whole),
            largest: self.largest.max(other.largest),
        }
    }

    /// The least of each of two.
    pub(super) fn least(self, other: Sizes) -> Sizes {
        Sizes {
            cpu: self.cpu.min(other.cpu),
            mem: self.mem.min(other.mem),
            whole: self.whole.min(other.whole),
            largest: self.largest.min(other.largest),
        }
    }

    /// Whether so many tasks may fit.
    pub(super) fn may_hold(&self, demand: &Demand, tasks: u32) -> bool {
        let gpu = demand.gpu.0;
        let by_gpu = match gpu {
            0 => true,
            1..1000 => u32::from(self.largest) >= gpu,
            _ => u64::from(self.whole) * 1000 >= u64::from(gpu) * u64::from(tasks),
        };
        by_gpu
            && u64::from(self.cpu) >= u64::from(demand.cpu.0) * u64::from(tasks)
            && u64::from(self.mem) >= u64::from(demand.mem.0) * u64::from(tasks)
    }
}

/// What is free of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) compute: u16,
    pub(super) holders: u16,
    pub(super) mem: u32,
}

/// What is free now, and until when that stays so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Glance {
    pub(super) until: Time,
    /// Whether any job may be placed here that asks for nothing special.
    pub(super) open_to_all: bool,
    free: Sizes,
}

impl Glance {
    /// Whether so many tasks may fit at a time, as far as can be told.
    pub(super) fn may_hold(&self, at: Time, demand: &Demand, tasks: u32) -> bool {
        at >= self.until || self.free.may_hold(demand, tasks)
    }
}

/// What a role asks of one node, for as long as it runs.
pub(super) struct Need<'a> {
    pub(super) demand: &'a Demand,
    pub(super) count: u32,
    /// None: for ever.
    pub(super) run: Option<Span>,
}

impl<'a> Need<'a> {
    pub(super) fn new(gang: &'a Gang, run: Option<Span>) -> Need<'a> {
        Need { demand: &gang.demand, count: gang.count, run }
    }

    /// When a stay from a time on is over; none: never. What begins at the end of time stays.
    pub(super) fn end(&self, from: Time) -> Option<Time> {
        self.run.map(|run| from + run).filter(|end| *end < Time::NEVER)
    }
}

impl NodeCalendar {
    /// An empty node, of GPUs with so much memory and so many hardware slices.
    pub(super) fn new(node: &Node, device_mem: Mib, mig_slices: u32) -> NodeCalendar {
        let devices_here = node.spec.gpus as usize;
        let device = Device { compute: 1000, holders: 0, mem: device_mem.0 };
        let free = Sizes {
            cpu: node.spec.cpu.0,
            mem: node.spec.mem.0,
            whole: devices_here as u8,
            largest: if devices_here == 0 { 0 } else { 1000 },
        };
        NodeCalendar {
            open: None,
            rack: node.spec.rack,
            node: node.id,
            first_device: node.first_device.0,
            devices_here,
            island_gpus: match node.spec.island_gpus {
                0 => devices_here.max(1),
                gpus => gpus as usize,
            },
            device_mem,
            mig_slices,
            divided: 0,
            steps: vec![Step { at: Time::ZERO, free }],
            devices: vec![device; devices_here],
        }
    }

    /// Takes in for whom the node is open, and which of its devices are cut in hardware.
    pub(super) fn set_open(&mut self, open: Option<Open>, divided: u128) {
        (self.open, self.divided) = (open, divided);
        (0..self.steps.len()).for_each(|at| self.recount(at));
    }

    /// Whether tasks of a demand may be placed here when enough is free.
    pub(super) fn admits(&self, demand: &Demand) -> bool {
        let fits =
            |open: Open| Kept::admits(open.kept, demand) && open.features.cover(demand.needs);
        let small = demand.gpu.0 == 0 || demand.gpu_mem <= self.device_mem;
        small && self.open.is_some_and(fits)
    }

    /// Forgets what was before now.
    pub(super) fn trim(&mut self, now: Time) {
        let past = self.at(now);
        if past > 0 {
            self.steps.drain(..past);
            self.devices.drain(..past * self.devices_here);
        }
    }

    /// What is free now.
    pub(super) fn glance(&self, now: Time) -> Glance {
        let at = self.at(now);
        let until = self.steps.get(at + 1).map_or(Time::NEVER, |next| next.at);
        let open_to_all = self.open.is_some_and(|open| open.kept.is_none());
        Glance { until, open_to_all, free: self.steps[at].free }
    }

    /// Takes a part from a time on until another, or for ever.
    pub(super) fn book(&mut self, part: &Part, from: Time, until: Option<Time>) {
        self.change(part, from, until, |free, less| {
            *free = free.checked_sub(less).expect("what is booked is free");
        });
    }

    /// Gives a part back that was booked for at least that time.
    pub(super) fn release(&mut self, part: &Part, from: Time, until: Option<Time>) {
        self.change(part, from, until, |free, more| *free += more);
    }

    fn change(
        &mut self,
        part: &Part,
        from: Time,
        until: Option<Time>,
        how: impl Fn(&mut u32, u32) + Copy,
    ) {
        if until.is_some_and(|until| until <= from) {
            return;
        }
        let first = self.split(from);
        let after = until.map_or(self.steps.len(), |until| self.split(until));
        for at in first..after {
            let free = &mut self.steps[at].free;
            how(&mut free.cpu, part.cpu.0);
            how(&mut free.mem, part.mem.0);
            let devices = &mut self.devices[at * self.devices_here..][..self.devices_here];
            for Slice { device, share } in &part.slices {
                let local = (device.0 - self.first_device) as usize;
                if self.divided & (1 << local) != 0 {
                    continue;
                }
                let device = &mut devices[local];
                let change = |free: u16, by: u32| {
                    let mut free = u32::from(free);
                    how(&mut free, by);
                    free as u16
                };
                device.compute = change(device.compute, share.compute(self.mig_slices).0);
                // Holders are what is taken, not what is free.
                device.holders = u16::MAX - change(u16::MAX - device.holders, 1);
                how(&mut device.mem, share.mem(self.device_mem).0);
            }
            self.recount(at);
        }
        self.merge(after);
        self.merge(first);
    }

    /// The step at a time.
    pub(super) fn at(&self, time: Time) -> usize {
        self.steps.partition_point(|step| step.at <= time).saturating_sub(1)
    }

    pub(super) fn divided(&self) -> u128 {
        self.divided
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn devices(&self, step: usize) -> &[Device] {
        &self.devices[step * self.devices_here..][..self.devices_here]
    }

    /// The step that begins at a time.
    fn split(&mut self, time: Time) -> usize {
        let at = self.at(time);
        if self.steps[at].at >= time {
            return at;
        }
        self.steps.insert(at + 1, Step { at: time, ..self.steps[at] });
        let here = self.devices_here;
        self.devices.extend_from_within(at * here..(at + 1) * here);
        self.devices[(at + 1) * here..].rotate_right(here);
        at + 1
    }

    /// Joins a step with the one before it, if they are alike.
    fn merge(&mut self, at: usize) {
        let Some(before) = at.checked_sub(1).filter(|_| at < self.steps.len()) else { return };
        if self.steps[before].free == self.steps[at].free
            && self.devices(before) == self.devices(at)
        {
            self.steps.remove(at);
            let here = self.devices_here;
            self.devices.drain(at * here..(at + 1) * here);
        }
    }

    fn recount(&mut self, at: usize) {
        let divided = self.divided;
        let usable = |local: usize| divided & (1 << local) == 0;
        let devices = self.devices(at).iter().enumerate().filter(|(local, _)| usable(*local));
        let (mut whole, mut largest) = (0, 0);
        for (_, device) in devices {
            whole += u8::from(device.holders == 0);
            largest = largest.max(device.compute);
        }
        let free = &mut self.steps[at].free;
        (free.whole, free.largest) = (whole, largest);
    }

    /// Whether more is free at a step than at the one before it.
    pub(super) fn gains(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return false };
        let (old, new) = (self.steps[before].free, self.steps[at].free);
        let more = |(old, new): (&Device, &Device)| {
            let untouched = new.holders == 0 && old.holders > 0;
            new.compute > old.compute || new.mem > old.mem || untouched
        };
        new.cpu > old.cpu
            || new.mem > old.mem
            || self.devices(before).iter().zip(self.devices(at)).any(more)
    }
}

/// Room for a role.
impl NodeCalendar {
    /// The least that is free from a step on until a time.
    pub(super) fn least(&self, from: usize, until: Option<Time>, window: &mut Window) {
        window.start(&self.steps[from], self.devices(from), self.divided);
        for at in from + 1..self.steps.len() {
            if until.is_some_and(|until| self.steps[at].at >= until) {
                break;
            }
            window.narrow(&self.steps[at], self.devices(at));
        }
    }

    /// Tasks of a role that a window holds, at most as many as there are.
    pub(super) fn slots(&self, window: &Window, need: &Need<'_>) -> u32 {
        let demand = need.demand;
        let per = |free: u32, asked: u32| free.checked_div(asked).unwrap_or(u32::MAX);
        let most = per(window.cpu, demand.cpu.0).min(per(window.mem, demand.mem.0));
        let most = most.min(need.count).min(demand.locality.tasks_per_node());
        if demand.gpu.0 == 0 || most == 0 {
            return most;
        }
        let mem = demand.device_mem(self.device_mem).0;
        let by_gpu = match demand.locality {
            Locality::Island => {
                let islands = self.islands();
                islands.map(|island| window.slots(island, demand.gpu, mem)).max().unwrap_or(0)
            }
            Locality::Any | Locality::Rack | Locality::Node | Locality::Apart => {
                window.slots(0..self.devices_here, demand.gpu, mem)
            }
        };
        most.min(by_gpu)
    }

    fn islands(&self) -> impl Iterator<Item = Range<usize>> {
        let (all, size) = (self.devices_here, self.island_gpus);
        (0..all).step_by(size).map(move |first| first..(first + size).min(all))
    }

    /// The first devices of a window that hold so many tasks; it was counted that they do.
    pub(super) fn part(&self, window: &mut Window, gang: u32, need: &Need<'_>, tasks: u32) -> Part {
        let demand = need.demand;
        let mem = demand.device_mem(self.device_mem);
        let (mut slices, gpu) = (Vec::new(), demand.gpu);
        let here = match demand.locality {
            Locality::Island => self
                .islands()
                .find(|island| window.slots(island.clone(), gpu, mem.0) >= tasks)
                .unwrap_or(0..self.devices_here),
            Locality::Any | Locality::Rack | Locality::Node | Locality::Apart => {
                0..self.devices_here
            }
        };
        let slice = |local: usize, share: Share| Slice {
            device: DeviceId(self.first_device + local as u32),
            share,
        };
        for _ in 0..if gpu.0 == 0 { 0 } else { tasks } {
            if gpu.is_fraction() {
                let local = window.take_share(here.clone(), gpu, mem.0);
                slices.push(slice(local, Share::Fraction { compute: gpu, mem }));
                continue;
            }
            let asked = gpu.whole() as usize;
            let together = self.islands().find(|island| window.whole(island.clone()) >= asked);
            let from = together.filter(|_| here.len() == self.devices_here).unwrap_or(here.clone());
            let taken = window.take_whole(from, asked);
            slices.extend(taken.into_iter().map(|local| slice(local, Share::Whole)));
        }
        let (cpu, mem) = (Milli(demand.cpu.0 * tasks), Mib(demand.mem.0 * tasks));
        Part { gang, node: self.node, tasks, cpu, mem, slices }
    }
}
