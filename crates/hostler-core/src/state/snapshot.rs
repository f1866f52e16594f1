//! The facts of a state as plain data, to save them and to go on from there without the log.
//!
//! Indices and the book of what is free follow from the facts and are made anew.

use serde::{Deserialize, Serialize};

use super::turns::Turns;
use super::{ClusterState, PolicyFault, Seen};
use crate::ability::Abilities;
use crate::account::TenantAccount;
use crate::cluster::{GpuModel, Health, Layout, Node, Power, Tenant};
use crate::decision::StopWhy;
use crate::id::{DeviceId, GroupId, JobId, LeaseId, ProfileKey, TenantId, WindowId};
use crate::job::{Job, Phase};
use crate::placement::{Lease, Placement};
use crate::profile::Profile;
use crate::service::Services;
use crate::table::IdWindow;
use crate::units::Time;
use crate::window::Window;

/// The facts of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    now: Time,
    step: u64,
    /// None in a snapshot of a release that did not sum it up: then jobs count as if there had been
    /// as many all the time.
    #[serde(default)]
    crowd: Option<u64>,
    models: Vec<GpuModel>,
    tenants: Vec<Tenant>,
    profiles: Vec<(ProfileKey, Profile)>,
    nodes: Vec<Node>,
    /// Devices that are divided in hardware slices.
    layouts: Vec<(DeviceId, Layout)>,
    jobs: Vec<Job>,
    next_job: u32,
    leases: Vec<Lease>,
    next_lease: u32,
    starting: Vec<(Time, LeaseId)>,
    must_stop: Vec<(LeaseId, StopWhy)>,
    paused: Vec<(Time, JobId)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    windows: Vec<(WindowId, Window)>,
    #[serde(default)]
    accounts: Vec<TenantAccount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weighed_at: Option<Time>,
    abilities: Abilities,
    uses: Vec<((TenantId, GroupId), Seen)>,
    #[serde(default, skip_serializing_if = "Services::is_empty")]
    services: Services,
    wake_at: Option<Time>,
    asked_at: Option<Time>,
    turns: Turns,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy_fault: Option<PolicyFault>,
    stale_events: u64,
    /// Whether something happened that the policy has not been asked about.
    pub(crate) policy_due: bool,
}

impl ClusterState {
    /// The facts, to save them.
    pub(crate) fn snapshot(&self, policy_due: bool) -> Snapshot {
        let layouts = self.divided.iter().map(|device| (*device, Layout::Mig));
        Snapshot {
            now: self.now,
            step: self.step,
            crowd: Some(self.crowd),
            models: self.models.clone(),
            tenants: self.tenants.clone(),
            profiles: self.profiles.iter().map(|(key, table)| (*key, table.clone())).collect(),
            nodes: self.nodes.clone(),
            layouts: layouts.collect(),
            jobs: self.jobs.iter().cloned().collect(),
            next_job: self.jobs.next_id(),
            leases: self.leases.iter().cloned().collect(),
            next_lease: self.leases.next_id(),
            starting: self.starting.iter().copied().collect(),
            must_stop: self.must_stop.iter().map(|(lease, why)| (*lease, *why)).collect(),
            paused: self.gates.paused.iter().copied().collect(),
            accounts: self.accounts.clone(),
            weighed_at: self.weighed_at,
            windows: self.windows().map(|(id, window)| (id, window.clone())).collect(),
            abilities: self.abilities,
            uses: self.uses.iter().map(|(group, seen)| (*group, *seen)).collect(),
            services: self.services.clone(),
            wake_at: self.wake_at,
            asked_at: self.asked_at,
            turns: self.turns.clone(),
            policy_fault: self.policy_fault.clone(),
            stale_events: self.stale_events,
            policy_due,
        }
    }

