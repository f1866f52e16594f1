//! The table of Gittins indices of the original, which averages GPU times where the textbook
//! averages what is left of them, and rounds on the way.

/// GPU seconds that the index looks ahead.
const AHEAD: u64 = 3250;

/// Indices by attained GPU time.
#[derive(Clone, Debug)]
pub(super) struct GittinsTable {
    samples: Vec<u64>,
    /// One for each sample, and zero for those who received more than the last.
    indices: Vec<f64>,
}

impl GittinsTable {
    /// The table of some samples; none where there are none.
    pub(super) fn new(samples: &[u64]) -> Option<GittinsTable> {
        let mut samples = samples.to_vec();
        samples.sort_unstable();
        let last = *samples.last()?;
        let mut sums = vec![0u64];
        for sample in &samples {
            sums.push(sums.last().copied().unwrap_or(0).saturating_add(*sample));
        }
        let index = |sample: &u64| index_at(&samples, &sums, i128::from(*sample) - 1, last);
        let indices = samples.iter().map(index).chain([0.0]).collect();
        Some(GittinsTable { samples, indices })
    }

    /// The index of a job that has received so many GPU seconds.
    pub(super) fn index(&self, attained: u64) -> f64 {
        self.indices[self.samples.partition_point(|sample| *sample <= attained)]
    }
}

/// The index at an attained GPU time, among sorted samples and their sums.
fn index_at(samples: &[u64], sums: &[u64], attained: i128, last: u64) -> f64 {
    let last_but_one = i128::from(last) - 1;
    if attained > last_but_one {
        return 0.0;
    }
    let beyond = |time: i128| samples.partition_point(|sample| i128::from(*sample) <= time);
    let ahead = attained + i128::from(AHEAD);
    let count = samples.len();
    let first = beyond(attained);
    let end = if ahead > last_but_one { count - 1 } else { beyond(ahead) };
    let alive = (count - first) as f64;
    let part = rounded((end as f64 - first as f64) / alive, 5);
    let within = sums[end].saturating_sub(sums[first]);
    let cost = (within + AHEAD * (count - end) as u64) / (count - first) as u64;
    rounded(part * 1e6 / cost as f64, 4)
}

/// A number to so many decimals; halves go away from zero, as in Python 2.
fn rounded(number: f64, decimals: i32) -> f64 {
    let scale = libm::pow(10.0, f64::from(decimals));
    (number * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_those_of_the_published_formula() {
        // After 99 s four jobs of 100, 200, 3000 and 9000 GPU seconds are left. Three of them end
        // within 3250 s; the mean is (100 + 200 + 3000 + 3250) / 4 = 1637.
        let table = GittinsTable::new(&[9000, 100, 200, 3000]).expect("there are samples");
        assert!((table.index(0) - rounded(0.75e6 / 1637.0, 4)).abs() < 1e-9);
        // After 199 s three are left: (200 + 3000 + 3250) / 3 = 2150.
        assert!((table.index(100) - rounded(0.66667e6 / 2150.0, 4)).abs() < 1e-9);
        assert!(table.index(9000).abs() < 1e-9);
    }
}
