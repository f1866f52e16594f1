//! Traces of the Tiresias simulator: CSV with whole seconds from the first submission.
//!
//! A job is a gang of workers with one GPU each, wherever they are. The name of its model is kept;
//! iterations and the time to the next job follow from the rest.

use std::io::Read;
use std::path::Path;

use super::values::{Reason, millis, tally, whole};
use super::{ImportOptions, Imported, Importer, detect};
use crate::trace::error::{Faults, TraceError};
use crate::trace::limits::COUNT_MAX;
use crate::trace::meta::Meta;
use crate::trace::rows::{Column, Layout, Row, Sink, each_row, optional, required};
use crate::trace::source::{self, Meter, Progress};
use crate::trace::table::{JobRow, OptU32, TaskRow};

/// The importer of simulator traces.
pub(super) const DEF: Importer = Importer {
    name: "tiresias-sim",
    summary: "trace of the Tiresias simulator: job_id,num_gpu,submit_time,..,model_name,duration",
    takes: &[],
    detect: |path| {
        detect::has_columns(path, b',', &["job_id", "num_gpu", "submit_time", "model_name"])
    },
    import,
};

fn import(path: &Path, _: &ImportOptions, progress: Progress<'_>) -> Result<Imported, TraceError> {
    let mut meter = Meter::new(source::size(path), progress);
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    let mut input = source::open(path, &mut meter)?;
    read_tiresias(&mut *input, &source::file_name(path), &mut imported, &mut faults);
    drop(input);
    meter.finish();
    imported.files.push(path.to_owned());
    faults.or(imported)
}

const COLUMNS: [Column; 5] = [
    required("job_id"),
    required("num_gpu"),
    required("submit_time"),
    required("duration"),
    optional("model_name"),
];

/// Reads a trace from any stream; `file` is only for messages.
pub fn read_tiresias(
    input: &mut dyn Read,
    file: &str,
    imported: &mut Imported,
    faults: &mut Faults,
) {
    let Imported { trace, dropped, .. } = imported;
    let (jobs, tasks) = (&mut trace.jobs, &mut trace.tasks);
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let layout = Layout { columns: &COLUMNS, unknown_are_faults: false };
    let rows = each_row(input, &layout, &mut sink, &mut |row| match job(row) {
        Ok((job, task)) => {
            jobs.push(job);
            tasks.push(task);
        }
        Err(reason) => tally(dropped, reason),
    });
    imported.rows_read.insert(file.to_owned(), rows);
    trace.arrange();
    trace.shrink();
    trace.meta = Meta {
        source: "Tiresias simulator trace".to_owned(),
        licence: "that of the source".to_owned(),
        time_origin: "relative".to_owned(),
        time_zone: "none".to_owned(),
        ..Meta::default()
    };
}

fn job(row: &mut Row<'_, '_>) -> Result<(JobRow, TaskRow), Reason> {
    if row.str(0).is_empty() {
        return Err("job_id is missing");
    }
    let gpus = whole(row.str(1), COUNT_MAX)?.ok_or("num_gpu is missing")?;
    if gpus == 0 {
        return Err("asks zero GPUs");
    }
    let submit_ms = millis(row.str(2))?.ok_or("submit_time is missing")?;
    let duration = millis(row.str(3))?.ok_or("duration is missing")?;
    let (job_id, line) = (row.text(0), row.line());
    let job = JobRow { job_id, submit_ms, line, ..JobRow::default() };
    let task = TaskRow {
        job_id,
        task: row.intern(0, "worker"),
        count: gpus as u32,
        gang: Some(gpus > 1),
        gpu_milli: OptU32::some(1000),
        duration_ms: Some(duration).into(),
        model: row.text(4),
        line,
        ..TaskRow::default()
    };
    Ok((job, task))
}
