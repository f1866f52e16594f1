//! The past as a stage: tenants that used less than their due come first.
//!
//! Wraps any order. What tenants used is weighed a few times in each half-life, and jobs rank by
//! how far their tenant is from what is due to it, in quarters of a doubling; among tenants that
//! are equally far, by the order itself.

use serde::{Deserialize, Serialize};

use crate::account::{LEVEL_MAX, WEIGHINGS_PER_HALF_LIFE};
use crate::job::Job;
use crate::plan::Plan;
use crate::policy::SettingType;
use crate::stage::{Learnt, Order};
use crate::units::{Span, Time};
use crate::view::View;

/// Bits of a key that the order itself has.
const ORDER_BITS: u32 = 57;

/// Days after which used GPU time counts half; zero when the past does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct HalfLifeDays(f64);

impl SettingType for HalfLifeDays {
    const TAKES: &'static str = "days";
    const HELP: &'static str = "Days after which GPU time that a tenant used counts half; those \
                                who used less than their due come first. 0: the past does not \
                                count.";
}

impl TryFrom<f64> for HalfLifeDays {
    type Error = &'static str;

    fn try_from(days: f64) -> Result<HalfLifeDays, &'static str> {
        // Less than a minute would be weighed more often than jobs come.
        match days == 0.0 || (0.0007..=3650.0).contains(&days) {
            true => Ok(HalfLifeDays(days)),
            false => Err("0, or a number of days from 0.0007 to 3650"),
        }
    }
}

impl From<HalfLifeDays> for f64 {
    fn from(days: HalfLifeDays) -> f64 {
        days.0
    }
}

impl HalfLifeDays {
    /// The half-life, if the past counts.
    pub fn span(self) -> Option<Span> {
        (self.0 > 0.0).then_some(Span((self.0 * 86_400e6) as u64))
    }
}

/// Ranks by what tenants used before, then by another order.
pub fn by_past(order: Box<dyn Order>) -> Box<dyn Order> {
    Box::new(ByPast { order })
}

struct ByPast {
    order: Box<dyn Order>,
}

impl Order for ByPast {
    fn key(&self, view: &View<'_>, job: &Job) -> i64 {
        let level = i64::from(view.tenant_account(job.spec.tenant).level) + i64::from(LEVEL_MAX);
        let half = 1i64 << (ORDER_BITS - 1);
        let own = self.order.key(view, job).clamp(-half, half - 1) + half;
        (level << ORDER_BITS) + own
    }

    fn learn(&mut self, view: &View<'_>) -> Learnt {
        self.order.learn(view)
    }

    fn is_timed(&self) -> bool {
        self.order.is_timed()
    }

    fn wakes(&self) -> bool {
        self.order.wakes()
    }

    fn changes_at(&self, view: &View<'_>, job: &Job) -> Option<Time> {
        self.order.changes_at(view, job)
    }
}

/// Weighs the past if it is time, and asks to be woken when it is time again. Nothing is ranked
/// while nobody waits or runs.
pub fn weigh_in_time(view: &View<'_>, half_life: Span, plan: &mut Plan<'_>) {
    let step = Span((half_life.0 / WEIGHINGS_PER_HALF_LIFE).max(1));
    let next = match view.weighed_at() {
        Some(last) if view.now() < last + step => last + step,
        Some(_) | None => {
            plan.weigh_past(half_life);
            view.now() + step
        }
    };
    if view.pending().first().is_some() && view.lease_count() > 0 {
        plan.wake_at(next);
    }
}
