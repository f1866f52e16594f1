//! Jobs that are not over: how they enter, are cancelled, held and let go.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use hostler_core::event::Event;
use hostler_core::gate::{ArrayLimit, Gate};
use hostler_core::id::JobId;
use hostler_core::job::{JobSpec, Phase};
use hostler_core::units::Time;
use sha2::{Digest, Sha256};

use super::request::{check_texts, spec_of};
use super::{Answer, DEFAULT_TENANT, Desk, Effect, HostError, Principal};
use crate::job::{Indices, JobRequest, JobState};
use crate::limits::{ARRAY_INDEX_MAX, ARRAY_JOBS_MAX, ARRAY_STEP_MAX, JOBS_MAX, KEY_CHARS_MAX};
use crate::store::{JobFacts, JobOrigin, JobRow, KeyRow, Role, Row};

/// A job that is not over, with what the engine does not know of it.
pub(super) struct LiveJob {
    /// As it is in the store, or will be after this batch.
    pub(super) row: JobRow,
    /// Whether the store does not have it yet.
    pub(super) is_new: bool,
    /// Whether it changed besides its state.
    pub(super) changed: bool,
    /// When it ended, where that was before it was heard.
    pub(super) ended: Option<Time>,
}

impl LiveJob {
    pub(super) fn new(row: JobRow) -> LiveJob {
        LiveJob { row, is_new: false, changed: false, ended: None }
    }
}

impl Desk {
    pub(super) fn submit(
        &mut self,
        slot: u64,
        by: &Principal,
        request: JobRequest,
        key: Option<String>,
        tenant: Option<String>,
    ) -> Result<(), HostError> {
        require(by, &[Role::Admin, Role::User])?;
        let tenant = tenant.unwrap_or_else(|| by.tenant.clone());
        let known = by.sees(&tenant) && self.tenants.get(&tenant).is_some();
        if !known {
            return Err(HostError::Unknown { what: "tenant", name: tenant });
        }
        if self.settings.only_default_tenant && tenant != DEFAULT_TENANT {
            return Err(HostError::Untrusted { tenant });
        }
        let digest = digest_of(&request, &tenant);
        if let Some(key) = &key
            && let Some(jobs) = self.used_before(by, key, &digest)?
        {
            let answer = Answer::Submitted { jobs, again: true };
            self.draft.effects.push(Effect::Reply(slot, Ok(answer)));
            return Ok(());
        }
        check_texts(&request)?;
        let (mut spec, names) = spec_of(&request, self, &tenant)?;
        check_array(&request)?;
        spec.after = self.needs_of(by, &request)?;
        let window = self.window_for(by, &tenant, &request.reservation)?;
        spec.gangs.iter_mut().for_each(|gang| gang.demand.window = window);
        let first = JobId(self.next_job);
        spec.array = request.array_limit.map(|most| ArrayLimit { first, most });
        let count = request.array.max(1);
        if self.jobs.len() + count as usize > JOBS_MAX {
            return Err(HostError::Busy);
        }
        self.check_quota(&tenant, count, spec.gpu_milli())?;
        names.into_iter().for_each(|name| self.add_group(name));
        let jobs = self.enter(by, &tenant, request, Arc::new(spec), count);
        if let Some(key) = key {
            let row = KeyRow {
                token: by.token,
                key,
                request: digest,
                first_job: jobs[0],
                jobs: count,
                at: self.now.0,
            };
            self.draft.rows.extend(self.keys.add(row));
        }
        let answer = Answer::Submitted { jobs, again: false };
        self.draft.effects.push(Effect::Reply(slot, Ok(answer)));
        Ok(())
    }

    /// Enters jobs that were checked.
    fn enter(
        &mut self,
        by: &Principal,
        tenant: &str,
        request: JobRequest,
        spec: Arc<JobSpec>,
        count: u32,
    ) -> Vec<u32> {
        let first = self.next_job;
        let is_array = request.array > 0;
        let indices = Indices::of(&request);
        for place in 0..count {
            let id = first + place;
            let row = JobRow {
                id,
                version: 0,
                tenant: tenant.to_owned(),
                user: by.user.clone(),
                state: JobState::Queued,
                submitted: self.now.0,
                ended: None,
                array_of: is_array.then_some(first),
                request: request.clone(),
                facts: JobFacts {
                    array_index: is_array.then(|| indices.at(place)),
                    person: by.person.clone(),
                    ..JobFacts::default()
                },
                origin: JobOrigin::Ours,
            };
            self.enter_one(row, Arc::clone(&spec));
        }
        (first..first + count).collect()
    }

    pub(super) fn enter_one(&mut self, row: JobRow, spec: Arc<JobSpec>) {
        let id = row.id;
        self.tenants.added(&row.tenant);
        self.jobs.insert(id, LiveJob { is_new: true, ..LiveJob::new(row) });
        self.figures.submitted += 1;
        self.next_job = id + 1;
        self.draft.touched.insert(id);
        self.fact(Event::Submitted { job: JobId(id), spec });
    }

