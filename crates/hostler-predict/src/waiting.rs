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
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    groups: BTreeMap<(TenantId, GroupId), ToldGroup>,
    groups_max: usize,
    /// Groups of which nobody waits.
    idle: usize,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting { groups: BTreeMap::new(), groups_max: KEYS_MAX, idle: 0 }
    }
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
        let key = (features.tenant, group);
        if !self.groups.contains_key(&key) {
            self.make_room();
            self.groups.insert(key, ToldGroup::default());
            self.idle += 1;
        }
        let told = self.groups.get_mut(&key).expect("inserted above");
        if told.jobs.len() < REVISED_MAX {
            self.idle -= usize::from(told.jobs.is_empty());
            told.jobs.insert(job);
        }
    }

    /// Forgets groups of which nobody waits, once they are worth a walk over all; else any group.
    fn make_room(&mut self) {
        if self.groups.len() < self.groups_max {
            return;
        }
        if self.idle >= self.groups_max.div_ceil(16) {
            self.groups.retain(|_, told| !told.jobs.is_empty());
            self.idle = 0;
        } else if let Some((_, told)) = self.groups.pop_first() {
            self.idle -= usize::from(told.jobs.is_empty());
        }
    }

    /// Notes that a job finished; the answer is who should be told anew.
    pub(crate) fn finish(&mut self, job: JobId, features: &Features) -> Vec<JobId> {
        let group = features.group.and_then(|group| self.groups.get_mut(&(features.tenant, group)));
        let Some(told) = group else { return Vec::new() };
        let waited = !told.jobs.is_empty();
        told.jobs.remove(&job);
        told.lessons = told.lessons.saturating_add(1);
        let anew = match told.lessons.is_power_of_two() {
            true => std::mem::take(&mut told.jobs).into_iter().collect(),
            false => Vec::new(),
        };
        self.idle += usize::from(waited && told.jobs.is_empty());
        anew
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
    fn groups_of_which_nobody_waits_are_forgotten_first() {
        let mut waiting = Waiting { groups_max: 4, ..Waiting::default() };
        let of = |group: u32| features(Some(group));
        let known = |waiting: &Waiting| {
            waiting.groups.keys().map(|(_, group)| group.0).collect::<Vec<u32>>()
        };
        (0..4).for_each(|group| waiting.tell(JobId(group), &of(group)));
        // A group that is known already costs no other its place.
        waiting.tell(JobId(9), &of(3));
        assert_eq!(known(&waiting), [0, 1, 2, 3]);
        for group in [1, 2] {
            assert!(waiting.finish(JobId(group), &of(group)).is_empty());
        }
        waiting.tell(JobId(10), &of(4));
        assert_eq!(known(&waiting), [0, 3, 4]);
        assert_eq!(waiting.finish(JobId(0), &of(3)), [JobId(3), JobId(9)]);
        // Where all wait, somebody is not told anew.
        waiting.tell(JobId(3), &of(3));
        (11..13).for_each(|group| waiting.tell(JobId(group), &of(group)));
        assert_eq!((known(&waiting).len(), waiting.idle), (4, 0));
    }

    #[test]
    fn jobs_without_a_group_are_never_told_anew() {
        let (mut waiting, alone) = (Waiting::default(), features(None));
        waiting.tell(JobId(0), &alone);
        assert!(waiting.finish(JobId(1), &alone).is_empty());
    }
}
