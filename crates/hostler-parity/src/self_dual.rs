//! The interior-point method that published results were made with: Mehrotra's steps on the
//! homogeneous self-dual embedding, after Domahidi, Chu and Boyd, "ECOS: An SOCP solver for
//! embedded systems" (2013), for linear programmes only.
//!
//! Where a programme has many optimal answers, which of them a solver stops at is part of a policy
//! that goes by the answer. This one is for repeating such a policy: it starts where that solver
//! starts, steps as it steps and stops when it stops. Unlike the method of production, it knows
//! when nothing keeps all rows. Columns are free here and have a row of their own that keeps them
//! above 0, but wide ones have none. Lists over all rows begin with those of the columns; at wide
//! ones they hold what does no harm: slack 1, everything else 0.

use hostler_policies::limits::LP_ITERATIONS_MAX;
use hostler_policies::lp::vector::dot;
use hostler_policies::lp::{LpError, LpSolution, Problem, Scaled, System};

/// Residuals, gap and certificates that are good enough.
const GOAL: f64 = 1e-8;
/// Part of the way to the border that a step goes, and the shortest and longest way.
const STEP: f64 = 0.99;
const STEP_MIN: f64 = 1e-6;
const STEP_MAX: f64 = 0.999;
/// Least part of the mean that products are sent back to.
const CENTRE_MIN: f64 = 1e-4;
/// Gap above which the next steps see to what rounding leaves of this one.
const ROUGH: f64 = 1e-3;
/// Rounds of scaling.
const SCALINGS: usize = 3;
/// Size below which a row or a column counts as empty.
const SIZE_MIN: f64 = 1e-6;
/// Numbers that are worked on side by side: one sum would wait for itself.
const LANES: usize = 4;
/// How far inside a start is that needs no shift.
const INSIDE: f64 = 0.01;

/// Solves a problem without logarithms.
pub fn solve(problem: &Problem) -> Result<LpSolution, LpError> {
    problem.solve_by(embed)
}

fn embed(problem: &Problem) -> Result<LpSolution, LpError> {
    let mut self_dual = Embedding::new(problem);
    let mut rest = Residuals::default();
    for iteration in 0..LP_ITERATIONS_MAX {
        self_dual.look(&mut rest);
        if !rest.worth.is_finite() {
            return Err(LpError::Stuck { iterations: iteration });
        }
        if self_dual.is_done(&rest) {
            return Ok(self_dual.answer(problem, iteration));
        }
        if self_dual.is_hopeless(&rest) {
            return Err(LpError::Infeasible);
        }
        self_dual.advance(&rest);
    }
    Err(LpError::Stuck { iterations: LP_ITERATIONS_MAX })
}

/// A step, or a part of one: in columns, and in the prices of all rows.
#[derive(Default)]
struct Move {
    x: Vec<f64>,
    z: Vec<f64>,
}

/// What is still missing at a point.
#[derive(Default)]
struct Residuals {
    /// What prices leave of no costs.
    covered: Vec<f64>,
    /// What prices leave of the costs.
    dual: Vec<f64>,
    /// What rows are off.
    primal: Vec<f64>,
    /// Value of the columns, and of the bounds at these prices.
    value: f64,
    worth: f64,
    gap: f64,
}

/// The programme, and its equations at a point.
struct Frame {
    scaled: Scaled,
    system: System,
    wide: Vec<usize>,
    /// Coefficient of each column in its own row; 0 where it has none.
    own: Vec<f64>,
    /// What is minimised.
    costs: Vec<f64>,
    /// Slack over price of all rows.
    ratio: Vec<f64>,
    slope: Vec<f64>,
    /// Whether answers are corrected by what the factors left undone.
    refines: bool,
}

impl Frame {
    fn new(problem: &Problem) -> Frame {
        let (scaled, own) = halfway(problem);
        let system = System::new(problem);
        Frame {
            costs: scaled.objective.iter().map(|gain| -gain).collect(),
            ratio: vec![1.0; own.len() + scaled.bounds.len()],
            slope: Vec::new(),
            refines: true,
            wide: problem.wide().to_vec(),
            scaled,
            system,
            own,
        }
    }

    fn columns(&self) -> usize {
        self.own.len()
    }

    /// Puts a value where wide columns have no row.
    fn silence(&self, list: &mut [f64], value: f64) {
        self.wide.iter().for_each(|&column| list[column] = value);
    }

