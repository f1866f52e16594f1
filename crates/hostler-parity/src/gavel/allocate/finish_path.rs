//! The middle of all shares that are best for finish-time fairness.
//!
//! Many shares have the same worst ratio. A cone solver ends at one of them: the limit of the
//! points that balance the ratio against the logarithms of all slacks. Published results were made
//! with that one, so this file walks to it: Newton's method for a weight of the logarithms that
//! shrinks step by step.
//!
//! The cone programme has a variable `t` with `t · throughput >= 1` for each job. For a given
//! throughput the best `t` is known, which leaves `1.5 ln(c · throughput - 1) - ln(throughput)` of
//! the logarithms, where `1 / c` is the throughput that just meets the ratio. What couples jobs is
//! the ratio and one row for each GPU type, so a step costs a small dense system for each job.

use hostler_policies::allocate::{
    Allocate, AllocateError, Allocation, FinishTime, Instance, JobRow, RateKnowledge,
    isolated_rates, isolated_shares,
};

use crate::limits::{NEWTON_STEPS_MAX, PATH_STEPS_MAX, STEP_CUTS_MAX};

/// Part of the ratio that may be missing at the end: a tenth of what the published solver aims for.
const CLOSE: f64 = 1e-9;

/// What may be missing when rounding is in the way.
const CLOSE_ENOUGH: f64 = 1e-5;

/// What the weight of the logarithms shrinks by from one point of the path to the next.
const SHRINK: f64 = 0.1;

/// Square of the length of a Newton step, in its own measure, that counts as arrived.
const ARRIVED: f64 = 1e-6;

/// Below that the whole step is right.
const NEAR: f64 = 0.01;

/// Part of what a step promises that it must keep.
const DESCENT: f64 = 0.1;

/// What a step that goes too far is cut to.
const CUT: f64 = 0.6;

/// Finish-time fairness without weights, in the middle of the best shares, or at any of them when
/// the numbers are out of reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FinishCentre;

impl Allocate for FinishCentre {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        match centre(instance) {
            Some(centre) => Ok(centre),
            None => FinishTime { rate_knowledge: RateKnowledge::Aware, weighted: false }
                .allocate(instance),
        }
    }
}

/// Shares in the middle of the best ones; none when the numbers are out of reach.
fn centre(instance: &Instance) -> Option<Allocation> {
    let race = Race::new(instance);
    let mut point = race.begin(instance)?;
    let (jobs, types) = (race.jobs.len(), race.workers.len());
    let slacks = (jobs * (types + 3) + types) as f64;
    let mut weight = point.ratio / slacks;
    let mut gap = f64::INFINITY;
    for _ in 0..PATH_STEPS_MAX {
        if !race.walk(&mut point, weight) {
            break;
        }
        gap = weight * slacks / point.ratio;
        if gap <= CLOSE {
            break;
        }
        weight *= SHRINK;
    }
    let shares = point.shares.chunks(types).map(<[f64]>::to_vec).collect();
    let centre = Allocation { shares, objective: point.ratio, ..Allocation::default() };
    (gap <= CLOSE_ENOUGH).then_some(centre)
}

/// What stays the same on the way.
struct Race {
    jobs: Vec<Job>,
    /// Throughput of each job on each type, of its isolated one.
    rates: Vec<f64>,
    workers: Vec<f64>,
}

#[derive(Clone, Copy)]
struct Job {
    gang: f64,
    fair: f64,
    age: f64,
}

impl Job {
    /// One over the throughput that just meets a ratio.
    fn need(&self, ratio: f64) -> f64 {
        self.fair * ratio - self.age
    }
}

/// A point on the way.
#[derive(Clone, Default)]
struct Point {
    /// Share of each job on each type.
    shares: Vec<f64>,
    ratio: f64,
    /// What follows from the shares: throughput of each job, of its isolated one,
    throughput: Vec<f64>,
    /// the part of its time that is not given away,
    rest: Vec<f64>,
    /// and GPUs of each type that are left.
    free: Vec<f64>,
}

/// A step from a point.
struct Step {
    shares: Vec<f64>,
    ratio: f64,
    /// Square of its length, in its own measure.
    length: f64,
}

