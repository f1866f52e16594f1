//! A step function over the buckets of a grid, recorded in any order of time and without loss.

use super::grid::Grid;
use crate::units::Time;

/// The integral of a step function in each bucket.
///
/// A step adds its value to the rest of its bucket (`partial`) and to all buckets that follow; the
/// latter is one entry of `slope`, whose running sum is the level at which a bucket begins. So a
/// step costs two additions wherever it lies.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    partial: Vec<i128>,
    slope: Vec<i128>,
}

impl Steps {
    pub(super) fn new(grid: &Grid) -> Steps {
        Steps { partial: vec![0; grid.count()], slope: vec![0; grid.count() + 1] }
    }

    /// The quantity changes by `delta` at `at`, which the grid covers. What comes before the first
    /// bucket counts from there.
    pub(super) fn step(&mut self, grid: &Grid, at: Time, delta: i64) {
        let Some(origin) = grid.origin() else {
            self.slope[0] += i128::from(delta);
            return;
        };
        let at = at.max(origin);
        let bucket = grid.bucket(at);
        let rest = grid.start(bucket + 1).since(at).0;
        self.partial[bucket] += i128::from(delta) * i128::from(rest);
        self.slope[bucket + 1] += i128::from(delta);
    }

    /// Follows the grid, whose buckets are about to become twice as wide.
    pub(super) fn merge(&mut self, grid: &Grid) {
        let width = i128::from(grid.width().0);
        let half = grid.count() / 2;
        for pair in 0..half {
            let second = self.slope[2 * pair + 1] * width;
            self.partial[pair] = self.partial[2 * pair] + self.partial[2 * pair + 1] + second;
            // Behind the entries that are still to be read.
            if pair > 0 {
                self.slope[pair] = self.slope[2 * pair - 1] + self.slope[2 * pair];
            }
        }
        self.slope[half] = self.slope[2 * half - 1] + self.slope[2 * half];
        self.partial[half..].fill(0);
        self.slope[half + 1..].fill(0);
    }

    /// The integral in each bucket that begins before `until`; no step lies behind it.
    pub(super) fn integrals(&self, grid: &Grid, until: Time) -> Vec<i128> {
        let width = i128::from(grid.width().0);
        let filled = grid.filled(until);
        let mut level = 0;
        let mut integrals = Vec::with_capacity(filled);
        for bucket in 0..filled {
            level += self.slope[bucket];
            integrals.push(self.partial[bucket] + level * width);
        }
        if let Some(last) = integrals.last_mut() {
            let end_level: i128 = self.slope.iter().sum();
            *last -= end_level * i128::from(grid.start(filled).since(until).0);
        }
        integrals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEC: i128 = 1_000_000;

    fn step(grid: &mut Grid, steps: &mut Steps, at: Time, delta: i64) {
        while grid.is_short(at) {
            steps.merge(grid);
            grid.widen();
        }
        steps.step(grid, at, delta);
    }

    #[test]
    fn buckets_hold_exact_integrals_also_for_steps_that_come_late() {
        let mut grid = Grid::new(4);
        grid.open(Time::from_secs(100));
        let mut steps = Steps::new(&grid);
        step(&mut grid, &mut steps, Time::from_millis(100_250), 4);
        step(&mut grid, &mut steps, Time::from_millis(102_500), -4);
        step(&mut grid, &mut steps, Time::from_secs(101), 2);
        let until = Time::from_secs(103);
        assert_eq!(
            steps.integrals(&grid, until),
            [3 * SEC, 6 * SEC, 4 * SEC],
            "0.75 s of 4, 1 s of 6, half a second of 6 and of 2"
        );
    }

    #[test]
    fn merging_keeps_every_integral() {
        let mut grid = Grid::new(4);
        grid.open(Time::ZERO);
        let mut steps = Steps::new(&grid);
        for (at, delta) in [(0, 1), (1, 2), (2, 4), (3, 8), (9, -15), (5, 16)] {
            step(&mut grid, &mut steps, Time::from_secs(at), delta);
        }
        assert_eq!(grid.width().0, 4_000_000, "merged twice");
        let integrals = steps.integrals(&grid, Time::from_secs(11));
        let expected = [1 + 3 + 7 + 15, 4 * 15 + 3 * 16, 15 + 2 * 16 + 16];
        assert_eq!(integrals, expected.map(|value| value * SEC));
    }
}
