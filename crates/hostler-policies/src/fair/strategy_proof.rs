//! Strategy-proof sharing: the greatest product of throughputs, and who takes from others pays.
//!
//! Each job gets a discount by what its presence costs the others, so that telling wrong speeds
//! does not help. The discount leaves GPUs unused; others fill them. Solves once more for every
//! job: for tens of jobs, not for thousands. Preempts at the end of rounds.

use hostler_core::policy::PolicyDef;

use super::settings::sharing_time_by;
use crate::allocate::StrategyProof;

/// Strategy-proof sharing.
pub fn def() -> PolicyDef {
    let summary =
        "the greatest product of throughputs, discounted by what each job costs the others";
    sharing_time_by("strategy-proof", summary, || Box::new(StrategyProof))
}
