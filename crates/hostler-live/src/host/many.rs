//! One change of many jobs: arrays, ranges and lists of them.
//!
//! Every job is changed by itself, so that one that cannot be changed keeps none of the others from
//! it. Asking again for what is done already is no fault.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::jobs::{require, unknown_job};
use super::{Answer, Desk, Effect, HostError, Principal};
use crate::api::{JobNow, JobsChanged, RefusedJobs};
use crate::job::{Indices, JobAction, JobState};
use crate::limits::{CHANGED_JOBS_MAX, LOOKED_UP_MAX, SELECTIONS_MAX};
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

/// What a word for jobs can mean.
enum Meant {
    /// Those of these numbers that are not over.
    Jobs(RangeInclusive<u32>),
    /// One that is over and as it is wanted.
    Over(JobNow),
}

/// What has to be known of a job to tell what its number means.
#[derive(Clone, Copy)]
pub(super) struct Known {
    array_of: Option<u32>,
    indices: Indices,
    /// How it ended, if it is over.
    ended: Option<JobState>,
}

/// Jobs that were looked up for one request. Those that are not there are remembered, too.
pub(super) type LookedUp = BTreeMap<u32, Option<Known>>;

impl Desk {
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
        let (mut ranges, mut looked_up) = (Vec::new(), LookedUp::new());
        for selection in selections {
            match self.meant(by, action, *selection, &mut looked_up) {
                Ok(Meant::Jobs(numbers)) => ranges.push(numbers),
                Ok(Meant::Over(job)) => reply.over.push(job),
                Err(fault) => reply.refuse(selection.to_string(), fault)?,
            }
        }
        // Words that overlap lead past each job once.
        let live = merged(ranges).into_iter().flat_map(|numbers| self.jobs.range(numbers));
        let live = live.filter(|(_, live)| by.sees(&live.row.tenant)).map(|(id, _)| *id);
        // One more than may be shows that there are too many.
        reply.jobs.extend(live.take(CHANGED_JOBS_MAX + 1));
        // Before anything is changed: all of it or nothing.
        if reply.jobs.len() > CHANGED_JOBS_MAX {
            let fault = format!("more than {CHANGED_JOBS_MAX} jobs; name fewer at a time");
            return Err(HostError::Invalid { field: "jobs", fault });
        }
        self.change_each(by, action, &mut reply)?;
        self.draft.many_replies.push(reply);
        Ok(())
    }

    fn change_each(
        &mut self,
        by: &Principal,
        action: JobAction,
        reply: &mut ManyReply,
    ) -> Result<(), HostError> {
        for id in reply.jobs.clone() {
            let done = match action {
                // One that needs another of them is cancelled with that one.
                JobAction::Cancel if self.cancelled_in_batch(id) => Ok(()),
                JobAction::Cancel => self.cancel_job(by, id, None),
                JobAction::Hold => self.hold_job(by, id, true, None),
                JobAction::Release => self.hold_job(by, id, false, None),
            };
            if let Err(fault) = done {
                reply.jobs.remove(&id);
                reply.refuse(id.to_string(), fault)?;
            }
        }
        Ok(())
    }

    fn cancelled_in_batch(&self, id: u32) -> bool {
        self.draft.ended.get(&id).is_some_and(|row| row.state == JobState::Cancelled)
    }

    /// Which jobs a change is for. Of ranges and arrays those that are over are passed over; a
    /// single one that is over can only be cancelled once more.
    fn meant(
        &mut self,
        by: &Principal,
        action: JobAction,
        selection: Selection,
        looked_up: &mut LookedUp,
    ) -> Result<Meant, HostError> {
        let (numbers, single) = self.numbers_meant(by, selection, looked_up)?;
        match single.and_then(|known| known.ended) {
            Some(ended) => end_again(action, *numbers.start(), ended),
            None => Ok(Meant::Jobs(numbers)),
        }
    }

    /// Numbers of the jobs that a word means, whether they are over, and what is known of the job
    /// where the number of a single one was given.
    pub(super) fn numbers_meant(
        &mut self,
        by: &Principal,
        selection: Selection,
        looked_up: &mut LookedUp,
    ) -> Result<(RangeInclusive<u32>, Option<Known>), HostError> {
        let unknown = |what| HostError::Unknown { what, name: selection.to_string() };
        let number = |number: u64| u32::try_from(number).map_err(|_| unknown("job"));
        match selection {
            Selection::Range { first, last } => {
                let (first, last) = (number(first)?, number(last)?);
                if first <= last { Ok((first..=last, None)) } else { Err(unknown("job")) }
            }
            Selection::Job(id) => {
                let id = number(id)?;
                let known = self.known(by, id, looked_up)?.ok_or_else(|| unknown_job(id))?;
                if known.array_of == Some(id) {
                    return Ok((id..=id + known.indices.count.max(1) - 1, None));
                }
                Ok((id..=id, Some(known)))
            }
            Selection::Indices { array, first, last } => {
                let array = number(array)?;
                let known = self.known(by, array, looked_up)?;
                let known = known.filter(|known| known.array_of == Some(array));
                let known = known.ok_or_else(|| unknown("array with"))?;
                let places = known.indices.places(first, last).ok_or_else(|| unknown("job"))?;
                Ok((array + places.start()..=array + places.end(), None))
            }
        }
    }

    /// A job, over or not, that is the principal's business.
    fn known(
        &mut self,
        by: &Principal,
        id: u32,
        looked_up: &mut LookedUp,
    ) -> Result<Option<Known>, HostError> {
        let live = self.jobs.get(&id);
        if let Some(live) = live.filter(|live| by.sees(&live.row.tenant)) {
            return Ok(Some(Known::of(&live.row)));
        }
        // Those of others count as well: who asks must not see whether they are over.
        if let Some(known) = looked_up.get(&id) {
            return Ok(*known);
        }
        if looked_up.len() >= LOOKED_UP_MAX {
            let fault = format!(
                "is over or was never there, as are {LOOKED_UP_MAX} that come before it; name \
                 fewer at a time"
            );
            return Err(HostError::WrongState { job: id, fault });
        }
        let known = if live.is_some() { None } else { self.over(by, id)? };
        let known = known.as_ref().map(Known::of);
        looked_up.insert(id, known);
        Ok(known)
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
    /// Tells of what is about these jobs; any other fault is one of the whole request.
    fn refuse(&mut self, jobs: String, fault: HostError) -> Result<(), HostError> {
        if !matches!(fault, HostError::Unknown { .. } | HostError::WrongState { .. }) {
            return Err(fault);
        }
        self.refused.push(RefusedJobs { jobs, error: fault.to_string() });
        Ok(())
    }
}

