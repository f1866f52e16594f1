//! Programmes as the original writes them: a column for each job and type, whether of use or not,
//! in its own units, solved by the steps of its solver.

use std::collections::BTreeSet;

use hostler_policies::allocate::{
    AllocateError, ClassPair, Classes, Floor, Goal, Instance, Programmes, Spread, Traits,
};
use hostler_policies::lp::{LpError, LpSolution, Problem, Solver};

use crate::self_dual;

/// Each job is a class of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Apart;

impl Programmes for Apart {
    fn classes(&self, instance: &Instance, traits: Traits) -> Result<Classes, AllocateError> {
        let mut classes = Classes::apart(instance);
        if traits.pairs && !instance.pairs.is_empty() {
            classes.pair_up(instance)?;
            add_useless_pairs(&mut classes, instance.types());
        }
        Ok(classes)
    }

    fn solve(
        &self,
        instance: &Instance,
        classes: &Classes,
        floors: &[Floor],
        goal: Goal<'_>,
    ) -> Result<Spread, LpError> {
        let programme = Programme::new(instance, classes, floors, goal);
        let solution = match self_dual::solve(&programme.problem) {
            Err(LpError::Stuck { .. } | LpError::Broken { .. }) if programme.level.is_some() => {
                programme.problem.solve(Solver::Interior)?
            }
            other => other?,
        };
        Ok(programme.spread(instance, classes, &solution))
    }
}

/// Adds the pairs that run nowhere: the original has columns for them.
fn add_useless_pairs(classes: &mut Classes, types: usize) {
    let known: BTreeSet<_> = classes.pairs.iter().map(|pair| (pair.first, pair.second)).collect();
    for first in 0..classes.rows.len() {
        for second in first + 1..classes.rows.len() {
            let alike = classes.rows[first].gang == classes.rows[second].gang;
            if alike && !known.contains(&(first, second)) {
                classes.pairs.push(ClassPair { first, second, rates: vec![(0.0, 0.0); types] });
            }
        }
    }
    classes.pairs.sort_by_key(|pair| (pair.first, pair.second));
}

/// A programme and what its columns mean.
struct Programme {
    problem: Problem,
    /// Job, or pair of jobs, and type of each column.
    columns: Vec<(Who, usize)>,
    level: Option<usize>,
}

#[derive(Clone, Copy)]
enum Who {
    Job(usize),
    Pair(usize),
}

/// Rows of a job: its floor, what that was divided by, and its time.
#[derive(Clone, Copy)]
struct Rows {
    floor: Option<(usize, f64)>,
    time: usize,
}

impl Programme {
    fn new(instance: &Instance, classes: &Classes, floors: &[Floor], goal: Goal<'_>) -> Programme {
        let mut bounds = Vec::new();
        let mut rows = Vec::with_capacity(floors.len());
        for floor in floors {
            // In units of the level, if there is one.
            let size = if floor.slope > 0.0 { floor.slope } else { 1.0 };
            let has_floor = floor.least > 0.0 || floor.slope > 0.0;
            let place = has_floor.then(|| {
                bounds.push(-floor.least / size);
                (bounds.len() - 1, size)
            });
            bounds.push(1.0);
            rows.push(Rows { floor: place, time: bounds.len() - 1 });
        }
        let capacity = bounds.len();
        bounds.extend(&instance.workers);
        let problem = Problem::new(bounds, instance.types());
        let mut programme = Programme { problem, columns: Vec::new(), level: None };
        programme.add_columns(instance, classes, &rows, capacity, goal);
        if let Goal::Level = goal {
            programme.add_level(floors, &rows);
        }
        programme
    }

    fn add_columns(
        &mut self,
        instance: &Instance,
        classes: &Classes,
        rows: &[Rows],
        capacity: usize,
        goal: Goal<'_>,
    ) {
        let there = |gpu: usize| instance.workers[gpu] > 0.0;
        for (job, class) in classes.rows.iter().enumerate() {
            for (gpu, &rate) in instance.jobs[job].rates.iter().enumerate().filter(|x| there(x.0)) {
                let mut entries = member(rows[job], rate);
                entries.push((capacity + gpu, class.gang));
                self.problem.column(gain(goal, gpu, rate), &entries);
                self.columns.push((Who::Job(job), gpu));
            }
        }
        for (number, pair) in classes.pairs.iter().enumerate() {
            for (gpu, &(left, right)) in pair.rates.iter().enumerate().filter(|x| there(x.0)) {
                let mut entries = member(rows[pair.first], left);
                entries.extend(member(rows[pair.second], right));
                entries.push((capacity + gpu, classes.rows[pair.first].gang));
                self.problem.column(gain(goal, gpu, left + right), &entries);
                self.columns.push((Who::Pair(number), gpu));
            }
        }
    }

    fn add_level(&mut self, floors: &[Floor], rows: &[Rows]) {
        let rising = floors.iter().zip(rows).filter(|(floor, _)| floor.slope > 0.0);
        let entries = rising.filter_map(|(floor, rows)| {
            let (row, size) = rows.floor?;
            Some((row, floor.slope / size))
        });
        let entries: Vec<(usize, f64)> = entries.collect();
        if !entries.is_empty() {
            self.level = Some(self.problem.wide_column(1.0, &entries));
        }
    }

    fn spread(&self, instance: &Instance, classes: &Classes, solution: &LpSolution) -> Spread {
        let mut spread = Spread {
            singles: vec![vec![0.0; instance.types()]; classes.rows.len()],
            level: self.level.map_or(0.0, |column| solution.values[column]),
            prices: vec![0.0; classes.rows.len()],
            ..Spread::empty()
        };
        for (&(who, gpu), &value) in self.columns.iter().zip(&solution.values) {
            match who {
                Who::Job(job) => spread.singles[job][gpu] = value,
                Who::Pair(pair) => {
                    let (left, right) = classes.pairs[pair].rates[gpu];
                    if left > 0.0 && right > 0.0 && value > 0.0 {
                        spread.pairs.push((pair, gpu, value));
                    }
                }
            }
        }
        spread.tidy(instance, classes);
        spread
    }
}

/// What a column has in the rows of a job.
fn member(rows: Rows, rate: f64) -> Vec<(usize, f64)> {
    let floor = rows.floor.filter(|_| rate > 0.0);
    let floor = floor.map(|(row, size)| (row, -rate / size));
    floor.into_iter().chain([(rows.time, 1.0)]).collect()
}

/// What a column adds to the goal: that of a rate on a type.
fn gain(goal: Goal<'_>, gpu: usize, rate: f64) -> f64 {
    match goal {
        Goal::Sum(prices) => rate / prices.get(gpu).copied().unwrap_or(1.0),
        Goal::Level | Goal::Product => 0.0,
    }
}
