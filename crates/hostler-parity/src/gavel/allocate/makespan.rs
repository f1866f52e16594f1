//! Makespan by search: halves a window until its ends are a twentieth apart, and knows of a time
//! only whether it will do. Misses the shortest time by up to a twentieth.

use hostler_policies::allocate::{
    Allocate, AllocateError, Allocation, Classes, Floor, Formulation, Goal, Instance, Programmes,
    Spread, Traits, isolated_fallback,
};
use hostler_policies::lp::LpError;

use super::Apart;
use crate::limits::MAKESPAN_WINDOWS_MAX;
use crate::self_dual;

/// Takes any shares that keep the time which the search finds; the objective is what they need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchedMakespan {
    /// Whether jobs may share GPUs.
    pub(crate) packed: bool,
}

impl Allocate for SearchedMakespan {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        if instance.jobs.iter().all(|job| job.steps_left <= 0.0) {
            let equal = isolated_fallback(instance);
            return Ok(Allocation { objective: 0.0, fallback: None, ..equal });
        }
        let traits = Traits { pairs: self.packed, progress: true, ..Traits::default() };
        let classes = match self.packed {
            true => Classes::new(instance, traits)?,
            false => Apart.classes(instance, traits)?,
        };
        let steps: Vec<f64> =
            classes.rows.iter().map(|class| instance.jobs[class.job].steps_left).collect();
        Ok(match self.search(instance, &classes, &steps) {
            Some(spread) => {
                let needs = steps.iter().zip(&spread.throughput).filter(|(steps, _)| **steps > 0.0);
                let end = needs.map(|(steps, rate)| steps / rate).fold(0.0, f64::max);
                spread.allocation(&classes, end)
            }
            None => isolated_fallback(instance),
        })
    }
}

impl SearchedMakespan {
    fn search(&self, instance: &Instance, classes: &Classes, steps: &[f64]) -> Option<Spread> {
        let mut window = (100.0, 1e6);
        for _ in 0..MAKESPAN_WINDOWS_MAX {
            let mut best = None;
            let (mut low, mut high) = window;
            while low * 1.05 < high {
                let middle = (low + high) / 2.0;
                let least = |steps: &f64| Floor { least: steps / middle, slope: 0.0 };
                let floors: Vec<Floor> = steps.iter().map(least).collect();
                match self.any(instance, classes, &floors) {
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

    /// Any shares that keep the floors.
    fn any(
        &self,
        instance: &Instance,
        classes: &Classes,
        floors: &[Floor],
    ) -> Result<Spread, LpError> {
        if !self.packed {
            return Apart.solve(instance, classes, floors, Goal::Level);
        }
        let programme = Formulation::new(instance, classes, floors, Goal::Level);
        Ok(programme.spread(&self_dual::solve(programme.problem())?))
    }
}
