//! Shortest job first as an objective: the time until the first job ends is as short as possible.
//!
//! The one job that can end first has its fastest GPU model to itself; the others fill what is
//! left, in order of submission. Goes by steps left, or by estimates. Long jobs may wait for ever
//! while short ones come. Preempts at the end of rounds.

use hostler_core::policy::PolicyDef;

use super::settings::sharing_time_by;
use crate::allocate::Shortest;

/// The job that can end first.
pub fn def() -> PolicyDef {
    let summary = "the job that can end first runs on its fastest GPUs, the others on what is left";
    sharing_time_by("first-finish", summary, || Box::new(Shortest))
}