impl Race {
    fn new(instance: &Instance) -> Race {
        let isolated = isolated_rates(instance);
        let rows = || instance.jobs.iter().zip(&isolated);
        let job = |(row, isolated): (&JobRow, &f64)| {
            let steps = row.steps_left / isolated;
            let fair = row.finish_credit + steps;
            Job { gang: f64::from(row.gang), fair: fair / steps, age: row.age_secs / steps }
        };
        let rates = rows().flat_map(|(row, isolated)| row.rates.iter().map(move |x| x / isolated));
        Race {
            jobs: rows().map(job).collect(),
            rates: rates.collect(),
            workers: instance.workers.clone(),
        }
    }

    /// Half of an equal part for each job, and a ratio that all of them meet.
    fn begin(&self, instance: &Instance) -> Option<Point> {
        let shares = isolated_shares(instance).into_iter().flatten();
        let shares = shares.map(|share| share / 2.0).collect();
        let mut point = Point { shares, ..Point::default() };
        self.count(&mut point);
        let met = |(job, throughput): (&Job, &f64)| (job.age + 2.0 / throughput) / job.fair;
        point.ratio = self.jobs.iter().zip(&point.throughput).map(met).fold(0.0, f64::max);
        (point.ratio.is_finite() && self.is_inside(&point)).then_some(point)
    }

    /// What follows from the shares.
    fn count(&self, point: &mut Point) {
        let types = self.workers.len();
        point.throughput.clear();
        point.rest.clear();
        point.free.clone_from(&self.workers);
        let rows = point.shares.chunks(types).zip(self.rates.chunks(types));
        for (job, (shares, rates)) in self.jobs.iter().zip(rows) {
            point.throughput.push(dot(rates, shares));
            point.rest.push(1.0 - shares.iter().sum::<f64>());
            for (free, share) in point.free.iter_mut().zip(shares) {
                *free -= job.gang * share;
            }
        }
    }

    fn is_inside(&self, point: &Point) -> bool {
        let above = |values: &[f64]| values.iter().all(|value| *value > 0.0);
        let met = |(job, throughput): (&Job, &f64)| job.need(point.ratio) * throughput > 1.0;
        above(&point.shares)
            && above(&point.rest)
            && above(&point.free)
            && self.jobs.iter().zip(&point.throughput).all(met)
    }

    /// Goes to the point of a weight; says whether it got there before rounding was in the way.
    fn walk(&self, point: &mut Point, weight: f64) -> bool {
        let mut there = Point::default();
        for _ in 0..NEWTON_STEPS_MAX {
            let Some(step) = self.step(point, weight) else { return false };
            if !self.find(point, &step, weight, &mut there) {
                return false;
            }
            std::mem::swap(point, &mut there);
            if step.length < ARRIVED {
                return true;
            }
        }
        false
    }

    /// The point that a step leads to: all of it near the goal, else as much as brings the goal
    /// nearer.
    fn find(&self, point: &Point, step: &Step, weight: f64, there: &mut Point) -> bool {
        let here = if step.length < NEAR { f64::INFINITY } else { self.height(point, weight) };
        let mut part = 1.0;
        for _ in 0..STEP_CUTS_MAX {
            self.advance(point, step, part, there);
            let promised = DESCENT * part * step.length;
            if self.is_inside(there)
                && (here.is_infinite() || self.height(there, weight) <= here - promised)
            {
                return true;
            }
            part *= CUT;
        }
        false
    }

    fn advance(&self, point: &Point, step: &Step, part: f64, there: &mut Point) {
        there.shares.clear();
        let moved = point.shares.iter().zip(&step.shares);
        there.shares.extend(moved.map(|(share, change)| share + part * change));
        there.ratio = point.ratio + part * step.ratio;
        self.count(there);
    }

