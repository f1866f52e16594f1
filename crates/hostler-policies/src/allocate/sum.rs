//! The most steps per second, or per dollar, of all jobs together, if wanted within deadlines.
//!
//! Steps of different jobs are added as they are, so jobs with small steps win. That is how the
//! policy was published; it serves comparison.

use super::classes::{Classes, Traits};
use super::closed::isolated_fallback;
use super::formulate::{Floor, Goal, Spread};
use super::{Allocate, AllocateError, Allocation, Fallback, Grouped, Instance, Programmes};
use crate::lp::LpError;

/// Makes the sum of throughput, over the price of the type if wanted, as great as possible; that
/// sum is the objective.
#[derive(Clone, Copy, Debug)]
pub struct SumThroughput<Kind = Grouped> {
    /// Whether throughput counts per price of the type.
    pub priced: bool,
    /// Whether jobs with a deadline get the throughput that meets it. If that is not possible for
    /// all, no deadline counts.
    pub deadlines: bool,
    /// Whether jobs may share a GPU.
    pub packed: bool,
    /// Who writes and solves the programmes.
    pub programmes: Kind,
}

impl Default for SumThroughput {
    fn default() -> SumThroughput {
        let programmes = Grouped::default();
        SumThroughput { priced: false, deadlines: false, packed: false, programmes }
    }
}

impl<Kind: Programmes> Allocate for SumThroughput<Kind> {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let (pairs, deadline) = (self.packed, self.deadlines);
        let traits = Traits { pairs, deadline, ..Traits::default() };
        let classes = self.programmes.classes(instance, traits)?;
        if classes.rows.is_empty() {
            return Ok(Allocation::default());
        }
        let none = vec![Floor::default(); classes.rows.len()];
        let promises =
            if self.deadlines { promises(instance, &classes) } else { Some(none.clone()) };
        let kept = promises.and_then(|floors| self.within(instance, &classes, &floors).ok());
        let (spread, fallback) = match kept {
            Some(spread) => (Some(spread), None),
            None => (self.most(instance, &classes, &none).ok(), Some(Fallback::DeadlinesDropped)),
        };
        let Some(spread) = spread else { return Ok(isolated_fallback(instance)) };
        let objective = self.sum(instance, &classes, &spread);
        Ok(Allocation { fallback, ..spread.allocation(&classes, objective) })
    }
}

impl<Kind: Programmes> SumThroughput<Kind> {
    fn prices<'a>(&self, instance: &'a Instance) -> &'a [f64] {
        if self.priced { &instance.prices } else { &[] }
    }

    /// The best within floors, if they can be met together.
    fn within(
        &self,
        instance: &Instance,
        classes: &Classes,
        floors: &[Floor],
    ) -> Result<Spread, LpError> {
        if floors.iter().all(|floor| floor.least <= 0.0) {
            return self.most(instance, classes, floors);
        }
        // Always solvable, unlike the programme with fixed floors.
        let rising = |floor: &Floor| Floor { least: 0.0, slope: floor.least };
        let rising: Vec<Floor> = floors.iter().map(rising).collect();
        let met = self.programmes.solve(instance, classes, &rising, Goal::Level)?;
        if met.level < 1.0 - 1e-7 {
            return Err(LpError::Infeasible);
        }
        let part = met.level.min(1.0) * (1.0 - 1e-8);
        let fixed = |floor: &Floor| Floor { least: floor.least * part, slope: 0.0 };
        self.most(instance, classes, &floors.iter().map(fixed).collect::<Vec<_>>())
    }

    fn most(
        &self,
        instance: &Instance,
        classes: &Classes,
        floors: &[Floor],
    ) -> Result<Spread, LpError> {
        let goal = Goal::Sum(self.prices(instance));
        self.programmes.solve(instance, classes, floors, goal)
    }

    fn sum(&self, instance: &Instance, classes: &Classes, spread: &Spread) -> f64 {
        let prices = self.prices(instance);
        let price = |gpu: usize| prices.get(gpu).copied().unwrap_or(1.0);
        let mut sum = 0.0;
        for (class, row) in classes.rows.iter().zip(&spread.singles) {
            for (gpu, share) in row.iter().enumerate() {
                sum += class.count * share * instance.jobs[class.job].rates[gpu] / price(gpu);
            }
        }
        for &(pair, gpu, share) in &spread.pairs {
            let (left, right) = classes.pairs[pair].rates[gpu];
            sum += share * (left + right) / price(gpu);
        }
        sum
    }
}

/// The throughput that meets each deadline; none if one has passed.
fn promises(instance: &Instance, classes: &Classes) -> Option<Vec<Floor>> {
    let promise = |job: usize| {
        let row = &instance.jobs[job];
        match row.slack_secs {
            Some(slack) if row.steps_left > 0.0 => {
                (slack > 0.0).then(|| Floor { least: row.steps_left / slack, slope: 0.0 })
            }
            _ => Some(Floor::default()),
        }
    };
    classes.rows.iter().map(|class| promise(class.job)).collect()
}
