//! First come, first served. Never overtakes: the first job that finds no room ends the pass.

use hostler_core::random::Random;

use super::{Allocate, AllocateError, Allocation, Instance, JobRow, PairShare};

/// In order, each job gets any type with room, by chance, and keeps it for life.
///
/// The objective is the number of jobs that run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo {
    /// Seed of the choice.
    pub seed: u64,
}

impl Allocate for Fifo {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let mut floor = Floor::new(instance);
        for (index, job) in instance.jobs.iter().enumerate() {
            if let Some(gpu) = job.held_type {
                floor.take(index, job, gpu);
            }
        }
        for (index, job) in instance.jobs.iter().enumerate() {
            if job.held_type.is_some() {
                continue;
            }
            let fits = |&gpu: &usize| floor.has_room(job, gpu);
            let open: Vec<usize> = (0..instance.types()).filter(fits).collect();
            if open.is_empty() {
                break;
            }
            let draw = self.draw(index, job);
            floor.take(index, job, open[(draw * open.len() as f64) as usize]);
        }
        Ok(floor.allocation())
    }
}

impl Fifo {
    /// Chance that depends on the job and not on what was asked before.
    fn draw(&self, index: usize, job: &JobRow) -> f64 {
        let words = [job.age_secs.to_bits(), job.steps_left.to_bits(), index as u64];
        let number = words.iter().fold(0, |sum: u64, word| sum.rotate_left(23) ^ word);
        Random::stream(self.seed, number).uniform()
    }
}

/// In order, each job gets its fastest type among those with room; ends at the first that finds
/// none. Dealt out anew each time, so a job may change its type.
///
/// The objective is the number of jobs that run.
#[derive(Clone, Debug, Default)]
pub struct FifoPerf {
    /// Types in the order in which equal rates are decided; those not named come last, in order.
    pub tie_order: Vec<usize>,
}

impl Allocate for FifoPerf {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        Ok(self.pass(instance).allocation())
    }
}

impl FifoPerf {
    fn pass<'a>(&self, instance: &'a Instance) -> Floor<'a> {
        let mut floor = Floor::new(instance);
        for (index, job) in instance.jobs.iter().enumerate() {
            let Some(gpu) = self.fastest(&floor, job) else { break };
            floor.take(index, job, gpu);
        }
        floor
    }

    /// The fastest type with room.
    fn fastest(&self, floor: &Floor<'_>, job: &JobRow) -> Option<usize> {
        let rank = |gpu: usize| {
            let named = self.tie_order.iter().position(|&other| other == gpu);
            (named.unwrap_or(self.tie_order.len()), gpu)
        };
        let rates = &job.rates;
        (0..rates.len())
            .filter(|&gpu| floor.has_room(job, gpu))
            .min_by(|&one, &two| rates[two].total_cmp(&rates[one]).then(rank(one).cmp(&rank(two))))
    }
}

/// As `FifoPerf`; then the next jobs in the queue join the job that gains most from company, as
/// long as two together do half as much again as one.
///
/// The objective is the number of jobs that run.
#[derive(Clone, Debug, Default)]
pub struct FifoPacked {
    /// How the jobs that run alone are chosen.
    pub alone: FifoPerf,
}

/// Sum of the speeds of two jobs, relative to each alone, that makes sharing worth while.
const WORTH: f64 = 1.5;

impl Allocate for FifoPacked {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let mut floor = self.alone.pass(instance);
        let queue = floor.types.iter().position(Option::is_none).unwrap_or(floor.types.len());
        let mut pairs = Vec::new();
        let mut alone: Vec<usize> = (0..queue).collect();
        for next in queue..instance.jobs.len() {
            let gains = alone.iter().enumerate().filter_map(|(place, &host)| {
                let gpu = floor.types[host]?;
                Some((gain(instance, host, next, gpu)?, place))
            });
            // The first of equals: `max_by` would give the last.
            let best = gains.reduce(|best, other| if other.0 > best.0 { other } else { best });
            let Some((_, place)) = best.filter(|(gain, _)| *gain > WORTH) else { break };
            let first = alone.remove(place);
            let gpu = floor.types[first].take().expect("the host runs alone on a type");
            pairs.push(PairShare { first, second: next, gpu, share: 1.0 });
        }
        let running = queue + pairs.len();
        Ok(Allocation { pairs, objective: running as f64, ..floor.allocation() })
    }
}

/// What two jobs do together, each relative to itself alone; nothing if they cannot share.
fn gain(instance: &Instance, one: usize, two: usize, gpu: usize) -> Option<f64> {
    let (first, second) = (&instance.jobs[one], &instance.jobs[two]);
    if first.gang != second.gang || first.rates[gpu] <= 0.0 || second.rates[gpu] <= 0.0 {
        return None;
    }
    let kinds = (first.kind, second.kind);
    let pair = instance.pairs.iter().find_map(|row| match row.rates[gpu] {
        rates if (row.first, row.second) == kinds => Some(rates),
        (left, right) if (row.second, row.first) == kinds => Some((right, left)),
        _ => None,
    });
    let (left, right) = pair.filter(|(left, right)| *left > 0.0 && *right > 0.0)?;
    Some(left / first.rates[gpu] + right / second.rates[gpu])
}

/// Who has which type, and what is free.
struct Floor<'a> {
    instance: &'a Instance,
    free: Vec<f64>,
    types: Vec<Option<usize>>,
}

impl<'a> Floor<'a> {
    fn new(instance: &'a Instance) -> Floor<'a> {
        let types = vec![None; instance.jobs.len()];
        Floor { instance, free: instance.workers.clone(), types }
    }

    fn has_room(&self, job: &JobRow, gpu: usize) -> bool {
        job.rates[gpu] > 0.0 && self.free[gpu] >= f64::from(job.gang)
    }

    fn take(&mut self, index: usize, job: &JobRow, gpu: usize) {
        self.free[gpu] -= f64::from(job.gang);
        self.types[index] = Some(gpu);
    }

    fn allocation(&self) -> Allocation {
        let mut shares = vec![vec![0.0; self.instance.types()]; self.types.len()];
        let mut running = 0;
        for (row, gpu) in shares.iter_mut().zip(&self.types) {
            if let Some(gpu) = gpu {
                row[*gpu] = 1.0;
                running += 1;
            }
        }
        Allocation { shares, objective: f64::from(running), ..Allocation::default() }
    }
}
