//! How fast two workloads run on one GPU together, from the pairs that were measured.
//!
//! Rows are workloads, columns are (GPU model, partner), entries are the speed in the pair over
//! the speed alone. Some entries were never measured. A factorisation of the table fills them in,
//! which tells how much two rows are alike; what a row lacks, the most alike row that was measured
//! there lends to it. Everything is deterministic: the seed is fixed, iterations are counted.

use hostler_core::random::Random;

use crate::limits::{FACTOR_ITERATIONS, FACTOR_RANK};

/// Weight that keeps factors small.
const MU: f64 = 1e-2;

const SEED: u64 = 1;

/// A table of shares with gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct PairTable {
    rows: Vec<Vec<Option<f64>>>,
    columns: usize,
}

impl PairTable {
    /// A table of these rows; none if they differ in length, or hold what is no share.
    pub fn new(rows: Vec<Vec<Option<f64>>>) -> Option<PairTable> {
        let columns = rows.first()?.len();
        let sane = |row: &Vec<Option<f64>>| {
            let mut known = row.iter().flatten();
            row.len() == columns && known.all(|entry| (0.0..=1.0).contains(entry))
        };
        (columns > 0 && rows.iter().all(sane)).then_some(PairTable { rows, columns })
    }

    /// All rows without gaps: entries that were measured stay, the others are between 0 and 1.
    /// Those of a row or a column of which nothing is known are 0.
    pub fn fill(&self) -> Vec<Vec<f64>> {
        let (left, right) = factors(&self.rows, self.columns);
        let entry = |row: usize, column: usize| {
            let product = || dot(&left[row], &right[column]).clamp(0.0, 1.0);
            self.rows[row][column].unwrap_or_else(product)
        };
        let whole = |row: usize| (0..self.columns).map(|column| entry(row, column)).collect();
        (0..self.rows.len()).map(whole).collect()
    }

    /// What is believed of each row: what was measured, and for the rest what was measured of the
    /// row that is most alike, at the least cosine distance. Gaps remain in columns of which
    /// nothing is known, and in rows of which nothing is known.
    pub fn estimate(&self) -> Vec<Vec<Option<f64>>> {
        let filled = self.fill();
        let row = |own: usize| {
            let known = &self.rows[own];
            let (some, all) =
                (known.iter().any(Option::is_some), known.iter().all(Option::is_some));
            if all || !some {
                return known.clone();
            }
            let alike = by_likeness(&filled, own);
            let lent = |column: usize| alike.iter().find_map(|other| self.rows[*other][column]);
            (0..self.columns).map(|column| known[column].or_else(|| lent(column))).collect()
        };
        (0..self.rows.len()).map(row).collect()
    }
}

/// The other rows, the most alike first; equals in their order.
fn by_likeness(rows: &[Vec<f64>], own: usize) -> Vec<usize> {
    let others = (0..rows.len()).filter(|at| *at != own);
    let mut others: Vec<(f64, usize)> =
        others.map(|at| (cosine(&rows[at], &rows[own]), at)).collect();
    others.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    others.into_iter().map(|(_, at)| at).collect()
}

/// Factors whose products come near the entries: alternating least squares, each factor held
/// small. Starts from the same draws whatever the entries are.
fn factors(table: &[Vec<Option<f64>>], columns: usize) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let rank = FACTOR_RANK.min(table.len()).min(columns);
    let mut random = Random::new(SEED);
    let mut draw = || (0..rank).map(|_| random.uniform()).collect();
    let mut right: Vec<Vec<f64>> = (0..columns).map(|_| draw()).collect();
    let mut by_row: Vec<Vec<(usize, f64)>> = vec![Vec::new(); table.len()];
    let mut by_column: Vec<Vec<(usize, f64)>> = vec![Vec::new(); columns];
    for (row, entries) in table.iter().enumerate() {
        for (column, value) in entries.iter().enumerate() {
            if let Some(value) = value {
                by_row[row].push((column, *value));
                by_column[column].push((row, *value));
            }
        }
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

    fn known(rows: &[Vec<f64>]) -> Vec<Vec<Option<f64>>> {
        rows.iter().map(|row| row.iter().copied().map(Some).collect()).collect()
    }

    #[test]
    fn a_few_measurements_fill_a_row_of_a_table_that_is_a_product() {
        let columns = [0.9, 0.8, 0.5, 1.0, 0.7, 0.6];
        let mut rows = known(&product(&[1.0, 0.5, 0.8, 0.3], &columns));
        // 0.6 times the columns, of which two are known.
        rows.push(vec![Some(0.54), None, None, Some(0.6), None, None]);
        let filled = PairTable::new(rows).unwrap().fill();
        for (column, value) in filled[4].iter().enumerate() {
            let hidden = 0.6 * columns[column];
            assert!((value - hidden).abs() < 0.02, "{column}: {value}, not {hidden}");
        }
        assert_eq!((filled[4][0], filled[4][3]), (0.54, 0.6));
    }

    #[test]
    fn the_most_alike_workload_lends_what_was_not_measured() {
        let mut rows = known(&[vec![0.9, 0.1, 0.9, 0.1], vec![0.1, 0.9, 0.1, 0.9], vec![0.5; 4]]);
        rows.push(vec![Some(0.2), Some(0.8), None, None]);
        let table = PairTable::new(rows.clone()).unwrap();
        assert_eq!(table.estimate()[3], [0.2, 0.8, 0.1, 0.9].map(Some));
        // What that one does not know either, the next one lends.
        rows[1][3] = None;
        let table = PairTable::new(rows).unwrap();
        assert_eq!(table.estimate()[3], [0.2, 0.8, 0.1, 0.5].map(Some));
    }

    #[test]
    fn what_nobody_measured_is_not_estimated() {
        let rows = vec![vec![Some(0.5), None], vec![None, None], vec![Some(0.7), None]];
        let table = PairTable::new(rows.clone()).unwrap();
        assert_eq!(table.estimate(), rows);
        assert_eq!(table.fill()[1], [0.0, 0.0]);
    }

    #[test]
    fn what_is_no_table_of_shares_is_refused() {
        assert_eq!(PairTable::new(vec![vec![Some(1.5)]]), None);
        assert_eq!(PairTable::new(vec![vec![Some(1.0)], vec![]]), None);
        assert_eq!(PairTable::new(Vec::new()), None);
    }
}
