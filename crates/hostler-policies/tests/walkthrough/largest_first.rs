//! Largest job first.
//!
//! Ranks jobs by the GPUs they ask for in all, most first, so that large gangs find the cluster
//! empty and small jobs fill what is left. Needs no estimate and never preempts. Small jobs may
//! starve while large ones keep coming.

use hostler_core::job::Job;
use hostler_core::pipeline::{Cache, Head, Pipeline, Preempt, ShareRule};
use hostler_core::policy::{Cadence, PolicyDef, defaults, settings};
use hostler_core::predict::EstimateSource;
use hostler_core::stage::Order;
use hostler_core::view::View;

use crate::place::PlaceRule;

/// Largest job first.
pub const DEF: PolicyDef = PolicyDef {
    kind: "largest-first",
    summary: "most GPUs asked for first, then by submission",
    needs: &[],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let Config { head, place } = settings("largest-first", table)?;
        Ok(Box::new(Pipeline {
            order: Box::new(BySize),
            place: place.build(),
            head,
            preempt: Preempt::Never,
            sharing: ShareRule::Requests,
            cadence: Cadence::EveryEvent,
            estimates: EstimateSource::User,
            cache: Cache::default(),
        }))
    },
};

hostler_core::settings! {
    struct Config {
        /// What happens behind a job that does not fit.
        head: Head = Head::Skips,
        /// Which nodes a job gets.
        place: PlaceRule = PlaceRule::BestFit,
    }
}

struct BySize;

impl Order for BySize {
    fn key(&self, _: &View<'_>, job: &Job) -> i64 {
        // The least key comes first.
        -i64::try_from(job.spec.gpu_milli()).unwrap_or(i64::MAX)
    }
}
