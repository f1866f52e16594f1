//! One list that is sorted again each time; equal jobs stay in the order that they had.

use super::scan::{Discipline, Entry};

/// What jobs are sorted by, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortKey {
    /// GPUs.
    Gpus,
    /// Time that is left.
    TimeLeft,
    /// GPU time that is left.
    GpuTimeLeft,
}

impl SortKey {
    fn of(self, entry: &Entry) -> u64 {
        let left = entry.duration - entry.ran;
        match self {
            SortKey::Gpus => u64::from(entry.gpus),
            SortKey::TimeLeft => left,
            SortKey::GpuTimeLeft => left * u64::from(entry.gpus),
        }
    }
}

/// A sorted list.
pub(super) struct Sorted {
    key: SortKey,
    jobs: Vec<usize>,
}

impl Sorted {
    pub(super) fn new(key: SortKey) -> Sorted {
        Sorted { key, jobs: Vec::new() }
    }
}

impl Discipline for Sorted {
    fn came(&mut self, job: usize) {
        self.jobs.push(job);
    }

    fn left(&mut self, job: usize) {
        self.jobs.retain(|known| *known != job);
    }

    fn pass(&mut self, _: usize, _: &Entry, _: u64) {}

    fn list(&mut self, jobs: &[Entry], list: &mut Vec<usize>) {
        let key = self.key;
        self.jobs.sort_by_key(|job| key.of(&jobs[*job]));
        list.extend_from_slice(&self.jobs);
    }

    fn dealt(&mut self, _: &[Entry]) {}

    fn next_change(&self, _: &[Entry], _: &[usize], _: u64) -> Option<u64> {
        None
    }
}
