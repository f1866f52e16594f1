//! Chance, and how messages fare on their way.

use hostler_core::random::Random;

/// Chance from a seed.
pub struct Dice(Random);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Random::new(seed))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.bits() % end.max(1)
    }

    /// A number from `low` to `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Whether something happens that happens `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

/// How the network treats messages while there are faults.
pub struct Habits {
    /// Whether messages of one connection overtake each other.
    pub reorders: bool,
    /// Messages in a thousand that vanish.
    pub lost: u64,
    /// Messages in a thousand that come twice.
    pub doubled: u64,
    /// Messages in a thousand that take seconds.
    pub slow: u64,
}

impl Habits {
    pub fn draw(dice: &mut Dice) -> Habits {
        let [reorders, loses] = [dice.chance(500), dice.chance(500)];
        Habits {
            reorders,
            lost: if loses { dice.below(30) } else { 0 },
            doubled: dice.below(60),
            slow: dice.below(40),
        }
    }

    /// A network without faults.
    pub fn calm() -> Habits {
        Habits { reorders: false, lost: 0, doubled: 0, slow: 0 }
    }

    /// Milliseconds after which a message arrives, for each of its copies.
    pub fn delays(&self, dice: &mut Dice) -> Vec<u64> {
        if dice.chance(self.lost) {
            return Vec::new();
        }
        let copies = if dice.chance(self.doubled) { 2 } else { 1 };
        (0..copies)
            .map(|_| {
                if dice.chance(self.slow) { dice.between(500, 6_000) } else { dice.between(1, 40) }
            })
            .collect()
    }
}