impl Known {
    fn of(row: &JobRow) -> Known {
        let ended = row.ended.map(|_| row.state);
        Known { array_of: row.array_of, indices: Indices::of(&row.request), ended }
    }
}

/// What was cancelled may be cancelled again; everything else that is over cannot be changed.
fn end_again(action: JobAction, id: u32, ended: JobState) -> Result<Meant, HostError> {
    if action == JobAction::Cancel && ended == JobState::Cancelled {
        return Ok(Meant::Over(JobNow { id, state: ended }));
    }
    Err(HostError::WrongState { job: id, fault: "is over".to_owned() })
}

/// The same numbers, ascending and each in one range only.
fn merged(mut ranges: Vec<RangeInclusive<u32>>) -> Vec<RangeInclusive<u32>> {
    ranges.sort_by_key(|range| *range.start());
    let mut apart: Vec<RangeInclusive<u32>> = Vec::new();
    for range in ranges {
        match apart.last_mut() {
            Some(before) if *range.start() <= before.end().saturating_add(1) => {
                *before = *before.start()..=*before.end().max(range.end());
            }
            Some(_) | None => apart.push(range),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_are_walked_once() {
        let all = 0..=u32::MAX;
        let once = vec![all.clone()];
        assert_eq!(merged(vec![all.clone(); 1000]), once);
        assert_eq!(merged(vec![7..=9, all, u32::MAX..=u32::MAX]), once);
        assert_eq!(merged(vec![20..=30, 1..=3, 4..=4, 2..=2, 6..=8]), [1..=4, 6..=8, 20..=30]);
        assert_eq!(merged(vec![]), []);
    }
}
