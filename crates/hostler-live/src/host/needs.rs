//! What jobs come after: which jobs a submission waits for, whether that can come at all, and the
//! words for it.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use hostler_core::gate::{After, AfterWhen};
use hostler_core::id::JobId;
use hostler_core::job::Job;

use super::many::LookedUp;
use super::{Desk, HostError, Principal};
use crate::job::{JobRequest, JobState};
use crate::limits::{AFTER_IN_ALL_MAX, AFTER_JOBS_MAX, AFTER_MAX, LOOKED_UP_MAX, PAGE_JOBS_MAX};
use crate::need::Need;
use crate::store::{HistoryFilter, JobRow};

/// Words for jobs in one reason; of more only the number is told.
const WORDS_MAX: usize = 8;

impl Desk {
    /// Jobs that a new one still has to wait for. How those ended that are over is looked up.
    pub(super) fn needs_of(
        &mut self,
        by: &Principal,
        request: &JobRequest,
    ) -> Result<Box<[After]>, HostError> {
        if request.after.len() > AFTER_MAX {
            let fault = format!("{} words; at most {AFTER_MAX}", request.after.len());
            return Err(invalid(fault));
        }
        let (mut needs, mut looked_up) = (BTreeSet::new(), LookedUp::new());
        for need in &request.after {
            self.add_needs(by, *need, &mut needs, &mut looked_up)?;
        }
        let in_all = needs.len() * request.array.max(1) as usize;
        if in_all > AFTER_IN_ALL_MAX {
            return Err(invalid(format!(
                "{} jobs that wait for {} each; at most {AFTER_IN_ALL_MAX} in all: let one job \
                 wait for them, and the array for that one",
                request.array,
                needs.len(),
            )));
        }
        Ok(needs.into_iter().collect())
    }

    fn add_needs(
        &mut self,
        by: &Principal,
        need: Need,
        needs: &mut BTreeSet<After>,
        looked_up: &mut LookedUp,
    ) -> Result<(), HostError> {
        let (numbers, _) = self.numbers_meant(by, need.jobs, looked_up)?;
        let count = (numbers.end() - numbers.start()) as usize;
        if count >= AFTER_JOBS_MAX {
            return Err(invalid(format!("more than {AFTER_JOBS_MAX} jobs; name fewer")));
        }
        let live = self.jobs.range(numbers.clone());
        let live = live.filter(|(_, live)| by.sees(&live.row.tenant)).map(|(id, _)| *id);
        let live: BTreeSet<u32> = live.collect();
        let over = self.over_among(by, &numbers, &live)?;
        if live.is_empty() && over.is_empty() {
            return Err(HostError::Unknown { what: "job", name: need.jobs.to_string() });
        }
        over.iter().try_for_each(|row| can_come(row, need.when))?;
        let after = |id: u32| After { job: JobId(id), when: need.when };
        needs.extend(live.into_iter().map(after));
        if needs.len() > AFTER_JOBS_MAX {
            return Err(invalid(format!("more than {AFTER_JOBS_MAX} jobs; name fewer")));
        }
        Ok(())
    }

    /// Those of these numbers that are over and the principal's business.
    fn over_among(
        &mut self,
        by: &Principal,
        numbers: &RangeInclusive<u32>,
        live: &BTreeSet<u32>,
    ) -> Result<Vec<JobRow>, HostError> {
        let others = (numbers.end() - numbers.start()) as usize + 1 - live.len();
        let mut over = Vec::new();
        if others <= LOOKED_UP_MAX {
            for id in numbers.clone().filter(|id| !live.contains(id)) {
                over.extend(self.over(by, id)?);
            }
            return Ok(over);
        }
        // Those that ended in this very batch are not in the store yet.
        over.extend(self.draft.ended.range(numbers.clone()).map(|(_, row)| row.clone()));
        let mut reader = self.store.reader()?;
        let (from, limit) = (Some(*numbers.start()), PAGE_JOBS_MAX as usize);
        let mut before = numbers.end().checked_add(1);
        loop {
            let filter = HistoryFilter { from, before, limit, ..HistoryFilter::default() };
            let page = reader.history(&filter)?;
            before = page.last().map(|row| row.id);
            let is_full = page.len() == limit;
            over.extend(page);
            if !is_full {
                break;
            }
        }
        over.retain(|row| by.sees(&row.tenant));
        Ok(over)
    }

