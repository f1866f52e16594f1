//! Finish-time fairness: the worst ratio of the time that a job takes here to the time that it
//! would take on its own part of the cluster is as small as possible.
//!
//! For a ratio, the throughput that each job needs is known, and a linear programme says how far
//! all of them can be met. Its prices give a bound on the best ratio that is exact at that point:
//! a step of Newton's method, so a handful of programmes suffices.

use super::classes::{Classes, Speeds, Traits};
use super::closed::{isolated_fallback, isolated_rates};
use super::formulate::{Floor, Formulation, Goal, Spread};
use super::{Allocate, AllocateError, Allocation, Instance, JobRow, RateKnowledge};
use crate::limits::{FINISH_TIME_SOLVES_MAX, HALVINGS_MAX};
use crate::lp::Solver;

/// Part of the ratio by which bound and answer may differ at the end.
const CLOSE: f64 = 1e-7;

/// Makes the greatest `(age + steps left / throughput) / isolated time` as small as possible; that
/// greatest is the objective.
#[derive(Clone, Copy, Debug)]
pub struct FinishTime {
    /// What it knows of types and pairs.
    pub rate_knowledge: RateKnowledge,
    /// Whether a job of twice the weight may expect half the time.
    pub weighted: bool,
}

impl FinishTime {
    /// Steps per second of each job on its own part of the cluster, as this policy sees the types:
    /// what `JobRow::finish_credit` grows by, one over it for each step done.
    pub fn isolated_rates(&self, instance: &Instance) -> Vec<f64> {
        let seen = Speeds::own(self.rate_knowledge).seen(instance);
        isolated_rates(seen.as_ref().unwrap_or(instance))
    }
}

impl Allocate for FinishTime {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let seen = Speeds::own(self.rate_knowledge).seen(instance);
        let seen = seen.as_ref().unwrap_or(instance);
        let pairs = self.rate_knowledge == RateKnowledge::Packed;
        let classes = Classes::new(seen, Traits { pairs, progress: true, ..Traits::default() })?;
        let race = Race::new(seen, &classes, self.weighted);
        Ok(match race.run(Solver::Interior) {
            Some((spread, ratio)) => spread.allocation(&classes, ratio),
            None if race.runners.is_empty() => {
                Allocation { fallback: None, ..isolated_fallback(instance) }
            }
            None => isolated_fallback(instance),
        })
    }
}

/// Steps left, age, and time that counts as fair, of a class that has steps left.
#[derive(Clone, Copy, Debug)]
struct Runner {
    /// Which class.
    row: usize,
    steps: f64,
    age: f64,
    fair: f64,
}

impl Runner {
    fn new(row: usize, job: &JobRow, isolated: f64, weighted: bool) -> Runner {
        let fair = job.finish_credit + job.steps_left / isolated;
        let fair = if weighted { fair / job.weight } else { fair };
        Runner { row, steps: job.steps_left, age: job.age_secs, fair }
    }

    /// Throughput that meets a ratio; infinite if none does.
    fn need(&self, ratio: f64) -> f64 {
        let left = ratio * self.fair - self.age;
        if left > 0.0 { self.steps / left } else { f64::INFINITY }
    }

    /// Ratio that a throughput gives.
    fn ratio(&self, throughput: f64) -> f64 {
        (self.age + self.steps / throughput) / self.fair
    }
}

struct Race<'a> {
    instance: &'a Instance,
    classes: &'a Classes,
    runners: Vec<Runner>,
    isolated: Vec<f64>,
}

