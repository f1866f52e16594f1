//! Who is on which shared device, how fast each goes there, and the account of it.
//!
//! Kept only where real use is known. Devices that are held whole have no neighbours and are not
//! listed.

use std::collections::BTreeMap;

use hostler_core::cluster::Share;
use hostler_core::id::{DeviceId, LeaseId};
use hostler_core::metrics::{Contention, percentile};
use hostler_core::placement::{Part, Placement};
use hostler_core::units::{Mib, Rate, Span, Time};

use super::truth::Use;
use crate::physics::{Member, SharingLaw};

/// Devices of which somebody holds a part.
#[derive(Debug)]
pub(super) struct Shared {
    law: SharingLaw,
    devices: BTreeMap<DeviceId, SharedDevice>,
    stays: BTreeMap<LeaseId, SharedPace>,
    tally: Tally,
}

#[derive(Debug)]
struct SharedDevice {
    size: Mib,
    members: Vec<Member>,
    /// Speeds of the members, in their order.
    rates: Vec<f64>,
    since: Time,
}

/// How fast a stay goes, and what became of it so far.
#[derive(Debug)]
struct SharedPace {
    /// Its devices, one entry for each share.
    devices: Vec<DeviceId>,
    rate: f64,
    since: Time,
    elapsed: f64,
    done: f64,
    used: f64,
    shared: bool,
}

/// What sharing cost, over all devices.
#[derive(Debug, Default)]
struct Tally {
    shared: u128,
    contended: u128,
    /// Device time that was shared and that was contended, by hour.
    hours: Vec<[u64; 2]>,
    slowdowns: Vec<f32>,
}

const HOUR: Span = Span::from_secs(3600);

impl Shared {
    pub(super) fn new(law: SharingLaw) -> Shared {
        let (devices, stays) = (BTreeMap::new(), BTreeMap::new());
        Shared { law, devices, stays, tally: Tally::default() }
    }

    /// A stay begins to work; the answer is all whose speed may change, itself among them.
    pub(super) fn join(
        &mut self,
        now: Time,
        lease: LeaseId,
        used: Use,
        placement: &Placement,
        size_of: impl Fn(&Part) -> Mib,
    ) -> Vec<LeaseId> {
        let mut touched = Vec::new();
        for part in &placement.parts {
            let size = size_of(part);
            for slice in part.slices.iter().filter(|slice| slice.share != Share::Whole) {
                let (members, rates) = (Vec::new(), Vec::new());
                let empty = SharedDevice { size, members, rates, since: now };
                let device = self.devices.entry(slice.device).or_insert(empty);
                self.tally.settle(device, now);
                device.members.push(Member {
                    lease,
                    booked: slice.share.compute(0),
                    used: f64::from(used.gpu.0.min(1000)) / 1000.0,
                    guaranteed: slice.share.mem(size),
                    mem_used: used.mem.min(size),
                });
                touched.push(slice.device);
            }
        }
        if touched.is_empty() {
            return Vec::new();
        }
        let used = f64::from(used.gpu.0.min(1000));
        let devices = touched.clone();
        let pace = SharedPace {
            devices,
            rate: 1.0,
            since: now,
            elapsed: 0.0,
            done: 0.0,
            used,
            shared: false,
        };
        self.stays.insert(lease, pace);
        self.pace_all(now, &touched)
    }

    /// A stay is over; the answer is all whose speed may change.
    pub(super) fn leave(&mut self, now: Time, lease: LeaseId) -> Vec<LeaseId> {
        let Some(mut pace) = self.stays.remove(&lease) else {
            return Vec::new();
        };
        pace.settle(now);
        if pace.shared && pace.done > 0.0 {
            self.tally.slowdowns.push((pace.elapsed / pace.done) as f32);
        }
        for id in &pace.devices {
            // Gone already where the stay held several shares of one device alone.
            let Some(device) = self.devices.get_mut(id) else { continue };
            self.tally.settle(device, now);
            device.members.retain(|member| member.lease != lease);
            if device.members.is_empty() {
                self.devices.remove(id);
            }
        }
        self.pace_all(now, &pace.devices)
    }

