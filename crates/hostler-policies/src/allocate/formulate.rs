//! The one linear programme behind all policies: shares of classes on types, and floors below
//! their throughput.
//!
//! A column is the mean share of a member of a class on a type, or of two classes together. Rows
//! come class by class (floor, then time), capacities last: the order that the solver likes.

use super::classes::Classes;
use super::{Allocation, Instance, PairShare};
use crate::limits::{SECOND_CHANCE_COLUMNS_MAX, SHARE_MIN};
use crate::lp::{LpError, LpSolution, Problem, Solver};

/// What the throughput of a job of a class must be: at least `least + slope · level`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Floor {
    /// Steps per second that it has in any case.
    pub least: f64,
    /// Steps per second for each unit of the level.
    pub slope: f64,
}

/// What is made as great as possible.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// The level that all floors with a slope rise with; any answer that keeps the floors if none
    /// has one.
    Level,
    /// The sum of throughput over the price of the type.
    Sum(&'a [f64]),
    /// The product of the throughputs of all jobs that have a floor with a slope.
    Product,
}

/// A programme and what its columns mean.
pub struct Formulation<'a> {
    instance: &'a Instance,
    classes: &'a Classes,
    problem: Problem,
    columns: Vec<Column>,
    level: Option<usize>,
    /// Row of each class's floor, and what its coefficients were divided by.
    floors: Vec<Option<(usize, f64)>>,
}

#[derive(Clone, Copy, Debug)]
enum Column {
    Single { class: usize, gpu: usize },
    Pair { pair: usize, gpu: usize },
}

/// Shares of classes that keep all constraints.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Mean share of a member of each class on each type.
    pub singles: Vec<Vec<f64>>,
    /// Pair of classes, type, and the sum of the shares of all pairs of members.
    pub pairs: Vec<(usize, usize, f64)>,
    /// Throughput of a member of each class.
    pub throughput: Vec<f64>,
    /// Level reached, as the solver says.
    pub level: f64,
    /// Price of each class's floor, per unit of throughput; 0 without one.
    pub prices: Vec<f64>,
}