    /// What is least at the point of a weight.
    fn height(&self, point: &Point, weight: f64) -> f64 {
        let logs = |values: &[f64]| values.iter().map(|value| libm::log(*value)).sum::<f64>();
        let met =
            |(job, throughput): (&Job, &f64)| libm::log(job.need(point.ratio) * throughput - 1.0);
        let met: f64 = self.jobs.iter().zip(&point.throughput).map(met).sum();
        let walls = logs(&point.shares) + logs(&point.rest) + logs(&point.free);
        point.ratio / weight - walls - 1.5 * met + logs(&point.throughput)
    }

    /// The Newton step towards the point of a weight.
    fn step(&self, point: &Point, weight: f64) -> Option<Step> {
        let types = self.workers.len();
        let size = types + 1;
        // What couples the jobs: the rows of the types, then the ratio.
        let (mut dense, mut right) = (vec![0.0; size * size], vec![0.0; size]);
        let mut slope_of_ratio = 1.0 / weight;
        let mut blocks = Vec::with_capacity(self.jobs.len());
        for at in 0..self.jobs.len() {
            let block = Block::new(self, point, at)?;
            slope_of_ratio += block.ratio_slope;
            dense[size * size - 1] += block.ratio_bend;
            block.add_to(&mut dense, &mut right);
            blocks.push(block);
        }
        for (gpu, free) in point.free.iter().enumerate() {
            dense[gpu * size + gpu] -= free * free;
        }
        right[types] -= slope_of_ratio;
        eliminate(&mut dense, &mut right)?;
        let ratio = right[types];
        let mut length = -slope_of_ratio * ratio;
        let mut shares = Vec::with_capacity(point.shares.len());
        for block in &blocks {
            let begin = shares.len();
            block.change(&right, &mut shares);
            length -= dot(&block.slope, &shares[begin..]);
        }
        length.is_finite().then_some(Step { shares, ratio, length })
    }
}

/// What the logarithms of one job add to a step.
struct Block {
    gang: f64,
    /// First derivatives by share.
    slope: Vec<f64>,
    /// Second derivatives by share, ready to solve with.
    factor: Vec<f64>,
    /// Derivatives by share and ratio.
    mixed: Vec<f64>,
    ratio_slope: f64,
    ratio_bend: f64,
}

impl Block {
    fn new(race: &Race, point: &Point, at: usize) -> Option<Block> {
        let types = race.workers.len();
        let job = race.jobs[at];
        let row = at * types..(at + 1) * types;
        let (rates, shares) = (&race.rates[row.clone()], &point.shares[row]);
        let (throughput, rest) = (point.throughput[at], point.rest[at]);
        let need = job.need(point.ratio);
        let slack = need * throughput - 1.0;
        // Of `ln(throughput) - 1.5 ln(need · throughput - 1)`.
        let by_throughput = 1.0 / throughput - 1.5 * need / slack;
        let steep = need / slack;
        let bend = 1.5 * steep * steep - 1.0 / (throughput * throughput);
        let by_both = 1.5 * job.fair / (slack * slack);
        let by_ratio = 1.5 * job.fair * throughput / slack;
        let slope = (0..types).map(|gpu| {
            let walls = 1.0 / rest - 1.0 / shares[gpu] + job.gang / point.free[gpu];
            walls + by_throughput * rates[gpu]
        });
        let mut factor = Vec::with_capacity(types * types);
        for row in 0..types {
            factor.extend(rates.iter().map(|rate| 1.0 / (rest * rest) + bend * rates[row] * rate));
            factor[row * types + row] += 1.0 / (shares[row] * shares[row]);
        }
        cholesky(&mut factor, types)?;
        Some(Block {
            gang: job.gang,
            slope: slope.collect(),
            factor,
            mixed: rates.iter().map(|rate| by_both * rate).collect(),
            ratio_slope: -by_ratio,
            ratio_bend: by_ratio * by_ratio / 1.5,
        })
    }

    /// Takes the shares out of the system that couples the jobs.
    fn add_to(&self, dense: &mut [f64], right: &mut [f64]) {
        let types = self.slope.len();
        let mut solved = vec![0.0; types];
        for row in 0..=types {
            if row < types {
                solved.fill(0.0);
                solved[row] = self.gang;
            } else {
                solved.copy_from_slice(&self.mixed);
            }
            self.solve(&mut solved);
            right[row] += dot(&self.slope, &solved);
            let line = &mut dense[row * (types + 1)..(row + 1) * (types + 1)];
            for (value, part) in line.iter_mut().zip(&solved) {
                *value -= self.gang * part;
            }
            line[types] -= dot(&self.mixed, &solved);
        }
    }

