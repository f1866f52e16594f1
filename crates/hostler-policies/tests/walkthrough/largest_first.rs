//! Largest job first.
//!
//! Ranks jobs by the GPUs they ask for in all, most first, so that large gangs find the cluster
//! empty and small jobs fill what is left. Needs no estimate and never preempts. Small jobs may
//! starve while large ones keep coming.

use hostler_core::job::Job;
use hostler_core::pipeline::{Head, Pipeline};
use hostler_core::policy::PolicyDef;
use hostler_core::stage::Order;
use hostler_core::view::View;

use crate::place::PlaceRule;

/// Largest job first.
pub fn def() -> PolicyDef {
    let summary = "most GPUs asked for first, then by submission";
    PolicyDef::new("largest-first", summary, |config: Config| {
        let Config { head, place } = config;
        Ok(Box::new(Pipeline { head, ..Pipeline::new(BySize, place.build()) }))
    })
}

hostler_core::settings! {
    struct Config {
        head: Head = Head::Skips,
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
