//! `AlloX`: the least sum of completion times, by assigning jobs to places in the queues of GPUs.
//!
//! A job in the k-th place from the end of a queue delays itself and k-1 others. Jobs that run stay
//! where they are. Single GPUs only.

use super::assignment::cheapest;
use super::{Allocate, AllocateError, Allocation, Instance};
use crate::limits::ASSIGNMENT_STEPS_MAX;

/// Rate of a job on a type where it does not fit: so slow that it goes elsewhere.
const HOPELESS_RATE: f64 = 1e-10;

/// Assigns the oldest jobs that wait to GPUs that are free.
///
/// The objective is the cost of the assignment in seconds: completion times of those assigned.
#[derive(Clone, Debug)]
pub struct Allox {
    /// Part of the waiting jobs, the oldest, that is looked at; at least as many as free GPUs.
    pub alpha: f64,
    /// Types in the order in which their GPUs are listed; those not named come last, in order.
    /// Decides only between answers that cost the same.
    pub tie_order: Vec<usize>,
}

impl Default for Allox {
    fn default() -> Allox {
        Allox { alpha: 1.0, tie_order: Vec::new() }
    }
}

impl Allocate for Allox {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        if !(0.0..=1.0).contains(&self.alpha) {
            let value = self.alpha;
            return Err(AllocateError::BadNumber { what: "alpha", index: 0, value });
        }
        let gang = instance.jobs.iter().position(|job| job.gang != 1);
        if let Some(job) = gang {
            return Err(AllocateError::Gang { job, gang: instance.jobs[job].gang });
        }
        let mut shares = vec![vec![0.0; instance.types()]; instance.jobs.len()];
        let mut free = instance.workers.clone();
        let mut waiting = Vec::new();
        for (index, job) in instance.jobs.iter().enumerate() {
            match job.held_type.filter(|&gpu| free[gpu] >= 1.0) {
                Some(gpu) => {
                    free[gpu] -= 1.0;
                    shares[index][gpu] = 1.0;
                }
                None => waiting.push(index),
            }
        }
        // The type of each free GPU.
        let unnamed = (0..free.len()).filter(|gpu| !self.tie_order.contains(gpu));
        let types = self.tie_order.iter().copied().filter(|&gpu| gpu < free.len()).chain(unnamed);
        let gpus: Vec<usize> =
            types.flat_map(|gpu| vec![gpu; free[gpu].floor() as usize]).collect();
        let considered = ((self.alpha * waiting.len() as f64) as usize).max(gpus.len());
        waiting.truncate(considered);
        let objective = assign(instance, &waiting, &gpus, &mut shares)?;
        Ok(Allocation { shares, objective, ..Allocation::default() })
    }
}

/// Gives those that run first on their GPU a share of 1, and returns the cost.
fn assign(
    instance: &Instance,
    waiting: &[usize],
    gpus: &[usize],
    shares: &mut [Vec<f64>],
) -> Result<f64, AllocateError> {
    if waiting.is_empty() || gpus.is_empty() {
        return Ok(0.0);
    }
    let columns = waiting.len() * gpus.len();
    let found = waiting.len().saturating_mul(waiting.len()).saturating_mul(columns);
    if found > ASSIGNMENT_STEPS_MAX {
        let limit = ASSIGNMENT_STEPS_MAX;
        return Err(AllocateError::TooMany { what: "steps of an assignment", found, limit });
    }
    let cost = |row: usize, column: usize| {
        let job = &instance.jobs[waiting[row]];
        let rate = job.rates[gpus[column % gpus.len()]];
        let rate = if rate > 0.0 { rate } else { HOPELESS_RATE };
        (column / gpus.len() + 1) as f64 * (job.steps_left / rate) + job.age_secs
    };
    let places = cheapest(waiting.len(), columns, cost);
    let mut first: Vec<Option<(usize, usize)>> = vec![None; gpus.len()];
    let mut total = 0.0;
    for (row, &place) in places.iter().enumerate() {
        total += cost(row, place);
        let entry = (place / gpus.len(), waiting[row]);
        let head = &mut first[place % gpus.len()];
        *head = (*head).max(Some(entry));
    }
    for (gpu, head) in gpus.iter().zip(first) {
        if let Some((_, job)) = head.filter(|(_, job)| instance.jobs[*job].rates[*gpu] > 0.0) {
            shares[job][*gpu] = 1.0;
        }
    }
    Ok(total)
}