impl<'a> Formulation<'a> {
    /// Writes the programme.
    pub fn new(
        instance: &'a Instance,
        classes: &'a Classes,
        floors: &[Floor],
        goal: Goal<'_>,
    ) -> Formulation<'a> {
        let mut bounds = Vec::new();
        let mut floor_rows = Vec::with_capacity(classes.rows.len());
        let mut time_rows = Vec::with_capacity(classes.rows.len());
        for (class, floor) in classes.rows.iter().zip(floors) {
            let rates = &instance.jobs[class.job].rates;
            let size = rates.iter().copied().fold(0.0, f64::max);
            floor_rows.push((floor.least > 0.0 || floor.slope > 0.0).then(|| {
                bounds.push(-floor.least / size);
                (bounds.len() - 1, size)
            }));
            bounds.push(1.0);
            time_rows.push(bounds.len() - 1);
        }
        let capacity = bounds.len();
        bounds.extend(instance.workers.iter().map(|_| 1.0));
        let problem = Problem::new(bounds, instance.types());
        let mut formulation = Formulation {
            instance,
            classes,
            problem,
            columns: Vec::new(),
            level: None,
            floors: floor_rows,
        };
        formulation.add_singles(&time_rows, capacity, goal);
        formulation.add_pairs(&time_rows, capacity, goal);
        formulation.add_goal(floors, goal);
        formulation
    }

    fn add_singles(&mut self, time_rows: &[usize], capacity: usize, goal: Goal<'_>) {
        for (class, row) in self.classes.rows.iter().enumerate() {
            for (gpu, &rate) in self.instance.jobs[row.job].rates.iter().enumerate() {
                let workers = self.instance.workers[gpu];
                if workers <= 0.0 || rate <= 0.0 {
                    continue;
                }
                let mut entries = Vec::with_capacity(3);
                if let Some((floor, size)) = self.floors[class] {
                    entries.push((floor, -rate / size));
                }
                entries.push((time_rows[class], 1.0));
                entries.push((capacity + gpu, row.gang * row.count / workers));
                self.problem.column(gain(goal, gpu, row.count * rate), &entries);
                self.columns.push(Column::Single { class, gpu });
            }
        }
    }

    fn add_pairs(&mut self, time_rows: &[usize], capacity: usize, goal: Goal<'_>) {
        for (pair, row) in self.classes.pairs.iter().enumerate() {
            for (gpu, &(left, right)) in row.rates.iter().enumerate() {
                let workers = self.instance.workers[gpu];
                if workers <= 0.0 || !self.pays(row.first, row.second, gpu, left, right) {
                    continue;
                }
                let unit = self.unit(row.first, row.second);
                let mut entries = Vec::with_capacity(5);
                let mut total = 0.0;
                let mut member = |class: usize, rate: f64, times: f64| {
                    let part = times * unit / self.classes.rows[class].count;
                    total += rate * times * unit;
                    if let Some((floor, size)) = self.floors[class].filter(|_| rate > 0.0) {
                        entries.push((floor, -rate * part / size));
                    }
                    entries.push((time_rows[class], part));
                };
                if row.first == row.second {
                    member(row.first, (left + right) / 2.0, 2.0);
                } else {
                    member(row.first, left, 1.0);
                    member(row.second, right, 1.0);
                }
                entries.push((capacity + gpu, self.classes.rows[row.first].gang * unit / workers));
                self.problem.column(gain(goal, gpu, total), &entries);
                self.columns.push(Column::Pair { pair, gpu });
            }
        }
    }

    /// Whether sharing a GPU beats taking turns on it; where not, leaving it out loses nothing.
    fn pays(&self, first: usize, second: usize, gpu: usize, left: f64, right: f64) -> bool {
        let alone = |class: usize| self.instance.jobs[self.classes.rows[class].job].rates[gpu];
        let (one, two) = (alone(first), alone(second));
        left > 0.0 && right > 0.0 && (one <= 0.0 || two <= 0.0 || left / one + right / two > 1.0)
    }

    /// Sum of shares that a value of 1 in the column of a pair stands for.
    fn unit(&self, first: usize, second: usize) -> f64 {
        let count = |class: usize| self.classes.rows[class].count;
        if first == second { count(first) / 2.0 } else { count(first).min(count(second)) }
    }

    fn add_goal(&mut self, floors: &[Floor], goal: Goal<'_>) {
        let rising = |class: usize| floors[class].slope > 0.0;
        match goal {
            Goal::Sum(_) => {}
            Goal::Level => {
                let mut entries = Vec::new();
                for (class, row) in self.floors.iter().enumerate() {
                    if let (Some((row, size)), true) = (row, rising(class)) {
                        entries.push((*row, floors[class].slope / size));
                    }
                }
                if !entries.is_empty() {
                    self.level = Some(self.problem.wide_column(1.0, &entries));
                }
            }
            Goal::Product => {
                for (class, row) in self.floors.iter().enumerate() {
                    if let (Some((row, _)), true) = (row, rising(class)) {
                        self.problem.log_column(self.classes.rows[class].count, &[(*row, 1.0)]);
                    }
                }
            }
        }
    }

    /// Solves it. Where a solver gives up, others have a try.
    pub fn solve(&self, solver: Solver) -> Result<Spread, LpError> {
        let solution = match self.problem.solve(solver) {
            Err(fault @ (LpError::Stuck { .. } | LpError::Broken { .. }))
                if solver == Solver::Interior =>
            {
                self.second_chance(fault)?
            }
            other => other?,
        };
        Ok(self.spread(&solution))
    }

    /// The answer of another solver than ours: of one that goes through the middle, too, and then,
    /// if there are not too many columns, of one that goes from corner to corner.
    fn second_chance(&self, fault: LpError) -> Result<LpSolution, LpError> {
        #[cfg(feature = "clarabel")]
        match self.problem.solve(Solver::Clarabel) {
            Err(LpError::Stuck { .. } | LpError::Broken { .. } | LpError::NotLinear) => {}
            answer => return answer,
        }
        match self.problem.columns() <= SECOND_CHANCE_COLUMNS_MAX {
            true => self.problem.solve(Solver::Simplex),
            false => Err(fault),
        }
    }

    /// The programme itself.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What an answer to the programme means.
    pub fn spread(&self, solution: &LpSolution) -> Spread {
        let classes = self.classes;
        let mut spread = Spread {
            singles: vec![vec![0.0; self.instance.types()]; classes.rows.len()],
            pairs: Vec::new(),
            throughput: Vec::new(),
            level: self.level.map_or(0.0, |column| solution.values[column]),
            prices: vec![0.0; classes.rows.len()],
        };
        let least = self.least_shares(&solution.values);
        for (column, &value) in self.columns.iter().zip(&solution.values) {
            match *column {
                Column::Single { class, gpu } if value > least[class] => {
                    spread.singles[class][gpu] = value;
                }
                Column::Pair { pair, gpu } => {
                    let row = &classes.pairs[pair];
                    let sum = value * self.unit(row.first, row.second);
                    let counts = |class: usize| sum > least[class] * classes.rows[class].count;
                    let runs = row.rates[gpu].0 > 0.0 && row.rates[gpu].1 > 0.0;
                    if runs && (counts(row.first) || counts(row.second)) {
                        spread.pairs.push((pair, gpu, sum));
                    }
                }
                Column::Single { .. } => {}
            }
        }
        for (price, floor) in spread.prices.iter_mut().zip(&self.floors) {
            if let (Some((row, size)), false) = (floor, solution.prices.is_empty()) {
                *price = solution.prices[*row] / size;
            }
        }
        spread.tidy(self.instance, classes);
        spread
    }
}