    /// Makes ready for steps at the ratio.
    fn factor(&mut self) {
        let (columns, rows) = self.ratio.split_at(self.own.len());
        let theta = self.own.iter().zip(columns).map(|(own, ratio)| match *own > 0.0 {
            true => ratio / (own * own),
            false => f64::INFINITY,
        });
        self.system.factor(&self.scaled, theta, rows.iter().copied());
    }

    /// Solves `G' z = right` and `G x - ratio z = side`.
    fn solve(&mut self, right: &[f64], side: &[f64], found: &mut Move) {
        let count = self.columns();
        self.slope.clear();
        let columns = self.own.iter().zip(&side[..count]).zip(&self.ratio);
        let slope = right.iter().zip(columns);
        self.slope.extend(slope.map(|(right, ((own, side), ratio))| right - own * side / ratio));
        let opposite = side[count..].iter().map(|value| -value);
        match self.refines {
            true => self.system.solve(&self.scaled, &self.slope, opposite),
            false => self.system.solve_once(&self.scaled, &self.slope, opposite),
        }
        let Move { x, z } = found;
        x.clear();
        x.extend(self.system.columns(&self.scaled, &self.slope));
        self.system.wide().for_each(|(column, value)| x[column] = value);
        z.clear();
        let columns = self.own.iter().zip(side).zip(x.iter().zip(&self.ratio));
        z.extend(columns.map(|((own, side), (x, ratio))| (-own * x - side) / ratio));
        z.extend(self.system.prices());
    }

    /// What a move changes the gap by: its columns at their costs, and the bounds at its prices.
    fn worth(&self, found: &Move) -> f64 {
        dot(&self.costs, &found.x) + dot(&self.scaled.bounds, &found.z[self.columns()..])
    }
}

/// A point on the way, and what a step is made of.
struct Embedding {
    frame: Frame,
    x: Vec<f64>,
    slack: Vec<f64>,
    prices: Vec<f64>,
    tau: f64,
    kappa: f64,
    /// Rows, those of columns included.
    count: f64,
    /// Sizes of costs and of bounds, at least 1.
    sizes: (f64, f64),
    /// Bounds of all rows: 0 for those of columns.
    bounds: Vec<f64>,
    /// Roots of ratio and of product.
    root: Vec<f64>,
    lambda: Vec<f64>,
    side: Vec<f64>,
    first: Move,
    second: Move,
    /// Changes of slack and prices, in the measure of the point.
    slack_step: Vec<f64>,
    price_step: Vec<f64>,
}

impl Embedding {
    fn new(problem: &Problem) -> Embedding {
        let mut frame = Frame::new(problem);
        let (columns, rows) = (frame.columns(), frame.scaled.bounds.len());
        let size = |list: &[f64]| norm(list).max(1.0);
        let mut bounds = vec![0.0; columns];
        bounds.extend(&frame.scaled.bounds);
        frame.factor();
        let (mut primal, mut dual) = (Move::default(), Move::default());
        frame.solve(&vec![0.0; columns], &bounds, &mut primal);
        let gains = frame.scaled.objective.clone();
        frame.solve(&gains, &vec![0.0; columns + rows], &mut dual);
        primal.z.iter_mut().for_each(|value| *value = -*value);
        let inside = |mut list: Vec<f64>, silent: f64| {
            // What has no row must not be the least.
            frame.silence(&mut list, 1.0);
            let least = list.iter().copied().fold(f64::INFINITY, f64::min);
            let shift = if least <= 0.0 { 1.0 - least } else { INSIDE };
            list.iter_mut().for_each(|value| *value += shift);
            frame.silence(&mut list, silent);
            list
        };
        Embedding {
            x: primal.x,
            slack: inside(primal.z, 1.0),
            prices: inside(dual.z, 0.0),
            tau: 1.0,
            kappa: 1.0,
            count: (columns + rows - frame.wide.len()) as f64,
            sizes: (size(&frame.costs), size(&frame.scaled.bounds)),
            bounds,
            root: Vec::new(),
            lambda: Vec::new(),
            side: Vec::new(),
            first: Move::default(),
            second: Move::default(),
            slack_step: Vec::new(),
            price_step: Vec::new(),
            frame,
        }
    }

