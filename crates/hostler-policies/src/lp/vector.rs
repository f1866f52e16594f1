//! Sums over lists of numbers.

/// Numbers that are worked on side by side: one sum would wait for itself.
const LANES: usize = 4;

/// The sum of the products.
pub fn dot(left: &[f64], right: &[f64]) -> f64 {
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