impl Formulation<'_> {
    /// The share of a member of each class below which a share is left out.
    fn least_shares(&self, values: &[f64]) -> Vec<f64> {
        let mut largest = vec![0.0f64; self.classes.rows.len()];
        for (column, &value) in self.columns.iter().zip(values) {
            let mut see = |class: usize, share: f64| largest[class] = largest[class].max(share);
            match *column {
                Column::Single { class, .. } => see(class, value),
                Column::Pair { pair, .. } => {
                    let row = &self.classes.pairs[pair];
                    let sum = value * self.unit(row.first, row.second);
                    see(row.first, sum / self.classes.rows[row.first].count);
                    see(row.second, sum / self.classes.rows[row.second].count);
                }
            }
        }
        largest.into_iter().map(|share| share * SHARE_MIN).collect()
    }
}

/// What a column adds to the goal: that of a rate on a type.
fn gain(goal: Goal<'_>, gpu: usize, rate: f64) -> f64 {
    match goal {
        Goal::Sum(prices) => rate / prices.get(gpu).copied().unwrap_or(1.0),
        Goal::Level | Goal::Product => 0.0,
    }
}

impl Spread {
    /// The shares of nobody.
    pub fn empty() -> Spread {
        Spread {
            singles: Vec::new(),
            pairs: Vec::new(),
            throughput: Vec::new(),
            level: 0.0,
            prices: Vec::new(),
        }
    }

    /// Cuts what rounding left above the time of a job or the GPUs of a type; adds up throughput.
    pub fn tidy(&mut self, instance: &Instance, classes: &Classes) {
        let mut time: Vec<f64> = self.singles.iter().map(|row| row.iter().sum()).collect();
        let mut load = vec![0.0; instance.types()];
        for (row, class) in self.singles.iter().zip(&classes.rows) {
            for (sum, share) in load.iter_mut().zip(row) {
                *sum += share * class.count * class.gang;
            }
        }
        for &(pair, gpu, sum) in &self.pairs {
            let row = &classes.pairs[pair];
            time[row.first] += sum / classes.rows[row.first].count;
            time[row.second] += sum / classes.rows[row.second].count;
            load[gpu] += sum * classes.rows[row.first].gang;
        }
        let cut: Vec<f64> = load
            .iter()
            .zip(&instance.workers)
            .map(|(sum, workers)| if sum > workers { workers / sum } else { 1.0 })
            .collect();
        let rates = |class: usize| &instance.jobs[classes.rows[class].job].rates;
        for (class, row) in self.singles.iter_mut().enumerate() {
            let own = time[class].max(1.0);
            row.iter_mut().zip(&cut).for_each(|(share, cut)| *share *= cut / own);
            self.throughput.push(super::closed::dot(rates(class), row));
        }
        for (pair, gpu, sum) in &mut self.pairs {
            let row = &classes.pairs[*pair];
            *sum *= cut[*gpu] / time[row.first].max(time[row.second]).max(1.0);
            let (left, right) = row.rates[*gpu];
            self.throughput[row.first] += left * *sum / classes.rows[row.first].count;
            self.throughput[row.second] += right * *sum / classes.rows[row.second].count;
        }
    }

    /// The shares of jobs.
    pub fn allocation(&self, classes: &Classes, objective: f64) -> Allocation {
        let of_job = classes.of_job.iter();
        let shares = of_job.map(|&class| self.singles[class as usize].clone()).collect();
        Allocation { shares, pairs: self.realise(classes), objective, fallback: None }
    }

    /// Deals the shares of pairs of classes out to pairs of jobs: each member gets the same, from
    /// as few partners as possible.
    fn realise(&self, classes: &Classes) -> Vec<PairShare> {
        if self.pairs.is_empty() {
            return Vec::new();
        }
        let members = classes.members();
        let mut shares = Vec::new();
        for (number, &(pair, gpu, sum)) in self.pairs.iter().enumerate() {
            let row = &classes.pairs[pair];
            let (ones, twos) = (&members[row.first], &members[row.second]);
            let mut add = |one: usize, two: usize, share: f64| {
                let (first, second) = (one.min(two), one.max(two));
                shares.push(PairShare { first, second, gpu, share });
            };
            if row.first != row.second {
                deal(ones, twos, number, sum, add);
            } else if let [one, two] = ones[..] {
                add(one, two, sum);
            } else {
                let next = ones.iter().cycle().skip(1);
                ones.iter()
                    .zip(next)
                    .for_each(|(&one, &two)| add(one, two, sum / ones.len() as f64));
            }
        }
        shares
    }
}

/// Walks along both lists at once, so that each member of a list gets an equal part of the sum.
/// Lists of different sums begin at different partners: nobody depends on one other job.
fn deal(
    ones: &[usize],
    twos: &[usize],
    turn: usize,
    sum: f64,
    mut add: impl FnMut(usize, usize, f64),
) {
    let (long, short) = (ones.len(), twos.len());
    let (mut one, mut two) = (0, 0);
    // Places on a line of `long * short` steps: whole numbers, so that nothing is left at the end.
    let mut at = 0;
    while at < long * short {
        let end = ((one + 1) * short).min((two + 1) * long);
        let share = sum * (end - at) as f64 / (long * short) as f64;
        add(ones[one], twos[(two + turn) % short], share);
        at = end;
        one = at / short;
        two = at / long;
    }
}