    /// What a job waits for, in words.
    pub(super) fn waits_for(&self, job: JobId) -> String {
        let needs = self.state().needs(job);
        let mut parts = Vec::new();
        for (when, words) in [
            (AfterWhen::Finished, "waits until jobs are finished"),
            (AfterWhen::Over, "waits until jobs are over"),
            (AfterWhen::Failed, "waits until jobs have failed"),
            (AfterWhen::Started, "waits until jobs have started"),
        ] {
            let jobs = needs.iter().filter(|after| after.when == when).map(|after| after.job.0);
            let jobs = self.words_for(jobs);
            if !jobs.is_empty() {
                parts.push(format!("{words}: {jobs}"));
            }
        }
        parts.join("; ")
    }

    /// Why what a job waited for never comes, in words.
    pub(super) fn never_comes(&self, job: &Job, after: JobId) -> String {
        let jobs = self.words_for(std::iter::once(after.0));
        let needs = job.spec.after.iter().filter(|need| need.job == after);
        match needs.map(|need| need.when).next().unwrap_or_default() {
            AfterWhen::Finished | AfterWhen::Over => {
                format!("job {jobs}, which it needs, did not finish well")
            }
            AfterWhen::Failed if job.spec.after.len() > 1 => {
                format!("job {jobs} finished well, and this one was for the case that all fail")
            }
            AfterWhen::Failed => {
                format!("job {jobs} finished well, and this one was for the case that it fails")
            }
            AfterWhen::Started => {
                format!("job {jobs}, which it waits for to start, ended without a start")
            }
        }
    }

    /// Jobs as people write them: those of an array by their indices, neighbours in one word.
    fn words_for(&self, jobs: impl Iterator<Item = u32>) -> String {
        let named: Vec<Named> = jobs.map(|id| self.named(id)).collect();
        let mut words: Vec<String> = Vec::new();
        for jobs in named.chunk_by(Named::is_before) {
            let [first, rest @ ..] = jobs else { continue };
            words.push(match (first.array, rest.last()) {
                (Some(array), Some(last)) => format!("{array}_{}-{}", first.index, last.index),
                (Some(array), None) => format!("{array}_{}", first.index),
                (None, _) => first.id.to_string(),
            });
        }
        let more = words.len().saturating_sub(WORDS_MAX);
        words.truncate(WORDS_MAX);
        match more {
            0 => words.join(", "),
            _ => format!("{} and {more} more", words.join(", ")),
        }
    }

    fn named(&self, id: u32) -> Named {
        let live = self.jobs.get(&id).map(|live| &live.row);
        let row = live.or_else(|| self.draft.ended.get(&id));
        let index = row.and_then(|row| row.facts.array_index);
        Named { id, array: row.and_then(|row| row.array_of), index: index.unwrap_or(0) }
    }
}

/// A job, its array and its index in that.
struct Named {
    id: u32,
    array: Option<u32>,
    index: u32,
}

impl Named {
    /// Whether another one of the same array comes next.
    fn is_before(&self, next: &Named) -> bool {
        self.array.is_some() && self.array == next.array && self.id + 1 == next.id
    }
}

/// Whether what is waited for came, of a job that is over.
fn can_come(row: &JobRow, when: AfterWhen) -> Result<(), HostError> {
    let fault = match when {
        AfterWhen::Finished if row.state != JobState::Finished => {
            "did not finish well; nothing can wait for it"
        }
        AfterWhen::Failed if row.state == JobState::Finished && row.array_of.is_some() => {
            "finished well; `failed:` of an array asks that each of its jobs fails: name one, as \
             in `failed:12_3`, or use `over:12` and look there"
        }
        AfterWhen::Failed if row.state == JobState::Finished => {
            "finished well; nothing can wait for it to fail"
        }
        AfterWhen::Started if row.facts.started.is_none() => {
            "ended without a start; nothing can wait for it to start"
        }
        AfterWhen::Finished | AfterWhen::Over | AfterWhen::Failed | AfterWhen::Started => {
            return Ok(());
        }
    };
    Err(HostError::WrongState { job: row.id, fault: fault.to_owned() })
}

fn invalid(fault: String) -> HostError {
    HostError::Invalid { field: "after", fault }
}
