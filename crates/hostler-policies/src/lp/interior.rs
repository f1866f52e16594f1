//! An interior-point method: Mehrotra's predictor and corrector on the normal equations.
//!
//! Written for the programmes of this crate: rows of a class touch few columns, a few rows link
//! all of them, and one wide column is the level that all shall reach. The wide columns stay in the
//! equations, before the linking rows, instead of filling the matrix. A logarithm of a column only
//! says what the product of its value and its reduced cost shall be: its weight, instead of 0.
//! Deterministic: no clock, no chance.

use super::skyline::Skyline;
use super::{LpError, Problem, Solution};
use crate::limits::LP_ITERATIONS_MAX;

/// Residuals and gap that are aimed for, relative to the problem.
const GOAL: f64 = 1e-9;
/// What is good enough when no more progress can be made.
const ENOUGH: f64 = 1e-6;
/// Error below which the end is near.
const NEAR: f64 = 1e-3;
/// Value of the objective, in the scaled problem, below which the gap is no longer relative to it.
const VALUE_MIN: f64 = 1e-3;
/// Iterations without a smaller error after which no more progress is expected.
const PATIENCE: u32 = 8;
/// Part of the way to the border that a step goes.
const STEP: f64 = 0.995;

/// Length of a step that is as good as none.
const SHORT: f64 = 0.1;

/// Solves a problem that has an optimum.
pub(super) fn solve(problem: &Problem) -> Result<Solution, LpError> {
    let scaled = Scaled::new(problem);
    let mut system = System::new(problem);
    let mut point = Point::start(&scaled, &mut system);
    let mut least = f64::INFINITY;
    let mut best = None;
    let mut since_best = 0;
    let mut iteration = 0;
    while iteration < LP_ITERATIONS_MAX && since_best < PATIENCE {
        let residuals = Residuals::new(&scaled, &point);
        let error = residuals.error;
        if error <= GOAL {
            return Ok(scaled.unscale(problem, &point, iteration));
        }
        if !error.is_finite() {
            break;
        }
        // Far from the end the error may grow for a while.
        since_best += u32::from(least < NEAR);
        if error < least {
            least = error;
            since_best = 0;
            best = (error <= ENOUGH).then(|| point.clone());
        }
        advance(&scaled, &mut system, &mut point, &residuals);
        iteration += 1;
    }
    let enough = best.map(|point| scaled.unscale(problem, &point, iteration));
    enough.ok_or(LpError::Stuck { iterations: iteration })
}

/// One step of the method.
fn advance(scaled: &Scaled, system: &mut System, point: &mut Point, residuals: &Residuals) {
    system.factor(scaled, point);
    let columns = point.x.len();
    let rows = point.y.len();
    let mut column_target: Vec<f64> =
        (0..columns).map(|j| scaled.logs[j] - point.x[j] * point.s[j]).collect();
    let mut row_target: Vec<f64> = (0..rows).map(|i| -point.w[i] * point.y[i]).collect();
    let predictor = system.direction(scaled, point, residuals, &column_target, &row_target);
    let (primal, dual) = point.longest(&predictor);
    let pairs = (columns - scaled.log_count + rows) as f64;
    let mean = point.complementarity(scaled) / pairs;
    let reached = point.complementarity_after(scaled, &predictor, primal, dual) / pairs;
    let ratio = reached / mean;
    // As long as logarithms are far from their weights, the others must not run ahead to 0.
    let least = 0.1 * residuals.missed / pairs;
    let centre = (ratio * ratio * ratio * mean).max(least);
    for (j, target) in column_target.iter_mut().enumerate() {
        let centre = if scaled.logs[j] > 0.0 { 0.0 } else { centre };
        *target += centre - predictor.x[j] * predictor.s[j];
    }
    for (i, target) in row_target.iter_mut().enumerate() {
        *target += centre - predictor.w[i] * predictor.y[i];
    }
    let mut step = system.direction(scaled, point, residuals, &column_target, &row_target);
    let (mut primal, mut dual) = point.longest(&step);
    if primal.min(dual) < SHORT {
        // Against the border: back to the middle, with products as they are on average.
        for (j, target) in column_target.iter_mut().enumerate() {
            let centre = if scaled.logs[j] > 0.0 { scaled.logs[j] } else { mean.max(least) };
            *target = centre - point.x[j] * point.s[j];
        }
        for (i, target) in row_target.iter_mut().enumerate() {
            *target = mean.max(least) - point.w[i] * point.y[i];
        }
        step = system.direction(scaled, point, residuals, &column_target, &row_target);
        (primal, dual) = point.longest(&step);
    }
    point.go(&step, (primal * STEP).min(1.0), (dual * STEP).min(1.0));
}

