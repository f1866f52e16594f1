//! Shares that follow from a formula: an equal part of the cluster for each job.
//!
//! Also the normalisers that the optimising policies measure a job against. No solver here.

use std::collections::BTreeMap;

use super::{Allocate, AllocateError, Allocation, Fallback, Instance};

/// Every job gets an equal part of every type, less when its gang is large.
///
/// The objective is the least throughput of a job against its proportional one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Isolated;

impl Allocate for Isolated {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        Ok(closed(instance, isolated_shares(instance)))
    }
}

/// Every job spends its time on the types in proportion to their number, all of its time.
///
/// A yardstick: it takes no account of how many jobs there are, so it is seldom feasible.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proportional;

impl Allocate for Proportional {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let total = instance.workers_total();
        let row: Vec<f64> = instance.workers.iter().map(|workers| workers / total).collect();
        Ok(closed(instance, vec![row; instance.jobs.len()]))
    }
}

/// The shares of `Isolated`: (workers / jobs) / gang, cut to the time that a job has.
pub fn isolated_shares(instance: &Instance) -> Vec<Vec<f64>> {
    let rows = isolated_by_gang(instance);
    instance.jobs.iter().map(|job| rows[&job.gang].clone()).collect()
}

/// Steps per second of each job under `Isolated`.
pub fn isolated_rates(instance: &Instance) -> Vec<f64> {
    let rows = isolated_by_gang(instance);
    instance.jobs.iter().map(|job| dot(&job.rates, &rows[&job.gang])).collect()
}

/// The shares of `Isolated` for each size of gang that there is.
fn isolated_by_gang(instance: &Instance) -> BTreeMap<u32, Vec<f64>> {
    let jobs = instance.jobs.len() as f64;
    let row = |gang: u32| {
        let raw: Vec<f64> =
            instance.workers.iter().map(|workers| workers / jobs / f64::from(gang)).collect();
        let cut = raw.iter().sum::<f64>().max(1.0);
        raw.into_iter().map(|share| share / cut).collect()
    };
    let mut rows = BTreeMap::new();
    for job in &instance.jobs {
        rows.entry(job.gang).or_insert_with(|| row(job.gang));
    }
    rows
}

/// Steps per second of each job on a GPU picked at random: what shares are measured against.
pub fn proportional_rates(instance: &Instance) -> Vec<f64> {
    let total = instance.workers_total();
    instance.jobs.iter().map(|job| dot(&job.rates, &instance.workers) / total).collect()
}

/// What a policy gives when its solver gave up.
pub fn isolated_fallback(instance: &Instance) -> Allocation {
    let fallback = Some(Fallback::Isolated);
    Allocation { fallback, ..closed(instance, isolated_shares(instance)) }
}

/// Sum of products.
pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(one, other)| one * other).sum()
}

fn closed(instance: &Instance, shares: Vec<Vec<f64>>) -> Allocation {
    let proportional = proportional_rates(instance);
    let objective = instance
        .jobs
        .iter()
        .zip(&shares)
        .zip(&proportional)
        .map(|((job, row), normal)| dot(&job.rates, row) / normal)
        .reduce(f64::min)
        .unwrap_or(0.0);
    Allocation { shares, objective, ..Allocation::default() }
}
