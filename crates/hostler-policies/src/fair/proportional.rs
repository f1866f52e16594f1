//! All of its time for each job, on the GPU models in proportion to their number.
//!
//! Takes no account of how many jobs there are, so with more jobs than GPUs everybody is behind his
//! share and turns go round; nobody gains from the GPUs that suit him. The yardstick by which
//! max-min fairness measures a job. Preempts at the end of rounds.

use hostler_core::policy::PolicyDef;

use super::settings::sharing_time_by;
use crate::allocate::Proportional;

/// Time on each model in proportion to its GPUs.
pub fn def() -> PolicyDef {
    let summary =
        "each job spends its time on the GPU models in proportion to their number, in rounds";
    sharing_time_by("proportional", summary, || Box::new(Proportional))
}