    /// Looks at what is missing here.
    fn look(&self, rest: &mut Residuals) {
        let Frame { scaled, own, costs, .. } = &self.frame;
        let columns = own.len();
        rest.covered.clear();
        rest.primal.clear();
        rest.primal.extend(own.iter().zip(&self.x).map(|(own, x)| -own * x));
        rest.primal.resize(columns + scaled.bounds.len(), 0.0);
        let (price_columns, price_rows) = self.prices.split_at(columns);
        let reached = &mut rest.primal[columns..];
        for (column, (x, (own, price))) in
            self.x.iter().zip(own.iter().zip(price_columns)).enumerate()
        {
            let (rows, values) = scaled.column(column);
            let mut sum = 0.0;
            for (&row, value) in rows.iter().zip(values) {
                reached[row as usize] += value * x;
                sum += value * price_rows[row as usize];
            }
            rest.covered.push(-(sum - own * price));
        }
        rest.dual.clear();
        let dual = rest.covered.iter().zip(costs);
        rest.dual.extend(dual.map(|(rest, cost)| rest - self.tau * cost));
        for (rest, (slack, bound)) in
            rest.primal.iter_mut().zip(self.slack.iter().zip(&self.bounds))
        {
            *rest = *rest + slack - self.tau * bound;
        }
        self.frame.silence(&mut rest.primal, 0.0);
        rest.value = dot(costs, &self.x);
        rest.worth = dot(&scaled.bounds, price_rows);
        rest.gap = dot(&self.slack, &self.prices);
    }

    fn is_done(&self, rest: &Residuals) -> bool {
        let silent = self.frame.wide.len() as f64;
        let slack = (dot(&self.slack, &self.slack) - silent).max(0.0).sqrt();
        let (x, z) = (norm(&self.x), norm(&self.prices));
        let primal = norm(&rest.primal) / (self.sizes.1 + x + slack).max(1.0) / self.tau;
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
        if self.tau >= self.kappa || rest.worth >= 0.0 {
            return false;
        }
        let size = norm(&self.prices).max(1.0);
        rest.worth / size < -GOAL && norm(&rest.covered) / size < GOAL
    }

    /// One step of the method.
    fn advance(&mut self, rest: &Residuals) {
        self.measure();
        self.frame.refines = rest.gap < ROUGH;
        self.frame.factor();
        // Lent: the equations do not look at it.
        let gains = std::mem::take(&mut self.frame.scaled.objective);
        self.frame.solve(&gains, &self.bounds, &mut self.first);
        self.frame.scaled.objective = gains;
        let scale = self.kappa / self.tau - self.frame.worth(&self.first);
        let off = self.kappa + rest.value + rest.worth;

        let side = self.slack.iter().zip(&rest.primal).map(|(slack, rest)| slack - rest);
        refill(&mut self.side, side);
        self.frame.silence(&mut self.side, 0.0);
        self.frame.solve(&rest.dual, &self.side, &mut self.second);
        let tau = (off - self.kappa + self.frame.worth(&self.second)) / scale;
        self.weigh(tau);
        let slack = self.price_step.iter().zip(&self.lambda);
        refill(&mut self.slack_step, slack.map(|(price, lambda)| -price - lambda));
        self.frame.silence(&mut self.slack_step, 0.0);
        let kappa = -self.kappa - self.kappa / self.tau * tau;
        let missed = 1.0 - self.longest((tau, kappa));
        let part = (missed * missed * missed).clamp(CENTRE_MIN, 1.0);
        let centre = part * (rest.gap + self.kappa * self.tau) / (self.count + 1.0);

        // From here on the step of the slack holds what the products are sent to.
        let products = self.slack_step.iter_mut().zip(&self.price_step);
        for ((slack, price), lambda) in products.zip(&self.lambda) {
            *slack = lambda + (*slack * price - centre) / lambda;
        }
        self.frame.silence(&mut self.slack_step, 0.0);
        let side = self.slack_step.iter().zip(&self.root).zip(&rest.primal);
        let side = side.map(|((target, root), rest)| target * root - (1.0 - part) * rest);
        refill(&mut self.side, side);
        let right: Vec<f64> = rest.dual.iter().map(|rest| (1.0 - part) * rest).collect();
        self.frame.solve(&right, &self.side, &mut self.second);
        let turn = self.kappa * self.tau + kappa * tau - centre;
        let worth = self.frame.worth(&self.second);
        let tau = ((1.0 - part) * off - turn / self.tau + worth) / scale;
        self.weigh(tau);
        let slack = self.slack_step.iter_mut().zip(&self.price_step);
        slack.for_each(|(target, price)| *target = -(*target + price));
        let kappa = -(turn + self.kappa * tau) / self.tau;
        let length = STEP * self.longest((tau, kappa));
        self.walk(length, tau, kappa);
    }

