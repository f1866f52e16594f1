//! What several importers share: numbers, counts by reason, and gangs from totals.

use std::collections::BTreeMap;

use crate::trace::limits::{COUNT_MAX, NUMBER_MAX, TIME_MS_MAX};
use crate::trace::rows::parse_decimal;
use crate::trace::table::{OptU32, TaskRow};
use crate::trace::text::TextId;

/// Why a row is left out, or what was done to it.
pub(super) type Reason = &'static str;

/// Counts a row under a reason.
pub(super) fn tally(counts: &mut BTreeMap<String, u64>, reason: Reason) {
    *counts.entry(reason.to_owned()).or_default() += 1;
}

/// A number that must be whole, also written `12.0`.
pub(super) fn whole(text: &str, max: u64) -> Result<Option<u64>, Reason> {
    let value = decimal(text, max)?;
    match value.is_some_and(|value| value.fract() != 0.0) {
        true => Err("a number is not whole"),
        false => Ok(value.map(|value| value as u64)),
    }
}

/// Seconds, perhaps with a fraction, as milliseconds.
pub(super) fn millis(text: &str) -> Result<Option<u64>, Reason> {
    let secs = decimal(text, TIME_MS_MAX / 1000)?;
    Ok(secs.map(|secs| (1000.0 * secs).round() as u64))
}

fn decimal(text: &str, max: u64) -> Result<Option<f64>, Reason> {
    let value = parse_decimal(text).map_err(|_| "a number cannot be read")?;
    match value.is_some_and(|value| value > max as f64) {
        true => Err("a number is too large"),
        false => Ok(value),
    }
}

/// A number that a 32-bit column can hold.
pub(super) fn narrow(value: u64) -> Result<OptU32, Reason> {
    match value <= NUMBER_MAX {
        true => Ok(OptU32::some(value as u32)),
        false => Err("a number is too large"),
    }
}

/// Instances that ask the same number of GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskShape {
    pub(super) count: u64,
    pub(super) gpus: u64,
}

/// GPUs of a job over its servers: evenly, and what is left over on the first.
pub(super) fn evenly(gpus: u64, servers: u64) -> Vec<TaskShape> {
    assert!(servers > 0, "a job without servers has no shape");
    let (each, left) = (gpus / servers, gpus % servers);
    let first = TaskShape { count: 1, gpus: each + left };
    let shapes = match left {
        0 => [TaskShape { count: servers, gpus: each }, TaskShape { count: 0, gpus: 0 }],
        _ => [first, TaskShape { count: servers - 1, gpus: each }],
    };
    shapes.into_iter().filter(|shape| shape.count > 0).collect()
}

/// An equal share, rounded to nearest.
pub(super) fn share(total: u64, shares: u64) -> u64 {
    (total + shares / 2) / shares
}

/// One task for each shape, the rest as in `base`.
pub(super) fn tasks(
    base: TaskRow,
    shapes: &[TaskShape],
    intern: &mut dyn FnMut(&str) -> TextId,
) -> Result<Vec<TaskRow>, Reason> {
    let instances: u64 = shapes.iter().map(|shape| shape.count).sum();
    if instances > COUNT_MAX {
        return Err("a number is too large");
    }
    let one = |(number, shape): (usize, &TaskShape)| {
        let name = if number == 0 { "worker".to_owned() } else { format!("worker-{}", number + 1) };
        Ok(TaskRow {
            task: intern(&name),
            count: shape.count as u32,
            gang: Some(instances > 1),
            gpu_milli: narrow(shape.gpus.saturating_mul(1000))?,
            ..base
        })
    };
    shapes.iter().enumerate().map(one).collect()
}
