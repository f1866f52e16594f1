//! Factors of a symmetric matrix whose rows each reach back only so far: its skyline.
//!
//! Rows that belong to one class of jobs touch nothing but each other, and the few rows that link
//! all of them come last. Stored from the first entry of each row, such a matrix costs its rows
//! times the linking ones; a full matrix costs what it always costs. No pivoting: the caller orders
//! the rows and knows the sign of each pivot.

use super::vector::dot;

/// Part of a diagonal entry that is rounding.
const PIVOT_MIN: f64 = 1e-15;

/// A symmetric matrix, then its factors `L D L'` in the same place.
#[derive(Clone, Debug)]
pub(super) struct Skyline {
    /// First column of each row.
    first: Vec<usize>,
    /// Where each row begins in `values`; its last entry is the diagonal.
    starts: Vec<usize>,
    values: Vec<f64>,
    /// One over each pivot.
    diagonal: Vec<f64>,
}

impl Skyline {
    /// An empty matrix whose rows begin at these columns.
    pub fn new(first: Vec<usize>) -> Skyline {
        let mut starts = Vec::with_capacity(first.len() + 1);
        let mut end = 0;
        for (row, &column) in first.iter().enumerate() {
            assert!(column <= row, "row {row} begins at {column}, beyond the diagonal");
            starts.push(end);
            end += row - column + 1;
        }
        let size = first.len();
        starts.push(end);
        Skyline { first, starts, values: vec![0.0; end], diagonal: vec![0.0; size] }
    }

    /// Sets all entries to 0.
    pub fn clear(&mut self) {
        self.values.fill(0.0);
    }

    /// Where an entry at or below the diagonal is kept.
    pub fn spot(&self, row: usize, column: usize) -> usize {
        self.starts[row] + column - self.first[row]
    }

    /// Adds to the entries that are kept at these spots.
    pub fn add(&mut self, spots: &[usize], values: impl Iterator<Item = f64>) {
        spots.iter().zip(values).for_each(|(&spot, value)| self.values[spot] += value);
    }

    /// Replaces the matrix by its factors. `negative` says which pivots are below 0.
    pub fn factor(&mut self, negative: impl Fn(usize) -> bool) {
        for row in 0..self.first.len() {
            let sign = if negative(row) { -1.0 } else { 1.0 };
            let first = self.first[row];
            let (done, rest) = self.values.split_at_mut(self.starts[row]);
            let entries = &mut rest[..row - first + 1];
            let before = entries[row - first];
            for column in first..row {
                let from = self.first[column].max(first);
                let start = self.starts[column] + from - self.first[column];
                // Most rows belong to a class and reach back to one other at most.
                match column - from {
                    0 => {}
                    1 => entries[column - first] -= 0.0 + entries[from - first] * done[start],
                    length => {
                        let other = &done[start..start + length];
                        let sum = dot(&entries[from - first..column - first], other);
                        entries[column - first] -= sum;
                    }
                }
            }
            let mut pivot = before;
            for column in first..row {
                let raw = entries[column - first];
                let scaled = raw * self.diagonal[column];
                pivot -= raw * scaled;
                entries[column - first] = scaled;
            }
            // A pivot that rounding ate or turned is at least rounding itself: the factors are then
            // those of a matrix next to this one.
            let least = (before.abs() * PIVOT_MIN).max(f64::MIN_POSITIVE);
            self.diagonal[row] = sign / (pivot * sign).max(least);
        }
    }

    /// Solves for one right-hand side, in place.
    pub fn solve(&mut self, side: &mut [f64]) {
        let size = self.first.len();
        for row in 0..size {
            let first = self.first[row];
            let entries = &self.values[self.starts[row]..self.starts[row] + row - first];
            side[row] -= dot(entries, &side[first..row]);
        }
        for (value, inverse) in side.iter_mut().zip(&self.diagonal) {
            *value *= inverse;
        }
        for row in (0..size).rev() {
            let first = self.first[row];
            let value = side[row];
            let entries = &self.values[self.starts[row]..self.starts[row] + row - first];
            for (target, entry) in side[first..row].iter_mut().zip(entries) {
                *target -= entry * value;
            }
        }
    }
}
