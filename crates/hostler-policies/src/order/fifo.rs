//! First in, first out.
//!
//! Jobs start in the order of their submission. Needs no estimate and never preempts. By default
//! the order is strict: a job that does not fit blocks all behind it, so nobody is overtaken and
//! nobody starves, at the price of idle GPUs. With `head = "skips"` others that fit go ahead, and
//! a large job may wait for as long as small ones keep coming; `fifo-backfill` lies in between.

use hostler_core::job::Job;
use hostler_core::pipeline::{HalfLifeDays, Head, Pipeline, ShareRule};
use hostler_core::policy::PolicyDef;
use hostler_core::stage::{Order, Place};
use hostler_core::view::View;

use crate::place::PlaceRule;

/// Its name.
pub const KIND: &str = "fifo";

/// First in, first out.
pub fn def() -> PolicyDef {
    let summary = "first in, first out; a job that does not fit blocks those behind it";
    PolicyDef::new(KIND, summary, |config: Config| {
        let Config { head, place, sharing, fair_share_days } = config;
        let order = Pipeline { head, sharing, ..Pipeline::new(BySubmission, place.build()) };
        Ok(Box::new(order.with_fair_share(fair_share_days)))
    })
}

hostler_core::settings! {
    struct Config {
        head: Head = Head::Blocks,
        place: PlaceRule = PlaceRule::BestFit,
        sharing: ShareRule = ShareRule::Requests,
        fair_share_days: HalfLifeDays = HalfLifeDays::default(),
    }
}

/// First in, first out with a placement rule of its own; a job that does not fit is passed over.
pub(super) fn placing(
    kind: &'static str,
    summary: &'static str,
    rule: fn() -> Box<dyn Place>,
) -> PolicyDef {
    PolicyDef::new(kind, summary, move |config: Placing| {
        let Placing { head, sharing, fair_share_days } = config;
        let order = Pipeline { head, sharing, ..Pipeline::new(BySubmission, rule()) };
        Ok(Box::new(order.with_fair_share(fair_share_days)))
    })
}

hostler_core::settings! {
    struct Placing {
        head: Head = Head::Skips,
        sharing: ShareRule = ShareRule::Requests,
        fair_share_days: HalfLifeDays = HalfLifeDays::default(),
    }
}

/// Ranks by submission.
pub struct BySubmission;

impl Order for BySubmission {
    fn key(&self, _: &View<'_>, _: &Job) -> i64 {
        // Equal keys go by submission.
        0
    }
}
