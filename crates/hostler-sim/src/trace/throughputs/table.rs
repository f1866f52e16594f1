//! Throughput tables as CSV: one of runs alone, one of pairs.

use std::io::Read;

use hostler_core::units::Pace;

use super::{Alone, Pair, Throughputs};
use crate::trace::error::{Faults, Problem};
use crate::trace::limits::{COUNT_MAX, THROUGHPUT_ROWS_MAX};
use crate::trace::rows::{
    Column, Layout, Row, Sink, each_row, optional, parse_decimal, parse_integer, required,
};
use crate::trace::text::TextPool;

const ALONE: [Column; 5] = [
    required("workload"),
    required("gpu_model"),
    required("steps_per_sec"),
    optional("gpus"),
    optional("spread"),
];

const PAIRS: [Column; 6] = [
    required("workload"),
    required("gpu_model"),
    required("steps_per_sec"),
    optional("gpus"),
    required("other"),
    required("other_steps_per_sec"),
];

const WORKLOAD: usize = 0;
const GPU_MODEL: usize = 1;
const STEPS_PER_SEC: usize = 2;
const GPUS: usize = 3;
const SPREAD: usize = 4;
const OTHER: usize = 4;
const OTHER_STEPS_PER_SEC: usize = 5;

/// Reads a `throughputs.csv`; `file` is only for messages.
pub fn read_throughput_table(
    input: &mut dyn Read,
    file: &str,
    tables: &mut Throughputs,
    faults: &mut Faults,
) {
    each(input, file, &ALONE, faults, &mut |row| {
        let (workload, gpu_model) = (name(row, WORKLOAD), name(row, GPU_MODEL));
        let (gpus, pace) = (gpus(row), pace(row, STEPS_PER_SEC));
        let spread = row.word(SPREAD, &[(Some(false), ""), (Some(false), "0"), (Some(true), "1")]);
        let workload = workload.map(|name| tables.workloads.number(name));
        let gpu_model = gpu_model.map(|name| tables.gpu_models.number(name));
        let known = (workload, gpu_model, gpus, spread, pace);
        if let (Some(workload), Some(gpu_model), Some(gpus), Some(spread), Some(pace)) = known
            && !tables.add(Alone { workload, gpu_model, gpus, spread }, pace.steps_per_sec())
        {
            row.fault(WORKLOAD, Problem::Repeated);
        }
        tables.alone.len() < THROUGHPUT_ROWS_MAX
    });
}

/// Reads a `pairs.csv` after the table of runs alone; `file` is only for messages.
pub fn read_pair_table(
    input: &mut dyn Read,
    file: &str,
    tables: &mut Throughputs,
    faults: &mut Faults,
) {
    each(input, file, &PAIRS, faults, &mut |row| {
        let workload = known_workload(row, WORKLOAD, tables);
        let other = known_workload(row, OTHER, tables);
        let gpu_model = name(row, GPU_MODEL).map(|name| tables.gpu_models.number(name));
        let gpus = gpus(row);
        let (own, others) = (pace(row, STEPS_PER_SEC), pace(row, OTHER_STEPS_PER_SEC));
        if let (Some(workload), Some(other), Some(gpu_model), Some(gpus)) =
            (workload, other, gpu_model, gpus)
            && let (Some(own), Some(others)) = (own, others)
            && !tables.add_pair(Pair { workload, other, gpu_model, gpus }, own, others)
        {
            row.fault(WORKLOAD, Problem::Repeated);
        }
        tables.pairs.len() < THROUGHPUT_ROWS_MAX
    });
    tables.mirror_pairs();
}

/// Hands over the rows until `take` says that there are too many.
fn each(
    input: &mut dyn Read,
    file: &str,
    columns: &[Column],
    faults: &mut Faults,
    take: &mut dyn FnMut(&mut Row<'_, '_>) -> bool,
) {
    let mut text = TextPool::default();
    let mut sink = Sink { file, text: &mut text, faults };
    let layout = Layout { columns, unknown_are_faults: true };
    let mut room = true;
    each_row(input, &layout, &mut sink, &mut |row| {
        if !room {
            row.fault(WORKLOAD, Problem::TooManyThroughputs);
            return;
        }
        room = take(row);
    });
}

fn name<'r>(row: &mut Row<'r, '_>, column: usize) -> Option<&'r str> {
    let name = row.str(column);
    if name.is_empty() {
        row.fault(column, Problem::Empty);
        return None;
    }
    Some(name)
}

fn known_workload(row: &mut Row<'_, '_>, column: usize, tables: &Throughputs) -> Option<u32> {
    let name = name(row, column)?;
    let known = tables.workloads.find(name);
    if known.is_none() {
        row.fault(column, Problem::UnknownWorkload);
    }
    known
}

/// GPUs of the gang; one where the table does not say.
fn gpus(row: &mut Row<'_, '_>) -> Option<u32> {
    let gpus = parse_integer(row.bytes(GPUS), COUNT_MAX).map(|gpus| gpus.unwrap_or(1));
    let gpus = gpus.and_then(|gpus| if gpus == 0 { Err(Problem::BelowOne) } else { Ok(gpus) });
    gpus.map(|gpus| gpus as u32).map_err(|problem| row.fault(GPUS, problem)).ok()
}

fn pace(row: &mut Row<'_, '_>, column: usize) -> Option<Pace> {
    let most = Pace::MAX.steps_per_sec() as u64;
    let parsed = parse_decimal(row.str(column)).and_then(|steps| steps.ok_or(Problem::Empty));
    let pace =
        parsed.and_then(|steps| Pace::from_steps_per_sec(steps).ok_or(Problem::TooLarge(most)));
    pace.map_err(|problem| row.fault(column, problem)).ok()
}