    /// Takes the measure of the point.
    fn measure(&mut self) {
        let both = || self.slack.iter().zip(&self.prices);
        refill(&mut self.frame.ratio, both().map(|(slack, price)| slack / price));
        refill(&mut self.lambda, both().map(|(slack, price)| (slack * price).sqrt()));
        self.frame.wide.iter().for_each(|&column| self.frame.ratio[column] = 1.0);
        self.frame.silence(&mut self.lambda, 1.0);
        refill(&mut self.root, self.frame.ratio.iter().map(|ratio| ratio.sqrt()));
    }

    /// Both parts of a change of prices together, in the measure of the point.
    fn weigh(&mut self, tau: f64) {
        let parts = self.second.z.iter().zip(&self.first.z).zip(&self.root);
        refill(&mut self.price_step, parts.map(|((two, one), root)| (two + tau * one) * root));
        self.frame.silence(&mut self.price_step, 0.0);
    }

    /// How far a step may go before something is 0.
    fn longest(&self, ends: (f64, f64)) -> f64 {
        let slack = least_ratio(&self.slack_step, &self.lambda);
        let least = slack.min(least_ratio(&self.price_step, &self.lambda));
        let mut length = if least < 0.0 { -1.0 / least } else { f64::INFINITY };
        for (value, step) in [(self.tau, ends.0), (self.kappa, ends.1)] {
            if step < 0.0 {
                length = length.min(-value / step);
            }
        }
        length.clamp(STEP_MIN, STEP_MAX)
    }

    fn walk(&mut self, length: f64, tau: f64, kappa: f64) {
        let parts = self.second.x.iter().zip(&self.first.x);
        for (x, (two, one)) in self.x.iter_mut().zip(parts) {
            *x += length * (two + tau * one);
        }
        let parts = self.second.z.iter().zip(&self.first.z);
        for (price, (two, one)) in self.prices.iter_mut().zip(parts) {
            *price += length * (two + tau * one);
        }
        self.frame.silence(&mut self.prices, 0.0);
        let steps = self.slack_step.iter().zip(&self.root);
        for (slack, (step, root)) in self.slack.iter_mut().zip(steps) {
            *slack += length * (step * root);
        }
        self.frame.silence(&mut self.slack, 1.0);
        self.kappa += length * kappa;
        self.tau += length * tau;
    }

    fn answer(&self, problem: &Problem, iterations: u32) -> LpSolution {
        let scaled = &self.frame.scaled;
        let scale = |value: &f64, scale: &f64| value * scale / self.tau;
        let values: Vec<f64> =
            self.x.iter().zip(&scaled.column_scale).map(|(x, by)| scale(x, by)).collect();
        let prices = self.prices[values.len()..].iter().zip(&scaled.row_scale);
        let prices = prices.map(|(price, by)| scale(price, by)).collect();
        LpSolution { objective: dot(problem.objective(), &values), values, prices, iterations }
    }
}

/// Fills a list anew, without giving its room back.
fn refill(list: &mut Vec<f64>, values: impl Iterator<Item = f64>) {
    list.clear();
    list.extend(values);
}

/// The problem with rows and columns brought near size 1, and the coefficient of each column in
/// the row of its own. The scaling stops half-way, and where it stops decides the start.
fn halfway(problem: &Problem) -> (Scaled, Vec<f64>) {
    let columns = problem.columns();
    let mut is_wide = vec![false; columns];
    problem.wide().iter().for_each(|&column| is_wide[column] = true);
    let mut own: Vec<f64> = is_wide.iter().map(|wide| if *wide { 0.0 } else { 1.0 }).collect();
    let mut values = problem.values().to_vec();
    let (mut row_scale, mut column_scale) = (vec![1.0; problem.rows()], vec![1.0; columns]);
    for _ in 0..SCALINGS {
        let mut row_size = vec![0.0f64; problem.rows()];
        let mut column_size = own.clone();
        for (column, size) in column_size.iter_mut().enumerate() {
            for (row, at) in problem.places(column) {
                let value = values[at].abs();
                let row = &mut row_size[row];
                (*size, *row) = (size.max(value), row.max(value));
            }
        }
        let shrink = |size: f64| if size < SIZE_MIN { 1.0 } else { 1.0 / size.sqrt() };
        let row_factor: Vec<f64> = row_size.into_iter().map(shrink).collect();
        for column in 0..columns {
            let factor = shrink(column_size[column]);
            column_scale[column] *= factor;
            own[column] *= factor * shrink(own[column]);
            for (row, at) in problem.places(column) {
                values[at] *= factor * row_factor[row];
            }
        }
        row_scale.iter_mut().zip(&row_factor).for_each(|(scale, factor)| *scale *= factor);
    }
    (Scaled::with(problem, values, row_scale, column_scale), own)
}

