//! What tenants used, and what follows from it: budgets of GPU time, and who comes first where the
//! past counts.
//!
//! Plain data and arithmetic in integers. Only the state changes an [`TenantAccount`].

use serde::{Deserialize, Serialize};

use crate::units::{Span, Time};

/// GPU time that the jobs of a tenant may use in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Time of whole GPUs.
    pub gpu_time: Span,
    /// Length of a period; the first begins when the budget is given.
    pub every: Span,
}

/// What a tenant used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantAccount {
    /// Time of whole GPUs, up to `since`.
    pub used: Span,
    /// Thousandths of GPUs that it has held since then.
    pub held: u64,
    /// When `held` last changed.
    pub since: Time,
    /// When the present period of its budget began.
    pub period_from: Time,
    /// What it had used by then.
    pub period_base: Span,
    /// What it had used when the past was last weighed.
    pub weighed: Span,
    /// GPU time used in the past, the older the less.
    pub past: Span,
    /// How far it is above its due (positive) or below, in quarters of a doubling.
    pub level: i8,
}

/// Levels go this far from zero: sixteen times its due, or a sixteenth.
pub const LEVEL_MAX: i8 = 16;

/// The past is weighed so often in each half-life.
pub const WEIGHINGS_PER_HALF_LIFE: u64 = 64;

/// 2^(-1/64) in 2^-32.
const STEP_FACTOR: u128 = 4_248_701_965;

impl TenantAccount {
    /// GPU time used up to an instant.
    pub fn used_at(&self, now: Time) -> Span {
        self.used + gpu_time(self.held, now.since(self.since))
    }

    /// GPU time used in the present period of a budget.
    pub fn spent_at(&self, now: Time) -> Span {
        self.used_at(now).saturating_sub(self.period_base)
    }

    pub(crate) fn settle(&mut self, now: Time) {
        self.used = self.used_at(now);
        self.since = now;
    }

    /// When a budget is used up at the present pace.
    pub(crate) fn exhausted_at(&self, budget: &Budget) -> Option<Time> {
        let spent = self.used.saturating_sub(self.period_base);
        let left = u128::from(budget.gpu_time.saturating_sub(spent).0) * 1000;
        let micros = left.div_ceil(u128::from(self.held.max(1)));
        (self.held > 0).then(|| Time(self.since.0.saturating_add(clamped(micros))))
    }

    /// Weighs the past again, some steps after the last time.
    pub(crate) fn weigh(&mut self, now: Time, steps: u64) {
        let used = self.used_at(now);
        let (mut past, steps) = (u128::from(self.past.0), steps.min(64 * 64));
        for _ in 0..steps {
            past = (past * STEP_FACTOR) >> 32;
        }
        self.past = Span(clamped(past)) + used.saturating_sub(self.weighed);
        self.weighed = used;
    }
}

/// Time of whole GPUs in a span with so many thousandths of them.
fn gpu_time(held_milli: u64, span: Span) -> Span {
    Span(clamped(u128::from(held_milli) * u128::from(span.0) / 1000))
}

fn clamped(micros: u128) -> u64 {
    u64::try_from(micros).unwrap_or(u64::MAX)
}

/// How far a use is above what is due, or below, in quarters of a doubling: `use` of `uses`, where
/// `weight` of `weights` is due.
pub(crate) fn level(used: u64, uses: u64, weight: u64, weights: u64) -> i8 {
    if used == 0 || uses == 0 {
        return -LEVEL_MAX;
    }
    // The ratio in 2^-32, and its logarithm: whole doublings by the leading bit, quarters by
    // what is behind it.
    let due = (u128::from(weight) * u128::from(uses)).max(1);
    let ratio = (u128::from(used) * u128::from(weights)).saturating_mul(1 << 32) / due;
    let Some(doublings) = ratio.checked_ilog2() else { return -LEVEL_MAX };
    let mantissa = (ratio << (127 - doublings)) >> 111;
    // The middles between quarters, 2^(1/8) to 2^(7/8), in 2^-16.
    let middles = [71_468, 84_990, 101_070, 120_194];
    let quarters = middles.iter().filter(|middle| mantissa >= **middle).count();
    let level = (doublings as i32 - 32) * 4 + quarters as i32;
    level.clamp(-i32::from(LEVEL_MAX), i32::from(LEVEL_MAX)) as i8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_past_counts_after_a_half_life() {
        let mut account = TenantAccount { past: Span(1 << 40), ..TenantAccount::default() };
        account.weigh(Time::ZERO, WEIGHINGS_PER_HALF_LIFE);
        let half = (1u64 << 39) as f64;
        assert!((account.past.0 as f64 / half - 1.0).abs() < 1e-6, "{:?}", account.past);
        account.weigh(Time::ZERO, u64::MAX);
        assert_eq!(account.past, Span::ZERO);
    }

    #[test]
    fn what_is_held_is_used_and_is_new_when_it_is_weighed() {
        let mut account = TenantAccount { held: 2500, ..TenantAccount::default() };
        let now = Time::from_secs(100);
        assert_eq!(account.used_at(now), Span::from_secs(250));
        account.weigh(now, 1);
        assert_eq!((account.past, account.weighed), (Span::from_secs(250), Span::from_secs(250)));
        account.settle(now);
        assert_eq!((account.used, account.since), (Span::from_secs(250), now));
        account.weigh(now, 0);
        assert_eq!(account.past, Span::from_secs(250));
    }

    #[test]
    fn a_budget_is_used_up_at_the_pace_of_what_is_held() {
        let budget = Budget { gpu_time: Span::from_secs(100), every: Span::from_secs(1000) };
        let mut account = TenantAccount { since: Time::from_secs(5), ..TenantAccount::default() };
        assert_eq!(account.exhausted_at(&budget), None);
        account.held = 4000;
        assert_eq!(account.exhausted_at(&budget), Some(Time::from_secs(30)));
        account.used = Span::from_secs(300);
        assert_eq!(account.exhausted_at(&budget), Some(Time::from_secs(5)));
        account.period_base = Span::from_secs(260);
        assert_eq!(account.exhausted_at(&budget), Some(Time::from_secs(20)));
    }

    #[test]
    fn levels_are_quarters_of_a_doubling_of_what_is_due() {
        assert_eq!(level(0, 0, 1, 2), -LEVEL_MAX);
        assert_eq!(level(0, 9, 1, 2), -LEVEL_MAX);
        assert_eq!(level(5, 10, 1, 2), 0);
        assert_eq!(level(10, 10, 1, 2), 4);
        assert_eq!(level(5, 10, 2, 2), -4);
        assert_eq!(level(6, 10, 1, 2), 1);
        assert_eq!(level(100, 100, 1, 1000), LEVEL_MAX);
        assert_eq!(level(u64::MAX, u64::MAX, 1, u64::from(u32::MAX)), LEVEL_MAX);
        assert_eq!(level(1, u64::MAX, 1, 1), -LEVEL_MAX);
    }
}
