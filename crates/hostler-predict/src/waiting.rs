//! Who was told a run time that is out of date: jobs that wait while others of their group finish.
//!
//! Under overload most jobs are estimated before anything of their group has finished, and what
//! finishes first is what is short. So they are told again after 1, 2, 4, 8 .. lessons, which costs
//! each of them a few estimates, however long it waits.

use std::collections::{BTreeMap, BTreeSet};

use hostler_core::id::{GroupId, JobId, TenantId};

use crate::features::Features;
use crate::limits::{KEYS_MAX, REVISED_MAX};

/// Jobs that were told a run time, by group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    groups: BTreeMap<(TenantId, GroupId), ToldGroup>,
}

#[derive(Clone, Debug, Default)]
struct ToldGroup {
    /// Jobs of the group that finished.
    lessons: u32,
    jobs: BTreeSet<JobId>,
}

impl Waiting {
    /// Notes that a job was told what is believed now.
    pub(crate) fn tell(&mut self, job: JobId, features: &Features) {
        let Some(group) = features.group else { return };
        if self.groups.len() == KEYS_MAX {
            self.groups.pop_first();
        }
        let told = self.groups.entry((features.tenant, group)).or_default();
        if told.jobs.len() < REVISED_MAX {
            told.jobs.insert(job);
        }
    }

    /// Notes that a job finished; the answer is who should be told anew.
    pub(crate) fn finish(&mut self, job: JobId, features: &Features) -> Vec<JobId> {
        let group = features.group.and_then(|group| self.groups.get_mut(&(features.tenant, group)));
        let Some(told) = group else { return Vec::new() };
        told.jobs.remove(&job);
        told.lessons = told.lessons.saturating_add(1);
        match told.lessons.is_power_of_two() {
            true => std::mem::take(&mut told.jobs).into_iter().collect(),
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(group: Option<u32>) -> Features {
        Features { group: group.map(GroupId), tasks: 1, ..Features::default() }
    }

    #[test]
    fn jobs_of_a_group_are_told_anew_after_ever_more_lessons() {
        let (mut waiting, own) = (Waiting::default(), features(Some(1)));
        let mut told = Vec::new();
        for job in 0..10 {
            waiting.tell(JobId(job), &own);
        }
        waiting.tell(JobId(10), &features(Some(2)));
        for job in 0..5 {
            let anew = waiting.finish(JobId(job), &own);
            anew.iter().for_each(|job| waiting.tell(*job, &own));
            told.push(anew.len());
        }
        assert_eq!(told, [9, 8, 0, 6, 0]);
    }

    #[test]
    fn jobs_without_a_group_are_never_told_anew() {
        let (mut waiting, alone) = (Waiting::default(), features(None));
        waiting.tell(JobId(0), &alone);
        assert!(waiting.finish(JobId(1), &alone).is_empty());
    }
}
