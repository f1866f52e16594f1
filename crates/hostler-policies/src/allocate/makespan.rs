//! Makespan: all jobs, started together on constant shares, end as early as possible.
//!
//! One linear programme: everybody's throughput in units of the steps that he has left.

use super::classes::{Classes, Speeds, Traits};
use super::closed::isolated_fallback;
use super::formulate::{Floor, Formulation, Goal, Spread};
use super::{Allocate, AllocateError, Allocation, Instance, RateKnowledge};
use crate::lp::Solver;

/// Makes the time until the last job ends as short as possible; the objective is that time in
/// seconds.
#[derive(Clone, Copy, Debug)]
pub struct Makespan {
    /// What it knows of types and pairs.
    pub rate_knowledge: RateKnowledge,
}

impl Allocate for Makespan {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let seen = Speeds::own(self.rate_knowledge).seen(instance);
        let seen = seen.as_ref().unwrap_or(instance);
        let pairs = self.rate_knowledge == RateKnowledge::Packed;
        let classes = Classes::new(seen, Traits { pairs, progress: true, ..Traits::default() })?;
        let steps = |class: usize| seen.jobs[classes.rows[class].job].steps_left;
        let all = 0..classes.rows.len();
        // In units of the time that the slowest job takes on its fastest type: the level is then
        // neither tiny nor huge.
        let unit = all.clone().map(|class| {
            let rates = &seen.jobs[classes.rows[class].job].rates;
            steps(class) / rates.iter().copied().fold(0.0, f64::max)
        });
        let unit = unit.fold(0.0, f64::max);
        if unit <= 0.0 {
            return Ok(Allocation {
                objective: 0.0,
                fallback: None,
                ..isolated_fallback(instance)
            });
        }
        let end = |spread: &Spread| {
            let working = all.clone().filter(|&class| steps(class) > 0.0);
            working.map(|class| steps(class) / spread.throughput[class]).fold(0.0, f64::max)
        };
        let slope = |class: usize| Floor { least: 0.0, slope: steps(class) / unit };
        let floors: Vec<Floor> = all.clone().map(slope).collect();
        let programme = Formulation::new(seen, &classes, &floors, Goal::Level);
        Ok(match programme.solve(Solver::Interior) {
            Ok(spread) => spread.allocation(&classes, end(&spread)),
            Err(_) => isolated_fallback(instance),
        })
    }
}
