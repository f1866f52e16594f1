//! A problem with rows and columns brought near size 1, for methods that go by sizes.

use super::{LpSolution, Problem};

/// Rounds of scaling.
const SCALINGS: usize = 3;

/// Size below which a row or a column counts as empty, where the scaling stops half-way.
const SIZE_MIN: f64 = 1e-6;

/// The problem with rows and columns brought to size 1.
#[derive(Debug)]
pub(super) struct Scaled {
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f64>,
    pub objective: Vec<f64>,
    pub logs: Vec<f64>,
    /// Columns with a logarithm.
    pub log_count: usize,
    pub bounds: Vec<f64>,
    pub row_scale: Vec<f64>,
    pub column_scale: Vec<f64>,
    goal_scale: f64,
}

impl Scaled {
    pub fn new(problem: &Problem) -> Scaled {
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

    /// The problem with rows and columns brought near size 1, and the coefficient of each column in
    /// the row of its own. The scaling stops half-way, and where it stops decides the start.
    pub fn halfway(problem: &Problem) -> (Scaled, Vec<f64>) {
        let columns = problem.columns();
        let mut is_wide = vec![false; columns];
        problem.wide.iter().for_each(|&column| is_wide[column] = true);
        let mut own: Vec<f64> = is_wide.iter().map(|wide| if *wide { 0.0 } else { 1.0 }).collect();
        let mut values = problem.values.clone();
        let (mut row_scale, mut column_scale) = (vec![1.0; problem.rows()], vec![1.0; columns]);
        for _ in 0..SCALINGS {
            let mut row_size = vec![0.0f64; problem.rows()];
            let mut column_size = own.clone();
            for (column, size) in column_size.iter_mut().enumerate() {
                for at in problem.starts[column]..problem.starts[column + 1] {
                    let value = values[at].abs();
                    let row = &mut row_size[problem.rows[at] as usize];
                    (*size, *row) = (size.max(value), row.max(value));
                }
            }
            let shrink = |size: f64| if size < SIZE_MIN { 1.0 } else { 1.0 / size.sqrt() };
            let row_factor: Vec<f64> = row_size.into_iter().map(shrink).collect();
            for column in 0..columns {
                let factor = shrink(column_size[column]);
                column_scale[column] *= factor;
                own[column] *= factor * shrink(own[column]);
                for at in problem.starts[column]..problem.starts[column + 1] {
                    values[at] *= factor * row_factor[problem.rows[at] as usize];
                }
            }
            row_scale.iter_mut().zip(&row_factor).for_each(|(scale, factor)| *scale *= factor);
        }
        (Scaled::with(problem, values, row_scale, column_scale), own)
    }

    /// A problem whose values others have scaled.
    fn with(
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
    pub fn beside<'a>(&'a self, column: usize, list: &'a [u32]) -> (&'a [u32], &'a [f64]) {
        let range = self.starts[column]..self.starts[column + 1];
        (&list[range.clone()], &self.values[range])
    }

    /// `A' y` of one column.
    pub fn dot(&self, column: usize, y: &[f64]) -> f64 {
        let (rows, values) = self.column(column);
        rows.iter().zip(values).map(|(&row, value)| value * y[row as usize]).sum()
    }

    /// Values and prices of the problem itself.
    pub fn unscale(&self, problem: &Problem, x: &[f64], y: &[f64], iterations: u32) -> LpSolution {
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
