//! How fast two workloads run on one GPU together, from a few measurements of one of them.
//!
//! Rows are reference workloads, columns are (GPU model, partner), entries are the speed in the
//! pair over the speed alone. A new workload is measured on some of the columns; a factorisation
//! of the table with its row fills in the others, and the most alike reference row lends its
//! entries until more is measured. Everything is deterministic: the seed is fixed, iterations are
//! counted.

use hostler_core::random::Random;

use crate::limits::{FACTOR_ITERATIONS, FACTOR_RANK};

/// Weight that keeps factors small.
const MU: f64 = 1e-2;

const SEED: u64 = 1;

/// A table of reference workloads.
#[derive(Clone, Debug, PartialEq)]
pub struct PairTable {
    rows: Vec<Vec<f64>>,
    columns: usize,
}

impl PairTable {
    /// A table of these rows; none if they differ in length, or hold what is no share.
    pub fn new(rows: Vec<Vec<f64>>) -> Option<PairTable> {
        let columns = rows.first()?.len();
        let sane = |row: &Vec<f64>| {
            row.len() == columns && row.iter().all(|entry| (0.0..=1.0).contains(entry))
        };
        (columns > 0 && rows.iter().all(sane)).then_some(PairTable { rows, columns })
    }

    /// The whole row of a new workload, of which some entries `(column, share)` were measured.
    /// Measured entries stay; the others are between 0 and 1.
    pub fn fill(&self, measured: &[(usize, f64)]) -> Vec<f64> {
        let mut entries: Vec<(usize, usize, f64)> = Vec::new();
        for (row, values) in self.rows.iter().enumerate() {
            entries.extend(values.iter().enumerate().map(|(column, value)| (row, column, *value)));
        }
        let new = self.rows.len();
        let known = measured.iter().filter(|(column, _)| *column < self.columns);
        entries.extend(known.clone().map(|(column, value)| (new, *column, value.clamp(0.0, 1.0))));
        let (rows, columns) = factors(&entries, new + 1, self.columns);
        let mut row: Vec<f64> =
            columns.iter().map(|column| dot(&rows[new], column).clamp(0.0, 1.0)).collect();
        known.for_each(|(column, value)| row[*column] = value.clamp(0.0, 1.0));
        row
    }

    /// The reference row at the least cosine distance, the first of equals.
    pub fn nearest(&self, row: &[f64]) -> usize {
        let near = |at: &usize| cosine(&self.rows[*at], row);
        let better = |best: usize, at: usize| if near(&at) > near(&best) { at } else { best };
        (1..self.rows.len()).fold(0, better)
    }

    /// What is believed of a new workload: the entries of the reference row that is most alike,
    /// except where it was measured itself.
    pub fn estimate(&self, measured: &[(usize, f64)]) -> (usize, Vec<f64>) {
        let nearest = self.nearest(&self.fill(measured));
        let mut row = self.rows[nearest].clone();
        for (column, value) in measured.iter().filter(|(column, _)| *column < self.columns) {
            row[*column] = value.clamp(0.0, 1.0);
        }
        (nearest, row)
    }
}

/// Factors whose products come near the entries: alternating least squares, each factor held
/// small. Starts from the same draws whatever the entries are.
fn factors(
    entries: &[(usize, usize, f64)],
    rows: usize,
    columns: usize,
) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let rank = FACTOR_RANK.min(rows).min(columns);
    let mut random = Random::new(SEED);
    let mut draw = || (0..rank).map(|_| random.uniform()).collect();
    let mut right: Vec<Vec<f64>> = (0..columns).map(|_| draw()).collect();
    let mut by_row: Vec<Vec<(usize, f64)>> = vec![Vec::new(); rows];
    let mut by_column: Vec<Vec<(usize, f64)>> = vec![Vec::new(); columns];
    for (row, column, value) in entries {
        by_row[*row].push((*column, *value));
        by_column[*column].push((*row, *value));
    }
    let fit = |known: &[Vec<(usize, f64)>], others: &[Vec<f64>]| -> Vec<Vec<f64>> {
        known.iter().map(|known| ridge(known, others, rank)).collect()
    };
    let mut left = fit(&by_row, &right);
    for _ in 0..FACTOR_ITERATIONS {
        right = fit(&by_column, &left);
        left = fit(&by_row, &right);
    }
    (left, right)
}

