//! Percentiles and means, defined once for every report.

/// The `percent`-th percentile by nearest rank: the smallest value that at least `percent` per cent
/// of all values do not exceed. An observed value, never interpolated. `sorted` ascends; none when
/// it is empty.
pub fn percentile<Value: Copy>(sorted: &[Value], percent: u32) -> Option<Value> {
    assert!(percent <= 100, "percentile {percent} is beyond 100");
    let rank = (sorted.len() as u64 * u64::from(percent)).div_ceil(100);
    let index = rank.saturating_sub(1) as usize;
    sorted.get(index).copied()
}

/// `part` of `whole`; zero when there is no whole.
pub(super) fn ratio(part: u128, whole: u128) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_value_at_the_nearest_rank() {
        let values = [15, 20, 35, 40, 50];
        let at = |percent| percentile(&values, percent);
        assert_eq!(
            [at(0), at(5), at(20), at(21), at(50), at(99), at(100)],
            [15, 15, 15, 20, 35, 50, 50].map(Some)
        );
        let hundred: Vec<u32> = (1..=100).collect();
        assert_eq!(percentile(&hundred, 99), Some(99));
        assert_eq!(percentile::<u32>(&[], 50), None);
    }
}
