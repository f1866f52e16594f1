//! An interior-point method: Mehrotra's predictor and corrector on the normal equations.
//!
//! Written for the programmes of this crate: rows of a class touch few columns, a few rows link
//! all of them, and one wide column is the level that all shall reach. A logarithm of a column only
//! says what the product of its value and its reduced cost shall be: its weight, instead of 0.
//! Deterministic: no clock, no chance.

use super::scaled::Scaled;
use super::system::System;
use super::vector::size;
use super::{LpError, LpSolution, Problem};
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

/// One, and more than products of three numbers are off by rounding.
const ROUNDED_UP: f64 = 1.0 + 1e-12;

/// Length of a step that is as good as none.
const SHORT: f64 = 0.1;
/// Steps back to the middle after which it is reached: one more would change nothing.
const CENTRINGS: u32 = 3;
/// Part of the products that is aimed for from the middle when no longer step is possible.
const LOWER: f64 = 0.1;

/// Solves a problem that has an optimum.
pub(super) fn solve(problem: &Problem) -> Result<LpSolution, LpError> {
    let scaled = Scaled::new(problem);
    let mut system = System::new(problem);
    let mut point = Point::start(&scaled, &mut system);
    let mut least = f64::INFINITY;
    let mut best = None;
    let mut since_best = 0;
    let mut iteration = 0;
    let mut centred = 0;
    while iteration < LP_ITERATIONS_MAX && since_best < PATIENCE {
        let residuals = Residuals::new(&scaled, &point);
        let error = residuals.error;
        if error <= GOAL {
            return Ok(scaled.unscale(problem, &point.x, &point.y, iteration));
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
        advance(&scaled, &mut system, &mut point, &residuals, &mut centred);
        iteration += 1;
    }
    let enough = best.map(|point| scaled.unscale(problem, &point.x, &point.y, iteration));
    enough.ok_or(LpError::Stuck { iterations: iteration })
}

/// One step of the method. `centred` counts the last ones that went back to the middle.
fn advance(
    scaled: &Scaled,
    system: &mut System,
    point: &mut Point,
    residuals: &Residuals,
    centred: &mut u32,
) {
    point.factor(scaled, system);
    let columns = point.x.len();
    let rows = point.y.len();
    let mut column_target: Vec<f64> =
        (0..columns).map(|j| scaled.logs[j] - point.x[j] * point.s[j]).collect();
    let mut row_target: Vec<f64> = (0..rows).map(|i| -point.w[i] * point.y[i]).collect();
    let predictor = point.direction(scaled, system, residuals, &column_target, &row_target);
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
    let mut step = point.direction(scaled, system, residuals, &column_target, &row_target);
    let (mut primal, mut dual) = point.longest(&step);
    if primal.min(dual) < SHORT {
        // Against the border: back to the middle, with products as they are on average; from
        // there, straight on with less.
        let part = if *centred < CENTRINGS { 1.0 } else { LOWER };
        let middle = (mean * part).max(least);
        *centred += 1;
        for (j, target) in column_target.iter_mut().enumerate() {
            let centre = if scaled.logs[j] > 0.0 { scaled.logs[j] } else { middle };
            *target = centre - point.x[j] * point.s[j];
        }
        for (i, target) in row_target.iter_mut().enumerate() {
            *target = middle - point.w[i] * point.y[i];
        }
        step = point.direction(scaled, system, residuals, &column_target, &row_target);
        (primal, dual) = point.longest(&step);
    } else {
        *centred = 0;
    }
    point.go(&step, (primal * STEP).min(1.0), (dual * STEP).min(1.0));
}

/// Columns and their reduced costs, slack of rows and their prices: or a step in all of them.
#[derive(Clone)]
struct Point {
    x: Vec<f64>,
    s: Vec<f64>,
    w: Vec<f64>,
    y: Vec<f64>,
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
        unit.factor(scaled, system);
        system.solve(scaled, &vec![0.0; columns], scaled.bounds.iter().copied());
        let mut w: Vec<f64> = system.prices().collect();
        let mut x: Vec<f64> = (0..columns).map(|j| scaled.dot(j, &w)).collect();
        system.solve(scaled, &scaled.objective, std::iter::repeat_n(0.0, rows));
        let mut y: Vec<f64> = system.prices().collect();
        let mut s: Vec<f64> =
            (0..columns).map(|j| scaled.dot(j, &y) - scaled.objective[j]).collect();
        inside(&mut x, &mut w, &mut s, &mut y);
        Point { x, s, w, y }
    }

    /// Makes a system ready for steps from here.
    fn factor(&self, scaled: &Scaled, system: &mut System) {
        let ratios = |one: &[f64], two: &[f64]| -> Vec<f64> {
            one.iter().zip(two).map(|(one, two)| one / two).collect()
        };
        let (theta, diagonal) = (ratios(&self.x, &self.s), ratios(&self.w, &self.y));
        system.factor(scaled, theta.into_iter(), diagonal.into_iter());
    }

    /// The step that brings the products to their targets and the residuals to 0.
    fn direction(
        &self,
        scaled: &Scaled,
        system: &mut System,
        residuals: &Residuals,
        column_target: &[f64],
        row_target: &[f64],
    ) -> Point {
        let (columns, rows) = (self.x.len(), self.y.len());
        let slope: Vec<f64> =
            (0..columns).map(|j| residuals.dual[j] + column_target[j] / self.x[j]).collect();
        let side = (0..rows).map(|i| row_target[i] / self.y[i] - residuals.primal[i]);
        system.solve(scaled, &slope, side);
        let y: Vec<f64> = system.prices().collect();
        let x: Vec<f64> = system.columns(scaled, &slope).collect();
        let s = (0..columns).map(|j| (column_target[j] - self.s[j] * x[j]) / self.x[j]).collect();
        let w = (0..rows).map(|i| (row_target[i] - self.w[i] * y[i]) / self.y[i]).collect();
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
            let mut reach: f64 = 1.0 / STEP;
            for (value, step) in values.iter().zip(steps) {
                // A division takes long, and few values are the first to get to the border.
                if *value <= -step * reach * ROUNDED_UP {
                    reach = reach.min(-value / step);
                }
            }
            reach
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
            let (rows, values) = scaled.column(column);
            for (&row, coefficient) in rows.iter().zip(values) {
                primal[row as usize] -= coefficient * x;
                covered += coefficient * point.y[row as usize];
            }
            dual.push(scaled.objective[column] - covered + point.s[column]);
            if scaled.logs[column] > 0.0 {
                missed += (scaled.logs[column] - x * point.s[column]).abs();
            }
        }
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
