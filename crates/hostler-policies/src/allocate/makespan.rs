//! Makespan: all jobs, started together on constant shares, end as early as possible.
//!
//! One linear programme: everybody's throughput in units of the steps that he has left.

use super::classes::{Classes, Reference, Speeds, Traits};
use super::closed::isolated_fallback;
use super::formulate::{Floor, Formulation, Goal, Spread};
use super::{Allocate, AllocateError, Allocation, Instance, RateKnowledge};
use crate::limits::MAKESPAN_WINDOWS_MAX;
use crate::lp::Solver;

/// Makes the time until the last job ends as short as possible; the objective is that time in
/// seconds.
#[derive(Clone, Copy, Debug)]
pub struct Makespan {
    /// What it knows of types and pairs.
    pub rate_knowledge: RateKnowledge,
    /// The speed that counts when types do not.
    pub reference: Reference,
    /// Whether the time is searched as published, which misses the shortest one by up to a
    /// twentieth, and any shares will do that keep it.
    pub published: bool,
    /// Who solves.
    pub solver: Solver,
}

impl Makespan {
    /// With the mean speed as reference and the default solver.
    pub fn new(rate_knowledge: RateKnowledge) -> Makespan {
        let reference = Reference::default();
        Makespan { rate_knowledge, reference, published: false, solver: Solver::default() }
    }
}

impl Allocate for Makespan {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let seen = Speeds::own(self.rate_knowledge, self.reference).seen(instance);
        let seen = seen.as_ref().unwrap_or(instance);
        let pairs = self.rate_knowledge == RateKnowledge::Packed;
        let apart = self.published && !pairs;
        let traits = Traits { pairs, progress: true, apart, ..Traits::default() };
        let classes = Classes::new(seen, traits)?;
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
        let spread = match self.published {
            true => searched(seen, &classes, &steps),
            false => {
                let slope = |class: usize| Floor { least: 0.0, slope: steps(class) / unit };
                let floors: Vec<Floor> = all.clone().map(slope).collect();
                Formulation::new(seen, &classes, &floors, Goal::Level).solve(self.solver).ok()
            }
        };
        Ok(match spread {
            Some(spread) => spread.allocation(&classes, end(&spread)),
            None => isolated_fallback(instance),
        })
    }
}

/// The shares at the shortest time that the published search finds: it halves a window until its
/// ends are a twentieth apart, and knows of a time only whether it will do.
fn searched(
    instance: &Instance,
    classes: &Classes,
    steps: &impl Fn(usize) -> f64,
) -> Option<Spread> {
    let mut window = (100.0, 1e6);
    for _ in 0..MAKESPAN_WINDOWS_MAX {
        let mut best = None;
        let (mut low, mut high) = window;
        while low * 1.05 < high {
            let middle = (low + high) / 2.0;
            let least = |class: usize| Floor { least: steps(class) / middle, slope: 0.0 };
            let floors: Vec<Floor> = (0..classes.rows.len()).map(least).collect();
            match Formulation::new(instance, classes, &floors, Goal::Any).solve(Solver::SelfDual) {
                Ok(spread) => (best, high) = (Some(spread), middle),
                Err(_) => low = middle,
            }
        }
        if best.is_some() {
            return best;
        }
        window = (window.1, window.1 * 10.0);
    }
    None
}
