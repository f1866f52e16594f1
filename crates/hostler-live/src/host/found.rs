//! Jobs that nobody submitted here: the driver found them where it runs jobs.
//!
//! They are jobs like all others, in the log and in the store, with the name that the driver has
//! for them. That name is what keeps one from being entered twice, over restarts and after its end.

use std::sync::Arc;

use hostler_core::id::JobId;
use hostler_core::job::JobSpec;

use super::request::{check_name, spec_of};
use super::{Desk, HostError};
use crate::job::{JobRequest, JobState};
use crate::limits::JOBS_MAX;
use crate::store::{JobFacts, JobOrigin, JobRow, TenantQuota};

/// A job as a driver found it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundJob {
    /// What the driver calls it; it must never call another one so.
    pub by: String,
    /// Who pays; a tenant that is not known yet is added.
    pub tenant: String,
    /// Who submitted it there.
    pub user: String,
    /// What it asks for, and a name. It may name no command: that is not ours to run.
    pub request: JobRequest,
}

impl Desk {
    /// The number of a job that the driver found, however often it does; it enters the first time.
    ///
    /// None when the job is over here: what is left of it there is to be ended.
    pub fn find_job(&mut self, found: FoundJob) -> Result<Option<JobId>, HostError> {
        if let Some(id) = self.found.get(&found.by) {
            return Ok(Some(*id));
        }
        // One that ended in this very batch is not in the store yet.
        let is_this = |row: &JobRow| row.origin.found() == Some(&found.by);
        if self.draft.ended.values().any(is_this) || self.store.job_found(&found.by)?.is_some() {
            return Ok(None);
        }
        if self.jobs.len() >= JOBS_MAX {
            return Err(HostError::Busy);
        }
        check_name("name", &found.request.name)?;
        if self.tenants.get(&found.tenant).is_none() {
            self.set_tenant(&found.tenant, TenantQuota::default())?;
        }
        let (spec, names) = spec_of(&found.request, self, &found.tenant)?;
        names.into_iter().for_each(|name| self.add_group(name));
        Ok(Some(self.enter_found(found, spec)))
    }

    fn enter_found(&mut self, found: FoundJob, spec: JobSpec) -> JobId {
        let FoundJob { by, tenant, user, request } = found;
        let id = self.next_job();
        self.found.insert(by.clone(), id);
        let row = JobRow {
            id: id.0,
            version: 0,
            tenant,
            user,
            state: JobState::Queued,
            submitted: self.now.0,
            ended: None,
            array_of: None,
            request,
            facts: JobFacts::default(),
            origin: JobOrigin::Found { by },
        };
        self.enter_one(row, Arc::new(spec));
        id
    }
}
