//! Jobs that nobody submitted here: the driver found them where it runs jobs.
//!
//! They are jobs like all others, in the log and in the store, with the name that the driver has
//! for them. That name is what keeps one from being entered twice, over restarts and after its end.

use std::sync::Arc;

use hostler_core::border::{self, Refused};
use hostler_core::cluster::Share;
use hostler_core::event::Event;
use hostler_core::gate::{ArrayLimit, Gate};
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::job::JobSpec;
use hostler_core::placement::{Part, Placement, Slice};
use hostler_core::units::{Mib, Milli, Span, Time};

use super::request::{check_name, spec_of};
use super::{Desk, HostError};
use crate::job::{JobRequest, JobState};
use crate::limits::{FOUND_TENANTS_MAX, JOBS_MAX};
use crate::store::{JobFacts, JobOrigin, JobRow, TenantQuota};

/// The tenant of those for whom there is no room among the tenants.
const OTHERS: &str = "others";

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
    /// When it was submitted there, where that is known.
    pub submitted: Option<Time>,
    /// The array that it is of, where only some of that may run at once.
    pub array: Option<FoundArray>,
}

/// An array of jobs that a driver found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundArray {
    /// Its first job; the one that is found when none.
    pub first: Option<JobId>,
    /// How many of it may run at once.
    pub most: u32,
}

/// What a job was found to hold on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundPart {
    /// The node.
    pub node: NodeId,
    /// Whole GPUs.
    pub gpus: u32,
    /// Cores.
    pub cpu: Milli,
    /// Main memory.
    pub mem: Mib,
}

impl Desk {
    /// The number of a job that the driver found, however often it does; it enters the first time.
    ///
    /// None when the job is over here: what is left of it there is to be ended.
    pub fn find_job(&mut self, mut found: FoundJob) -> Result<Option<JobId>, HostError> {
        if let Some(id) = self.found.get(&found.by) {
            return Ok(Some(*id));
        }
        if self.found_over(&found.by)?.is_some() {
            return Ok(None);
        }
        if self.jobs.len() >= JOBS_MAX {
            return Err(HostError::Busy);
        }
        check_name("name", &found.request.name)?;
        if self.tenants.get(&found.tenant).is_none() {
            found.tenant = self.add_found_tenant(found.tenant)?;
        }
        let (mut spec, names) = spec_of(&found.request, self, &found.tenant)?;
        spec.array = found.array.map(|array| ArrayLimit {
            first: array.first.unwrap_or(self.next_job()),
            most: array.most,
        });
        names.into_iter().for_each(|name| self.add_group(name));
        Ok(Some(self.enter_found(found, spec)))
    }

    /// A tenant enters because a job of it was found; who pays in the end. Where users may name any
    /// account, one of them might name one after the other.
    fn add_found_tenant(&mut self, name: String) -> Result<String, HostError> {
        let is_full = self.tenants.len() >= FOUND_TENANTS_MAX;
        let pays = if is_full { OTHERS.to_owned() } else { name };
        if self.tenants.get(&pays).is_none() {
            if is_full {
                let most = FOUND_TENANTS_MAX;
                tracing::warn!("{most} tenants are there: jobs of others are tenant `{OTHERS}`'s");
            }
            self.set_tenant(&pays, TenantQuota::default())?;
        }
        Ok(pays)
    }

    /// A job that the driver found before and that is over here.
    pub fn found_over(&mut self, by: &str) -> Result<Option<JobRow>, HostError> {
        // One that ended in this very batch is not in the store yet.
        let is_this = |row: &&JobRow| row.origin.found() == Some(by);
        match self.draft.ended.values().find(is_this) {
            Some(row) => Ok(Some(row.clone())),
            None => Ok(self.store.job_found(by)?),
        }
    }

    /// Jobs that the driver found and that are not over, by what it calls them.
    pub fn found_jobs(&self) -> impl Iterator<Item = (&str, JobId)> {
        self.found.iter().map(|(by, job)| (by.as_str(), *job))
    }

    /// One of them.
    pub fn found_job(&self, by: &str) -> Option<JobId> {
        self.found.get(by).copied()
    }

    /// The first of them whose name begins so.
    pub fn found_job_from(&self, beginning: &str) -> Option<JobId> {
        let (by, job) = self.found.range(beginning.to_owned()..).next()?;
        by.starts_with(beginning).then_some(*job)
    }

    /// A job runs there already, and has for so long: it holds that from now on. Which of the GPUs
    /// of a node they are is not asked. Refused while others are believed to hold it.
    pub fn adopt(&mut self, job: JobId, on: &[FoundPart], ran: Span) -> Result<LeaseId, Refused> {
        let capacity = self.state().capacity();
        let mut parts = Vec::new();
        for found in on {
            let Some(devices) = capacity.untouched(found.node, found.gpus) else {
                return Err(Refused::Elsewhere(job.0));
            };
            let whole = |device| Slice { device, share: Share::Whole };
            let free = capacity.node(found.node);
            parts.push(Part {
                gang: 0,
                node: found.node,
                tasks: 1,
                // What counts cores otherwise than we do must not keep GPUs from being booked.
                cpu: found.cpu.min(free.cpu),
                mem: found.mem.min(free.mem),
                slices: devices.into_iter().map(whole).collect(),
            });
        }
        parts.sort_unstable_by_key(|part| part.node);
        let (lease, placement) = (self.state().next_lease(), Arc::new(Placement { parts }));
        let event = Event::Adopted { lease, job, placement, done: ran };
        border::check(self.state(), &event)?;
        self.fact(event);
        Ok(lease)
    }

    /// What runs the jobs keeps one back for a reason, or lets it go where none is given.
    pub fn keep_back(&mut self, job: JobId, why: Option<&str>) {
        let Some(known) = self.state().job(job) else { return };
        let (kept, held) = (known.gates.has(Gate::Engine), known.lease().is_none());
        if why.is_some() != kept && held {
            self.fact(Event::KeptBack { job, kept: why.is_some() });
        }
        let Some(facts) = self.job_facts(job) else { return };
        if held && (why.is_some() || kept) && facts.reason != why.unwrap_or_default() {
            why.unwrap_or_default().clone_into(&mut facts.reason);
            self.job_changed(job);
        }
    }

    fn enter_found(&mut self, found: FoundJob, spec: JobSpec) -> JobId {
        let FoundJob { by, tenant, user, request, submitted, .. } = found;
        let id = self.next_job();
        self.found.insert(by.clone(), id);
        let row = JobRow {
            id: id.0,
            version: 0,
            tenant,
            user,
            state: JobState::Queued,
            submitted: submitted.map_or(self.now, |at| at.min(self.now)).0,
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