impl<'a> Race<'a> {
    fn new(instance: &'a Instance, classes: &'a Classes, weighted: bool) -> Race<'a> {
        let isolated = isolated_rates(instance);
        let runner = |(class, job): (usize, usize)| {
            Runner::new(class, &instance.jobs[job], isolated[job], weighted)
        };
        let heads = classes.rows.iter().map(|class| class.job).enumerate();
        let runners = heads.map(runner).filter(|runner| runner.steps > 0.0).collect();
        let heads = classes.rows.iter();
        let isolated = heads.map(|class| isolated[class.job]).collect();
        Race { instance, classes, runners, isolated }
    }

    /// The best shares found, and their ratio.
    fn run(&self, solver: Solver) -> Option<(Spread, f64)> {
        let mut ratio = self.worst(&self.isolated);
        let mut best: Option<(Spread, f64)> = None;
        if self.runners.is_empty() || !ratio.is_finite() {
            return None;
        }
        let mut bound =
            self.runners.iter().map(|runner| runner.age / runner.fair).fold(0.0, f64::max);
        for _ in 0..FINISH_TIME_SOLVES_MAX {
            let Ok(spread) = self.solve(ratio, solver) else { break };
            let reached = self.worst(&spread.throughput);
            let next = self.bound(&spread, ratio, bound);
            if best.as_ref().is_none_or(|(_, least)| reached < *least) {
                best = Some((spread, reached));
            }
            bound = bound.max(next);
            let least = best.as_ref().map_or(reached, |(_, least)| *least);
            if least - bound <= CLOSE * least || next == ratio {
                break;
            }
            ratio = bound;
        }
        best
    }

    fn solve(&self, ratio: f64, solver: Solver) -> Result<Spread, crate::lp::LpError> {
        let mut floors = vec![Floor::default(); self.classes.rows.len()];
        for runner in &self.runners {
            floors[runner.row].slope = runner.need(ratio);
        }
        Formulation::new(self.instance, self.classes, &floors, Goal::Level).solve(solver)
    }

    fn worst(&self, throughput: &[f64]) -> f64 {
        self.runners.iter().map(|runner| runner.ratio(throughput[runner.row])).fold(0.0, f64::max)
    }

    /// The ratio below which prices say that nobody can get: what all needs together cost there is
    /// the worth of the whole cluster.
    fn bound(&self, spread: &Spread, ratio: f64, low: f64) -> f64 {
        let cost = |ratio: f64| -> f64 {
            let cost = |runner: &Runner| match spread.prices[runner.row] {
                // Prices of nothing are rounding; times an endless need they would count.
                price if price > 0.0 => price * runner.need(ratio),
                _ => 0.0,
            };
            self.runners.iter().map(cost).sum()
        };
        let worth = spread.level * cost(ratio);
        let (mut low, mut high) = (low, ratio);
        if cost(high) > worth {
            // The ratio asked for was too good: the bound lies above it.
            low = ratio;
            for _ in 0..HALVINGS_MAX {
                high *= 2.0;
                if cost(high) <= worth {
                    break;
                }
            }
        }
        for _ in 0..HALVINGS_MAX {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if cost(middle) > worth { low = middle } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hostler_core::random::Random;
    use proptest::prelude::*;

    fn drawn(seed: u64, jobs: usize) -> Instance {
        let mut random = Random::new(seed);
        let job = |_| JobRow {
            rates: (0..3).map(|_| 0.1 + random.uniform()).collect(),
            gang: random.pick(&[(1, 3.0), (2, 1.0)]),
            weight: random.pick(&[(1.0, 3.0), (5.0, 1.0)]),
            steps_left: 1000.0 * (0.01 + random.uniform()),
            age_secs: 2000.0 * random.uniform(),
            finish_credit: 1000.0 * random.uniform(),
            ..JobRow::default()
        };
        let jobs = (0..jobs).map(job).collect();
        Instance { workers: vec![2.0, 3.0, 4.0], jobs, ..Instance::default() }
    }

    /// Halves the interval of ratios, asking at a corner whether a ratio can be met.
    fn halved(race: &Race<'_>) -> f64 {
        let age = |runner: &Runner| runner.age / runner.fair;
        let mut low = race.runners.iter().map(age).fold(0.0, f64::max);
        let mut high = race.worst(&race.isolated);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            let met = race.solve(middle, Solver::Simplex).is_ok_and(|spread| spread.level >= 1.0);
            if met { high = middle } else { low = middle }
        }
        high
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn prices_find_the_ratio_that_halving_finds(seed: u64, jobs in 1usize..25, weighted: bool) {
            let instance = drawn(seed, jobs);
            let traits = Traits { progress: true, ..Traits::default() };
            let classes = Classes::new(&instance, traits).unwrap();
            let race = Race::new(&instance, &classes, weighted);
            let (expected, found) = (halved(&race), race.run(Solver::Interior).unwrap().1);
            prop_assert!((found - expected).abs() < 1e-5 * expected, "{} {}", found, expected);
        }
    }
}
