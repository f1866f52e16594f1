//! What suspending costs here, learnt from how long it took: machines differ in how fast their
//! buses and memories are.
//!
//! A line by the memory that moves, out and back, fitted by least squares with one fixed time for
//! both. It begins at what was believed before, which counts as a few cases, and the past fades.
//! Policies are told of another cost only when it is clearly another.

use hostler_core::suspend::SuspendCost;
use hostler_core::units::{Mib, Span};

/// Sizes in GiB at which what was believed before counts as a case, each way.
const BELIEVED_AT: [f64; 3] = [1.0, 16.0, 64.0];
/// What is left of the weight of earlier cases at each new one.
const FADES: f64 = 0.9;
/// A cost is another one where it differs by more than this part at one of those sizes.
const CLEARLY: f64 = 0.25;
/// No case counts as longer: a machine that stood still says nothing about memory.
const LONGEST_SECS: f64 = 600.0;

/// Which way memory moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Out,
    Back,
}

/// What was seen so far.
pub(super) struct SuspendTimes {
    out: Sums,
    back: Sums,
    /// What policies go by.
    told: SuspendCost,
}

/// Sums over cases of memory (x) and time (y), by weight.
#[derive(Clone, Copy, Default)]
struct Sums {
    weight: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Sums {
    fn add(&mut self, gib: f64, secs: f64) {
        let faded = [&mut self.weight, &mut self.x, &mut self.y, &mut self.xx, &mut self.xy];
        faded.into_iter().for_each(|sum| *sum *= FADES);
        self.count(gib, secs);
    }

    fn count(&mut self, gib: f64, secs: f64) {
        self.weight += 1.0;
        self.x += gib;
        self.y += secs;
        self.xx += gib * gib;
        self.xy += gib * secs;
    }

    /// The best slope for a fixed time.
    fn slope(&self, fixed: f64) -> f64 {
        ((self.xy - fixed * self.x) / self.xx).max(0.0)
    }
}

impl SuspendTimes {
    /// Nothing seen yet, and this believed.
    pub(super) fn new(believed: SuspendCost) -> SuspendTimes {
        let (mut out, mut back) = (Sums::default(), Sums::default());
        for gib in BELIEVED_AT {
            out.count(gib, believed.out(mib(gib)).secs_f64());
            back.count(gib, believed.back(mib(gib)).secs_f64());
        }
        SuspendTimes { out, back, told: believed }
    }

    /// What policies go by.
    pub(super) fn cost(&self) -> SuspendCost {
        self.told
    }

    /// Takes in how long it took to move so much. The answer is the cost that policies should go by
    /// from now on, where that is another.
    pub(super) fn learn(&mut self, way: Way, moved: Mib, took: Span) -> Option<SuspendCost> {
        let (gib, secs) = (f64::from(moved.0) / 1024.0, took.secs_f64().min(LONGEST_SECS));
        match way {
            Way::Out => self.out.add(gib, secs),
            Way::Back => self.back.add(gib, secs),
        }
        let fitted = self.fit();
        differs(fitted, self.told).then(|| {
            self.told = fitted;
            fitted
        })
    }

    /// Least squares of `fixed + slope * gib`, a slope for each way.
    fn fit(&self) -> SuspendCost {
        // What is left to explain by the fixed time once the best slope for it is put in.
        let part = |sums: &Sums| {
            (sums.y - sums.xy * sums.x / sums.xx, sums.weight - sums.x * sums.x / sums.xx)
        };
        let ((out, out_weight), (back, back_weight)) = (part(&self.out), part(&self.back));
        let fixed = ((out + back) / (out_weight + back_weight)).max(0.0);
        let span = |secs: f64| Span((secs * 1e6) as u64);
        SuspendCost {
            fixed: span(fixed),
            out_per_gib: span(self.out.slope(fixed)),
            back_per_gib: span(self.back.slope(fixed)),
        }
    }
}

fn mib(gib: f64) -> Mib {
    Mib((gib * 1024.0) as u32)
}

fn differs(one: SuspendCost, other: SuspendCost) -> bool {
    let far = |one: Span, other: Span| {
        let (one, other) = (one.secs_f64(), other.secs_f64());
        (one - other).abs() > CLEARLY * one.max(other)
    };
    let mut sizes = BELIEVED_AT.into_iter().map(mib);
    sizes.any(|mem| far(one.out(mem), other.out(mem)) || far(one.back(mem), other.back(mem)))
}

#[cfg(test)]
mod tests {
    use hostler_core::suspend::SuspendCost;
    use hostler_core::units::{Mib, Span};

    use super::{SuspendTimes, Way};

    fn millis(millis: u64) -> Span {
        Span(millis * 1000)
    }

    #[test]
    fn what_takes_as_long_as_believed_is_no_news() {
        let cost = SuspendCost::default();
        let mut times = SuspendTimes::new(cost);
        for gib in [1, 2, 21, 61, 140].into_iter().cycle().take(50) {
            let moved = Mib(gib * 1024);
            assert_eq!(times.learn(Way::Out, moved, cost.out(moved)), None);
            assert_eq!(times.learn(Way::Back, moved, cost.back(moved)), None);
        }
        assert_eq!(times.cost(), cost);
    }

    #[test]
    fn a_machine_of_half_the_speed_is_believed_after_some_cases() {
        let mut times = SuspendTimes::new(SuspendCost::default());
        for gib in [4, 40, 8, 60].into_iter().cycle().take(40) {
            times.learn(Way::Out, Mib(gib * 1024), millis(400 + 1200 * u64::from(gib)));
            times.learn(Way::Back, Mib(gib * 1024), millis(400 + 440 * u64::from(gib)));
        }
        let SuspendCost { out_per_gib, back_per_gib, .. } = times.cost();
        // Changes below a quarter are not told any more.
        assert!((900_000..1_300_000).contains(&out_per_gib.0), "{out_per_gib:?}");
        assert!((330_000..480_000).contains(&back_per_gib.0), "{back_per_gib:?}");
    }

    #[test]
    fn one_case_that_took_for_ever_is_not_believed_alone() {
        let mut times = SuspendTimes::new(SuspendCost::default());
        times.learn(Way::Out, Mib(1024), Span::from_secs(1_000_000));
        let out = times.cost().out(Mib(64 * 1024));
        assert!(out < Span::from_secs(300), "{out:?}");
        for _ in 0..60 {
            times.learn(Way::Out, Mib(1024), millis(800));
            times.learn(Way::Back, Mib(1024), millis(420));
        }
        assert!(times.cost().out(Mib(1024)) < Span::from_secs(2), "{:?}", times.cost());
    }
}
