//! Many small problems instead of a large one: jobs are split by chance, each part gets its part of
//! every type, and the answers are put together.
//!
//! Nearly as good as the whole when there are many jobs, and much cheaper. Not needed where jobs
//! fall into few classes.

use hostler_core::random::Random;

use super::{Allocate, AllocateError, Allocation, Fallback, Instance, PairShare};

/// Splits an instance and lets another policy solve the parts.
pub struct Pop<Inner> {
    /// Who solves the parts.
    pub inner: Inner,
    /// Jobs in a part, at most.
    pub jobs_max: usize,
    /// Seed of the split.
    pub seed: u64,
}

/// Lets a policy solve in parts of at most `jobs_max` jobs what is too large for it as a whole.
pub fn in_parts(
    inner: &mut dyn Allocate,
    instance: &Instance,
    jobs_max: usize,
) -> Result<Allocation, AllocateError> {
    // The objective is a level for one policy and a time for another; nobody asks for it here.
    let mut pop = Pop { inner, jobs_max, seed: 0 };
    Ok(Allocation { fallback: Some(Fallback::Parts), ..pop.allocate(instance)? })
}

impl Allocate for &mut dyn Allocate {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        (**self).allocate(instance)
    }
}

impl<Inner: Allocate> Allocate for Pop<Inner> {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let parts = instance.jobs.len().div_ceil(self.jobs_max.max(1));
        if parts <= 1 {
            return self.inner.allocate(instance);
        }
        let order = shuffled(instance.jobs.len(), self.seed);
        let mut whole = Allocation {
            shares: vec![Vec::new(); instance.jobs.len()],
            objective: f64::NAN,
            ..Allocation::default()
        };
        for part in 0..parts {
            let members: Vec<usize> = order.iter().copied().skip(part).step_by(parts).collect();
            self.solve_part(instance, members, parts, &mut whole)?;
        }
        Ok(whole)
    }
}

impl<Inner: Allocate> Pop<Inner> {
    fn solve_part(
        &mut self,
        instance: &Instance,
        mut members: Vec<usize>,
        parts: usize,
        whole: &mut Allocation,
    ) -> Result<(), AllocateError> {
        members.sort_unstable();
        let part = Instance {
            workers: instance.workers.iter().map(|workers| workers / parts as f64).collect(),
            prices: instance.prices.clone(),
            jobs: members.iter().map(|&job| instance.jobs[job].clone()).collect(),
            pairs: instance.pairs.clone(),
            entities: instance.entities.clone(),
        };
        let answer = self.inner.allocate(&part)?;
        for (row, &job) in answer.shares.into_iter().zip(&members) {
            whole.shares[job] = row;
        }
        let back = |pair: PairShare| PairShare {
            first: members[pair.first],
            second: members[pair.second],
            ..pair
        };
        whole.pairs.extend(answer.pairs.into_iter().map(back));
        whole.fallback = whole.fallback.or(answer.fallback);
        // The first part meets no number: `min` then gives the other.
        whole.objective = whole.objective.min(answer.objective);
        Ok(())
    }
}

/// All numbers below a count, by chance.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, (random.uniform() * (last + 1) as f64) as usize);
    }
    order
}
