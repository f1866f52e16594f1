//! The Mersenne Twister MT19937 of Matsumoto and Nishimura (1998), seeded and used as CPython's
//! `random` does. For results that others drew with it; own chance comes from `random`.

const WORDS: usize = 624;
const MIDDLE: usize = 397;
/// Seed of the array seeding, and the multipliers of its two rounds.
const BASE_SEED: u32 = 19_650_218;
const SPREAD: u32 = 1_812_433_253;
const FIRST_ROUND: u32 = 1_664_525;
const SECOND_ROUND: u32 = 1_566_083_941;
const TWIST: u32 = 0x9908_b0df;

/// Items up to which `random.sample` draws two of them from a list that it makes.
const POOL_MAX: u32 = 21;

/// The generator.
#[derive(Clone, Debug)]
pub struct Twister {
    words: [u32; WORDS],
    next: usize,
}

impl Twister {
    /// Seeded by an array of one word, as `random.seed(seed)` does for small integers.
    pub fn new(seed: u32) -> Twister {
        let mut words = [0u32; WORDS];
        words[0] = BASE_SEED;
        for at in 1..WORDS {
            let before = words[at - 1];
            words[at] = SPREAD.wrapping_mul(before ^ (before >> 30)).wrapping_add(at as u32);
        }
        let mut at = 1;
        let mut step = |words: &mut [u32; WORDS], factor: u32, add: u32, subtract: bool| {
            let before = words[at - 1];
            let mixed = words[at] ^ (before ^ (before >> 30)).wrapping_mul(factor);
            let add = if subtract { (at as u32).wrapping_neg() } else { add };
            words[at] = mixed.wrapping_add(add);
            at += 1;
            if at == WORDS {
                words[0] = words[WORDS - 1];
                at = 1;
            }
        };
        for _ in 0..WORDS {
            step(&mut words, FIRST_ROUND, seed, false);
        }
        for _ in 0..WORDS - 1 {
            step(&mut words, SECOND_ROUND, 0, true);
        }
        words[0] = 0x8000_0000;
        Twister { words, next: WORDS }
    }

    fn bits(&mut self) -> u32 {
        if self.next == WORDS {
            self.refill();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn refill(&mut self) {
        for at in 0..WORDS {
            let joined =
                (self.words[at] & 0x8000_0000) | (self.words[(at + 1) % WORDS] & 0x7fff_ffff);
            let twist = if joined & 1 == 1 { TWIST } else { 0 };
            self.words[at] = self.words[(at + MIDDLE) % WORDS] ^ (joined >> 1) ^ twist;
        }
        self.next = 0;
    }

    /// A number below `end`, by rejection.
    pub fn below(&mut self, end: u32) -> u32 {
        let bits = u32::BITS - end.leading_zeros();
        loop {
            let drawn = self.bits() >> (u32::BITS - bits);
            if drawn < end {
                return drawn;
            }
        }
    }

    /// Two different numbers below `end`, which is 2 at least, as `random.sample` draws them.
    pub fn two_of(&mut self, end: u32) -> [u32; 2] {
        let first = self.below(end);
        if end <= POOL_MAX {
            // The last of those that are left takes the place of the first that is drawn.
            let second = self.below(end - 1);
            return [first, if second == first { end - 1 } else { second }];
        }
        loop {
            let second = self.below(end);
            if second != first {
                return [first, second];
            }
        }
    }

    /// Shuffles from the last place down.
    pub fn shuffle<Item>(&mut self, items: &mut [Item]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at as u32 + 1);
            items.swap(at, other as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_numbers_come_in_the_order_that_cpython_gives() {
        let mut numbers: Vec<u32> = (0..10).collect();
        Twister::new(42).shuffle(&mut numbers);
        assert_eq!(numbers, EXPECTED);
    }

    #[test]
    fn two_of_a_few_or_of_many_are_those_that_cpython_draws() {
        let mut twister = Twister::new(42);
        let drawn = [2, 10, 21, 22, 50, 300].map(|end| twister.two_of(end));
        assert_eq!(drawn, [[0, 1], [4, 3], [7, 4], [3, 21], [47, 34], [44, 216]]);
    }

    const EXPECTED: [u32; 10] = [7, 3, 2, 8, 5, 6, 9, 4, 0, 1];
}