    /// Change of the shares for a change of what couples the jobs.
    fn change(&self, common: &[f64], shares: &mut Vec<f64>) {
        let (begin, ratio) = (shares.len(), common[self.slope.len()]);
        for (gpu, slope) in self.slope.iter().enumerate() {
            shares.push(-slope - self.gang * common[gpu] - self.mixed[gpu] * ratio);
        }
        self.solve(&mut shares[begin..]);
    }

    fn solve(&self, right: &mut [f64]) {
        let types = right.len();
        for row in 0..types {
            for column in 0..row {
                right[row] -= self.factor[row * types + column] * right[column];
            }
            right[row] /= self.factor[row * types + row];
        }
        for row in (0..types).rev() {
            for column in row + 1..types {
                right[row] -= self.factor[column * types + row] * right[column];
            }
            right[row] /= self.factor[row * types + row];
        }
    }
}

/// Sum of products.
fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(one, other)| one * other).sum()
}

/// The lower factor of a positive definite matrix, in its place.
fn cholesky(matrix: &mut [f64], size: usize) -> Option<()> {
    for row in 0..size {
        for column in 0..=row {
            let mut value = matrix[row * size + column];
            for before in 0..column {
                value -= matrix[row * size + before] * matrix[column * size + before];
            }
            matrix[row * size + column] = match row == column {
                true if value > 0.0 => value.sqrt(),
                true => return None,
                false => value / matrix[column * size + column],
            };
        }
    }
    Some(())
}

/// Solves a small dense system in place, with the largest pivots.
fn eliminate(matrix: &mut [f64], right: &mut [f64]) -> Option<()> {
    let size = right.len();
    for pivot in 0..size {
        let magnitude = |row: &usize| matrix[row * size + pivot].abs();
        let best =
            (pivot..size).max_by(|one, other| magnitude(one).total_cmp(&magnitude(other)))?;
        for column in 0..size {
            matrix.swap(pivot * size + column, best * size + column);
        }
        right.swap(pivot, best);
        let head = matrix[pivot * size + pivot];
        if head == 0.0 {
            return None;
        }
        for row in pivot + 1..size {
            let times = matrix[row * size + pivot] / head;
            for column in pivot..size {
                matrix[row * size + column] -= times * matrix[pivot * size + column];
            }
            right[row] -= times * right[pivot];
        }
    }
    for row in (0..size).rev() {
        for column in row + 1..size {
            right[row] -= matrix[row * size + column] * right[column];
        }
        right[row] /= matrix[row * size + row];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hostler_core::random::Random;
    use hostler_policies::allocate::violation;
    use proptest::prelude::*;

    fn drawn(seed: u64, jobs: usize) -> Instance {
        let mut random = Random::new(seed);
        let job = |_| JobRow {
            rates: (0..3).map(|_| 0.1 + random.uniform()).collect(),
            gang: random.pick(&[(1, 3.0), (2, 1.0)]),
            steps_left: 1000.0 * (0.01 + random.uniform()),
            age_secs: 2000.0 * random.uniform(),
            finish_credit: 1000.0 * random.uniform(),
            ..JobRow::default()
        };
        let jobs = (0..jobs).map(job).collect();
        Instance { workers: vec![2.0, 3.0, 4.0], jobs, ..Instance::default() }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn the_middle_of_the_best_is_best(seed: u64, jobs in 1usize..25) {
            let instance = drawn(seed, jobs);
            let mut best = FinishTime { rate_knowledge: RateKnowledge::Aware, weighted: false };
            let best = best.allocate(&instance).unwrap();
            let found = centre(&instance).unwrap();
            let off = (found.objective - best.objective).abs();
            prop_assert!(off < 1e-6 * best.objective, "{} {}", found.objective, best.objective);
            prop_assert!(violation(&instance, &found) < 1e-9);
        }
    }
}
