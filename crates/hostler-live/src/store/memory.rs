//! A store in memory with the habits of a disk: what was not committed is lost in a crash.
//!
//! For simulations of faults. What it holds outlives the store itself, as a disk outlives a
//! process, and it can be told to fail.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::rows::{Batch, JobRow, Loaded, NodeRow, Row};
use super::{HistoryFilter, Reader, Store, StoreError};
use crate::limits::PAGE_JOBS_MAX;

/// What outlives the process.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Content>>);

#[derive(Clone, Default)]
struct Content {
    records: Vec<(u64, String)>,
    snapshot: Option<(u64, String)>,
    jobs: BTreeMap<u32, JobRow>,
    rest: Loaded,
    failure: Option<Failure>,
    /// Counts up when another becomes the writer.
    writer: u64,
}

/// How the next commit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing of it is written.
    Before,
    /// All of it is written, but nobody is told.
    After,
}

impl Disk {
    /// A disk of its own with what is on this one now.
    pub fn backup(&self) -> Disk {
        Disk(Arc::new(Mutex::new(self.content().clone())))
    }

    /// Lets the next commit fail, or lets it work after all.
    pub fn fail_next(&self, failure: Option<Failure>) {
        self.content().failure = failure;
    }

    /// Makes another the writer, as when a server loses the lock of those who were there before.
    pub fn take_over(&self) {
        self.content().writer += 1;
    }

    /// A store on this disk.
    pub fn store(&self) -> MemoryStore {
        let writer = self.content().writer;
        MemoryStore { disk: self.clone(), writer }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        // A panic of another thread in between leaves whole rows.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store on a [`Disk`].
pub struct MemoryStore {
    disk: Disk,
    writer: u64,
}

impl Store for MemoryStore {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        let content = self.disk.content();
        let mut loaded = content.rest.clone();
        loaded.cluster = "memory".to_owned();
        loaded.snapshot.clone_from(&content.snapshot);
        loaded.last_record = content.records.last().map_or(0, |(number, _)| *number);
        let jobs = content.jobs.values().filter(|job| job.ended.is_none());
        loaded.jobs = jobs.cloned().collect();
        Ok(loaded)
    }

    fn records(&mut self, after: u64, most: usize) -> Result<Vec<(u64, String)>, StoreError> {
        Ok(self.disk.content().records_after(after, most))
    }

    fn job(&mut self, id: u32) -> Result<Option<JobRow>, StoreError> {
        Ok(self.disk.content().jobs.get(&id).cloned())
    }

    fn job_found(&mut self, by: &str) -> Result<Option<JobRow>, StoreError> {
        let content = self.disk.content();
        Ok(content.jobs.values().find(|job| job.origin.found() == Some(by)).cloned())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.check()?;
        let mut content = self.disk.content();
        let failure = content.failure.take();
        if failure != Some(Failure::Before) {
            content.write(batch);
        }
        match failure {
            Some(_) => Err(StoreError::Failed {
                store: "memory".to_owned(),
                fault: "it was told to fail".to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn check(&mut self) -> Result<(), StoreError> {
        if self.disk.content().writer == self.writer {
            return Ok(());
        }
        let (store, fault) = ("memory".to_owned(), "another is the writer".to_owned());
        Err(StoreError::Lost { store, fault })
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(MemoryStore { disk: self.disk.clone(), writer: self.writer }))
    }
}

impl Reader for MemoryStore {
    fn job(&mut self, id: u32) -> Result<Option<JobRow>, StoreError> {
        Ok(self.disk.content().jobs.get(&id).cloned())
    }

    fn history(&mut self, filter: &HistoryFilter) -> Result<Vec<JobRow>, StoreError> {
        let limit = filter.limit.clamp(1, PAGE_JOBS_MAX as usize);
        let content = self.disk.content();
        let mut matching: Vec<&JobRow> =
            content.jobs.values().rev().filter(|job| matches(filter, job)).collect();
        if filter.by_end.is_some() {
            matching.sort_by_key(|job| std::cmp::Reverse((job.ended, job.id)));
        }
        Ok(matching.into_iter().take(limit).cloned().collect())
    }

    fn records(&mut self, after: u64, most: usize) -> Result<Vec<(u64, String)>, StoreError> {
        Ok(self.disk.content().records_after(after, most))
    }
}

fn matches(filter: &HistoryFilter, job: &JobRow) -> bool {
    let Some(ended) = job.ended else {
        return false;
    };
    filter.tenant.as_ref().is_none_or(|tenant| *tenant == job.tenant)
        && filter.user.as_ref().is_none_or(|user| *user == job.user)
        && filter.state.is_none_or(|state| state == job.state)
        && filter.array_of.is_none_or(|first| job.array_of == Some(first))
        && filter.ended_from.is_none_or(|from| ended >= from)
        && filter.ended_before.is_none_or(|before| ended < before)
        && filter.from.is_none_or(|from| job.id >= from)
        && filter.before.is_none_or(|before| job.id < before)
        && filter.by_end.flatten().is_none_or(|before| (ended, job.id) < before)
}

impl Content {
    fn records_after(&self, after: u64, most: usize) -> Vec<(u64, String)> {
        let first = self.records.partition_point(|(number, _)| *number <= after);
        self.records[first..].iter().take(most).cloned().collect()
    }

    fn write(&mut self, batch: &Batch) {
        for record in &batch.records {
            let last = self.records.last().map_or(0, |(number, _)| *number);
            assert_eq!(record.0, last + 1, "records are numbered in order");
            self.records.push(record.clone());
        }
        if batch.snapshot.is_some() {
            self.snapshot.clone_from(&batch.snapshot);
        }
        batch.rows.iter().for_each(|row| self.write_row(row));
    }

    fn write_row(&mut self, row: &Row) {
        let rest = &mut self.rest;
        match row {
            Row::JobAdded(job) => {
                let before = self.jobs.insert(job.id, (**job).clone());
                assert_eq!(before, None, "job numbers are used once");
            }
            Row::JobChanged(job) => {
                let before = self.jobs.insert(job.id, (**job).clone());
                let before = before.expect("the job was added before");
                assert_eq!(before.ended, None, "job {} ends once", job.id);
            }
            Row::Token(token) => {
                rest.tokens.retain(|known| known.id != token.id);
                rest.tokens.push(token.clone());
            }
            Row::Tenant(tenant) => {
                rest.tenants.retain(|known| known.id != tenant.id);
                rest.tenants.push(tenant.clone());
            }
            Row::Node(node) => {
                rest.nodes.retain(|known| known.name != node.name);
                rest.nodes.push(NodeRow::clone(node));
            }
            Row::Group(name, id) => rest.groups.push((name.clone(), *id)),
            Row::Key(key) => rest.keys.push(key.clone()),
            Row::KeyGone { token, key } => {
                rest.keys.retain(|row| (row.token, &row.key) != (*token, key));
            }
            Row::KeysGone(before) => rest.keys.retain(|key| key.at >= *before),
            Row::Reservations(kept) => rest.reservations.clone_from(kept),
            Row::Policy(settings) => rest.policy = Some(settings.clone()),
            Row::Fence(fence) => rest.fence = Some(*fence),
            Row::GapLeft => rest.restored = false,
        }
    }
}
