//! The interior-point method that published results were made with: Mehrotra's steps on the
//! homogeneous self-dual embedding, after Domahidi, Chu and Boyd, "ECOS: An SOCP solver for
//! embedded systems" (2013), for linear programmes only.
//!
//! Where a programme has many optimal answers, which of them a solver stops at is part of a policy
//! that goes by the answer. This one is for repeating such a policy: it starts where that solver
//! starts, steps as it steps and stops when it stops. Unlike `interior`, it knows when nothing
//! keeps all rows. Columns are free here and have a row of their own that keeps them above 0, but
//! wide ones have none.

use super::interior::{Point, Scaled, System};
use super::{LpError, Problem, Solution};
use crate::limits::LP_ITERATIONS_MAX;

/// Residuals, gap and certificates that are good enough.
const GOAL: f64 = 1e-8;
/// Part of the way to the border that a step goes, and the shortest and longest way.
const STEP: f64 = 0.99;
const STEP_MIN: f64 = 1e-6;
const STEP_MAX: f64 = 0.999;
/// Least part of the mean that products are sent back to.
const CENTRE_MIN: f64 = 1e-4;
/// How far inside a start is that needs no shift.
const INSIDE: f64 = 0.01;
/// Rounds of scaling, and the size below which a row or a column counts as empty.
const SCALINGS: usize = 3;
const SIZE_MIN: f64 = 1e-6;

/// Solves a problem without logarithms.
pub(super) fn solve(problem: &Problem) -> Result<Solution, LpError> {
    let mut embedding = Embedding::new(problem);
    for iteration in 0..LP_ITERATIONS_MAX {
        let rest = embedding.residuals();
        if !rest.worth.is_finite() {
            return Err(LpError::Stuck { iterations: iteration });
        }
        if embedding.is_done(&rest) {
            return Ok(embedding.answer(problem, iteration));
        }
        if embedding.is_hopeless(&rest) {
            return Err(LpError::Infeasible);
        }
        embedding.advance(&rest);
    }
    Err(LpError::Stuck { iterations: LP_ITERATIONS_MAX })
}

/// Slack of columns above 0 and of rows below their bound, or prices of both.
#[derive(Clone)]
struct Cone {
    columns: Vec<f64>,
    rows: Vec<f64>,
}

impl Cone {
    fn map(&self, other: &Cone, both: impl Fn(f64, f64) -> f64) -> Cone {
        let join = |one: &[f64], two: &[f64]| -> Vec<f64> {
            one.iter().zip(two).map(|(one, two)| both(*one, *two)).collect()
        };
        Cone { columns: join(&self.columns, &other.columns), rows: join(&self.rows, &other.rows) }
    }

    fn each(&self) -> impl Iterator<Item = f64> + '_ {
        self.columns.iter().chain(&self.rows).copied()
    }

    fn dot(&self, other: &Cone) -> f64 {
        self.each().zip(other.each()).map(|(one, two)| one * two).sum()
    }

    fn norm(&self) -> f64 {
        self.dot(self).sqrt()
    }

    /// Shifted so that nothing is at or below 0.
    fn inside(&self) -> Cone {
        let least = self.each().fold(f64::INFINITY, f64::min);
        let shift = if least <= 0.0 { 1.0 - least } else { INSIDE };
        self.map(self, |value, _| value + shift)
    }
}

/// A step, or a part of one.
struct Move {
    x: Vec<f64>,
    z: Cone,
}

struct Embedding {
    scaled: Scaled,
    system: System,
    /// Coefficient of each column in its own row; 0 where it has none.
    own: Vec<f64>,
    /// What is minimised.
    costs: Vec<f64>,
    x: Vec<f64>,
    slack: Cone,
    prices: Cone,
    tau: f64,
    kappa: f64,
    /// Rows, those of columns included.
    count: f64,
    /// Sizes of costs and of bounds, at least 1.
    sizes: (f64, f64),
}

