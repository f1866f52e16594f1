//! Max-min fairness: the job that is worst off, measured by its proportional throughput and weight,
//! is as well off as possible.
//!
//! One linear programme. Says nothing about those who could have more: see `water_filling`.

use super::classes::{Classes, Speeds, Traits};
use super::closed::isolated_fallback;
use super::formulate::{Floor, Goal, Spread};
use super::{Allocate, AllocateError, Allocation, Grouped, Instance, Programmes, RateKnowledge};

/// Makes the least `gang · throughput / (weight · proportional throughput)` as great as possible;
/// that least is the objective.
#[derive(Clone, Copy, Debug)]
pub struct MaxMin<Kind = Grouped> {
    /// What it knows of types and pairs.
    pub rate_knowledge: RateKnowledge,
    /// Who writes and solves the programme.
    pub programmes: Kind,
}

impl MaxMin {
    /// With the default solver.
    pub fn new(rate_knowledge: RateKnowledge) -> MaxMin {
        MaxMin { rate_knowledge, programmes: Grouped::default() }
    }
}

impl<Kind: Programmes> Allocate for MaxMin<Kind> {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let seen = Speeds::of(self.rate_knowledge).seen(instance);
        let seen = seen.as_ref().unwrap_or(instance);
        let pairs = self.rate_knowledge == RateKnowledge::Packed;
        let classes = self.programmes.classes(seen, Traits { pairs, ..Traits::default() })?;
        Ok(match level(seen, &classes, &self.programmes) {
            Some((spread, objective)) => spread.allocation(&classes, objective),
            None => isolated_fallback(instance),
        })
    }
}

/// The shares and the level that all reach.
fn level(
    instance: &Instance,
    classes: &Classes,
    programmes: &impl Programmes,
) -> Option<(Spread, f64)> {
    let needs = needs(instance, classes);
    let floors: Vec<Floor> = needs.iter().map(|&slope| Floor { least: 0.0, slope }).collect();
    if floors.is_empty() {
        return Some((Spread::empty(), 0.0));
    }
    let spread = programmes.solve(instance, classes, &floors, Goal::Level).ok()?;
    let reached = spread.throughput.iter().zip(&needs).map(|(rate, need)| rate / need);
    let objective = reached.reduce(f64::min).unwrap_or(0.0);
    Some((spread, objective))
}

/// Throughput that is worth 1 to a job of each class: `weight · proportional throughput / gang`.
pub(super) fn needs(instance: &Instance, classes: &Classes) -> Vec<f64> {
    let total = instance.workers_total();
    let need = |job: usize| {
        let row = &instance.jobs[job];
        let proportional = super::closed::dot(&row.rates, &instance.workers) / total;
        row.weight * proportional / f64::from(row.gang)
    };
    classes.rows.iter().map(|class| need(class.job)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocate::JobRow;
    use crate::lp::Solver;
    use hostler_core::random::Random;
    use proptest::prelude::*;

    /// Jobs of few kinds in random order, on a cluster that may lack a type.
    fn alike(seed: u64, jobs: usize, kinds: usize) -> Instance {
        let mut random = Random::new(seed);
        let row =
            |random: &mut Random| JobRow {
                rates: (0..3)
                    .map(|gpu| {
                        if gpu > 0 && random.uniform() < 0.3 { 0.0 } else { 0.1 + random.uniform() }
                    })
                    .collect(),
                gang: 1 << (3.0 * random.uniform()) as u32,
                weight: 1.0 + (3.0 * random.uniform()).floor(),
                ..JobRow::default()
            };
        let kinds: Vec<JobRow> = (0..kinds).map(|_| row(&mut random)).collect();
        let pick = |_| kinds[(kinds.len() as f64 * random.uniform()) as usize].clone();
        let jobs: Vec<JobRow> = (0..jobs).map(pick).collect();
        let workers = vec![4.0, if seed.is_multiple_of(3) { 0.0 } else { 3.0 }, 8.0];
        Instance { workers, jobs, ..Instance::default() }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn classes_change_nothing(seed: u64, jobs in 1usize..40, kinds in 1usize..6) {
            let instance = alike(seed, jobs, kinds);
            let classes = Classes::new(&instance, Traits::default()).unwrap();
            let apart = Classes::apart(&instance);
            let together = level(&instance, &classes, &Grouped::default()).unwrap().1;
            let alone = level(&instance, &apart, &Grouped { solver: Solver::Simplex }).unwrap().1;
            prop_assert!((together - alone).abs() <= 1e-6 * alone, "{together} {alone}");
        }
    }
}
