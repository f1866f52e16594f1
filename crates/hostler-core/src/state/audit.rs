//! Re-deriving every index from the facts, to compare with the ones that are kept.

use std::collections::{BTreeMap, BTreeSet};

use super::ClusterState;
use crate::id::{DeviceId, JobId, LeaseId};
use crate::job::Phase;
use crate::units::Milli;

impl ClusterState {
    /// Panics when an index, a booking or a phase does not follow from the facts.
    ///
    /// Costs the size of the state: for tests and debug builds.
    pub fn audit(&self) {
        let pending: BTreeSet<_> =
            self.jobs.iter().filter(|job| job.phase == Phase::Pending).map(|job| job.id).collect();
        assert_eq!(self.pending, pending, "the pending index is off");
        let in_rounds = self.jobs.iter().filter(|job| job.share_accounts.is_some());
        let in_rounds: BTreeSet<JobId> = in_rounds.map(|job| job.id).collect();
        assert_eq!(self.in_rounds, in_rounds, "the index of jobs with accounts is off");
        let by_end: BTreeSet<_> =
            self.leases.iter().map(|lease| (lease.expected_end, lease.id)).collect();
        assert_eq!(self.by_end, by_end, "the index of expected ends is off");
        let stopping = self.leases.iter().filter(|lease| lease.stop.is_some()).count();
        assert_eq!(self.stopping, stopping, "the count of stops is off");
        for lease in self.leases.iter() {
            let job = self.job(lease.job).expect("a lease belongs to a job");
            assert_eq!(job.lease(), Some(lease.id), "{:?} and its lease disagree", job.id);
        }
        let holding = self.jobs.iter().filter(|job| job.lease().is_some()).count();
        assert_eq!(holding, self.leases.len(), "jobs and leases disagree");
        for job in self.jobs.iter() {
            let held = job.phase == Phase::Held;
            assert_eq!(
                held,
                !job.gates.is_open(),
                "{:?}: its gates and its phase disagree",
                job.id
            );
        }
        assert_eq!(self.gates, self.derive_gates(), "the book of gates is off");
        let held: Vec<u64> = self.accounts.iter().map(|account| account.held).collect();
        assert_eq!(held, self.derive_held(), "what tenants hold is off");
        self.services.audit();
        self.audit_bookings();
    }

    fn audit_bookings(&self) {
        let mut on_node: BTreeMap<_, (u32, u32, BTreeSet<LeaseId>)> = BTreeMap::new();
        let mut on_device: BTreeMap<_, [u32; 2]> = BTreeMap::new();
        let mut parked: BTreeMap<_, BTreeSet<JobId>> = BTreeMap::new();
        for job in self.jobs.iter() {
            for part in job.parked.iter().flat_map(|parked| &parked.memory.parts) {
                on_node.entry(part.node).or_default().1 += part.mem.0;
                parked.entry(part.node).or_default().insert(job.id);
            }
        }
        for lease in self.leases.iter() {
            for part in &lease.placement.parts {
                let (cpu, mem, leases) = on_node.entry(part.node).or_default();
                *cpu += part.cpu.0;
                *mem += part.mem.0;
                leases.insert(lease.id);
                for slice in &part.slices {
                    let [compute, mem] = self.amounts(part.node, slice);
                    let held = on_device.entry(slice.device).or_default();
                    *held = [held[0] + compute, held[1] + mem];
                }
            }
        }
        let all: BTreeSet<JobId> = parked.values().flatten().copied().collect();
        assert_eq!(self.parked, all, "the index of suspended jobs is off");
        for device in (0..self.next_device).map(DeviceId) {
            let held = on_device.get(&device).copied().unwrap_or_default();
            assert_eq!(self.device_held[device.index()], held, "{device:?}: held is off");
            assert!(held[0] <= 1000, "{device:?} is booked {} thousandths", held[0]);
        }
        for node in &self.nodes {
            let (cpu, mem, leases) = on_node.remove(&node.id).unwrap_or_default();
            let free = self.capacity.node(node.id);
            assert_eq!(self.node_held[node.id.index()], [cpu, mem], "{:?}: held is off", node.id);
            assert_eq!(free.cpu.0 + cpu, node.spec.cpu.0, "{:?}: CPU does not add up", node.id);
            assert_eq!(free.mem.0 + mem, node.spec.mem.0, "{:?}: memory does not add up", node.id);
            assert_eq!(free.features, node.spec.features, "{:?}: its features are off", node.id);
            let kept: BTreeSet<_> = node.leases.iter().copied().collect();
            assert_eq!(kept, leases, "{:?}: its leases are off", node.id);
            let suspended: BTreeSet<_> = node.parked.iter().copied().collect();
            let parked = parked.remove(&node.id).unwrap_or_default();
            assert_eq!(suspended, parked, "{:?}: its suspended jobs are off", node.id);
            let first = node.first_device.0;
            let booked = on_device
                .range(node.first_device..)
                .take_while(|(device, _)| device.0 < first + node.spec.gpus);
            let booked: u32 = booked.map(|(_, [compute, _])| compute).sum();
            let all = Milli(node.spec.gpus * 1000);
            assert_eq!(self.capacity.gpu_free(node.id) + Milli(booked), all, "{:?}", node.id);
        }
    }
}