struct Residuals {
    /// What prices leave of no costs.
    covered: Vec<f64>,
    /// What prices leave of the costs.
    dual: Vec<f64>,
    /// What rows are off.
    primal: Cone,
    /// Value of the columns, and of the bounds at these prices.
    value: f64,
    worth: f64,
    gap: f64,
}

impl Embedding {
    fn new(problem: &Problem) -> Embedding {
        let (scaled, own) = equilibrated(problem);
        let columns = own.len();
        let costs: Vec<f64> = scaled.objective.iter().map(|gain| -gain).collect();
        let size = |list: &[f64]| list.iter().map(|v| v * v).sum::<f64>().sqrt().max(1.0);
        let sizes = (size(&costs), size(&scaled.bounds));
        let unit = Cone {
            columns: own.iter().map(|&own| if own > 0.0 { 1.0 } else { 0.0 }).collect(),
            rows: vec![1.0; scaled.bounds.len()],
        };
        let count = unit.each().sum();
        let system = System::new(problem);
        let mut embedding = Embedding {
            x: Vec::new(),
            slack: unit.clone(),
            prices: unit.clone(),
            scaled,
            system,
            own,
            costs,
            tau: 1.0,
            kappa: 1.0,
            count,
            sizes,
        };
        embedding.factor(&unit);
        let none = Cone { columns: vec![0.0; columns], rows: vec![0.0; unit.rows.len()] };
        let bounds = embedding.bounds();
        let primal = embedding.solve(&unit, &vec![0.0; columns], &bounds);
        let gains: Vec<f64> = embedding.costs.iter().map(|cost| -cost).collect();
        let dual = embedding.solve(&unit, &gains, &none);
        // What has no row must not be the least.
        let slack = embedding.silent(primal.z.map(&primal.z, |value, _| -value), 1.0).inside();
        let prices = embedding.silent(dual.z, 1.0).inside();
        embedding.slack = embedding.silent(slack, 1.0);
        embedding.prices = embedding.silent(prices, 0.0);
        embedding.x = primal.x;
        embedding
    }

    /// With a given value for columns that have no row.
    fn silent(&self, mut cone: Cone, value: f64) -> Cone {
        for (own, entry) in self.own.iter().zip(&mut cone.columns) {
            if *own == 0.0 {
                *entry = value;
            }
        }
        cone
    }

    fn bounds(&self) -> Cone {
        Cone { columns: vec![0.0; self.own.len()], rows: self.scaled.bounds.clone() }
    }

    /// `G x`: minus each column, and the rows.
    fn reach(&self, x: &[f64]) -> Cone {
        let mut rows = vec![0.0; self.scaled.bounds.len()];
        for (column, &value) in x.iter().enumerate() {
            for (row, coefficient) in self.scaled.entries(column) {
                rows[row] += coefficient * value;
            }
        }
        let columns = self.own.iter().zip(x).map(|(own, value)| -own * value).collect();
        Cone { columns, rows }
    }

    /// `G' z`.
    fn cover(&self, z: &Cone) -> Vec<f64> {
        let cover =
            |column: usize| self.scaled.dot(column, &z.rows) - self.own[column] * z.columns[column];
        (0..self.own.len()).map(cover).collect()
    }

    /// Makes ready for steps where slack over price is `ratio`.
    fn factor(&mut self, ratio: &Cone) {
        let theta = self.own.iter().zip(&ratio.columns);
        let theta = theta.map(|(own, ratio)| match *own > 0.0 {
            true => ratio / (own * own),
            false => f64::INFINITY,
        });
        let point = Point {
            x: theta.collect(),
            s: vec![1.0; self.own.len()],
            w: ratio.rows.clone(),
            y: vec![1.0; ratio.rows.len()],
        };
        self.system.factor(&self.scaled, &point);
    }