/// The root of the sum of squares.
fn norm(values: &[f64]) -> f64 {
    dot(values, values).sqrt()
}

/// The least quotient; what is no number does not count.
fn least_ratio(values: &[f64], over: &[f64]) -> f64 {
    let mut least = [f64::INFINITY; LANES];
    let lesser = |one: f64, other: f64| if one < other { one } else { other };
    let (value_fours, value_rest) = values.as_chunks::<LANES>();
    let (over_fours, over_rest) = over.as_chunks::<LANES>();
    for (value, over) in value_fours.iter().zip(over_fours) {
        for lane in 0..LANES {
            least[lane] = lesser(value[lane] / over[lane], least[lane]);
        }
    }
    let rest = value_rest.iter().zip(over_rest).map(|(value, over)| value / over);
    least.into_iter().chain(rest).fold(f64::INFINITY, |least, value| lesser(value, least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hostler_core::random::Random;
    use hostler_policies::lp::Solver;
    use proptest::prelude::*;

    /// Shares of jobs on types such that the least relative throughput is greatest.
    fn level_problem(seed: u64, jobs: usize, types: usize, tight: bool) -> Problem {
        let mut random = Random::new(seed);
        let mut bounds = Vec::new();
        (0..jobs).for_each(|_| bounds.extend([0.0, 1.0]));
        let workers = if tight { jobs as f64 / (2.0 * types as f64) } else { jobs as f64 };
        (0..types).for_each(|_| bounds.push(workers * (0.2 + random.uniform())));
        let mut problem = Problem::new(bounds, types);
        for job in 0..jobs {
            for gpu in 0..types {
                let rate =
                    if random.uniform() < 0.2 && gpu > 0 { 0.0 } else { random.uniform() + 0.01 };
                let entries = [(2 * job, -rate), (2 * job + 1, 1.0), (2 * jobs + gpu, 1.0)];
                problem.column(0.0, &entries);
            }
        }
        let level: Vec<(usize, f64)> =
            (0..jobs).map(|job| (2 * job, 0.5 + random.uniform())).collect();
        problem.wide_column(1.0, &level);
        problem
    }

    /// Any shares of three jobs on two types that give each job what it needs.
    fn any_problem(needs: [f64; 3]) -> Problem {
        let rates = [[4.0, 2.0], [3.0, 3.0], [1.0, 2.0]];
        let mut bounds = Vec::new();
        needs.iter().for_each(|need| bounds.extend([-need, 1.0]));
        bounds.extend([1.0, 1.0]);
        let mut problem = Problem::new(bounds, 2);
        for (job, rates) in rates.iter().enumerate() {
            for (gpu, rate) in rates.iter().enumerate() {
                problem.column(0.0, &[(2 * job, -rate), (2 * job + 1, 1.0), (6 + gpu, 1.0)]);
            }
        }
        problem
    }

    /// The answer of ECOS 2.0.14 to the same programme.
    #[test]
    fn among_answers_that_are_as_good_the_published_solver_gives_a_certain_one() {
        let answer = solve(&any_problem([1.0, 0.5, 0.25])).unwrap();
        let ecos = [0.138247, 0.440384, 0.227371, 0.241426, 0.419682, 0.141862];
        for (value, ecos) in answer.values.iter().zip(ecos) {
            assert!((value - ecos).abs() < 1e-4, "{:?}", answer.values);
        }
        assert_eq!(solve(&any_problem([4.0, 2.0, 1.0])), Err(LpError::Infeasible));
    }

    #[test]
    fn a_problem_without_a_feasible_point_is_known_as_such() {
        let mut problem = Problem::new(vec![1.0, -2.0], 0);
        problem.column(1.0, &[(0, 1.0), (1, -1.0)]);
        assert_eq!(solve(&problem), Err(LpError::Infeasible));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn it_agrees_with_the_simplex_method(
            seed: u64, jobs in 1usize..40, types in 1usize..5, tight: bool
        ) {
            let problem = level_problem(seed, jobs, types, tight);
            let embedded = solve(&problem).unwrap();
            let simplex = problem.solve(Solver::Simplex).unwrap();
            let off = (embedded.objective - simplex.objective).abs() / (1.0 + simplex.objective);
            prop_assert!(off < 1e-6, "{} {}", embedded.objective, simplex.objective);
        }
    }
}
