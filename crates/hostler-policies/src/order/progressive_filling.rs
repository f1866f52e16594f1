//! Progressive filling: first in, first out onto the nodes whose GPUs are booked the least.
//!
//! A baseline of `pai`. Differs from `load-balance` in that CPU and memory do not count. Needs no
//! estimate and never preempts.

use hostler_core::pipeline::{Cache, Head, Pipeline, Preempt, ShareRule};
use hostler_core::policy::{Cadence, PolicyDef, defaults, settings};
use hostler_core::predict::EstimateSource;

use super::fifo::BySubmission;
use crate::place::progressive::Progressive;

/// First in, first out; the nodes with the least used GPUs.
pub const DEF: PolicyDef = PolicyDef {
    kind: "progressive-filling",
    summary: "first in, first out; the nodes with the least used GPUs",
    needs: &[],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let Config { head, sharing } = settings("progressive-filling", table)?;
        Ok(Box::new(Pipeline {
            order: Box::new(BySubmission),
            place: Box::new(Progressive),
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
        head: Head = Head::Skips,
        /// What jobs book that ask for a part of a GPU.
        sharing: ShareRule = ShareRule::Requests,
    }
}
