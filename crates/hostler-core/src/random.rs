//! Chance from a seed: xoshiro256++ seeded by splitmix64. The only source of it.
//!
//! Both are public-domain algorithms with published constants (Blackman and Vigna). They are
//! written out here because the same seed must give the same trace in every later version, which
//! a library does not promise. `exp`, `ln` and `cos` come from `libm` for the same reason.

use libm::{cos, log, sqrt};

/// A stream of pseudo-random numbers. Not for secrets.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Random {
        let mut mix = seed;
        Random { state: std::array::from_fn(|_| splitmix64(&mut mix)) }
    }

    /// One of several streams of a seed that do not depend on each other.
    pub fn stream(seed: u64, number: u64) -> Random {
        let mut mix = number;
        Random::new(seed ^ splitmix64(&mut mix))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Standard normal (Box-Muller, one of the pair; the other is not kept).
    pub fn normal(&mut self) -> f64 {
        let radius = sqrt(-2.0 * log(1.0 - self.uniform()));
        radius * cos(2.0 * std::f64::consts::PI * self.uniform())
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -log(1.0 - self.uniform())
    }

    /// A value of a table, with chance proportional to its weight.
    pub fn pick<T: Copy>(&mut self, table: &[(T, f64)]) -> T {
        let total: f64 = table.iter().map(|(_, weight)| weight).sum();
        let mut left = self.uniform() * total;
        for (value, weight) in table {
            left -= weight;
            if left < 0.0 {
                return *value;
            }
        }
        table.last().expect("a table of chances has a row").0
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the reference C code: state 1, 2, 3, 4.
    #[test]
    fn xoshiro_gives_the_reference_numbers() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let numbers: Vec<u64> = (0..6).map(|_| random.bits()).collect();
        let reference = [
            41943041,
            58720359,
            3588806011781223,
            3591011842654386,
            9228616714210784205,
            9973669472204895162,
        ];
        assert_eq!(numbers, reference);
    }

    /// From the reference C code: seed 1234567.
    #[test]
    fn splitmix_gives_the_reference_numbers() {
        let mut state = 1234567;
        let numbers: Vec<u64> = (0..3).map(|_| splitmix64(&mut state)).collect();
        assert_eq!(numbers, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn draws_have_the_moments_of_their_distribution() {
        let mut random = Random::new(1);
        let count = 100_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..count).map(|_| draw()).sum::<f64>() / 1e5;
        assert!((mean(&mut || random.uniform()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || random.exponential()) - 1.0).abs() < 0.02);
        assert!(mean(&mut || random.normal()).abs() < 0.02);
        assert!(
            (mean(&mut || {
                let draw = random.normal();
                draw * draw
            }) - 1.0)
                .abs()
                < 0.03
        );
        let table = [(3.0, 1.0), (1.0, 3.0)];
        assert!((mean(&mut || random.pick(&table)) - 1.5).abs() < 0.02);
    }
}
