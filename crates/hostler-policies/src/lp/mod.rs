//! Linear programmes in one shape, and the solvers that take it.
//!
//! Maximise `c·x` (and logarithms, if any) over `x >= 0` with `A x <= b`. The formulation is
//! written once as a [`Problem`]; [`Solver`] says who works on it. `Interior` is written here for
//! problems with many small rows and a few that link them; the others are libraries for comparison
//! and for corners of the feasible region. Everything ends after a bounded number of iterations,
//! and what comes back was checked against the rows. [`Scaled`] and [`System`] are what a method of
//! somebody else's can be made of.

#[cfg(feature = "clarabel")]
mod conic;
mod interior;
mod scaled;
mod simplex;
mod skyline;
mod system;
pub mod vector;

#[cfg(test)]
mod tests;

pub use scaled::Scaled;
pub use system::System;

use crate::limits::{LP_COLUMNS_MAX, LP_FEASIBLE_MAX};

/// Who solves a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Solver {
    /// The interior-point method of this crate: an answer in the middle of the optimal ones.
    #[default]
    Interior,
    /// The simplex method of `microlp`: an answer at a corner, with few values above 0.
    Simplex,
    /// The interior-point method of `clarabel`.
    #[cfg(feature = "clarabel")]
    Clarabel,
}

/// Maximise `c·x + sum of weight·ln(x)` over `x >= 0` with `A x <= b`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    /// Coefficient of each column in the objective.
    objective: Vec<f64>,
    /// Weight of each column's logarithm in the objective; mostly 0.
    logs: Vec<f64>,
    /// Where each column begins in `rows` and `values`, and the end of the last.
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f64>,
    bounds: Vec<f64>,
    /// Rows at the end that have to do with most columns.
    linking: usize,
    /// Columns that have to do with most rows.
    wide: Vec<usize>,
}

/// An answer and its prices.
#[derive(Clone, Debug, PartialEq)]
pub struct LpSolution {
    /// Value of each column.
    pub values: Vec<f64>,
    /// Price of each row: what one more of its bound is worth. Empty where the solver has none.
    pub prices: Vec<f64>,
    /// Value of the objective.
    pub objective: f64,
    /// Steps taken.
    pub iterations: u32,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LpError {
    /// Nothing keeps all rows.
    #[error("the linear programme has no feasible point")]
    Infeasible,
    /// The objective grows without end.
    #[error("the linear programme is unbounded")]
    Unbounded,
    /// The solver used up its iterations, or got stuck.
    #[error("the linear programme was not solved in {iterations} iterations")]
    Stuck {
        /// Iterations made.
        iterations: u32,
    },
    /// The answer breaks a row.
    #[error("the answer breaks row {row} by {excess}")]
    Broken {
        /// The row.
        row: usize,
        /// By how much, relative to the bound.
        excess: f64,
    },
    /// More columns than a solve may have.
    #[error("the linear programme has {columns} columns; the limit is {limit}")]
    TooLarge {
        /// Columns asked for.
        columns: usize,
        /// Columns allowed.
        limit: usize,
    },
    /// The solver cannot take logarithms.
    #[error("this solver takes linear objectives only")]
    NotLinear,
}

impl Problem {
    /// A problem with these bounds, the last `linking` of them of rows that touch most columns.
    pub fn new(bounds: Vec<f64>, linking: usize) -> Problem {
        assert!(linking <= bounds.len(), "{linking} of {} rows link", bounds.len());
        Problem { bounds, linking, starts: vec![0], ..Problem::default() }
    }

    /// Adds a column and returns its number. Entries come in the order of rows, each row once.
    pub fn column(&mut self, objective: f64, entries: &[(usize, f64)]) -> usize {
        for &(row, value) in entries {
            debug_assert!(row < self.bounds.len(), "row {row} exists");
            self.rows.push(row as u32);
            self.values.push(value);
        }
        self.starts.push(self.rows.len());
        self.objective.push(objective);
        self.logs.push(0.0);
        self.objective.len() - 1
    }

    /// Adds a column that most rows know, such as the level that all shall reach.
    pub fn wide_column(&mut self, objective: f64, entries: &[(usize, f64)]) -> usize {
        let column = self.column(objective, entries);
        self.wide.push(column);
        column
    }

    /// Adds a column of whose logarithm the objective has `weight`.
    pub fn log_column(&mut self, weight: f64, entries: &[(usize, f64)]) -> usize {
        let column = self.column(0.0, entries);
        self.logs[column] = weight;
        column
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.objective.len()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.bounds.len()
    }

    /// Coefficient of each column in the objective.
    pub fn objective(&self) -> &[f64] {
        &self.objective
    }

    /// Columns that have to do with most rows.
    pub fn wide(&self) -> &[usize] {
        &self.wide
    }

    /// Values of the entries of all columns, one column after the other.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Solves it.
    pub fn solve(&self, solver: Solver) -> Result<LpSolution, LpError> {
        match solver {
            Solver::Interior => self.check(interior::solve),
            Solver::Simplex => self.solve_by(simplex::solve),
            #[cfg(feature = "clarabel")]
            Solver::Clarabel => self.solve_by(conic::solve),
        }
    }

    /// Solves it by a method that takes no logarithms.
    pub fn solve_by(
        &self,
        method: impl FnOnce(&Problem) -> Result<LpSolution, LpError>,
    ) -> Result<LpSolution, LpError> {
        if self.logs.iter().any(|&weight| weight != 0.0) {
            return Err(LpError::NotLinear);
        }
        self.check(method)
    }

    /// The answer of a method, if the question is not too large and the answer keeps all rows.
    fn check(
        &self,
        method: impl FnOnce(&Problem) -> Result<LpSolution, LpError>,
    ) -> Result<LpSolution, LpError> {
        if self.columns() > LP_COLUMNS_MAX {
            return Err(LpError::TooLarge { columns: self.columns(), limit: LP_COLUMNS_MAX });
        }
        let mut solution = method(self)?;
        solution.values.iter_mut().for_each(|value| *value = value.max(0.0));
        self.keeps_rows(&solution.values)?;
        Ok(solution)
    }

    /// The rows and places among all values of the entries of a column.
    pub fn places(&self, column: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let range = self.starts[column]..self.starts[column + 1];
        range.map(|at| (self.rows[at] as usize, at))
    }

    /// The entries of a column.
    fn entries(&self, column: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.starts[column]..self.starts[column + 1];
        range.map(|at| (self.rows[at] as usize, self.values[at]))
    }

    /// Refuses values that break a row by more than rounding explains.
    fn keeps_rows(&self, values: &[f64]) -> Result<(), LpError> {
        let mut sums = vec![0.0; self.rows()];
        let mut sizes = vec![1.0f64; self.rows()];
        for (column, &value) in values.iter().enumerate() {
            for (row, coefficient) in self.entries(column) {
                sums[row] += coefficient * value;
                sizes[row] = sizes[row].max((coefficient * value).abs());
            }
        }
        for (row, sum) in sums.iter().enumerate() {
            let excess = (sum - self.bounds[row]) / sizes[row].max(self.bounds[row].abs());
            if excess.is_nan() || excess > LP_FEASIBLE_MAX {
                return Err(LpError::Broken { row, excess });
            }
        }
        Ok(())
    }
}
