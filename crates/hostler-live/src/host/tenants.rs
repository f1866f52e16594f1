//! Tenants, and what they may have at once. How many GPUs their jobs may have is the scheduler's
//! business (`hostler_core::gate`); how many jobs is asked when they are submitted.

use std::collections::BTreeMap;

use super::{Desk, HostError};
use crate::store::{TenantQuota, TenantRow};

/// All tenants, by name.
#[derive(Default)]
pub(super) struct Tenants {
    by_name: BTreeMap<String, TenantUse>,
}

/// A tenant and what it has.
pub(super) struct TenantUse {
    pub(super) row: TenantRow,
    /// Jobs that are not over.
    pub(super) jobs: u32,
    /// Of those, jobs with resources.
    pub(super) leased: u32,
    /// Thousandths of GPUs that those asked for.
    pub(super) leased_gpu_milli: u64,
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
        match self.by_name.get_mut(&row.name) {
            Some(tenant) => tenant.row = row,
            None => {
                let name = row.name.clone();
                self.by_name
                    .insert(name, TenantUse { row, jobs: 0, leased: 0, leased_gpu_milli: 0 });
            }
        }
    }

    pub(super) fn added(&mut self, name: &str) {
        self.of(name).jobs += 1;
    }

    /// A job got resources.
    pub(super) fn leased(&mut self, name: &str, gpu_milli: u64) {
        let tenant = self.of(name);
        tenant.leased += 1;
        tenant.leased_gpu_milli += gpu_milli;
    }

    /// A job has them no more.
    pub(super) fn returned(&mut self, name: &str, gpu_milli: u64) {
        let tenant = self.of(name);
        tenant.leased = tenant.leased.saturating_sub(1);
        tenant.leased_gpu_milli = tenant.leased_gpu_milli.saturating_sub(gpu_milli);
    }

    pub(super) fn over(&mut self, name: &str) {
        let tenant = self.of(name);
        tenant.jobs = tenant.jobs.saturating_sub(1);
    }

    fn of(&mut self, name: &str) -> &mut TenantUse {
        self.by_name.get_mut(name).expect("a job's tenant is known")
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
}