/// The problem with rows and columns brought to size 1.
pub(super) struct Scaled {
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f64>,
    pub(super) objective: Vec<f64>,
    logs: Vec<f64>,
    /// Columns with a logarithm.
    log_count: usize,
    pub(super) bounds: Vec<f64>,
    pub(super) row_scale: Vec<f64>,
    pub(super) column_scale: Vec<f64>,
    goal_scale: f64,
}

impl Scaled {
    fn new(problem: &Problem) -> Scaled {
        let mut row_scale = vec![1.0; problem.rows()];
        let mut column_scale = vec![1.0; problem.columns()];
        let mut values = problem.values.clone();
        for _ in 0..3 {
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

    /// A problem whose values others have scaled.
    pub(super) fn with(
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

    pub(super) fn entries(&self, column: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.starts[column]..self.starts[column + 1];
        self.rows[range.clone()]
            .iter()
            .map(|&row| row as usize)
            .zip(self.values[range].iter().copied())
    }

    /// `A' y` of one column.
    pub(super) fn dot(&self, column: usize, y: &[f64]) -> f64 {
        self.entries(column).map(|(row, value)| value * y[row]).sum()
    }

    fn unscale(&self, problem: &Problem, point: &Point, iterations: u32) -> Solution {
        let values: Vec<f64> =
            point.x.iter().zip(&self.column_scale).map(|(x, scale)| x * scale).collect();
        let prices = point.y.iter().zip(&self.row_scale);
        let mut objective = 0.0;
        for (column, &value) in values.iter().enumerate() {
            objective += problem.objective[column] * value;
            if problem.logs[column] > 0.0 {
                objective += problem.logs[column] * libm::log(value);
            }
        }
        Solution {
            prices: prices.map(|(y, scale)| y * scale / self.goal_scale).collect(),
            values,
            objective,
            iterations,
        }
    }
}

/// Columns and their reduced costs, slack of rows and their prices: or a step in all of them.
#[derive(Clone)]
pub(super) struct Point {
    pub(super) x: Vec<f64>,
    pub(super) s: Vec<f64>,
    pub(super) w: Vec<f64>,
    pub(super) y: Vec<f64>,
}

impl Point {
    /// The least-squares point, moved to the inside.
    fn start(scaled: &Scaled, system: &mut System) -> Point {
        let columns = scaled.objective.len();
        let rows = scaled.bounds.len();
        let unit = Point {
            x: vec![1.0; columns],
            s: vec![1.0; columns],
            w: vec![1.0; rows],
            y: vec![1.0; rows],
        };
        if scaled.log_count > 0 {
            let s = scaled.logs.iter().map(|&weight| if weight > 0.0 { weight } else { 1.0 });
            return Point { s: s.collect(), ..unit };
        }
        system.factor(scaled, &unit);
        let zero = vec![0.0; columns];
        let mut w = system.solve(scaled, &unit, &zero, &scaled.bounds);
        let mut x: Vec<f64> = (0..columns).map(|j| scaled.dot(j, &w)).collect();
        let empty = vec![0.0; rows];
        let mut y = system.solve(scaled, &unit, &scaled.objective, &empty);
        let mut s: Vec<f64> =
            (0..columns).map(|j| scaled.dot(j, &y) - scaled.objective[j]).collect();
        inside(&mut x, &mut w, &mut s, &mut y);
        Point { x, s, w, y }
    }

    /// Sum of the products that shall be 0.
    fn complementarity(&self, scaled: &Scaled) -> f64 {
        let columns = (0..self.x.len()).filter(|&j| scaled.logs[j] == 0.0);
        columns.map(|j| self.x[j] * self.s[j]).sum::<f64>() + products(&self.w, &self.y)
    }

    fn complementarity_after(&self, scaled: &Scaled, step: &Point, primal: f64, dual: f64) -> f64 {
        let after = |value: f64, change: f64, other: f64, other_change: f64| {
            (value + primal * change) * (other + dual * other_change)
        };
        let columns = (0..self.x.len()).filter(|&j| scaled.logs[j] == 0.0);
        let columns = columns.map(|j| after(self.x[j], step.x[j], self.s[j], step.s[j]));
        let rows = (0..self.w.len()).map(|i| after(self.w[i], step.w[i], self.y[i], step.y[i]));
        columns.sum::<f64>() + rows.sum::<f64>()
    }

    /// How far a step may go, at most 1, before a value of the primal or of the dual side is 0.
    fn longest(&self, step: &Point) -> (f64, f64) {
        let reach = |values: &[f64], steps: &[f64]| {
            let pairs = values.iter().zip(steps);
            pairs.fold(
                1.0 / STEP,
                |reach: f64, (value, step)| {
                    if *step < 0.0 { reach.min(-value / step) } else { reach }
                },
            )
        };
        (
            reach(&self.x, &step.x).min(reach(&self.w, &step.w)),
            reach(&self.s, &step.s).min(reach(&self.y, &step.y)),
        )
    }

    fn go(&mut self, step: &Point, primal: f64, dual: f64) {
        let walk = |values: &mut [f64], steps: &[f64], length: f64| {
            let pairs = values.iter_mut().zip(steps);
            // Rounding must not put a value on the border.
            pairs.for_each(|(value, step)| *value = (*value + length * step).max(1e-300));
        };
        walk(&mut self.x, &step.x, primal);
        walk(&mut self.w, &step.w, primal);
        walk(&mut self.s, &step.s, dual);
        walk(&mut self.y, &step.y, dual);
    }
}

/// Moves a start to where all values are above 0 and products alike.
fn inside(x: &mut [f64], w: &mut [f64], s: &mut [f64], y: &mut [f64]) {
    let least = |one: &[f64], two: &[f64]| {
        one.iter().chain(two).fold(0.0f64, |least, value| least.min(*value))
    };
    let raise = |one: &mut [f64], two: &mut [f64], by: f64| {
        one.iter_mut().chain(two).for_each(|value| *value += by);
    };
    let up = -1.5 * least(x, w);
    raise(x, w, up + 1e-2);
    let up = -1.5 * least(s, y);
    raise(s, y, up + 1e-2);
    let product = products(x, s) + products(w, y);
    let primal: f64 = x.iter().chain(w.iter()).sum();
    let dual: f64 = s.iter().chain(y.iter()).sum();
    raise(x, w, 0.5 * product / dual);
    raise(s, y, 0.5 * product / primal);
}

fn products(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(one, two)| one * two).sum()
}

/// What is still missing at a point.
struct Residuals {
    primal: Vec<f64>,
    dual: Vec<f64>,
    /// Sum of what logarithms are off their weights.
    missed: f64,
    error: f64,
}

impl Residuals {
    fn new(scaled: &Scaled, point: &Point) -> Residuals {
        let rows = point.y.len();
        let mut primal: Vec<f64> = (0..rows).map(|i| scaled.bounds[i] - point.w[i]).collect();
        let mut dual = Vec::with_capacity(point.x.len());
        let mut value = 0.0;
        let mut missed = 0.0;
        for (column, &x) in point.x.iter().enumerate() {
            value += scaled.objective[column] * x;
            let mut covered = 0.0;
            for (row, coefficient) in scaled.entries(column) {
                primal[row] -= coefficient * x;
                covered += coefficient * point.y[row];
            }
            dual.push(scaled.objective[column] - covered + point.s[column]);
            if scaled.logs[column] > 0.0 {
                missed += (scaled.logs[column] - x * point.s[column]).abs();
            }
        }
        let size = |list: &[f64]| list.iter().fold(0.0f64, |size, value| size.max(value.abs()));
        // Logarithms bring weights of about 1.
        let value = if scaled.log_count > 0 { 1.0 } else { value.abs().max(VALUE_MIN) };
        let gap = (point.complementarity(scaled) + missed) / value;
        let primal_error = size(&primal) / (1.0 + size(&scaled.bounds));
        let dual_error = size(&dual) / (1.0 + size(&scaled.objective));
        // NaN must win, and `max` would drop it.
        let sum = gap + primal_error + dual_error;
        let error = if sum.is_nan() { sum } else { gap.max(primal_error).max(dual_error) };
        Residuals { primal, dual, missed, error }
    }
}

/// The equations of a step.
pub(super) struct System {
    matrix: Skyline,
    /// Rows before the wide columns.
    local: usize,
    pub(super) wide: Vec<usize>,
    is_wide: Vec<bool>,
    /// Value of each column over its reduced cost, at the point of the factors.
    pub(super) theta: Vec<f64>,
}

impl System {
    pub(super) fn new(problem: &Problem) -> System {
        let local = problem.rows() - problem.linking;
        let wide = problem.wide.clone();
        let mut is_wide = vec![false; problem.columns()];
        wide.iter().for_each(|&column| is_wide[column] = true);
        let place = |row: usize| if row < local { row } else { row + wide.len() };
        let mut first: Vec<usize> = (0..problem.rows() + wide.len()).collect();
        for column in (0..problem.columns()).filter(|&column| !is_wide[column]) {
            let lowest = problem.entries(column).map(|(row, _)| place(row)).min();
            for (row, _) in problem.entries(column) {
                let place = place(row);
                first[place] = first[place].min(lowest.expect("the column has this entry"));
            }
        }
        for (number, &column) in wide.iter().enumerate() {
            let own = local + number;
            for (row, _) in problem.entries(column) {
                let (low, high) = (place(row).min(own), place(row).max(own));
                first[high] = first[high].min(low);
            }
        }
        let theta = vec![0.0; problem.columns()];
        System { matrix: Skyline::new(first), local, wide, is_wide, theta }
    }

    fn place(&self, row: usize) -> usize {
        if row < self.local { row } else { row + self.wide.len() }
    }

    pub(super) fn factor(&mut self, scaled: &Scaled, point: &Point) {
        self.matrix.clear();
        let (local, shift) = (self.local, self.wide.len());
        let place = |row: usize| if row < local { row } else { row + shift };
        for column in 0..point.x.len() {
            self.theta[column] = point.x[column] / point.s[column];
            if self.is_wide[column] {
                continue;
            }
            for (row, value) in scaled.entries(column) {
                let weight = value * self.theta[column];
                for (other, factor) in scaled.entries(column) {
                    self.matrix.add(place(row), place(other), weight * factor);
                    if other == row {
                        break;
                    }
                }
            }
        }
        for row in 0..point.y.len() {
            self.matrix.add(place(row), place(row), point.w[row] / point.y[row]);
        }
        for (number, &column) in self.wide.iter().enumerate() {
            let own = local + number;
            self.matrix.add(own, own, -1.0 / self.theta[column]);
            for (row, value) in scaled.entries(column) {
                let (low, high) = (place(row).min(own), place(row).max(own));
                self.matrix.add(high, low, -value);
            }
        }
        self.matrix.factor(|row| row >= local && row < local + shift);
    }

    /// The prices that a step changes by: of `M dy = A theta g + side`, wide columns kept apart.
    fn solve(&mut self, scaled: &Scaled, point: &Point, slope: &[f64], side: &[f64]) -> Vec<f64> {
        let diagonal: Vec<f64> = point.w.iter().zip(&point.y).map(|(w, y)| w / y).collect();
        self.solve_with(scaled, &diagonal, slope, side).0
    }

    /// The same with the diagonal that the rows brought into the factors; and the wide columns.
    pub(super) fn solve_with(
        &mut self,
        scaled: &Scaled,
        diagonal: &[f64],
        slope: &[f64],
        side: &[f64],
    ) -> (Vec<f64>, Vec<f64>) {
        let rows = side.len();
        let mut right = vec![0.0; rows + self.wide.len()];
        for (row, value) in side.iter().enumerate() {
            right[self.place(row)] = *value;
        }
        for (column, &slope) in slope.iter().enumerate() {
            if self.is_wide[column] || slope == 0.0 {
                continue;
            }
            let weight = self.theta[column] * slope;
            for (row, value) in scaled.entries(column) {
                right[self.place(row)] += value * weight;
            }
        }
        for (number, &column) in self.wide.iter().enumerate() {
            right[self.local + number] = -slope[column];
        }
        let mut answer = right.clone();
        self.matrix.solve(&mut answer);
        let mut rest = right;
        self.subtract(scaled, diagonal, &answer, &mut rest);
        self.matrix.solve(&mut rest);
        answer.iter_mut().zip(&rest).for_each(|(value, rest)| *value += rest);
        let wide = answer[self.local..self.local + self.wide.len()].to_vec();
        ((0..rows).map(|row| answer[self.place(row)]).collect(), wide)
    }

    /// Takes the matrix times `answer` from `rest`: what the factors left undone.
    fn subtract(&self, scaled: &Scaled, diagonal: &[f64], answer: &[f64], rest: &mut [f64]) {
        for (row, own) in diagonal.iter().enumerate() {
            let place = self.place(row);
            rest[place] -= own * answer[place];
        }
        for column in 0..self.theta.len() {
            if self.is_wide[column] {
                continue;
            }
            let covered: f64 =
                scaled.entries(column).map(|(row, value)| value * answer[self.place(row)]).sum();
            let weight = covered * self.theta[column];
            for (row, value) in scaled.entries(column) {
                rest[self.place(row)] -= value * weight;
            }
        }
        for (number, &column) in self.wide.iter().enumerate() {
            let own = self.local + number;
            rest[own] += answer[own] / self.theta[column];
            for (row, value) in scaled.entries(column) {
                rest[own] += value * answer[self.place(row)];
                rest[self.place(row)] += value * answer[own];
            }
        }
    }

    /// The step that brings the products to their targets and the residuals to 0.
    fn direction(
        &mut self,
        scaled: &Scaled,
        point: &Point,
        residuals: &Residuals,
        column_target: &[f64],
        row_target: &[f64],
    ) -> Point {
        let columns = point.x.len();
        let rows = point.y.len();
        let slope: Vec<f64> =
            (0..columns).map(|j| residuals.dual[j] + column_target[j] / point.x[j]).collect();
        let side: Vec<f64> =
            (0..rows).map(|i| row_target[i] / point.y[i] - residuals.primal[i]).collect();
        let y = self.solve(scaled, point, &slope, &side);
        let x: Vec<f64> =
            (0..columns).map(|j| self.theta[j] * (slope[j] - scaled.dot(j, &y))).collect();
        let s = (0..columns).map(|j| (column_target[j] - point.s[j] * x[j]) / point.x[j]).collect();
        let w = (0..rows).map(|i| (row_target[i] - point.w[i] * y[i]) / point.y[i]).collect();
        Point { x, s, w, y }
    }
}