    /// Speed of a stay beside its neighbours: that of its slowest share.
    pub(super) fn rate(&self, lease: LeaseId) -> Rate {
        let pace = self.stays.get(&lease);
        pace.map_or(Rate::FULL, |pace| Rate((pace.rate * 1e6).round() as u32))
    }

    /// What an executor can measure of a stay: thousandths of each device, on average.
    pub(super) fn measured(&mut self, now: Time, lease: LeaseId) -> Option<u32> {
        let pace = self.stays.get_mut(&lease)?;
        pace.settle(now);
        let speed = if pace.elapsed > 0.0 { pace.done / pace.elapsed } else { 1.0 };
        Some((pace.used * speed).round() as u32)
    }

    /// What sharing cost so far.
    pub(super) fn contention(&self) -> Contention {
        let Tally { shared, contended, hours, slowdowns } = &self.tally;
        let mut sorted: Vec<f64> = slowdowns.iter().copied().map(f64::from).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let sum = sorted.iter().fold(0.0, |sum, slowdown| sum + slowdown);
        let mean = sum / sorted.len().max(1) as f64;
        let by_hour = |time: u64| time as f64 / HOUR.0 as f64;
        Contention {
            shared_gpu_hours: *shared as f64 / HOUR.0 as f64,
            contended_share: *contended as f64 / (*shared).max(1) as f64,
            shared_stays: sorted.len() as u64,
            slowdown_avg: mean,
            slowdown_p95: percentile(&sorted, 95).unwrap_or(0.0),
            hourly: hours.iter().map(|hour| hour.map(by_hour)).collect(),
        }
    }

    /// Works out the speeds of all members of some devices that changed.
    fn pace_all(&mut self, now: Time, changed: &[DeviceId]) -> Vec<LeaseId> {
        let mut leases = Vec::new();
        for id in changed {
            let Some(device) = self.devices.get_mut(id) else { continue };
            device.rates = self.law.rates(&device.members, device.size);
            leases.extend(device.members.iter().map(|member| member.lease));
        }
        leases.sort_unstable();
        leases.dedup();
        for lease in &leases {
            let pace = self.stays.get_mut(lease).expect("a member has joined");
            pace.settle(now);
            // A gang goes at the speed of its slowest share, wherever that is.
            let devices = pace.devices.iter().map(|id| &self.devices[id]);
            (pace.rate, pace.shared) =
                devices.fold((1.0_f64, pace.shared), |(rate, shared), device| {
                    (rate.min(device.rate_of(*lease)), shared || device.is_shared())
                });
        }
        leases
    }
}

impl SharedDevice {
    /// Whether two jobs are here.
    fn is_shared(&self) -> bool {
        self.members.windows(2).any(|pair| pair[0].lease != pair[1].lease)
    }

    fn rate_of(&self, lease: LeaseId) -> f64 {
        let members = self.members.iter().zip(&self.rates);
        let own = members.filter(|(member, _)| member.lease == lease);
        own.fold(1.0, |slowest, (_, rate)| slowest.min(*rate))
    }
}

impl SharedPace {
    /// Counts what was done up to `now`.
    fn settle(&mut self, now: Time) {
        let elapsed = now.since(self.since).secs_f64();
        self.elapsed += elapsed;
        self.done += elapsed * self.rate;
        self.since = now;
    }
}

impl Tally {
    /// Counts the time of a device up to `now`, before its members change.
    fn settle(&mut self, device: &mut SharedDevice, now: Time) {
        let since = std::mem::replace(&mut device.since, now);
        if !device.is_shared() {
            return;
        }
        let used: f64 = device.members.iter().map(|member| member.used).sum();
        let contended = used > 1.0;
        let time = now.since(since).0;
        self.shared += u128::from(time);
        self.contended += if contended { u128::from(time) } else { 0 };
        let (mut from, end) = (since.0, now.0);
        while from < end {
            let hour = from / HOUR.0;
            let next = ((hour + 1) * HOUR.0).min(end);
            if self.hours.len() <= hour as usize {
                self.hours.resize(hour as usize + 1, [0; 2]);
            }
            let [shared, contest] = &mut self.hours[hour as usize];
            *shared += next - from;
            *contest += if contended { next - from } else { 0 };
            from = next;
        }
    }
}
