//! Run times from what ran before: the median of like jobs that finished most recently.
//!
//! Like are jobs of the same tenant and group; while too few of those have finished, those of the
//! group, then of the tenant, then all. What the user said counts when nobody has finished yet.
//! Learns only from jobs that are over, so an estimate never knows the future. Does not look at
//! what a job asks for.

use std::collections::{BTreeMap, VecDeque};

use hostler_core::id::{GroupId, JobId, TenantId};
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::metrics::percentile;
use hostler_core::predict::{Predict, UserEstimate};
use hostler_core::units::Span;

use crate::limits::{KEYS_MAX, RECENT_MAX, SAMPLES_MIN};

/// The median run time of like jobs.
#[derive(Clone, Debug)]
pub struct MedianRun {
    samples_min: usize,
    keys_max: usize,
    recent: BTreeMap<Key, Recent>,
    /// Keys by when they were last taught; the first is the first to be forgotten.
    by_age: BTreeMap<u64, Key>,
    lessons: u64,
}

/// What jobs have in common, closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    TenantAndGroup(TenantId, GroupId),
    Group(GroupId),
    Tenant(TenantId),
    All,
}

/// The latest run times of a key, oldest first.
#[derive(Clone, Debug, Default)]
struct Recent {
    runs: VecDeque<Span>,
    taught: u64,
}

impl Default for MedianRun {
    fn default() -> MedianRun {
        MedianRun::new(SAMPLES_MIN)
    }
}

impl MedianRun {
    /// A predictor that believes a key once it has seen `samples_min` run times of it.
    pub fn new(samples_min: usize) -> MedianRun {
        assert!(samples_min > 0, "a median needs a run time");
        assert!(samples_min <= RECENT_MAX, "at most {RECENT_MAX} run times are remembered");
        MedianRun {
            samples_min,
            keys_max: KEYS_MAX,
            recent: BTreeMap::new(),
            by_age: BTreeMap::new(),
            lessons: 0,
        }
    }

    fn teach(&mut self, key: Key, run: Span) {
        self.lessons += 1;
        let recent = self.recent.entry(key).or_default();
        self.by_age.remove(&recent.taught);
        self.by_age.insert(self.lessons, key);
        recent.taught = self.lessons;
        if recent.runs.len() == RECENT_MAX {
            recent.runs.pop_front();
        }
        recent.runs.push_back(run);
        if self.recent.len() > self.keys_max {
            let (_, oldest) = self.by_age.pop_first().expect("every key has an age");
            self.recent.remove(&oldest);
        }
    }
}

impl Predict for MedianRun {
    fn estimate(&mut self, job: JobId, spec: &JobSpec) -> Option<Estimate> {
        let known = keys(spec).filter_map(|key| self.recent.get(&key));
        let mut enough = known.filter(|recent| recent.runs.len() >= self.samples_min);
        match enough.next() {
            Some(recent) => Some(belief(recent)),
            None => UserEstimate.estimate(job, spec),
        }
    }

    fn observe(&mut self, _: JobId, spec: &JobSpec, run: Span) {
        for key in keys(spec) {
            self.teach(key, run);
        }
    }
}

/// What a job has in common with others, closest first.
fn keys(spec: &JobSpec) -> impl Iterator<Item = Key> + use<> {
    let tenant = spec.tenant;
    let group = spec.group;
    let of_group = group.map(|group| [Key::TenantAndGroup(tenant, group), Key::Group(group)]);
    of_group.into_iter().flatten().chain([Key::Tenant(tenant), Key::All])
}

/// The median, and half the distance between the quartiles.
fn belief(recent: &Recent) -> Estimate {
    let mut runs: Vec<Span> = recent.runs.iter().copied().collect();
    runs.sort_unstable();
    let quartile = |percent| percentile(&runs, percent).expect("a key is kept with its first run");
    let spread = Span(quartile(75).saturating_sub(quartile(25)).0 / 2);
    Estimate { run: median(&runs), spread }
}

/// The middle of ascending run times; of an even number the mean of the two in the middle.
fn median(runs: &[Span]) -> Span {
    let (below, above) = (runs[(runs.len() - 1) / 2], runs[runs.len() / 2]);
    Span(below.0.midpoint(above.0))
}

#[cfg(test)]
mod tests;
