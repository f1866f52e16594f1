//! First come, first served, with the draws of the original, and with its idea of room.

use std::collections::BTreeMap;

use hostler_policies::allocate::{Allocate, AllocateError, Allocation, Instance, JobRow};

use crate::twister::Twister;

/// Another allocator, for which GPUs on which a job makes no progress are room, too: if no others
/// are left it holds them without running, and the queue goes on behind it.
pub(crate) struct RoomAnywhere<Inner>(pub(crate) Inner);

impl<Inner: Allocate> Allocate for RoomAnywhere<Inner> {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let mut anywhere = instance.clone();
        for job in &mut anywhere.jobs {
            for (gpu, rate) in job.rates.iter_mut().enumerate().filter(|(_, rate)| **rate <= 0.0) {
                // The slowest of all, so that it comes last; and nobody is any use beside it.
                *rate = f64::MIN_POSITIVE;
                let pairs = anywhere.pairs.iter_mut();
                let own = pairs.filter(|pair| pair.first == job.kind || pair.second == job.kind);
                own.for_each(|pair| pair.rates[gpu] = (0.0, 0.0));
            }
        }
        self.0.allocate(&anywhere)
    }
}

/// In order, each job gets any type with room, by chance, and keeps it: whoever is next takes the
/// type of a job that is gone, and the others draw, whether they make progress there or not.
/// Remembers who had what.
///
/// The objective is the number of jobs that run.
#[derive(Clone, Debug)]
pub(crate) struct PublishedFifo {
    twister: Twister,
    /// Types in the order in which they are drawn from.
    order: Vec<usize>,
    /// Type of each job that has one, by number.
    types: BTreeMap<u32, usize>,
}

impl PublishedFifo {
    /// With nothing drawn yet.
    pub(crate) fn new(seed: u64, order: Vec<usize>) -> PublishedFifo {
        PublishedFifo { twister: Twister::new(seed as u32), order, types: BTreeMap::new() }
    }
}

impl Allocate for PublishedFifo {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        for job in &instance.jobs {
            if let Some(gpu) = job.held_type {
                self.types.entry(job.number).or_insert(gpu);
            }
        }
        let mut free = instance.workers.clone();
        let has_room = |free: &[f64], job: &JobRow, gpu: usize| free[gpu] >= f64::from(job.gang);
        let mut shares = vec![vec![0.0; instance.types()]; instance.jobs.len()];
        let numbers = instance.jobs.iter().map(|job| job.number);
        let jobs: BTreeMap<u32, usize> = numbers.zip(0..).collect();
        let waits = |index: &usize| !self.types.contains_key(&instance.jobs[*index].number);
        let waiting: Vec<usize> = (0..instance.jobs.len()).filter(waits).collect();
        let mut queue = waiting.into_iter();
        let mut given = Vec::new();
        for (number, gpu) in std::mem::take(&mut self.types) {
            let next = jobs.get(&number).copied().or_else(|| {
                // One that does not fit where a place became free loses its turn.
                queue.next().filter(|&next| has_room(&free, &instance.jobs[next], gpu))
            });
            if let Some(next) = next {
                free[gpu] -= f64::from(instance.jobs[next].gang);
                given.push((next, gpu));
            }
        }
        for next in queue {
            let job = &instance.jobs[next];
            let open = self.order.iter().copied().filter(|&gpu| has_room(&free, job, gpu));
            let open: Vec<usize> = open.collect();
            if open.is_empty() {
                break;
            }
            let gpu = open[self.twister.below(open.len() as u32) as usize];
            free[gpu] -= f64::from(job.gang);
            given.push((next, gpu));
        }
        for &(job, gpu) in &given {
            shares[job][gpu] = 1.0;
            self.types.insert(instance.jobs[job].number, gpu);
        }
        Ok(Allocation { shares, objective: given.len() as f64, ..Allocation::default() })
    }
}
