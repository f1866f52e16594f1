//! One number of all that is said of a job: the middle, or where most of it is close together.
//!
//! Where run times of like jobs have several humps (a job crashes within a minute, or trains for a
//! day), the middle may lie where no job ever ends. The other guess is right most often if the past
//! is a guide: most of the weight is within a quarter of it.

use super::memory::GUESSES;

/// Logarithms, in millionths, of how far a truth may be above and below a guess that is off by less
/// than a quarter of the truth: a guess of 1 is good for truths from 0.8 to 1.333.
const ABOVE: u32 = 287_682;
const BELOW: u32 = 223_144;

/// What is said of a job: run times that ascend, each with a weight in the lower half of its bits.
pub(super) struct Points {
    points: Vec<u64>,
    total: u64,
}

impl Points {
    pub(super) fn with_room_for(count: usize) -> Points {
        Points { points: Vec::with_capacity(count), total: 0 }
    }

    /// Adds a run time that has not been sorted in yet.
    pub(super) fn add(&mut self, run: u32, weight: u64) {
        if weight > 0 {
            // One number sorts faster than two; both halves have room.
            self.points.push(u64::from(run) << 32 | weight);
            self.total += weight;
        }
    }

    /// To be called once all are there.
    pub(super) fn sort(&mut self) {
        self.points.sort_unstable();
    }

    /// The run times below which a quarter, a half and three quarters of the weight are.
    pub(super) fn quartiles(&self) -> Option<[u32; 3]> {
        let mut quartiles = [run_of(*self.points.last()?); 3];
        let (mut sum, mut found) = (0, 0);
        for point in &self.points {
            sum += weight_of(*point);
            while found < 3 && 4 * sum >= self.total * (found as u64 + 1) {
                quartiles[found] = run_of(*point);
                found += 1;
            }
        }
        Some(quartiles)
    }

    /// Both guesses, when the middle is known.
    pub(super) fn guesses(&self, middle: u32) -> [u32; GUESSES] {
        [middle, self.crowded(middle)]
    }

    /// The guess within a quarter of which most of the weight is; among equals that closest to the
    /// middle.
    fn crowded(&self, middle: u32) -> u32 {
        let (mut best, mut guess) = (0, middle);
        let (mut first, mut sum) = (0, 0);
        for point in &self.points {
            let last = run_of(*point);
            sum += weight_of(*point);
            while last - run_of(self.points[first]) >= ABOVE + BELOW {
                sum -= weight_of(self.points[first]);
                first += 1;
            }
            // All from the largest below to the smallest above are equally good.
            let lowest = last.saturating_sub(ABOVE);
            let here = lowest.midpoint(run_of(self.points[first]) + BELOW);
            if sum > best || sum == best && here.abs_diff(middle) < guess.abs_diff(middle) {
                (best, guess) = (sum, here);
            }
        }
        guess
    }
}

/// Whether a guess is within a quarter of the truth.
pub(super) fn hits(guess: u32, truth: u32) -> bool {
    if truth >= guess { truth - guess < ABOVE } else { guess - truth < BELOW }
}

fn run_of(point: u64) -> u32 {
    (point >> 32) as u32
}

fn weight_of(point: u64) -> u64 {
    point & u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(list: &[(u32, u64)]) -> Points {
        let mut points = Points::with_room_for(list.len());
        list.iter().for_each(|(run, weight)| points.add(*run, *weight));
        points.sort();
        points
    }

    #[test]
    fn quartiles_are_those_of_the_weight() {
        assert_eq!(points(&[]).quartiles(), None);
        assert_eq!(points(&[(5, 1)]).quartiles(), Some([5; 3]));
        assert_eq!(points(&[(4, 1), (3, 1), (2, 1), (1, 1)]).quartiles(), Some([1, 2, 3]));
        assert_eq!(points(&[(1, 1), (2, 97), (3, 2)]).quartiles(), Some([2; 3]));
    }

    #[test]
    fn a_guess_goes_where_most_of_the_weight_is_close_together() {
        let logs = |secs: f64| (libm::log(secs) * 1e6) as u32;
        // Four crash after a minute or so, five take between an hour and a day.
        let humps = [60.0, 61.0, 62.0, 63.0, 3600.0, 9000.0, 20_000.0, 50_000.0, 86_400.0];
        let list: Vec<(u32, u64)> = humps.iter().map(|secs| (logs(*secs), 1)).collect();
        let points = points(&list);
        let [_, middle, _] = points.quartiles().expect("there are points");
        assert_eq!(middle, logs(3600.0));
        let [first, crowded] = points.guesses(middle);
        assert_eq!(first, middle);
        let good = humps.iter().filter(|secs| hits(crowded, logs(**secs))).count();
        assert_eq!(good, 4);
    }

    #[test]
    fn of_equal_crowds_the_one_in_the_middle_is_taken() {
        let points = points(&[(1_000_000, 1), (9_000_000, 1), (17_000_000, 1)]);
        let [_, crowded] = points.guesses(9_000_000);
        assert!(hits(crowded, 9_000_000), "{crowded}");
    }

    #[test]
    fn a_hit_is_off_by_less_than_a_quarter_of_the_truth() {
        let logs = |secs: f64| (libm::log(secs) * 1e6).round() as u32;
        for (guess, truth, hit) in
            [(100.0, 81.0, true), (100.0, 79.0, false), (100.0, 132.0, true), (100.0, 134.0, false)]
        {
            assert_eq!(hits(logs(guess), logs(truth)), hit, "{guess} for {truth}");
            assert_eq!(f64::abs(guess - truth) < 0.25 * truth, hit);
        }
    }
}
