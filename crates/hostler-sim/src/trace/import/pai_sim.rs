//! The CSV of the published PAI job simulator, in its two flavours.
//!
//! "estimate" gives totals of each job and a number of pods, "gang" gives requests per instance.
//! Estimate columns are not taken over: they are medians over the whole trace, the job itself
//! included, and would leak the truth into predictions.

use std::io::Read;
use std::path::Path;

use super::{Imported, Importer, detect};
use crate::trace::error::{Faults, TraceError};
use crate::trace::limits::{COUNT_MAX, NUMBER_MAX, TIME_MS_MAX};
use crate::trace::meta::Meta;
use crate::trace::rows::{Column, Layout, Row, Sink, each_row, optional, parse_decimal, required};
use crate::trace::source::{self, Meter, Progress};
use crate::trace::table::{JobRow, OptU32, OptU64, TaskRow};
use crate::trace::text::TextId;

/// Which columns a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Totals of the job, with `num_pod`.
    Estimate,
    /// Per instance, with `num_inst`.
    Gang,
}

/// The importer of files with estimates.
pub(super) const ESTIMATE: Importer = Importer {
    name: "pai-sim-estimate",
    summary: "CSV of the PAI job simulator with num_pod and duration estimates",
    detect: |path| detect::has_columns(path, b',', &["num_pod"]),
    takes: &[],
    import: |path, _, progress| import(path, progress, Flavour::Estimate),
};

/// The importer of files without estimates.
pub(super) const GANG: Importer = Importer {
    name: "pai-sim-gang",
    summary: "CSV of the PAI job simulator with num_inst (requests per instance)",
    detect: |path| detect::has_columns(path, b',', &["num_inst"]),
    takes: &[],
    import: |path, _, progress| import(path, progress, Flavour::Gang),
};

fn import(path: &Path, progress: Progress<'_>, flavour: Flavour) -> Result<Imported, TraceError> {
    let mut meter = Meter::new(source::size(path), progress);
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    let name = source::file_name(path);
    let mut input = source::open(path, &mut meter)?;
    read_pai_sim(&mut *input, &name, flavour, &mut imported, &mut faults);
    drop(input);
    meter.finish();
    imported.files.push(path.to_owned());
    faults.or(imported)
}

const ESTIMATE_COLUMNS: [Column; 9] = [
    required("job_id"),
    required("user"),
    required("num_gpu"),
    required("num_cpu"),
    required("num_pod"),
    required("duration"),
    required("submit_time"),
    optional("group"),
    optional("gpu_type"),
];

const GANG_COLUMNS: [Column; 9] = [
    required("job_id"),
    required("user"),
    required("num_gpu"),
    required("num_cpu"),
    required("num_inst"),
    required("duration"),
    required("submit_time"),
    optional("group"),
    optional("gpu_type"),
];

/// Positions in both lists of columns.
const ID: usize = 0;
const USER: usize = 1;
const GPU: usize = 2;
const CPU: usize = 3;
const COUNT: usize = 4;
const DURATION: usize = 5;
const SUBMIT: usize = 6;
const GROUP: usize = 7;
const TYPE: usize = 8;

/// Reads a simulator CSV from any stream; `file` is only for messages. Other columns are passed
/// over. Rows with a missing or impossible value are dropped and counted.
pub fn read_pai_sim(
    input: &mut dyn Read,
    file: &str,
    flavour: Flavour,
    imported: &mut Imported,
    faults: &mut Faults,
) {
    let Imported { trace, dropped, .. } = imported;
    let columns = match flavour {
        Flavour::Estimate => &ESTIMATE_COLUMNS,
        Flavour::Gang => &GANG_COLUMNS,
    };
    let (jobs, tasks) = (&mut trace.jobs, &mut trace.tasks);
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let layout = Layout { columns, unknown_are_faults: false };
    let rows = each_row(input, &layout, &mut sink, &mut |row| match job(row, flavour) {
        Ok((job, task)) => {
            jobs.push(job);
            tasks.push(task);
        }
        Err(reason) => *dropped.entry(reason.to_owned()).or_default() += 1,
    });
    imported.rows_read.insert(file.to_owned(), rows);
    trace.arrange();
    trace.shrink();
    trace.meta = Meta {
        source: "PAI job simulator CSV".to_owned(),
        licence: "that of the source".to_owned(),
        time_origin: "relative".to_owned(),
        time_zone: "UTC+8".to_owned(),
        ..Meta::default()
    };
}

type Reason = &'static str;

fn job(row: &mut Row<'_, '_>, flavour: Flavour) -> Result<(JobRow, TaskRow), Reason> {
    if row.bytes(ID).is_empty() {
        return Err("job_id is missing");
    }
    let count = whole(row, COUNT, COUNT_MAX as f64)?;
    let count = count.ok_or("number of instances is missing")?.round();
    if count < 1.0 {
        return Err("number of instances is below 1");
    }
    let duration = whole(row, DURATION, (TIME_MS_MAX / 1000) as f64)?;
    let duration_secs = duration.ok_or("duration is missing")?.trunc();
    if duration_secs < 1.0 {
        return Err("duration is below 1 s");
    }
    let submit = whole(row, SUBMIT, (TIME_MS_MAX / 1000) as f64)?;
    let submit_secs = submit.ok_or("submit_time is missing")?.round();
    let shares = if flavour == Flavour::Estimate { count } else { 1.0 };
    let gpu = milli(row, GPU, shares)?;
    let cpu = milli(row, CPU, shares)?;
    if gpu.or(0) == 0 && cpu.or(0) == 0 {
        return Err("asks zero GPUs and zero CPUs");
    }
    if gpu.or(0) > 1000 && !gpu.or(0).is_multiple_of(1000) {
        return Err("more than one GPU per instance, but not a whole number");
    }
    let job_id = row.text(ID);
    let job = JobRow {
        job_id,
        user: row.text(USER),
        group_tag: row.text(GROUP),
        submit_ms: submit_secs as u64 * 1000,
        line: row.line(),
        ..JobRow::default()
    };
    let task = TaskRow {
        job_id,
        task: row.intern(ID, "worker"),
        count: count as u32,
        gang: Some(count > 1.0),
        gpu_milli: gpu,
        gpu_models: gpu_models(row),
        cpu_milli: cpu,
        duration_ms: OptU64::some(duration_secs as u64 * 1000),
        line: row.line(),
        ..TaskRow::default()
    };
    Ok((job, task))
}

/// `CPU` and nothing both mean that no model is asked.
fn gpu_models(row: &mut Row<'_, '_>) -> TextId {
    match row.str(TYPE) {
        "CPU" => TextId::EMPTY,
        model => row.intern(TYPE, model),
    }
}

/// A number up to `max`; the source writes whole numbers also as `12.0`.
fn whole(row: &mut Row<'_, '_>, column: usize, max: f64) -> Result<Option<f64>, Reason> {
    let value = parse_decimal(row.str(column)).map_err(|_| "a number cannot be read")?;
    match value.is_some_and(|value| value > max) {
        true => Err("a number is too large"),
        false => Ok(value),
    }
}

/// An equal share of a request in thousandths, rounded to nearest.
fn milli(row: &mut Row<'_, '_>, column: usize, shares: f64) -> Result<OptU32, Reason> {
    let Some(value) = whole(row, column, NUMBER_MAX as f64)? else {
        return Ok(OptU32::NONE);
    };
    let milli = (1000.0 * value / shares).round();
    match milli > NUMBER_MAX as f64 {
        true => Err("a number is too large"),
        false => Ok(OptU32::some(milli as u32)),
    }
}
