//! First in, first out.
//!
//! Jobs start in the order of their submission. Needs no estimate and never preempts. By default
//! the order is strict: a job that does not fit blocks all behind it, so nobody is overtaken and
//! nobody starves, at the price of idle GPUs. With `head = "skips"` others that fit go ahead, and
//! a large job may wait for as long as small ones keep coming; `fifo-backfill` lies in between.

use hostler_core::job::Job;
use hostler_core::pipeline::{Cache, Head, Pipeline, Preempt, ShareRule};
use hostler_core::policy::{Cadence, PolicyDef, defaults, settings};
use hostler_core::predict::EstimateSource;
use hostler_core::stage::Order;
use hostler_core::view::View;

use crate::place::PlaceRule;

/// First in, first out.
pub const DEF: PolicyDef = PolicyDef {
    kind: "fifo",
    summary: "first in, first out; a job that does not fit blocks those behind it",
    needs: &[],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let Config { head, place, sharing } = settings("fifo", table)?;
        Ok(Box::new(Pipeline {
            order: Box::new(BySubmission),
            place: place.build(),
            head,
            preempt: Preempt::Never,
            sharing,
            cadence: Cadence::EveryEvent,
            estimates: EstimateSource::User,
            cache: Cache::default(),
        }))
    },
};

hostler_core::settings! {
    struct Config {
        /// What happens behind a job that does not fit.
        head: Head = Head::Blocks,
        /// Which nodes a job gets.
        place: PlaceRule = PlaceRule::BestFit,
        /// What jobs book that ask for a part of a GPU.
        sharing: ShareRule = ShareRule::Requests,
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
