//! Shares as the original has them, where they are not those of our policies: of many answers that
//! are as good, the one that its solver ends at.

mod apart;
mod fifo;
mod finish_path;
mod gandiva;
mod makespan;

pub(super) use apart::Apart;
pub(super) use fifo::{PublishedFifo, RoomAnywhere};
pub(super) use finish_path::FinishCentre;
pub(super) use gandiva::RandomPairs;
use hostler_policies::allocate::{
    Allocate, AllocateError, Allocation, Instance, MaxMin, RateKnowledge, proportional_rates,
};
pub(super) use makespan::SearchedMakespan;

use crate::limits::PUBLISHED_PAIR_JOBS_MAX;

/// Another allocator, for jobs that are everywhere as fast as on the first GPU type.
pub(super) struct Flat<Inner>(pub(super) Inner);

impl<Inner: Allocate> Allocate for Flat<Inner> {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        self.0.allocate(&flat(instance))
    }
}

/// The jobs, everywhere as fast as on the first type, or as on the average GPU if they do not run
/// there.
pub(super) fn flat(instance: &Instance) -> Instance {
    let mean = proportional_rates(instance);
    let mut flat = instance.clone();
    for (job, mean) in flat.jobs.iter_mut().zip(mean) {
        let first = job.rates.first().copied().filter(|&rate| rate > 0.0);
        job.rates.fill(first.unwrap_or(mean));
    }
    flat
}

/// Max-min fairness with pairs: job by job as long as there are few, by class beyond.
pub(super) struct PairedMaxMin;

impl Allocate for PairedMaxMin {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        let rate_knowledge = RateKnowledge::Packed;
        match instance.jobs.len() <= PUBLISHED_PAIR_JOBS_MAX {
            true => MaxMin { rate_knowledge, programmes: Apart }.allocate(instance),
            false => MaxMin::new(rate_knowledge).allocate(instance),
        }
    }
}
