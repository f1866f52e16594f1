//! `AlloX`: the least sum of completion times, by assigning jobs to places in the queues of GPUs.
//!
//! A job in the k-th place from the end of a queue delays itself and k-1 others. Jobs that run stay
//! where they are. Single GPUs only.

use super::assignment::cheapest;
use super::{Allocate, AllocateError, Allocation, Instance, JobRow};
use crate::limits::{ASSIGNMENT_AHEAD_MAX, ASSIGNMENT_STEPS_MAX};

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
    /// Whether jobs may wait for GPUs that are in use, if they are done sooner there. Otherwise
    /// only those count that are free.
    pub ahead: bool,
}

impl Default for Allox {
    fn default() -> Allox {
        Allox { alpha: 1.0, tie_order: Vec::new(), ahead: false }
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
        let (mut waiting, mut used) = (Vec::new(), Vec::new());
        for (index, job) in instance.jobs.iter().enumerate() {
            match job.held_type.filter(|&gpu| free[gpu] >= 1.0) {
                Some(gpu) => {
                    free[gpu] -= 1.0;
                    shares[index][gpu] = 1.0;
                    // Nobody waits for an end that nobody knows.
                    if job.end_is_known {
                        used.push(Gpu { kind: gpu, free_in: Some(seconds(job, gpu)) });
                    }
                }
                None => waiting.push(index),
            }
        }
        // The type of each free GPU.
        let unnamed = (0..free.len()).filter(|gpu| !self.tie_order.contains(gpu));
        let types = self.tie_order.iter().copied().filter(|&gpu| gpu < free.len()).chain(unnamed);
        let now = |kind: usize| vec![Gpu { kind, free_in: None }; free[kind].floor() as usize];
        let mut gpus: Vec<Gpu> = types.flat_map(now).collect();
        let considered = ((self.alpha * waiting.len() as f64) as usize).max(gpus.len());
        waiting.truncate(considered);
        let all = steps(waiting.len(), gpus.len() + used.len());
        if self.ahead && !gpus.is_empty() && all <= ASSIGNMENT_AHEAD_MAX {
            gpus.extend(used);
        }
        let objective = assign(instance, &waiting, &gpus, &mut shares)?;
        Ok(Allocation { shares, objective, ..Allocation::default() })
    }
}

/// One GPU.
#[derive(Clone, Copy, Debug)]
struct Gpu {
    /// Its type.
    kind: usize,
    /// Seconds until who has it is done; none when nobody has it.
    free_in: Option<f64>,
}

/// How long a job takes on a type.
fn seconds(job: &JobRow, gpu: usize) -> f64 {
    let rate = job.rates[gpu];
    job.steps_left / if rate > 0.0 { rate } else { HOPELESS_RATE }
}

/// Costs that the assignment of so many jobs to so many GPUs looks at, at most.
fn steps(jobs: usize, gpus: usize) -> usize {
    jobs.saturating_mul(jobs).saturating_mul(jobs).saturating_mul(gpus)
}

/// Gives those that run first on a GPU that is free a share of 1, and returns the cost.
fn assign(
    instance: &Instance,
    waiting: &[usize],
    gpus: &[Gpu],
    shares: &mut [Vec<f64>],
) -> Result<f64, AllocateError> {
    if waiting.is_empty() || gpus.is_empty() {
        return Ok(0.0);
    }
    let (found, limit) = (steps(waiting.len(), gpus.len()), ASSIGNMENT_STEPS_MAX);
    if found > limit {
        return Err(AllocateError::TooMany { what: "steps of an assignment", found, limit });
    }
    let cost = |row: usize, column: usize| {
        let job = &instance.jobs[waiting[row]];
        let gpu = &gpus[column % gpus.len()];
        let own = (column / gpus.len() + 1) as f64 * seconds(job, gpu.kind) + job.age_secs;
        own + gpu.free_in.unwrap_or(0.0)
    };
    let places = cheapest(waiting.len(), waiting.len() * gpus.len(), cost);
    let mut first: Vec<Option<(usize, usize)>> = vec![None; gpus.len()];
    let mut total = 0.0;
    for (row, &place) in places.iter().enumerate() {
        total += cost(row, place);
        let entry = (place / gpus.len(), waiting[row]);
        let head = &mut first[place % gpus.len()];
        *head = (*head).max(Some(entry));
    }
    for (gpu, head) in gpus.iter().zip(first).filter(|(gpu, _)| gpu.free_in.is_none()) {
        if let Some((_, job)) = head.filter(|(_, job)| instance.jobs[*job].rates[gpu.kind] > 0.0) {
            shares[job][gpu.kind] = 1.0;
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One fast GPU that is in use for ten seconds more, and one slow GPU that is free.
    #[test]
    fn a_job_waits_for_a_gpu_in_use_only_if_it_is_done_sooner_there() {
        let row = |steps_left: f64, held_type, end_is_known| JobRow {
            rates: vec![10.0, 1.0],
            steps_left,
            end_is_known,
            held_type,
            ..JobRow::default()
        };
        let shares = |steps: f64, ahead: bool, known: bool| {
            let jobs = vec![row(100.0, Some(0), known), row(steps, None, true)];
            let instance = Instance { workers: vec![1.0, 1.0], jobs, ..Instance::default() };
            let mut allox = Allox { ahead, ..Allox::default() };
            allox.allocate(&instance).unwrap().shares[1].clone()
        };
        assert_eq!(shares(100.0, true, true), [0.0, 0.0], "20 s there, 100 s here");
        assert_eq!(shares(5.0, true, true), [0.0, 1.0], "10.5 s there, 5 s here");
        assert_eq!(shares(100.0, true, false), [0.0, 1.0], "perhaps never there");
        assert_eq!(shares(100.0, false, true), [0.0, 1.0]);
    }
}