/// The factor that comes nearest to `known` against `others`, held small.
fn ridge(known: &[(usize, f64)], others: &[Vec<f64>], rank: usize) -> Vec<f64> {
    let mut matrix = vec![vec![0.0; rank]; rank];
    let mut target = vec![0.0; rank];
    for (at, value) in known {
        let other = &others[*at];
        for i in 0..rank {
            target[i] += other[i] * value;
            for j in 0..=i {
                matrix[i][j] += other[i] * other[j];
            }
        }
    }
    for (i, row) in matrix.iter_mut().enumerate() {
        row[i] += MU;
    }
    solve(matrix, target)
}

/// Solves a symmetric positive definite system given by its lower half (Cholesky).
fn solve(mut matrix: Vec<Vec<f64>>, mut target: Vec<f64>) -> Vec<f64> {
    let size = target.len();
    for i in 0..size {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| matrix[i][k] * matrix[j][k]).sum();
            let rest = matrix[i][j] - known;
            // The ridge keeps the diagonal above zero; rounding must not end in a division by it.
            matrix[i][j] =
                if i == j { libm::sqrt(rest.max(MU * 1e-3)) } else { rest / matrix[j][j] };
        }
    }
    for i in 0..size {
        let known: f64 = (0..i).map(|k| matrix[i][k] * target[k]).sum();
        target[i] = (target[i] - known) / matrix[i][i];
    }
    for i in (0..size).rev() {
        let known: f64 = (i + 1..size).map(|k| matrix[k][i] * target[k]).sum();
        target[i] = (target[i] - known) / matrix[i][i];
    }
    target
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let lengths = libm::sqrt(dot(a, a) * dot(b, b));
    if lengths > 0.0 { dot(a, b) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares that are a product of how gentle the one is and how gentle the other.
    fn product(gentle: &[f64], columns: &[f64]) -> Vec<Vec<f64>> {
        gentle.iter().map(|row| columns.iter().map(|column| row * column).collect()).collect()
    }

    #[test]
    fn a_few_measurements_fill_a_row_of_a_table_that_is_a_product() {
        let columns = [0.9, 0.8, 0.5, 1.0, 0.7, 0.6];
        let table = PairTable::new(product(&[1.0, 0.5, 0.8, 0.3], &columns)).unwrap();
        // 0.6 times the columns, of which two are known.
        let row = table.fill(&[(0, 0.54), (3, 0.6)]);
        for (column, value) in row.iter().enumerate() {
            let hidden = 0.6 * columns[column];
            assert!((value - hidden).abs() < 0.02, "{column}: {value}, not {hidden}");
        }
        assert_eq!((row[0], row[3]), (0.54, 0.6));
    }

    #[test]
    fn the_most_alike_workload_lends_what_was_not_measured() {
        let rows = vec![vec![0.9, 0.1, 0.9, 0.1], vec![0.1, 0.9, 0.1, 0.9], vec![0.5; 4]];
        let table = PairTable::new(rows).unwrap();
        let (nearest, row) = table.estimate(&[(0, 0.2), (1, 0.8)]);
        assert_eq!(nearest, 1);
        assert_eq!(row, [0.2, 0.8, 0.1, 0.9]);
    }

    #[test]
    fn nothing_measured_and_nonsense_measured_still_give_shares() {
        let table = PairTable::new(vec![vec![0.0, 1.0], vec![0.0, 0.0]]).unwrap();
        for measured in [&[][..], &[(0, 7.0)], &[(99, 0.5), (1, -1.0)]] {
            let row = table.fill(measured);
            assert!(row.iter().all(|share| (0.0..=1.0).contains(share)), "{row:?}");
            assert!(table.nearest(&row) < 2);
        }
        assert_eq!(PairTable::new(vec![vec![1.5]]), None);
        assert_eq!(PairTable::new(vec![vec![1.0], vec![]]), None);
        assert_eq!(PairTable::new(Vec::new()), None);
    }
}
