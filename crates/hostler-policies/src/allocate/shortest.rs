//! The one job that can end first gets its best type: the shortest-job objective of the lecture.

use super::{Allocate, AllocateError, Allocation, Instance};

/// Makes the time until the first job ends as short as possible; the objective is that time in
/// seconds. Nobody else runs. Without a job that fits, nobody does and the objective is infinite.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shortest;

impl Allocate for Shortest {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let mut best = (f64::INFINITY, None);
        for (index, job) in instance.jobs.iter().enumerate() {
            for (gpu, &rate) in job.rates.iter().enumerate() {
                let fits = rate > 0.0 && instance.workers[gpu] >= f64::from(job.gang);
                if fits && job.steps_left / rate < best.0 {
                    best = (job.steps_left / rate, Some((index, gpu)));
                }
            }
        }
        let mut shares = vec![vec![0.0; instance.types()]; instance.jobs.len()];
        if let Some((job, gpu)) = best.1 {
            shares[job][gpu] = 1.0;
        }
        Ok(Allocation { shares, objective: best.0, ..Allocation::default() })
    }
}
