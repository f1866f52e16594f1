//! Sums over lists of numbers.

/// Numbers that are worked on side by side: one sum would wait for itself.
const LANES: usize = 4;

/// The sum of the products.
pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (left_fours, left_rest) = left.as_chunks::<LANES>();
    let (right_fours, right_rest) = right.as_chunks::<LANES>();
    for (one, other) in left_fours.iter().zip(right_fours) {
        for lane in 0..LANES {
            sums[lane] += one[lane] * other[lane];
        }
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(one, other)| one * other).sum();
    sums[0] + sums[1] + sums[2] + sums[3] + rest
}

/// The root of the sum of squares.
pub(super) fn norm(values: &[f64]) -> f64 {
    dot(values, values).sqrt()
}

/// The least quotient; what is no number does not count.
pub(super) fn least_ratio(values: &[f64], over: &[f64]) -> f64 {
    let mut least = [f64::INFINITY; LANES];
    let lesser = |one: f64, other: f64| if one < other { one } else { other };
    let (value_fours, value_rest) = values.as_chunks::<LANES>();
    let (over_fours, over_rest) = over.as_chunks::<LANES>();
    for (value, over) in value_fours.iter().zip(over_fours) {
        for lane in 0..LANES {
            least[lane] = lesser(value[lane] / over[lane], least[lane]);
        }
    }
    let rest = value_rest.iter().zip(over_rest).map(|(value, over)| value / over);
    least.into_iter().chain(rest).fold(f64::INFINITY, |least, value| lesser(value, least))
}
