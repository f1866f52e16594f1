//! A quantity over time, summed exactly. Not for distributions.

use crate::units::Time;

/// The integral of a step function, in units times microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Integral {
    value: u64,
    since: Time,
    sum: u128,
    marked: u128,
}

impl Integral {
    /// The value now.
    pub(super) fn value(&self) -> u64 {
        self.value
    }

    /// Forgets the past: the integral counts from `at` on.
    pub(super) fn restart(&mut self, at: Time) {
        self.since = at;
        self.sum = 0;
        self.marked = 0;
    }

    /// From `at` on the quantity has another value. `mark` is the latest instant at which somebody
    /// may want to read the integral afterwards; it never goes back.
    pub(super) fn set(&mut self, at: Time, mark: Time, value: u64) {
        self.marked = self.at_mark(mark);
        self.sum = self.at(at);
        self.since = at.max(self.since);
        self.value = value;
    }

    /// The integral up to `at`, which is not before the last change.
    pub(super) fn at(&self, at: Time) -> u128 {
        self.sum + u128::from(self.value) * u128::from(at.since(self.since).0)
    }

    /// The integral up to the mark, wherever the last change was.
    pub(super) fn at_mark(&self, mark: Time) -> u128 {
        if self.since <= mark { self.at(mark) } else { self.marked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integral_can_be_read_at_a_mark_that_lies_behind() {
        let mut level = Integral::default();
        level.set(Time(10), Time(0), 3);
        level.set(Time(20), Time(0), 5);
        // The mark moves to 24 while the level is 5; then two more changes.
        level.set(Time(30), Time(24), 1);
        level.set(Time(40), Time(24), 9);
        assert_eq!(level.at_mark(Time(24)), 10 * 3 + 4 * 5);
        assert_eq!(level.at(Time(41)), 10 * 3 + 10 * 5 + 10 + 9);
        assert_eq!(level.at_mark(Time(41)), level.at(Time(41)));
        level.restart(Time(50));
        assert_eq!(level.at(Time(52)), 18);
    }
}
