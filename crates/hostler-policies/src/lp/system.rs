//! The equations of a step of an interior-point method: the normal equations, in which the few wide
//! columns stay, before the linking rows, instead of filling the matrix.

use super::Problem;
use super::scaled::Scaled;
use super::skyline::Skyline;

/// The equations of a step.
#[derive(Debug)]
pub struct System {
    matrix: Skyline,
    /// Rows before the wide columns.
    local: usize,
    wide: Vec<usize>,
    is_wide: Vec<bool>,
    /// Place among the equations of the row of each entry.
    places: Vec<u32>,
    /// Where products of two entries of a column go, column by column; then the diagonal, row by
    /// row; then the entries of wide columns, each after its own diagonal.
    spots: Vec<usize>,
    /// Value of each column over its reduced cost, at the point of the factors.
    theta: Vec<f64>,
    /// Slack of each row over its price, there.
    diagonal: Vec<f64>,
    answer: Vec<f64>,
    rest: Vec<f64>,
}

impl System {
    /// Makes room for the equations of a problem.
    pub fn new(problem: &Problem) -> System {
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
        let places: Vec<u32> = problem.rows.iter().map(|&row| place(row as usize) as u32).collect();
        let matrix = Skyline::new(first);
        let mut spots = Vec::new();
        let mut note = |one: usize, other: usize| {
            spots.push(matrix.spot(one.max(other), one.min(other)));
        };
        for column in (0..problem.columns()).filter(|&column| !is_wide[column]) {
            let places = &places[problem.starts[column]..problem.starts[column + 1]];
            for (at, &place) in places.iter().enumerate() {
                places[..=at].iter().for_each(|&other| note(place as usize, other as usize));
            }
        }
        (0..problem.rows()).for_each(|row| note(place(row), place(row)));
        for (number, &column) in wide.iter().enumerate() {
            let own = local + number;
            note(own, own);
            problem.entries(column).for_each(|(row, _)| note(place(row), own));
        }
        System {
            places,
            spots,
            matrix,
            local,
            wide,
            is_wide,
            theta: Vec::new(),
            diagonal: Vec::new(),
            answer: Vec::new(),
            rest: Vec::new(),
        }
    }

    /// Makes ready for steps from a point, told by its ratios: `theta` of columns over reduced
    /// costs, `diagonal` of slack over prices.
    pub fn factor(
        &mut self,
        scaled: &Scaled,
        theta: impl Iterator<Item = f64>,
        diagonal: impl Iterator<Item = f64>,
    ) {
        self.theta.clear();
        self.theta.extend(theta);
        self.diagonal.clear();
        self.diagonal.extend(diagonal);
        self.matrix.clear();
        let mut spots = &self.spots[..];
        for (column, &theta) in self.theta.iter().enumerate() {
            if self.is_wide[column] {
                continue;
            }
            let (_, values) = scaled.column(column);
            for (at, value) in values.iter().enumerate() {
                let weight = value * theta;
                let (own, rest) = spots.split_at(at + 1);
                self.matrix.add(own, values[..=at].iter().map(|factor| weight * factor));
                spots = rest;
            }
        }
        let (own, mut spots) = spots.split_at(self.diagonal.len());
        self.matrix.add(own, self.diagonal.iter().copied());
        for &column in &self.wide {
            let (_, values) = scaled.column(column);
            let (own, rest) = spots.split_at(values.len() + 1);
            let entries = values.iter().map(|value| -value);
            self.matrix.add(own, std::iter::once(-1.0 / self.theta[column]).chain(entries));
            spots = rest;
        }
        let (local, shift) = (self.local, self.wide.len());
        self.matrix.factor(|row| row >= local && row < local + shift);
    }

    /// Finds the prices that a step changes by: of `M dy = A theta slope + side`, wide columns kept
    /// apart. The answer is corrected by what the factors left undone.
    pub fn solve(&mut self, scaled: &Scaled, slope: &[f64], side: impl Iterator<Item = f64>) {
        self.solve_once(scaled, slope, side);
        self.subtract(scaled);
        self.matrix.solve(&mut self.rest);
        self.answer.iter_mut().zip(&self.rest).for_each(|(value, rest)| *value += rest);
    }

    /// As [`System::solve`], without the correction.
    pub fn solve_once(
        &mut self,
        scaled: &Scaled,
        slope: &[f64],
        mut side: impl Iterator<Item = f64>,
    ) {
        let (local, shift) = (self.local, self.wide.len());
        let right = &mut self.rest;
        right.clear();
        right.extend(side.by_ref().take(local));
        right.extend(self.wide.iter().map(|&column| -slope[column]));
        right.extend(side);
        for (column, &slope) in slope.iter().enumerate() {
            if self.is_wide[column] || slope == 0.0 {
                continue;
            }
            let weight = self.theta[column] * slope;
            let (places, values) = scaled.beside(column, &self.places);
            for (&place, value) in places.iter().zip(values) {
                right[place as usize] += value * weight;
            }
        }
        debug_assert_eq!(right.len(), self.diagonal.len() + shift, "one side for each row");
        self.answer.clone_from(right);
        self.matrix.solve(&mut self.answer);
    }

    /// Takes the matrix times the answer from the rest: what the factors left undone.
    fn subtract(&mut self, scaled: &Scaled) {
        let (local, shift) = (self.local, self.wide.len());
        let (answer, rest) = (&self.answer, &mut self.rest);
        for (row, own) in self.diagonal.iter().enumerate() {
            let place = if row < local { row } else { row + shift };
            rest[place] -= own * answer[place];
        }
        for (column, theta) in self.theta.iter().enumerate() {
            if self.is_wide[column] {
                continue;
            }
            let (places, values) = scaled.beside(column, &self.places);
            let entries = || places.iter().map(|&place| place as usize).zip(values);
            let covered: f64 = entries().map(|(place, value)| value * answer[place]).sum();
            let weight = covered * theta;
            entries().for_each(|(place, value)| rest[place] -= value * weight);
        }
        for (number, &column) in self.wide.iter().enumerate() {
            let own = local + number;
            rest[own] += answer[own] / self.theta[column];
            let (places, values) = scaled.beside(column, &self.places);
            for (&place, value) in places.iter().zip(values) {
                rest[own] += value * answer[place as usize];
                rest[place as usize] += value * answer[own];
            }
        }
    }

    /// What the rows' prices change by, in the last answer.
    pub fn prices(&self) -> impl Iterator<Item = f64> + '_ {
        let linking = &self.answer[self.local + self.wide.len()..];
        self.answer[..self.local].iter().chain(linking).copied()
    }

    /// What the columns change by in the last answer, for the slope that it was found with.
    pub fn columns<'a>(
        &'a self,
        scaled: &'a Scaled,
        slope: &'a [f64],
    ) -> impl Iterator<Item = f64> + 'a {
        slope.iter().zip(&self.theta).enumerate().map(move |(column, (slope, theta))| {
            let (places, values) = scaled.beside(column, &self.places);
            let entries = places.iter().zip(values);
            let covered: f64 = entries.map(|(&at, value)| value * self.answer[at as usize]).sum();
            theta * (slope - covered)
        })
    }

    /// Wide columns and what they change by in the last answer.
    pub fn wide(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.wide.iter().copied().zip(self.answer[self.local..].iter().copied())
    }
}
