//! Quantiles, distributions and means over time.

/// Nearest rank: element ceil(q n) - 1 of ascending values; NaN of none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// Nearest rank over ascending values that count several times each.
pub fn weighted_quantile(sorted: &[(f64, u64)], share: f64) -> f64 {
    let total: u64 = sorted.iter().map(|(_, weight)| weight).sum();
    let rank = ((share * total as f64).ceil() as u64).max(1);
    let mut seen = 0;
    let mut reached = sorted.iter().filter(|(_, weight)| {
        seen += weight;
        seen >= rank
    });
    reached.next().map_or(f64::NAN, |(value, _)| *value)
}

/// Finite values, ascending.
pub fn ascending(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Finite values with their weights, ascending.
pub fn ascending_weighted(values: impl IntoIterator<Item = (f64, u64)>) -> Vec<(f64, u64)> {
    let finite = values.into_iter().filter(|(value, _)| value.is_finite());
    let mut values: Vec<(f64, u64)> = finite.collect();
    values.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    values
}

/// Middle value; the mean of the two in the middle of an even number.
pub fn median(sorted: &[f64]) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    sorted[(sorted.len() - 1) / 2].midpoint(sorted[sorted.len() / 2])
}

/// Share of values that satisfy a condition; NaN of none.
pub fn share(values: &[f64], condition: impl Fn(f64) -> bool) -> f64 {
    let count = values.iter().filter(|value| condition(**value)).count();
    count as f64 / values.len() as f64
}

/// Mean; NaN of none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Most buckets of time, and most cells of rows over time: 8 million cells of two sums are
/// 128 MB.
const BUCKETS_MAX: f64 = 20_000.0;
const CELLS_MAX: f64 = 8e6;

/// Time cut into buckets of one hour, or of several where the trace is long.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Start of the first bucket.
    pub start: f64,
    /// Length of a bucket.
    pub width: f64,
    /// Number of buckets.
    pub buckets: usize,
}

impl Clock {
    /// Buckets that cover all times, for so many rows; none without a time.
    pub fn over(times: impl Iterator<Item = (f64, f64)>, rows: usize) -> Option<Clock> {
        Clock::at(times, rows, 0.0)
    }

    /// The same; hours begin where a clock that is ahead by `zone_secs` says so.
    pub fn at(
        times: impl Iterator<Item = (f64, f64)>,
        rows: usize,
        zone_secs: f64,
    ) -> Option<Clock> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (start, end) in times.filter(|(start, end)| end >= start) {
            (low, high) = (low.min(start), high.max(end));
        }
        if low > high {
            return None;
        }
        let start = ((low + zone_secs) / 3600.0).floor() * 3600.0 - zone_secs;
        let hours = ((high - start) / 3600.0).ceil().max(1.0);
        let most = BUCKETS_MAX.min((CELLS_MAX / rows.max(1) as f64).floor()).max(1.0);
        let width = (hours / most).ceil().max(1.0) * 3600.0;
        let buckets = ((high - start) / width).ceil().max(1.0) as usize;
        Some(Clock { start, width, buckets })
    }

    /// Start of each bucket, counted from the first.
    pub fn times(&self) -> Vec<f64> {
        (0..self.buckets).map(|bucket| bucket as f64 * self.width).collect()
    }
}

/// Time-weighted sums in buckets. Adding costs the same for short and long intervals.
#[derive(Clone, Debug)]
pub struct Spread {
    clock: Clock,
    rows: usize,
    /// Parts of buckets at the ends of intervals, then changes at full buckets.
    parts: Vec<f64>,
    steps: Vec<f64>,
}

impl Spread {
    /// No intervals yet.
    pub fn new(clock: Clock, rows: usize) -> Spread {
        let cells = clock.buckets * rows;
        Spread { clock, rows, parts: vec![0.0; cells], steps: vec![0.0; cells] }
    }

    /// Adds `rate` from `start` to `end` in a row. Intervals without length add nothing.
    pub fn add(&mut self, row: usize, start: f64, end: f64, rate: f64) {
        let Clock { start: zero, width, buckets } = self.clock;
        let most = buckets as f64;
        // `clamp` keeps NaN where `min` would turn it into the end of time.
        let (from, to) = ((start - zero) / width, ((end - zero) / width).clamp(-1.0, most));
        // NaN is in no order, so a time or rate that is not known adds nothing either.
        if !(from >= 0.0 && to > from && rate.is_finite()) {
            return;
        }
        let at = row * buckets;
        let (first, last) = (from as usize, (to as usize).min(buckets - 1));
        if first == last {
            self.parts[at + first] += rate * (to - from);
            return;
        }
        self.parts[at + first] += rate * ((first + 1) as f64 - from);
        self.parts[at + last] += rate * (to - last as f64);
        self.steps[at + first + 1] += rate;
        self.steps[at + last] -= rate;
    }

    /// Mean rate of every bucket, row by row.
    pub fn means(self) -> Vec<f64> {
        let Spread { clock, rows, parts: mut means, steps } = self;
        for row in 0..rows {
            let mut level = 0.0;
            for cell in row * clock.buckets..(row + 1) * clock.buckets {
                level += steps[cell];
                means[cell] += level;
                // What is left of a sum of thirds is not a use of anything.
                if means[cell].abs() < 1e-9 {
                    means[cell] = 0.0;
                }
            }
        }
        means
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_weighted_by_their_time_in_each_bucket() {
        let clock = Clock { start: 0.0, width: 10.0, buckets: 4 };
        let mut spread = Spread::new(clock, 2);
        spread.add(0, 5.0, 35.0, 2.0);
        spread.add(0, 12.0, 14.0, 1.0);
        spread.add(1, 0.0, 40.0, 1.0);
        spread.add(1, 7.0, f64::NAN, 1.0);
        assert_eq!(spread.means(), [1.0, 2.2, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&values, 0.5), 2.0);
        assert_eq!(quantile(&values, 0.51), 3.0);
        assert!(quantile(&[], 0.5).is_nan());
        assert_eq!(weighted_quantile(&[(1.0, 3), (5.0, 1)], 0.75), 1.0);
        assert_eq!(weighted_quantile(&[(1.0, 3), (5.0, 1)], 0.76), 5.0);
    }

    #[test]
    fn a_long_trace_gets_wider_buckets() {
        let clock = Clock::over([(0.0, 3.2e11)].into_iter(), 2000).unwrap();
        assert!(clock.buckets * 2000 <= CELLS_MAX as usize, "{clock:?}");
        let clock = Clock::over([(7200.0, 10_801.0)].into_iter(), 1).unwrap();
        assert_eq!((clock.start, clock.width, clock.buckets), (7200.0, 3600.0, 2));
    }
}
