//! One change of many jobs: arrays, ranges and lists of them.
//!
//! Every job is changed by itself, so that one that cannot be changed keeps none of the others from
//! it. Asking again for what is done already is no fault.

use std::collections::BTreeSet;

use super::jobs::{require, unknown_job};
use super::{Answer, Effect, Host, HostError, Principal};
use crate::api::{JobNow, JobsChanged, RefusedJobs};
use crate::job::{JobAction, JobState};
use crate::limits::{CHANGED_JOBS_MAX, SELECTIONS_MAX};
use crate::selection::Selection;
use crate::store::{JobRow, Role};

/// An answer that is complete when the batch is.
pub(super) struct ManyReply {
    slot: u64,
    /// Those that the change is for and that are not over, or were not.
    jobs: BTreeSet<u32>,
    over: Vec<JobNow>,
    refused: Vec<RefusedJobs>,
}

impl Host {
    pub(super) fn change_many(
        &mut self,
        slot: u64,
        by: &Principal,
        action: JobAction,
        selections: &[Selection],
    ) -> Result<(), HostError> {
        require(by, &[Role::Admin, Role::User])?;
        if !(1..=SELECTIONS_MAX).contains(&selections.len()) {
            let fault = format!("{}; name 1 to {SELECTIONS_MAX}", selections.len());
            return Err(HostError::Invalid { field: "jobs", fault });
        }
        let (jobs, over, refused) = (BTreeSet::new(), Vec::new(), Vec::new());
        let mut reply = ManyReply { slot, jobs, over, refused };
        for selection in selections {
            if let Err(fault) = self.select(by, action, *selection, &mut reply) {
                reply.refuse(selection.to_string(), &fault);
            }
            // Before anything is changed: all of it or nothing.
            if reply.jobs.len() > CHANGED_JOBS_MAX {
                let fault = format!("more than {CHANGED_JOBS_MAX} jobs; name fewer at a time");
                return Err(HostError::Invalid { field: "jobs", fault });
            }
        }
        for id in reply.jobs.clone() {
            let done = match action {
                JobAction::Cancel => self.cancel_job(by, id, None),
                JobAction::Hold => self.hold_job(by, id, true, None),
                JobAction::Release => self.hold_job(by, id, false, None),
            };
            if let Err(fault) = done {
                reply.jobs.remove(&id);
                reply.refuse(id.to_string(), &fault);
            }
        }
        self.draft.many_replies.push(reply);
        Ok(())
    }

    /// Adds the jobs that are meant to a change. Of ranges and arrays those that are over are
    /// passed over; a single one that is over can only be cancelled once more.
    fn select(
        &mut self,
        by: &Principal,
        action: JobAction,
        selection: Selection,
        reply: &mut ManyReply,
    ) -> Result<(), HostError> {
        let unknown = |what| HostError::Unknown { what, name: selection.to_string() };
        let number = |number: u64| u32::try_from(number).map_err(|_| unknown("job"));
        let (first, last) = match selection {
            Selection::Range { first, last } => (number(first)?, number(last)?),
            Selection::Job(id) => {
                let id = number(id)?;
                let row = self.row_of(by, id)?.ok_or_else(|| unknown_job(id))?;
                match row.array_of {
                    Some(first) if first == id => (id, id + row.request.array.max(1) - 1),
                    Some(_) | None if row.ended.is_some() => {
                        return end_again(action, &row, reply);
                    }
                    Some(_) | None => (id, id),
                }
            }
            Selection::Indices { array, first, last } => {
                let array = number(array)?;
                let row = self.row_of(by, array)?.filter(|row| row.array_of == Some(array));
                let row = row.ok_or_else(|| unknown("array with"))?;
                let count = u64::from(row.request.array);
                if first.max(last) >= count {
                    return Err(unknown("job"));
                }
                (array + number(first)?, array + number(last)?)
            }
        };
        if first > last {
            return Err(unknown("job"));
        }
        let live = self.jobs.range(first..=last).filter(|(_, live)| by.sees(&live.row.tenant));
        // One more than may be shows that there are too many.
        reply.jobs.extend(live.map(|(id, _)| *id).take(CHANGED_JOBS_MAX + 1));
        Ok(())
    }

    /// A job, over or not, that is the principal's business.
    fn row_of(&mut self, by: &Principal, id: u32) -> Result<Option<JobRow>, HostError> {
        match self.jobs.get(&id) {
            Some(live) => Ok(Some(live.row.clone()).filter(|row| by.sees(&row.tenant))),
            None => self.over(by, id),
        }
    }

    /// Answers those who changed many, as the jobs are after the batch.
    pub(super) fn answer_many(&mut self) {
        for reply in std::mem::take(&mut self.draft.many_replies) {
            let now = |id: u32| {
                let ended = self.draft.ended.get(&id).map(|row| row.state);
                JobNow { id, state: ended.unwrap_or_else(|| self.state_of(id)) }
            };
            let mut jobs: Vec<JobNow> = reply.jobs.iter().copied().map(now).collect();
            jobs.extend(reply.over);
            jobs.sort_by_key(|job| job.id);
            jobs.dedup_by_key(|job| job.id);
            let answer = Answer::Jobs(Box::new(JobsChanged { jobs, refused: reply.refused }));
            self.draft.effects.push(Effect::Reply(reply.slot, Ok(answer)));
        }
    }
}

impl ManyReply {
    fn refuse(&mut self, jobs: String, fault: &HostError) {
        self.refused.push(RefusedJobs { jobs, error: fault.to_string() });
    }
}

/// What was cancelled may be cancelled again; everything else that is over cannot be changed.
fn end_again(action: JobAction, row: &JobRow, reply: &mut ManyReply) -> Result<(), HostError> {
    if action == JobAction::Cancel && row.state == JobState::Cancelled {
        reply.over.push(JobNow { id: row.id, state: row.state });
        return Ok(());
    }
    Err(HostError::WrongState { job: row.id, fault: "is over".to_owned() })
}
