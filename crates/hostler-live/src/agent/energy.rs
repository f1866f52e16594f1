//! The energy that leases use, as far as their GPUs tell it.
//!
//! Devices count their energy themselves, or tell their power, which is added up between two looks.
//! What a device used since the look before goes to those who have a part of it now, by the size of
//! their parts; so a stay is measured to about a second. Sums are written down now and then, for an
//! agent that is started again meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hostler_core::id::LeaseId;
use tokio::sync::mpsc;

use super::clock::boot_ms;
use super::core::AgentInput;
use super::folder::{LeaseFolder, read_json, write_json};
use super::gpus::{Energy, Gpus};
use super::shell::{Incoming, folders};
use super::shim::ShimOrder;

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Looks between two writings of the sums.
const WRITTEN_EACH: u64 = 10;

/// Milliseconds between two looks beyond which a power says nothing about the time between them:
/// the machine slept.
const GAP_MS_MAX: u64 = 10_000;

/// Measures until there is no agent, or no GPU that tells anything.
pub(super) async fn measure(gpus: Arc<Gpus>, leases: PathBuf, inbox: mpsc::Sender<Incoming>) {
    let mut meter = Meter::new(leases);
    while !inbox.is_closed() {
        let reader = gpus.clone();
        let look = tokio::task::spawn_blocking(move || {
            let told = reader.energy();
            let any = told.iter().any(Option::is_some);
            let sums = if any { meter.look(boot_ms(), &told) } else { Vec::new() };
            (any, sums, meter)
        });
        let Ok((true, sums, after)) = look.await else { return };
        meter = after;
        if !sums.is_empty() {
            let _ = inbox.send(Incoming::Happened(AgentInput::LeaseEnergy(sums))).await;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Thousandths of each GPU, by its number.
type Parts = BTreeMap<usize, u32>;

/// What is known from one look to the next.
struct Meter {
    leases: PathBuf,
    looks: u64,
    /// What each device told last, and when.
    before: Vec<Option<(Energy, u64)>>,
    /// Leases that have GPUs.
    held: BTreeMap<LeaseId, Parts>,
    /// Leases that are over, or have none: their folders need not be read again.
    passed: BTreeSet<LeaseId>,
    /// Millijoules of each lease that was measured.
    sums: BTreeMap<LeaseId, u64>,
}

impl Meter {
    fn new(leases: PathBuf) -> Meter {
        Meter {
            leases,
            looks: 0,
            before: Vec::new(),
            held: BTreeMap::new(),
            passed: BTreeSet::new(),
            sums: BTreeMap::new(),
        }
    }

    /// Takes in what the devices tell; gives the sums of all leases that are measured.
    fn look(&mut self, now_ms: u64, told: &[Option<Energy>]) -> Vec<(LeaseId, u64)> {
        self.find_holders();
        let used = self.used(now_ms, told);
        let on_gpus = |lease: &LeaseId| !self.folder(*lease).suspended().exists();
        let on_gpus = self.held.iter().filter(|(lease, _)| on_gpus(lease));
        let on_gpus: Vec<_> = on_gpus.map(|(lease, parts)| (*lease, parts)).collect();
        add(&mut self.sums, &on_gpus, &used);
        self.looks += 1;
        if self.looks.is_multiple_of(WRITTEN_EACH) {
            for (lease, sum) in &self.sums {
                // Only an agent that is killed would miss it.
                let _ = write_json(&self.folder(*lease).energy(), sum, false);
            }
        }
        self.sums.iter().map(|(lease, sum)| (*lease, *sum)).collect()
    }

    /// Millijoules of each device since the look before.
    fn used(&mut self, now_ms: u64, told: &[Option<Energy>]) -> Vec<Option<u64>> {
        self.before.resize(told.len(), None);
        let both = self.before.iter().zip(told);
        let used = both.map(|(before, now)| {
            let (before, then_ms) = (*before)?;
            between(before, (*now)?, now_ms.saturating_sub(then_ms))
        });
        let used = used.collect();
        self.before = told.iter().map(|energy| energy.map(|energy| (energy, now_ms))).collect();
        used
    }

    fn find_holders(&mut self) {
        let there = folders(&self.leases);
        self.passed.retain(|lease| there.contains(lease));
        for lease in there.difference(&self.passed.clone()) {
            let folder = self.folder(*lease);
            if folder.end().exists() {
                self.passed.insert(*lease);
                self.held.remove(lease);
            } else if !self.held.contains_key(lease) {
                // One that is only being made has no order yet.
                let Some(shim) = read_json::<ShimOrder>(&folder.order()) else { continue };
                let parts = parts_of(&shim);
                if parts.is_empty() {
                    self.passed.insert(*lease);
                } else {
                    self.held.insert(*lease, parts);
                    self.sums.extend(written(&folder).map(|sum| (*lease, sum)));
                }
            }
        }
        self.held.retain(|lease, _| there.contains(lease));
        let Meter { sums, held, .. } = self;
        sums.retain(|lease, _| held.contains_key(lease));
    }

    fn folder(&self, lease: LeaseId) -> LeaseFolder {
        LeaseFolder::at(&self.leases.join(lease.0.to_string()))
    }
}

/// Millijoules of a lease that an agent wrote down.
pub(super) fn written(folder: &LeaseFolder) -> Option<u64> {
    read_json(&folder.energy())
}

fn parts_of(shim: &ShimOrder) -> Parts {
    let mut parts = Parts::new();
    for (gpu, milli) in shim.order.tasks.iter().flat_map(|task| &task.gpus) {
        *parts.entry(*gpu as usize).or_default() += milli;
    }
    parts
}

/// Millijoules between two looks at a device. A counter that went back was begun anew.
fn between(before: Energy, now: Energy, ms: u64) -> Option<u64> {
    match (before, now) {
        (Energy::Counted { millijoules: before }, Energy::Counted { millijoules: now }) => {
            now.checked_sub(before)
        }
        (Energy::Power { milliwatts: before }, Energy::Power { milliwatts: now }) => {
            let mean = u64::midpoint(before.into(), now.into());
            (ms <= GAP_MS_MAX).then_some(mean * ms / 1000)
        }
        _ => None,
    }
}

/// Adds to the sum of each lease its part of what its devices used. One of whose devices any does
/// not tell is not measured.
fn add(sums: &mut BTreeMap<LeaseId, u64>, held: &[(LeaseId, &Parts)], used: &[Option<u64>]) {
    let given = |gpu: usize| held.iter().filter_map(|(_, parts)| parts.get(&gpu)).sum::<u32>();
    for (lease, parts) in held {
        let part = |(gpu, milli): (&usize, &u32)| {
            let used = u128::from((*used.get(*gpu)?)?);
            let part = used * u128::from(*milli) / u128::from(given(*gpu).max(1));
            u64::try_from(part).ok()
        };
        let all: Option<u64> = parts.iter().map(part).sum();
        if let Some(all) = all {
            let sum = sums.entry(*lease).or_default();
            *sum = sum.saturating_add(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(leases: &[(u32, &[(usize, u32)])]) -> BTreeMap<LeaseId, Parts> {
        let lease = |(lease, parts): &(u32, &[(usize, u32)])| {
            (LeaseId(*lease), parts.iter().copied().collect())
        };
        leases.iter().map(lease).collect()
    }

    #[test]
    fn a_device_is_split_by_the_parts_that_are_held() {
        let mut sums = BTreeMap::new();
        let held = held(&[
            (1, &[(0, 1000), (1, 500)]),
            (2, &[(1, 250)]),
            (3, &[(2, 300)]),
            (4, &[(3, 1000)]),
        ]);
        // Who is alone on a device has all of it; one that tells nothing is left out.
        let held: Vec<_> = held.iter().map(|(lease, parts)| (*lease, parts)).collect();
        add(&mut sums, &held, &[Some(1000), Some(900), Some(500), None]);
        let sums: Vec<(u32, u64)> = sums.into_iter().map(|(lease, sum)| (lease.0, sum)).collect();
        assert_eq!(sums, [(1, 1600), (2, 300), (3, 500)]);
    }

    #[test]
    fn counters_are_compared_and_powers_added_up() {
        let counted = |millijoules| Energy::Counted { millijoules };
        let power = |milliwatts| Energy::Power { milliwatts };
        assert_eq!(between(counted(5000), counted(7500), 1000), Some(2500));
        // The driver was loaded again.
        assert_eq!(between(counted(5000), counted(10), 1000), None);
        assert_eq!(between(power(200_000), power(300_000), 2000), Some(500_000));
        assert_eq!(between(power(200_000), power(300_000), 3_600_000), None);
        assert_eq!(between(power(200_000), counted(1), 1000), None);
    }

    #[test]
    fn sums_outlive_an_agent_and_end_with_their_lease() {
        let folder = tempfile::tempdir().unwrap();
        let leases = folder.path().to_owned();
        let mut order = super::super::shim::tests::shim_order(&["true"]);
        order.order.tasks[0].gpus = vec![(0, 1000)];
        let lease = LeaseFolder::at(&leases.join("7"));
        std::fs::create_dir_all(lease.path()).unwrap();
        write_json(&lease.order(), &order, false).unwrap();
        let told = [Some(Energy::Power { milliwatts: 100_000 })];
        let mut meter = Meter::new(leases.clone());
        let mut last = Vec::new();
        for second in 0..=10 {
            last = meter.look(second * 1000, &told);
        }
        assert_eq!(last, [(LeaseId(7), 1_000_000)]);
        // Written at the tenth look, nine seconds after the first.
        let mut next = Meter::new(leases);
        next.look(11_000, &told);
        assert_eq!(next.look(12_000, &told), [(LeaseId(7), 1_000_000)]);
        write_json(&lease.end(), &1, false).unwrap();
        assert_eq!(next.look(13_000, &told), []);
    }
}
