//! What the policies that rank by run time have in common. No policy of its own.

use hostler_core::pipeline::Preempt;
use hostler_core::units::Span;

/// The rank of a run time; jobs for which nobody knows one come last.
pub(super) fn key_of(run: Option<Span>) -> i64 {
    run.map_or(i64::MAX, |run| i64::try_from(run.0).unwrap_or(i64::MAX))
}

/// The setting `preempt`, as the pipeline takes it.
pub(super) fn by_rank_if(preempt: bool) -> Preempt {
    if preempt { Preempt::ByRank } else { Preempt::Never }
}
