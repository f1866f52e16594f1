//! The border of the solvers: what an instance must be, and what an allocation must be.
//!
//! Refuses numbers that would make a solver divide by zero or run for ever. Judges no optimum.

use super::{AllocateError, Allocation, Instance, JobRow};

impl Instance {
    /// GPU types.
    pub fn types(&self) -> usize {
        self.workers.len()
    }

    /// GPUs of all types.
    pub fn workers_total(&self) -> f64 {
        self.workers.iter().sum()
    }

    /// Refuses what no solver can work with.
    pub fn check(&self) -> Result<(), AllocateError> {
        each("workers", &self.workers)?;
        if !self.prices.is_empty() {
            length("prices", 0, self.prices.len(), self.types())?;
        }
        for (index, &price) in self.prices.iter().enumerate() {
            positive("prices", index, price)?;
        }
        for (index, entity) in self.entities.iter().enumerate() {
            positive("entity weight", index, entity.weight)?;
        }
        for (index, pair) in self.pairs.iter().enumerate() {
            length("pair rates", index, pair.rates.len(), self.types())?;
            for &(first, second) in &pair.rates {
                number("pair rates", index, first)?;
                number("pair rates", index, second)?;
            }
        }
        if !self.jobs.is_empty() && self.workers_total() <= 0.0 {
            return Err(AllocateError::NoWorkers { jobs: self.jobs.len() });
        }
        self.jobs.iter().enumerate().try_for_each(|(index, job)| self.check_job(index, job))
    }

    fn check_job(&self, index: usize, job: &JobRow) -> Result<(), AllocateError> {
        length("rates", index, job.rates.len(), self.types())?;
        for &rate in &job.rates {
            number("rates", index, rate)?;
        }
        positive("gang", index, f64::from(job.gang))?;
        positive("weight", index, job.weight)?;
        number("steps left", index, job.steps_left)?;
        number("age", index, job.age_secs)?;
        number("finish credit", index, job.finish_credit)?;
        // A deadline that has passed is a fact, not an error: its slack is below 0.
        if let Some(slack) = job.slack_secs
            && !slack.is_finite()
        {
            return Err(AllocateError::BadNumber { what: "slack", index, value: slack });
        }
        if let Some(gpu) = job.held_type
            && gpu >= self.types()
        {
            return Err(AllocateError::Unknown { what: "held type", job: index, number: gpu });
        }
        if let Some(entity) = job.entity
            && entity as usize >= self.entities.len()
        {
            let number = entity as usize;
            return Err(AllocateError::Unknown { what: "entity", job: index, number });
        }
        if job.rates.iter().zip(&self.workers).all(|(rate, workers)| rate * workers <= 0.0) {
            return Err(AllocateError::NoRate { job: index });
        }
        Ok(())
    }
}

fn each(what: &'static str, values: &[f64]) -> Result<(), AllocateError> {
    values.iter().enumerate().try_for_each(|(index, &value)| number(what, index, value))
}

fn number(what: &'static str, index: usize, value: f64) -> Result<(), AllocateError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(AllocateError::BadNumber { what, index, value })
}

fn positive(what: &'static str, index: usize, value: f64) -> Result<(), AllocateError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(AllocateError::BadNumber { what, index, value })
}

fn length(
    what: &'static str,
    index: usize,
    found: usize,
    types: usize,
) -> Result<(), AllocateError> {
    if found == types {
        return Ok(());
    }
    Err(AllocateError::WrongLength { what, index, found, types })
}

/// By how much an allocation breaks the worst of its constraints; 0 if it breaks none.
///
/// A share lies in [0, 1], a job's shares sum to at most 1, and the GPUs of a type suffice. The
/// last is measured against the number of GPUs.
pub fn violation(instance: &Instance, allocation: &Allocation) -> f64 {
    let mut worst: f64 = 0.0;
    let mut time = vec![0.0; instance.jobs.len()];
    let mut load = vec![0.0; instance.types()];
    let mut add = |jobs: &[usize], gpu: usize, share: f64| {
        // NaN must not pass: a comparison with it is false.
        worst = if share >= 0.0 { worst } else { worst.max(-share).max(f64::MIN_POSITIVE) };
        jobs.iter().for_each(|&job| time[job] += share);
        load[gpu] += share * f64::from(instance.jobs[jobs[0]].gang);
    };
    for (job, row) in allocation.shares.iter().enumerate() {
        row.iter().enumerate().for_each(|(gpu, &share)| add(&[job], gpu, share));
    }
    for pair in &allocation.pairs {
        add(&[pair.first, pair.second], pair.gpu, pair.share);
    }
    for sum in time {
        worst = worst.max(sum - 1.0);
    }
    for (sum, workers) in load.iter().zip(&instance.workers) {
        worst = worst.max((sum - workers) / workers.max(1.0));
    }
    worst
}

/// Whether an allocation keeps all constraints up to rounding.
pub fn is_feasible(instance: &Instance, allocation: &Allocation) -> bool {
    violation(instance, allocation) <= crate::limits::FEASIBLE_MAX
}
