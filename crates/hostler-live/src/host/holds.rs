//! Why a job is kept from the policy: a person, jobs it needs, its tenant's quota, no fit, or a
//! start that failed just now.
//!
//! The engine only knows held or not. Quotas are exact whatever the policy does: a job beyond its
//! tenant's GPUs does not reach the policy, and those who wait are let through in order.

use std::collections::{BTreeMap, BTreeSet};

use hostler_core::event::Event;
use hostler_core::id::JobId;
use hostler_core::job::Phase;

use super::jobs::LiveJob;
use super::{Desk, HostError};
use crate::store::{TenantQuota, TenantRow};

/// Tenants, what they may use and what they do use.
#[derive(Default)]
pub(super) struct Tenants {
    by_name: BTreeMap<String, TenantUse>,
    /// Tenants for whom there may be room now.
    recheck: BTreeSet<String>,
}

/// A tenant and what it uses.
pub(super) struct TenantUse {
    pub(super) row: TenantRow,
    /// Jobs that are not over.
    pub(super) jobs: u32,
    /// Of those, jobs with resources.
    pub(super) leased: u32,
    /// Thousandths of GPUs of jobs that were let through.
    pub(super) gpu_milli: u64,
    /// Jobs that wait for the quota.
    pub(super) gated: BTreeSet<u32>,
}

impl Tenants {
    pub(super) fn get(&self, name: &str) -> Option<&TenantUse> {
        self.by_name.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &TenantUse> {
        self.by_name.values()
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Adds a tenant, or changes what it may use.
    pub(super) fn put(&mut self, row: TenantRow) {
        self.recheck.insert(row.name.clone());
        match self.by_name.get_mut(&row.name) {
            Some(tenant) => tenant.row = row,
            None => {
                let name = row.name.clone();
                let (jobs, leased, gpu_milli) = (0, 0, 0);
                let tenant = TenantUse { row, jobs, leased, gpu_milli, gated: BTreeSet::new() };
                self.by_name.insert(name, tenant);
            }
        }
    }

    pub(super) fn added(&mut self, name: &str) {
        self.of(name).jobs += 1;
    }

    pub(super) fn counted(&mut self, name: &str, gpu_milli: u64) {
        self.of(name).gpu_milli += gpu_milli;
    }

    pub(super) fn leased(&mut self, name: &str, begins: bool) {
        let leased = &mut self.of(name).leased;
        *leased = if begins { *leased + 1 } else { leased.saturating_sub(1) };
    }

    /// A job is over: what it used is free for the next.
    pub(super) fn over(&mut self, job: &LiveJob) {
        let tenant = self.of(&job.row.tenant);
        tenant.jobs = tenant.jobs.saturating_sub(1);
        tenant.gated.remove(&job.row.id);
        if job.counted {
            tenant.gpu_milli = tenant.gpu_milli.saturating_sub(job.gpu_milli);
            self.recheck.insert(job.row.tenant.clone());
        }
    }

    fn of(&mut self, name: &str) -> &mut TenantUse {
        self.by_name.get_mut(name).expect("a job's tenant is known")
    }
}

impl TenantUse {
    fn has_room(&self, gpu_milli: u64) -> bool {
        let most = self.row.quota.gpus_max.map_or(u64::MAX, |gpus| u64::from(gpus) * 1000);
        self.gpu_milli + gpu_milli <= most
    }
}

impl Desk {
    /// Whether so many more jobs are within a tenant's quota.
    pub(super) fn check_quota(
        &self,
        name: &str,
        count: u32,
        gpu_milli: u64,
    ) -> Result<(), HostError> {
        let tenant = self.tenants.get(name).expect("the tenant was looked up");
        let TenantQuota { jobs_max, queued_max, gpus_max, .. } = tenant.row.quota;
        let over =
            |what, most: u64| Err(HostError::OverQuota { tenant: name.to_owned(), what, most });
        if let Some(most) = jobs_max.filter(|most| tenant.jobs + count > *most) {
            return over("jobs", most.into());
        }
        let waiting = tenant.jobs.saturating_sub(tenant.leased);
        if let Some(most) = queued_max.filter(|most| waiting + count > *most) {
            return over("waiting jobs", most.into());
        }
        let too_large = |most: &u32| gpu_milli > u64::from(*most) * 1000;
        if let Some(most) = gpus_max.filter(too_large) {
            return over("GPUs in one job", most.into());
        }
        Ok(())
    }

    /// Lets a job through to the policy or keeps it back, as everything stands now.
    pub(super) fn consider(&mut self, id: u32) {
        let Some(live) = self.jobs.get_mut(&id) else { return };
        let kept = live.row.facts.held || !live.needs.is_empty() || live.unplaceable.is_some();
        let kept = kept || self.paused.contains_key(&id);
        let tenant = self.tenants.of(&live.row.tenant);
        if kept {
            tenant.gated.remove(&id);
            if std::mem::take(&mut live.counted) {
                tenant.gpu_milli = tenant.gpu_milli.saturating_sub(live.gpu_milli);
                self.tenants.recheck.insert(live.row.tenant.clone());
            }
        } else if !live.counted {
            let waits = tenant.gated.iter().any(|other| *other != id);
            if live.gpu_milli == 0 || (!waits && tenant.has_room(live.gpu_milli)) {
                tenant.gated.remove(&id);
                tenant.gpu_milli += live.gpu_milli;
                live.counted = true;
            } else {
                tenant.gated.insert(id);
            }
        }
        let held = !live.counted;
        let job = JobId(id);
        let phase = self.engine.state().job(job).map(|job| job.phase);
        let differs = match phase {
            Some(Phase::Pending) => held,
            Some(Phase::Held) => !held,
            _ => false,
        };
        if differs {
            self.draft.touched.insert(id);
            self.later(Event::HoldChanged { job, held });
        }
    }

    /// Lets those through for whom there is room by now, in order of submission.
    pub(super) fn open_gates(&mut self) {
        for name in std::mem::take(&mut self.tenants.recheck) {
            while let Some(id) = self.tenants.next_through(&name, &self.jobs) {
                self.tenants.of(&name).gated.remove(&id);
                let live = self.jobs.get_mut(&id).expect("a job that waits is live");
                live.counted = true;
                self.tenants.of(&name).gpu_milli += live.gpu_milli;
                self.consider(id);
            }
        }
    }

    /// Keeps back what no node can hold until another one joins.
    pub(super) fn hold_unplaceable(&mut self) {
        for (id, reason) in std::mem::take(&mut self.draft.unplaceable_jobs) {
            if let Some(live) = self.jobs.get_mut(&id) {
                live.unplaceable = Some(reason);
                self.consider(id);
            }
        }
    }

    /// A node joined: what fitted nowhere is tried again.
    pub(super) fn release_unplaceable(&mut self) {
        let unplaceable_jobs = self.jobs.values_mut().filter(|live| live.unplaceable.is_some());
        let mut ids = Vec::new();
        for live in unplaceable_jobs {
            live.unplaceable = None;
            ids.push(live.row.id);
        }
        ids.into_iter().for_each(|id| self.consider(id));
        self.drain();
    }
}

impl Tenants {
    fn next_through(&self, name: &str, jobs: &BTreeMap<u32, LiveJob>) -> Option<u32> {
        let tenant = self.by_name.get(name)?;
        let id = *tenant.gated.first()?;
        tenant.has_room(jobs.get(&id)?.gpu_milli).then_some(id)
    }
}
