//! The policies of the original by name, made of our stages or of its lists.

use std::str::FromStr;

use hostler_core::pipeline::{Head, Pipeline};
use hostler_core::policy::Policy;
use hostler_core::stage::Place;
use hostler_policies::order::fifo::BySubmission;
use hostler_policies::place::first_fit::FirstFit;

use super::gittins::GittinsTable;
use super::queued::{Attained, Queued};
use super::scan::Scan;
use super::sorted::{SortKey, Sorted};
use super::yarn::Yarn;
use super::{Options, Promotions, TiresiasError};

/// A policy of the original.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TiresiasPolicy {
    /// `fifo`: in order of submission.
    Fifo,
    /// `fjf`: the same, but jobs that do not fit are passed over.
    FitJobFirst,
    /// `sjf`: fewest GPUs first.
    SmallestJob,
    /// `shortest`: least time left first.
    Shortest,
    /// `shortest-gpu`: least GPU time left first.
    ShortestGpu,
    /// `dlas`: queues by time that a job ran.
    Dlas,
    /// `dlas-gpu`: queues by GPU time; a job that waited so many times as long as it ran comes back
    /// to the first one. Zero when it never does.
    DlasGpu(f64),
    /// `dlas-gpu-gittins`: queues by GPU time, inside of them by Gittins index.
    Gittins,
}

impl FromStr for TiresiasPolicy {
    type Err = TiresiasError;

    fn from_str(name: &str) -> Result<TiresiasPolicy, TiresiasError> {
        let unknown = || TiresiasError::Policy(name.to_owned());
        Ok(match name {
            "fifo" => TiresiasPolicy::Fifo,
            "fjf" => TiresiasPolicy::FitJobFirst,
            "sjf" => TiresiasPolicy::SmallestJob,
            "shortest" => TiresiasPolicy::Shortest,
            "shortest-gpu" => TiresiasPolicy::ShortestGpu,
            "dlas" => TiresiasPolicy::Dlas,
            "dlas-gpu" => TiresiasPolicy::DlasGpu(0.0),
            "dlas-gpu-gittins" => TiresiasPolicy::Gittins,
            other => {
                let suffix = other.strip_prefix("dlas-gpu-").ok_or_else(unknown)?;
                TiresiasPolicy::DlasGpu(knob(suffix).ok_or_else(unknown)?)
            }
        })
    }
}

/// The number behind a name: `2` is 2, `05` is 0.5.
fn knob(suffix: &str) -> Option<f64> {
    let digits = suffix.bytes().all(|byte| byte.is_ascii_digit());
    let number = match suffix.strip_prefix('0') {
        Some(behind) if digits && !behind.is_empty() => format!("0.{behind}").parse().ok()?,
        _ if digits => suffix.parse().ok()?,
        _ => return None,
    };
    Some(number).filter(|number| *number > 0.0)
}

/// A placement of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// GPUs are counted, and that is all.
    Count,
    /// The first switch, and in it the first nodes that hold the job.
    Yarn,
}

/// Whether nodes matter. Lists that are dealt out anew each time count GPUs alone.
pub(super) fn by_node(options: &Options) -> Result<bool, TiresiasError> {
    use TiresiasPolicy as Named;
    let refused = |name: &str| Err(TiresiasError::Placement(name.to_owned()));
    match (options.placement, options.policy) {
        (Placement::Count, _) => Ok(false),
        (Placement::Yarn, Named::Fifo | Named::FitJobFirst) => Ok(true),
        (Placement::Yarn, Named::Dlas | Named::DlasGpu(_) | Named::Gittins) => Ok(false),
        (Placement::Yarn, Named::SmallestJob) => refused("sjf"),
        (Placement::Yarn, Named::Shortest) => refused("shortest"),
        (Placement::Yarn, Named::ShortestGpu) => refused("shortest-gpu"),
    }
}

/// The policy that was asked for.
pub(super) fn policy(
    options: &Options,
    promotions: &Promotions,
) -> Result<Box<dyn Policy>, TiresiasError> {
    let gpus = options.shape.all_gpus();
    let sorted = |key| Box::new(Scan::new(gpus, Box::new(Sorted::new(key))));
    let queued = |attained, knob| Queued::new(attained, knob, promotions.clone());
    let scan = |queued: Queued| Box::new(Scan::new(gpus, Box::new(queued)));
    Ok(match options.policy {
        TiresiasPolicy::Fifo => in_order(options, Head::Blocks),
        TiresiasPolicy::FitJobFirst => in_order(options, Head::Skips),
        TiresiasPolicy::SmallestJob => sorted(SortKey::Gpus),
        TiresiasPolicy::Shortest => sorted(SortKey::TimeLeft),
        TiresiasPolicy::ShortestGpu => sorted(SortKey::GpuTimeLeft),
        TiresiasPolicy::Dlas => scan(queued(Attained::Time, 0.0)),
        TiresiasPolicy::DlasGpu(knob) => scan(queued(Attained::GpuTime, knob)),
        TiresiasPolicy::Gittins => {
            let table = GittinsTable::new(&options.samples).ok_or(TiresiasError::NoSamples)?;
            scan(queued(Attained::GpuTime, 0.0).by_index(table))
        }
    })
}

/// The product's own stages, in order of submission.
fn in_order(options: &Options, head: Head) -> Box<dyn Policy> {
    let place: Box<dyn Place> = match options.placement {
        Placement::Count => Box::new(FirstFit),
        Placement::Yarn => Box::new(Yarn { gpus: options.shape.gpus }),
    };
    Box::new(Pipeline { head, ..Pipeline::new(BySubmission, place) })
}
