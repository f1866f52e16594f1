//! What jobs book that ask for a part of a GPU.
//!
//! The rule turns what a job asks for into what it books; everything behind it (search, shapes,
//! plan, books) sees the latter and needs to know nothing of sharing. Memory is always booked as
//! it was asked for: a device can be promised twice in compute, never in memory.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::job::{Gang, Job, JobSpec, Sharing};
use crate::policy::SettingType;
use crate::units::Milli;

/// What jobs book that ask for a part of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShareRule {
    /// A whole device.
    Off,
    /// The part that they ask for.
    #[default]
    Requests,
    /// The memory that they ask for and the compute that like jobs used, if they are willing.
    Packed,
}

impl SettingType for ShareRule {
    const TAKES: &'static str = "\"off\" | \"requests\" | \"packed\"";
    const HELP: &'static str = "What jobs book that ask for a part of a GPU.";
}

/// Least compute that a packed task books: no device holds more of them than can attach to one
/// under the multi-process service (48).
const PACKED_MIN: Milli = Milli(25);

impl ShareRule {
    /// What a waiting job books.
    pub(super) fn booked(self, job: &Job) -> Arc<JobSpec> {
        let spec = &job.spec;
        match (self, job.gpu_use) {
            (ShareRule::Off, _) => with_gangs(spec, whole),
            (ShareRule::Packed, Some(used)) if spec.sharing != Sharing::Never => {
                with_gangs(spec, |gang| pack(gang, used.max(PACKED_MIN)))
            }
            (ShareRule::Packed | ShareRule::Requests, _) => Arc::clone(spec),
        }
    }
}

/// A copy in which roles that ask for a part of a GPU are changed; the same when there are none.
fn with_gangs(spec: &Arc<JobSpec>, change: impl Fn(&mut Gang)) -> Arc<JobSpec> {
    if !spec.gangs.iter().any(|gang| gang.demand.gpu.is_fraction()) {
        return Arc::clone(spec);
    }
    let mut changed = JobSpec::clone(spec);
    changed.gangs.iter_mut().filter(|gang| gang.demand.gpu.is_fraction()).for_each(change);
    Arc::new(changed)
}

fn whole(gang: &mut Gang) {
    gang.demand.gpu = Milli::ONE;
}

/// Books expected use in place of the request; never more than the request.
fn pack(gang: &mut Gang, used: Milli) {
    if used < gang.demand.gpu {
        gang.demand.packed_from = gang.demand.gpu;
        gang.demand.gpu = used;
    }
}