    fn used_before(
        &self,
        by: &Principal,
        key: &str,
        digest: &str,
    ) -> Result<Option<Vec<u32>>, HostError> {
        let sane = !key.is_empty() && key.len() <= KEY_CHARS_MAX && key.is_ascii();
        if !sane {
            let fault = format!("use 1 to {KEY_CHARS_MAX} ASCII characters");
            return Err(HostError::Invalid { field: "idempotency key", fault });
        }
        match self.keys.get(by.token, key) {
            Some(used) if used.request == digest => {
                Ok(Some((used.first_job..used.first_job + used.jobs).collect()))
            }
            Some(_) => Err(HostError::KeyReused { key: key.to_owned() }),
            None => Ok(None),
        }
    }

    /// A job that is over and the principal's business.
    pub(super) fn over(&mut self, by: &Principal, id: u32) -> Result<Option<JobRow>, HostError> {
        // One that ended in this very batch is not in the store yet.
        let over = match self.draft.ended.get(&id) {
            Some(row) => Some(row.clone()),
            None => self.store.job(id)?,
        };
        Ok(over.filter(|row| by.sees(&row.tenant)))
    }

    pub(super) fn cancel_job(
        &mut self,
        by: &Principal,
        id: u32,
        version: Option<u64>,
    ) -> Result<(), HostError> {
        self.changeable(by, id, version)?;
        self.draft.touched.insert(id);
        self.fact(Event::Cancelled { job: JobId(id) });
        Ok(())
    }

    pub(super) fn hold_job(
        &mut self,
        by: &Principal,
        id: u32,
        held: bool,
        version: Option<u64>,
    ) -> Result<(), HostError> {
        self.changeable(by, id, version)?;
        let phase = self.engine.state().job(JobId(id)).map(|job| job.phase);
        if held && !matches!(phase, Some(Phase::Pending | Phase::Held)) {
            let fault = "runs and cannot be held; cancel it instead".to_owned();
            return Err(HostError::WrongState { job: id, fault });
        }
        let job = self.engine.state().job(JobId(id)).expect("looked up above");
        if job.gates.has(Gate::Person) != held {
            self.job_changed(JobId(id));
            self.fact(Event::HoldChanged { job: JobId(id), held });
        }
        Ok(())
    }

    /// Whether somebody may change a job now.
    pub(super) fn changeable(
        &mut self,
        by: &Principal,
        id: u32,
        version: Option<u64>,
    ) -> Result<(), HostError> {
        require(by, &[Role::Admin, Role::User])?;
        let Some(live) = self.jobs.get(&id) else {
            // Those of others are not there, whether they are over or not.
            return Err(match self.over(by, id)? {
                Some(_) => HostError::WrongState { job: id, fault: "is over".to_owned() },
                None => unknown_job(id),
            });
        };
        if !by.sees(&live.row.tenant) {
            return Err(unknown_job(id));
        }
        match version {
            Some(expected) if expected != live.row.version => {
                Err(HostError::OtherVersion { job: id, expected, found: live.row.version })
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn add_group(&mut self, name: String) {
        let next = self.groups.len() as u32;
        if let std::collections::btree_map::Entry::Vacant(entry) = self.groups.entry(name) {
            self.draft.rows.push(Row::Group(entry.key().clone(), next));
            entry.insert(next);
        }
    }
}

/// Whether an array has sensible numbers.
fn check_array(request: &JobRequest) -> Result<(), HostError> {
    let invalid = |field, fault| Err(HostError::Invalid { field, fault });
    let JobRequest { array, array_first, array_step, array_limit, .. } = *request;
    if array > ARRAY_JOBS_MAX {
        return invalid("array", format!("{array}; at most {ARRAY_JOBS_MAX} jobs are one array"));
    }
    if array_first > ARRAY_INDEX_MAX {
        let fault = format!("{array_first}; indices go up to {ARRAY_INDEX_MAX}");
        return invalid("array_first", fault);
    }
    if array_step.is_some_and(|step| !(1..=ARRAY_STEP_MAX).contains(&step)) {
        return invalid("array_step", format!("use 1 to {ARRAY_STEP_MAX}"));
    }
    if array_limit == Some(0) {
        return invalid("array_limit", "0; let one run at a time at least".to_owned());
    }
    if array > 0 && request.interactive.is_some() {
        let fault = "nobody can be attached to all jobs of an array; submit one job".to_owned();
        return invalid("interactive", fault);
    }
    let alone = array_first > 0 || array_step.is_some() || array_limit.is_some();
    if array == 0 && alone {
        return invalid("array", "0; say how many jobs the array has".to_owned());
    }
    Ok(())
}

/// Whether a principal has one of the roles.
pub(super) fn require(by: &Principal, roles: &[Role]) -> Result<(), HostError> {
    if roles.contains(&by.role) { Ok(()) } else { Err(HostError::Forbidden { role: by.role }) }
}

pub(super) fn unknown_job(id: u32) -> HostError {
    HostError::Unknown { what: "job", name: id.to_string() }
}

fn digest_of(request: &JobRequest, tenant: &str) -> String {
    let text = serde_json::to_string(&(request, tenant)).expect("a request is plain data");
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}