    /// The state that has these facts.
    pub(crate) fn restore(snapshot: Snapshot) -> ClusterState {
        let mut state = ClusterState {
            now: snapshot.now,
            step: snapshot.step,
            crowd: snapshot.crowd.unwrap_or(0),
            tenants: snapshot.tenants,
            profiles: snapshot.profiles.into_iter().collect(),
            starting: snapshot.starting.into(),
            must_stop: snapshot.must_stop.into_iter().collect(),
            abilities: snapshot.abilities,
            uses: snapshot.uses.into_iter().collect(),
            services: snapshot.services,
            weighed_at: snapshot.weighed_at,
            wake_at: snapshot.wake_at,
            asked_at: snapshot.asked_at,
            turns: snapshot.turns,
            policy_fault: snapshot.policy_fault,
            stale_events: snapshot.stale_events,
            ..ClusterState::default()
        };
        for model in snapshot.models {
            state.capacity.add_model(&model);
            state.models.push(model);
        }
        let crowd_is_known = snapshot.crowd.is_some();
        snapshot.nodes.into_iter().for_each(|node| state.restore_node(node));
        for (device, layout) in snapshot.layouts {
            state.set_layout(device, layout);
        }
        let pending = snapshot.jobs.iter().filter(|job| job.phase == Phase::Pending);
        state.pending = pending.map(|job| job.id).collect();
        let in_rounds = snapshot.jobs.iter().filter(|job| job.share_accounts.is_some());
        state.in_rounds = in_rounds.map(|job| job.id).collect();
        let crowd = snapshot.jobs.len() as u64;
        let jobs = snapshot.jobs.into_iter().map(|mut job| {
            if !crowd_is_known {
                let life = snapshot.now.since(job.submitted).0;
                job.crowd_before = 0u64.wrapping_sub(life.wrapping_mul(crowd));
            }
            (job.id.0, job)
        });
        state.jobs = IdWindow::restore(snapshot.next_job, jobs);
        let leases = snapshot.leases.into_iter().map(|lease| (lease.id.0, lease));
        state.leases = IdWindow::restore(snapshot.next_lease, leases);
        state.restore_bookings();
        state.gates.paused = snapshot.paused.into_iter().collect();
        state.gates = state.derive_gates();
        state.restore_windows(snapshot.windows);
        state.restore_accounts(snapshot.accounts);
        state
    }

    /// Makes the book of what is free anew from what leases hold, after somebody lost it.
    pub(crate) fn rebuild_capacity(&mut self) {
        let (journal, refitted) = (std::mem::take(&mut self.journal), self.refitted);
        *self = ClusterState { journal, refitted, ..self.rebuilt() };
    }

    fn rebuilt(&self) -> ClusterState {
        ClusterState::restore(self.snapshot(false))
    }

    fn restore_node(&mut self, mut node: Node) {
        node.leases.clear();
        node.parked.clear();
        let (health, power) = (node.health, node.power);
        // Every node was up when it joined, and the index remembers how large it was.
        (node.health, node.power) = (Health::Up, Power::On);
        self.next_device += node.spec.gpus;
        self.retired += usize::from(node.retired);
        self.node_held.push([0; 2]);
        self.device_held.resize(self.next_device as usize, [0; 2]);
        self.capacity.add_node(&node);
        (node.health, node.power) = (health, power);
        self.capacity.set_usable(node.id, node.usable());
        self.nodes.push(node);
    }

    fn restore_bookings(&mut self) {
        let leases: Vec<Lease> = self.leases.iter().cloned().collect();
        for lease in leases {
            self.capacity.book_again(&lease.placement);
            self.link_nodes(lease.id, &lease.placement);
            self.by_end.insert((lease.expected_end, lease.id));
            self.stopping += usize::from(lease.stop.is_some());
            if let Some(alarm) = self.alarm_of(&lease) {
                self.alarms.insert((alarm, lease.id));
            }
        }
        let parked = |job: &Job| Some((job.id, job.parked.as_ref()?.memory.clone()));
        let parked: Vec<(JobId, Placement)> = self.jobs.iter().filter_map(parked).collect();
        parked.iter().for_each(|(job, memory)| self.hold_memory(*job, memory, true));
    }
}

#[cfg(test)]
mod tests {
    use super::ClusterState;
    use crate::id::JobId;
    use crate::testkit::*;

    #[test]
    fn where_no_crowd_was_summed_up_it_has_always_been_as_it_is() {
        let mut world = World::of("1");
        world.submit(0, 0, &["gpus 1"]);
        world.submit(60, 1, &["gpus 1"; 3]);
        world.step(100, vec![], vec![]);
        let crowds = |state: &ClusterState| {
            let crowd = |id| state.crowd_since(state.job(JobId(id)).expect("it is not over"));
            [crowd(0), crowd(1)].map(|sum| sum / 1_000_000)
        };
        assert_eq!(crowds(world.state()), [60 + 40 * 4, 40 * 4]);
        let mut snapshot = world.state().snapshot(false);
        snapshot.crowd = None;
        assert_eq!(crowds(&ClusterState::restore(snapshot)), [100 * 4, 40 * 4]);
    }
}
