//! Sums over lists of numbers.

/// Numbers that are worked on side by side: one sum would wait for itself.
const LANES: usize = 4;

/// The greatest of the numbers without their signs.
pub fn size(list: &[f64]) -> f64 {
    let mut sizes = [0.0f64; LANES];
    let (fours, rest) = list.as_chunks::<LANES>();
    for four in fours {
        for lane in 0..LANES {
            sizes[lane] = sizes[lane].max(four[lane].abs());
        }
    }
    rest.iter().fold(sizes.into_iter().fold(0.0, f64::max), |size, value| size.max(value.abs()))
}

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
