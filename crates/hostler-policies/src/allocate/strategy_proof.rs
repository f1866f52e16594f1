//! The strategy-proof policy: the greatest product of throughputs, then each job's share is cut by
//! what its presence costs the others, so that a lie about its rates gains nothing.
//!
//! One solve for all jobs and one without each class's first: a policy for small clusters.

use super::classes::{Classes, Traits};
use super::closed::isolated_fallback;
use super::formulate::{Floor, Formulation, Goal, Spread};
use super::{Allocate, AllocateError, Allocation, Instance, max_min};
use crate::limits::STRATEGY_PROOF_CLASSES_MAX;
use crate::lp::Solver;

/// Nash welfare with discounts. The objective is the geometric mean of
/// `gang · throughput / (weight · proportional throughput)` before any discount.
#[derive(Clone, Copy, Debug, Default)]
pub struct StrategyProof;

impl Allocate for StrategyProof {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let classes = Classes::new(instance, Traits::default())?;
        let (found, limit) = (classes.rows.len(), STRATEGY_PROOF_CLASSES_MAX);
        if found > limit {
            return Err(AllocateError::TooMany { what: "classes of jobs", found, limit });
        }
        if found == 0 {
            return Ok(Allocation::default());
        }
        Ok(proof(instance, &classes).unwrap_or_else(|| isolated_fallback(instance)))
    }
}

fn proof(instance: &Instance, classes: &Classes) -> Option<Allocation> {
    let mut spread = welfare(instance, classes)?;
    let needs = max_min::needs(instance, classes);
    let logs: Vec<f64> = spread.throughput.iter().map(|rate| libm::log(*rate)).collect();
    let counts: Vec<f64> = classes.rows.iter().map(|class| class.count).collect();
    let total: f64 = counts.iter().sum();
    let mean: f64 =
        (0..logs.len()).map(|class| counts[class] * (logs[class] - libm::log(needs[class]))).sum();
    let objective = libm::exp(mean / total);
    let mut discounts = Vec::with_capacity(counts.len());
    for left_out in 0..counts.len() {
        discounts.push(discount(instance, classes, &logs, left_out)?);
    }
    for (row, discount) in spread.singles.iter_mut().zip(discounts) {
        row.iter_mut().for_each(|share| *share *= discount);
    }
    Some(spread.allocation(classes, objective))
}

/// The product of what the others have with one job of a class over what they have without it.
fn discount(instance: &Instance, classes: &Classes, logs: &[f64], left_out: usize) -> Option<f64> {
    let mut rest = classes.clone();
    rest.rows[left_out].count -= 1.0;
    if rest.rows[left_out].count < 0.5 {
        rest.rows.remove(left_out);
        if rest.rows.is_empty() {
            return Some(1.0);
        }
    }
    let without = welfare(instance, &rest)?;
    let mut sum = 0.0;
    for (class, &rate) in rest.rows.iter().zip(&without.throughput) {
        let same = classes.rows.iter().position(|other| other.job == class.job);
        let before = logs[same.expect("the class was there before")];
        sum += class.count * (before - libm::log(rate));
    }
    // Others never gain from one more job, but for rounding.
    Some(libm::exp(sum).min(1.0))
}

fn welfare(instance: &Instance, classes: &Classes) -> Option<Spread> {
    let floors = vec![Floor { least: 0.0, slope: 1.0 }; classes.rows.len()];
    Formulation::new(instance, classes, &floors, Goal::Product).solve(Solver::Interior).ok()
}
