//! States and decisions as text.

use std::fmt::Write;

use crate::cluster::Share;
use crate::decision::Decision;
use crate::job::Phase;
use crate::placement::{Part, Placement, Slice};
use crate::state::ClusterState;

/// A line for each job that is not over: where it stands, and why.
pub(crate) fn jobs_of(state: &ClusterState) -> String {
    let mut text = String::new();
    for job in state.jobs() {
        let lease = job.lease().and_then(|id| state.lease(id));
        let place = lease.map(|lease| format!("{:?} on {}", lease.id, place(&lease.placement)));
        let place = place.unwrap_or_default();
        let line = match job.phase {
            Phase::Pending => format!("waits: {}", job.reason),
            Phase::Held => format!("held: {}", job.reason),
            Phase::Starting(_) => format!("starts {place}"),
            Phase::Running(_) => format!("runs {place}"),
            Phase::Stopping(_) => format!("stops {place}"),
            Phase::Done(ending) => format!("{ending:?}"),
        };
        writeln!(text, "{:?} {line}", job.id).unwrap();
    }
    text
}

/// A line for each decision.
pub(crate) fn decided(decisions: &[Decision]) -> String {
    let mut text = String::new();
    for decision in decisions {
        let line = match decision {
            Decision::Start { lease, job, placement, until } => {
                let until = until.map_or(String::new(), |until| format!(" until {until}"));
                format!("start {job:?} as {lease:?} on {}{until}", place(placement))
            }
            Decision::Stop { lease, how, why } => format!("stop {lease:?}: {how:?}, {why:?}"),
            Decision::Resize { lease, placement } => {
                format!("move {lease:?} to {}", place(placement))
            }
            Decision::Hold { job, reason } => format!("hold {job:?}: {reason}"),
            Decision::Reject { job, reason } => format!("reject {job:?}: {reason}"),
            Decision::SetAside { job, reason } => format!("set {job:?} aside: {reason}"),
            Decision::WakeAt { at } => format!("wake at {at}"),
            other => format!("{other:?}"),
        };
        writeln!(text, "{line}").unwrap();
    }
    text
}

fn place(placement: &Placement) -> String {
    let parts: Vec<String> = placement.parts.iter().map(part_text).collect();
    parts.join(", ")
}

fn part_text(part: &Part) -> String {
    let slice = |slice: &Slice| match slice.share {
        Share::Whole => format!("{:?}", slice.device),
        share => format!("{:?} {share:?}", slice.device),
    };
    let slices: Vec<String> = part.slices.iter().map(slice).collect();
    let tasks = if part.tasks == 1 { String::new() } else { format!("{} x ", part.tasks) };
    format!("{tasks}{:?}[{}]", part.node, slices.join(" "))
}
