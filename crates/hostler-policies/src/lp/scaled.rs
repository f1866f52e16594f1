//! A problem with rows and columns brought near size 1, for methods that go by sizes.

use super::{LpSolution, Problem};

/// Rounds of scaling.
const SCALINGS: usize = 3;

/// The problem with rows and columns brought to size 1.
#[derive(Debug)]
pub struct Scaled {
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f64>,
    /// Coefficient of each column in the objective.
    pub objective: Vec<f64>,
    pub(super) logs: Vec<f64>,
    /// Columns with a logarithm.
    pub(super) log_count: usize,
    /// Bound of each row.
    pub bounds: Vec<f64>,
    /// What each row was multiplied by.
    pub row_scale: Vec<f64>,
    /// What each column was multiplied by.
    pub column_scale: Vec<f64>,
    goal_scale: f64,
}

impl Scaled {
    pub(super) fn new(problem: &Problem) -> Scaled {
        let mut row_scale = vec![1.0; problem.rows()];
        let mut column_scale = vec![1.0; problem.columns()];
        let mut values = problem.values.clone();
        for _ in 0..SCALINGS {
            let mut row_size = vec![0.0f64; problem.rows()];
            for (row, value) in problem.rows.iter().zip(&values) {
                let size = &mut row_size[*row as usize];
                *size = size.max(value.abs());
            }
            let shrink = |size: f64| if size > 0.0 { 1.0 / size.sqrt() } else { 1.0 };
            let row_factor: Vec<f64> = row_size.into_iter().map(shrink).collect();
            for (column, scale) in column_scale.iter_mut().enumerate() {
                let range = problem.starts[column]..problem.starts[column + 1];
                let size = values[range.clone()].iter().fold(0.0f64, |size, v| size.max(v.abs()));
                let factor = shrink(size);
                *scale *= factor;
                for at in range {
                    values[at] *= factor * row_factor[problem.rows[at] as usize];
                }
            }
            row_scale.iter_mut().zip(&row_factor).for_each(|(scale, factor)| *scale *= factor);
        }
        let mut objective: Vec<f64> =
            problem.objective.iter().zip(&column_scale).map(|(c, scale)| c * scale).collect();
        let largest = |list: &[f64]| list.iter().fold(0.0f64, |size, value| size.max(value.abs()));
        let size = largest(&objective).max(largest(&problem.logs));
        let goal_scale = if size > 0.0 { 1.0 / size } else { 1.0 };
        objective.iter_mut().for_each(|c| *c *= goal_scale);
        Scaled {
            starts: problem.starts.clone(),
            rows: problem.rows.clone(),
            values,
            objective,
            logs: problem.logs.iter().map(|weight| weight * goal_scale).collect(),
            log_count: problem.logs.iter().filter(|&&weight| weight > 0.0).count(),
            bounds: problem.bounds.iter().zip(&row_scale).map(|(b, scale)| b * scale).collect(),
            row_scale,
            column_scale,
            goal_scale,
        }
    }

    /// A linear problem whose values others have scaled.
    pub fn with(
        problem: &Problem,
        values: Vec<f64>,
        row_scale: Vec<f64>,
        column_scale: Vec<f64>,
    ) -> Scaled {
        let times = |list: &[f64], by: &[f64]| list.iter().zip(by).map(|(a, b)| a * b).collect();
        Scaled {
            starts: problem.starts.clone(),
            rows: problem.rows.clone(),
            values,
            objective: times(&problem.objective, &column_scale),
            logs: vec![0.0; problem.columns()],
            log_count: 0,
            bounds: times(&problem.bounds, &row_scale),
            row_scale,
            column_scale,
            goal_scale: 1.0,
        }
    }

    /// Rows and values of the entries of a column.
    pub fn column(&self, column: usize) -> (&[u32], &[f64]) {
        let range = self.starts[column]..self.starts[column + 1];
        (&self.rows[range.clone()], &self.values[range])
    }

    /// The values of a column, with others that lie beside them.
    pub(super) fn beside<'a>(&'a self, column: usize, list: &'a [u32]) -> (&'a [u32], &'a [f64]) {
        let range = self.starts[column]..self.starts[column + 1];
        (&list[range.clone()], &self.values[range])
    }

    /// `A' y` of one column.
    pub(super) fn dot(&self, column: usize, y: &[f64]) -> f64 {
        let (rows, values) = self.column(column);
        rows.iter().zip(values).map(|(&row, value)| value * y[row as usize]).sum()
    }

    /// Values and prices of the problem itself.
    pub(super) fn unscale(
        &self,
        problem: &Problem,
        x: &[f64],
        y: &[f64],
        iterations: u32,
    ) -> LpSolution {
        let values: Vec<f64> =
            x.iter().zip(&self.column_scale).map(|(x, scale)| x * scale).collect();
        let prices = y.iter().zip(&self.row_scale);
        let mut objective = 0.0;
        for (column, &value) in values.iter().enumerate() {
            objective += problem.objective[column] * value;
            if problem.logs[column] > 0.0 {
                objective += problem.logs[column] * libm::log(value);
            }
        }
        LpSolution {
            prices: prices.map(|(y, scale)| y * scale / self.goal_scale).collect(),
            values,
            objective,
            iterations,
        }
    }
}