    /// Solves `G' z = right` and `G x - ratio z = side`.
    fn solve(&mut self, ratio: &Cone, right: &[f64], side: &Cone) -> Move {
        let slope: Vec<f64> = (0..right.len())
            .map(|j| match self.own[j] > 0.0 {
                true => right[j] - self.own[j] * side.columns[j] / ratio.columns[j],
                false => right[j],
            })
            .collect();
        let opposite: Vec<f64> = side.rows.iter().map(|value| -value).collect();
        let diagonal = ratio.rows.as_slice();
        let (rows, wide) = self.system.solve_with(&self.scaled, diagonal, &slope, &opposite);
        let mut x: Vec<f64> = (0..slope.len())
            .map(|j| self.system.theta[j] * (slope[j] - self.scaled.dot(j, &rows)))
            .collect();
        for (value, &column) in wide.iter().zip(&self.system.wide) {
            x[column] = *value;
        }
        let columns = (0..x.len()).map(|j| match self.own[j] > 0.0 {
            true => (-self.own[j] * x[j] - side.columns[j]) / ratio.columns[j],
            false => 0.0,
        });
        let z = Cone { columns: columns.collect(), rows };
        Move { x, z }
    }

    fn residuals(&self) -> Residuals {
        let covered: Vec<f64> = self.cover(&self.prices).into_iter().map(|sum| -sum).collect();
        let dual = covered.iter().zip(&self.costs).map(|(rest, cost)| rest - self.tau * cost);
        let reached = self.reach(&self.x).map(&self.slack, |reach, slack| reach + slack);
        let primal = reached.map(&self.bounds(), |reached, bound| reached - self.tau * bound);
        Residuals {
            dual: dual.collect(),
            covered,
            primal: self.silent(primal, 0.0),
            value: dot(&self.costs, &self.x),
            worth: dot(&self.scaled.bounds, &self.prices.rows),
            gap: self.slack.dot(&self.prices),
        }
    }

    fn is_done(&self, rest: &Residuals) -> bool {
        let slack = self.silent(self.slack.clone(), 0.0).norm();
        let (x, z) = (norm(&self.x), self.prices.norm());
        let primal = rest.primal.norm() / (self.sizes.1 + x + slack).max(1.0) / self.tau;
        let dual = norm(&rest.dual) / (self.sizes.0 + z).max(1.0) / self.tau;
        let relative = match (rest.value / self.tau, -rest.worth / self.tau) {
            (value, _) if value < 0.0 => rest.gap / -value,
            (_, worth) if worth > 0.0 => rest.gap / worth,
            _ => f64::INFINITY,
        };
        let ordered = -rest.value > 0.0 || -rest.worth >= -GOAL;
        ordered && primal < GOAL && dual < GOAL && (rest.gap < GOAL || relative < GOAL)
    }

    /// Whether the prices prove that nothing keeps all rows.
    fn is_hopeless(&self, rest: &Residuals) -> bool {
        let size = self.prices.norm().max(1.0);
        rest.worth / size < -GOAL && norm(&rest.covered) / size < GOAL && self.tau < self.kappa
    }

