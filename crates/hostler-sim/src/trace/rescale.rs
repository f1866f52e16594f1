//! The same jobs, closer together or further apart: a trace at another load.
//!
//! One factor moves all submissions around the first. Jobs keep what they ask for and how long
//! they run; deadlines and recorded times move with the submission of their job. Machines come and
//! go when they did. The generator has its own way: it draws arrivals anew.

use super::cluster::Cluster;
use super::error::TraceError;
use super::limits::TIME_MS_MAX;
use super::load::runnable_load;
use super::table::{InstanceRow, OptU64, TaskRow, Trace};

/// A load that is further from the one asked for was not reached: times are whole milliseconds.
const TOLERANCE: f64 = 0.01;

/// Moves the submissions of a trace so that `target` load (1.0 = all GPUs or all cores busy,
/// whichever is scarcer) is offered to the cluster by the jobs that it can run.
pub fn rescale(trace: &mut Trace, cluster: &Cluster, target: f64) -> Result<(), TraceError> {
    if !(target.is_finite() && target > 0.0) {
        let (value, expected) = (target.to_string(), "a number above 0".to_owned());
        return Err(TraceError::Option { name: "load", value, expected });
    }
    let submissions = || trace.jobs.iter().map(|job| job.submit_ms);
    let (first, last) = (submissions().min().unwrap_or(0), submissions().max().unwrap_or(0));
    if first == last {
        return Err(TraceError::OneInstant);
    }
    let present = runnable_load(trace, cluster).max();
    if present == 0.0 {
        return Err(TraceError::NoLoad);
    }
    let factor = present / target;
    if first as f64 + (last - first) as f64 * factor > TIME_MS_MAX as f64 {
        return Err(TraceError::LoadOutOfReach { target });
    }
    move_jobs(trace, first, factor);
    let off = runnable_load(trace, cluster).max() / target - 1.0;
    if off.abs() > TOLERANCE {
        return Err(TraceError::LoadOutOfReach { target });
    }
    Ok(())
}

fn move_jobs(trace: &mut Trace, first: u64, factor: f64) {
    let moves: Vec<Move> = trace
        .jobs
        .iter()
        .map(|job| {
            let offset = (job.submit_ms - first) as f64 * factor;
            Move { from: job.submit_ms, to: first + offset.round() as u64 }
        })
        .collect();
    let rows = trace.job_rows();
    for InstanceRow { job_id, start_ms, end_ms, .. } in &mut trace.instances {
        if let Some(step) = moves.get(rows[job_id.index()] as usize) {
            step.apply(start_ms);
            step.apply(end_ms);
        }
    }
    for (job, step) in trace.jobs.iter_mut().zip(moves) {
        job.submit_ms = step.to;
        step.apply(&mut job.deadline_ms);
        for TaskRow { start_ms, end_ms, .. } in &mut trace.tasks[job.tasks()] {
            step.apply(start_ms);
            step.apply(end_ms);
        }
    }
}

/// Where a submission was, and where it is.
#[derive(Clone, Copy)]
struct Move {
    from: u64,
    to: u64,
}

impl Move {
    /// Keeps the distance of a time from the submission; one before it becomes the submission.
    fn apply(self, time: &mut OptU64) {
        let moved = time.get().map(|time| self.to + time.saturating_sub(self.from));
        *time = moved.into();
    }
}
