//! Load balancing alone: first in, first out onto the nodes that are booked the least.
//!
//! The baseline of `pai`. GPUs, CPU and memory count alike; GPU models are not told apart, so jobs
//! that any GPU would serve take high-end ones. Needs no estimate and never preempts.

use hostler_core::pipeline::{Cache, Head, Pipeline, Preempt, ShareRule};
use hostler_core::policy::{Cadence, PolicyDef, defaults, settings};
use hostler_core::predict::EstimateSource;

use super::fifo::BySubmission;
use crate::place::balance::Balance;

/// First in, first out; the least booked nodes by GPU, CPU and memory.
pub const DEF: PolicyDef = PolicyDef {
    kind: "load-balance",
    summary: "first in, first out; the least booked nodes by GPU, CPU and memory",
    needs: &[],
    settings: Config::SETTINGS,
    defaults: defaults::<Config>,
    build: |table| {
        let Config { head, sharing } = settings("load-balance", table)?;
        Ok(Box::new(Pipeline {
            order: Box::new(BySubmission),
            place: Box::new(Balance { with_gpus: true }),
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
