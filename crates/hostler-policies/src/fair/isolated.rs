//! An equal part of the cluster for each job: what a job could count on if nobody helped anybody.
//!
//! Every job spends the same part of its time on each GPU model, however fast it is there. A
//! yardstick for the other policies of this family. Preempts at the end of rounds.

use hostler_core::policy::PolicyDef;

use super::settings::sharing_time_by;
use crate::allocate::Isolated;

/// Equal parts.
pub fn def() -> PolicyDef {
    let summary = "an equal part of every GPU model for each job, in rounds";
    sharing_time_by("isolated", summary, || Box::new(Isolated))
}
