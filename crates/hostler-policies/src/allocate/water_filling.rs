//! Water filling: max-min fairness, then the same again for those who can still gain, and so on.
//! With entities, shares are dealt to entities first.
//!
//! No integer programme: an interior-point answer lies inside the optimal set, so a floor that has
//! a price is a job that cannot gain, and one that has slack is a job that can.

use super::classes::{Classes, Speeds, Traits};
use super::closed::isolated_fallback;
use super::formulate::{Floor, Formulation, Goal, Spread};
use super::{Allocate, AllocateError, Allocation, Fallback, Inner, Instance, RateKnowledge};
use crate::limits::EXTRA_LEVELS_MAX;
use crate::lp::Solver;

/// Raises all jobs together and leaves behind those that cannot gain; honours `entities`.
///
/// The objective is the first level: that of the job which is worst off.
#[derive(Clone, Copy, Debug)]
pub struct WaterFilling {
    /// What it knows of types and pairs.
    pub rate_knowledge: RateKnowledge,
}

impl Allocate for WaterFilling {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let seen = Speeds::of(self.rate_knowledge).seen(instance);
        let seen = seen.as_ref().unwrap_or(instance);
        let pairs = self.rate_knowledge == RateKnowledge::Packed;
        let classes = Classes::new(seen, Traits { pairs, entity: true, ..Traits::default() })?;
        Ok(Filling::new(seen, &classes).run(instance))
    }
}

struct Filling<'a> {
    instance: &'a Instance,
    classes: &'a Classes,
    /// Proportional throughput of a job of each class.
    normal: Vec<f64>,
    /// What each class has for certain, in units of its proportional throughput.
    levels: Vec<f64>,
    frozen: Vec<bool>,
}

impl<'a> Filling<'a> {
    fn new(instance: &'a Instance, classes: &'a Classes) -> Filling<'a> {
        let total = instance.workers_total();
        let normal =
            |job: usize| super::closed::dot(&instance.jobs[job].rates, &instance.workers) / total;
        Filling {
            instance,
            classes,
            normal: classes.rows.iter().map(|class| normal(class.job)).collect(),
            levels: vec![0.0; classes.rows.len()],
            frozen: vec![false; classes.rows.len()],
        }
    }

    fn run(mut self, original: &Instance) -> Allocation {
        let mut last: Option<Spread> = None;
        let mut first = 0.0;
        let mut fallback = None;
        for _ in 0..self.classes.rows.len() + EXTRA_LEVELS_MAX {
            let weights = self.weights();
            if weights.iter().all(|&weight| weight == 0.0) {
                break;
            }
            let floors = self.floors(&weights);
            let programme = Formulation::new(self.instance, self.classes, &floors, Goal::Level);
            let Ok(spread) = programme.solve(Solver::Interior) else {
                fallback = Some(Fallback::LastLevel);
                break;
            };
            let level = self.raise(&weights, &floors, &spread);
            first = if last.is_none() { level } else { first };
            last = Some(spread);
        }
        match last {
            Some(spread) => Allocation { fallback, ..spread.allocation(self.classes, first) },
            None if self.classes.rows.is_empty() => Allocation::default(),
            None => isolated_fallback(original),
        }
    }

    /// What a job of each class weighs at this level; 0 for those that stay where they are.
    fn weights(&self) -> Vec<f64> {
        let instance = self.instance;
        let entity = |class: usize| instance.jobs[self.classes.rows[class].job].entity;
        let own = |class: usize| instance.jobs[self.classes.rows[class].job].weight;
        let mut sums = vec![0.0; instance.entities.len()];
        let mut heads = vec![None; instance.entities.len()];
        for class in (0..self.classes.rows.len()).filter(|&class| !self.frozen[class]) {
            if let Some(entity) = entity(class) {
                sums[entity as usize] += own(class) * self.classes.rows[class].count;
                // Classes stand in the order of their first jobs.
                heads[entity as usize].get_or_insert(class);
            }
        }
        let weight = |class: usize| match entity(class).map(|entity| entity as usize) {
            _ if self.frozen[class] => 0.0,
            None => own(class),
            Some(entity) => match instance.entities[entity].inner {
                Inner::Fairness => instance.entities[entity].weight * own(class) / sums[entity],
                Inner::Fifo if heads[entity] == Some(class) => instance.entities[entity].weight,
                Inner::Fifo => 0.0,
            },
        };
        (0..self.classes.rows.len()).map(weight).collect()
    }

    fn floors(&self, weights: &[f64]) -> Vec<Floor> {
        let floor = |class: usize| Floor {
            // A hair less than what the last answer had, so that this programme has an inside.
            least: self.levels[class] * self.normal[class] * (1.0 - 1e-9),
            slope: weights[class] * self.normal[class] / self.classes.rows[class].gang,
        };
        (0..weights.len()).map(floor).collect()
    }

    /// Books the level reached, freezes those whose floor has a price, and returns the level.
    fn raise(&mut self, weights: &[f64], floors: &[Floor], spread: &Spread) -> f64 {
        let reached = |class: usize| spread.throughput[class] / self.normal[class];
        let active = (0..weights.len()).filter(|&class| weights[class] > 0.0);
        let part = |class: usize| weights[class] / self.classes.rows[class].gang;
        // What the shares give, not what the solver says: the next programme then has an answer.
        let gains = active.clone().map(|class| (reached(class) - self.levels[class]) / part(class));
        let level = gains.fold(f64::INFINITY, f64::min).max(0.0);
        let booked = |class: usize| (self.levels[class] + level * part(class)).min(reached(class));
        let levels: Vec<f64> = (0..weights.len()).map(|class| booked(class).max(0.0)).collect();
        self.levels = levels;
        let mut dearest = (0.0, None);
        let mut any = false;
        for class in active {
            let price = spread.prices[class] * floors[class].slope;
            let slack = spread.throughput[class] / self.normal[class] - self.levels[class];
            let slack = slack / self.levels[class].max(f64::MIN_POSITIVE);
            if price > dearest.0 || dearest.1.is_none() {
                dearest = (price, Some(class));
            }
            // Prices of all floors sum to 1; the product of price and slack is next to nothing, so
            // one of the two is far greater.
            if price > slack {
                self.frozen[class] = true;
                any = true;
            }
        }
        if let (false, (_, Some(class))) = (any, dearest) {
            self.frozen[class] = true;
        }
        level
    }
}