    /// One step of the method.
    fn advance(&mut self, rest: &Residuals) {
        let ratio = self.silent(self.slack.map(&self.prices, |s, z| s / z), 1.0);
        let root = ratio.map(&ratio, |ratio, _| ratio.sqrt());
        let products = self.slack.map(&self.prices, |s, z| s * z);
        let lambda = self.silent(products.map(&products, |product, _| product.sqrt()), 1.0);
        self.factor(&ratio);
        let gains: Vec<f64> = self.costs.iter().map(|cost| -cost).collect();
        let bounds = self.bounds();
        let first = self.solve(&ratio, &gains, &bounds);
        let scale = self.kappa / self.tau - dot(&self.costs, &first.x) - bounds.dot(&first.z);
        let off = self.kappa + rest.value + rest.worth;

        let side = self.slack.map(&rest.primal, |slack, rest| slack - rest);
        let second = self.solve(&ratio, &rest.dual, &self.silent(side, 0.0));
        let worth = dot(&self.costs, &second.x) + bounds.dot(&second.z);
        let tau = (off - self.kappa + worth) / scale;
        let prices = self.weighed(&root, &second.z, &first.z, tau);
        let slack = prices.map(&lambda, |price, lambda| -price - lambda);
        let slack = self.silent(slack, 0.0);
        let kappa = -self.kappa - self.kappa / self.tau * tau;
        let length = self.longest(&lambda, &slack, &prices, (tau, kappa));
        let missed = 1.0 - length;
        let part = (missed * missed * missed).clamp(CENTRE_MIN, 1.0);
        let centre = part * (rest.gap + self.kappa * self.tau) / (self.count + 1.0);

        let product = slack.map(&prices, |slack, price| slack * price - centre);
        let target = lambda.map(&product, |lambda, product| lambda + product / lambda);
        let target = self.silent(target, 0.0);
        let side = target.map(&root, |target, root| target * root);
        let side = side.map(&rest.primal, |side, rest| side - (1.0 - part) * rest);
        let right: Vec<f64> = rest.dual.iter().map(|rest| (1.0 - part) * rest).collect();
        let second = self.solve(&ratio, &right, &side);
        let turn = self.kappa * self.tau + kappa * tau - centre;
        let worth = dot(&self.costs, &second.x) + bounds.dot(&second.z);
        let tau = ((1.0 - part) * off - turn / self.tau + worth) / scale;
        let prices = self.weighed(&root, &second.z, &first.z, tau);
        let slack = target.map(&prices, |target, price| -(target + price));
        let kappa = -(turn + self.kappa * tau) / self.tau;
        let length = STEP * self.longest(&lambda, &slack, &prices, (tau, kappa));

        let walk = |value: f64, step: f64| value + length * step;
        let x = self.x.iter().zip(second.x.iter().zip(&first.x));
        self.x = x.map(|(x, (two, one))| walk(*x, two + tau * one)).collect();
        let z = second.z.map(&first.z, |two, one| two + tau * one);
        self.prices = self.silent(self.prices.map(&z, walk), 0.0);
        let slack = slack.map(&root, |slack, root| slack * root);
        self.slack = self.silent(self.slack.map(&slack, walk), 1.0);
        self.kappa = walk(self.kappa, kappa);
        self.tau = walk(self.tau, tau);
    }

    /// Two parts of a change of prices together, in the measure of the point.
    fn weighed(&self, root: &Cone, two: &Cone, one: &Cone, tau: f64) -> Cone {
        let sum = two.map(one, |two, one| two + tau * one);
        self.silent(sum.map(root, |sum, root| sum * root), 0.0)
    }

    /// How far a step may go before something is 0.
    fn longest(&self, lambda: &Cone, slack: &Cone, prices: &Cone, ends: (f64, f64)) -> f64 {
        let least = |cone: &Cone| {
            let parts = cone.each().zip(lambda.each()).map(|(step, lambda)| step / lambda);
            parts.fold(f64::INFINITY, f64::min)
        };
        let least = least(slack).min(least(prices));
        let mut length = if least < 0.0 { -1.0 / least } else { f64::INFINITY };
        for (value, step) in [(self.tau, ends.0), (self.kappa, ends.1)] {
            if step < 0.0 {
                length = length.min(-value / step);
            }
        }
        length.clamp(STEP_MIN, STEP_MAX)
    }

    fn answer(&self, problem: &Problem, iterations: u32) -> Solution {
        let scale = |value: &f64, scale: &f64| value * scale / self.tau;
        let values: Vec<f64> =
            self.x.iter().zip(&self.scaled.column_scale).map(|(x, by)| scale(x, by)).collect();
        let prices = self.prices.rows.iter().zip(&self.scaled.row_scale);
        let prices = prices.map(|(price, by)| scale(price, by)).collect();
        Solution { objective: dot(&problem.objective, &values), values, prices, iterations }
    }
}

/// The problem with rows and columns brought near size 1, and the coefficient of each column in
/// the row of its own. The scaling stops half-way, and where it stops decides the start.
fn equilibrated(problem: &Problem) -> (Scaled, Vec<f64>) {
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

fn dot(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(one, two)| one * two).sum()
}

fn norm(values: &[f64]) -> f64 {
    dot(values, values).sqrt()
}
