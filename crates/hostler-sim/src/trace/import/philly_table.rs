//! A table derived from the Philly log: one row per job with GPUs, run time and virtual cluster.
//!
//! It names no jobs; the number of the row, from 0, is the name. It says nothing of servers:
//! they have eight GPUs, and a job takes as few as hold it.

use std::io::Read;
use std::path::Path;

use super::slurm_words::when;
use super::values::{Reason, evenly, millis, tally, tasks, whole};
use super::wall_clock::{EPOCH, Zone};
use super::{ImportOptions, Imported, Importer, detect, zone_words};
use crate::trace::error::{Faults, TraceError};
use crate::trace::limits::NUMBER_MAX;
use crate::trace::meta::Meta;
use crate::trace::rows::{Column, Layout, Row, Sink, each_row, required};
use crate::trace::source::{self, Meter, Progress};
use crate::trace::table::{JobRow, TaskRow};

/// The importer of the derived table.
pub(super) const DEF: Importer = Importer {
    name: "philly-table",
    summary: "CSV derived from the Philly log: timestamp,duration,num_gpus,gpu_time,cluster",
    takes: &["time-zone"],
    detect: |path| {
        detect::has_columns(path, b',', &["timestamp", "duration", "num_gpus", "cluster"])
    },
    import,
};

fn import(
    path: &Path,
    options: &ImportOptions,
    progress: Progress<'_>,
) -> Result<Imported, TraceError> {
    let mut meter = Meter::new(source::size(path), progress);
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    let mut input = source::open(path, &mut meter)?;
    read_philly_table(&mut *input, &source::file_name(path), options, &mut imported, &mut faults);
    drop(input);
    meter.finish();
    imported.files.push(path.to_owned());
    faults.or(imported)
}

const COLUMNS: [Column; 4] =
    [required("timestamp"), required("duration"), required("num_gpus"), required("cluster")];

const GPUS_PER_SERVER: u64 = 8;

/// Reads a table from any stream; `file` is only for messages.
pub fn read_philly_table(
    input: &mut dyn Read,
    file: &str,
    options: &ImportOptions,
    imported: &mut Imported,
    faults: &mut Faults,
) {
    let Imported { trace, dropped, .. } = imported;
    let (jobs, all_tasks) = (&mut trace.jobs, &mut trace.tasks);
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let layout = Layout { columns: &COLUMNS, unknown_are_faults: false };
    let zone = options.time_zone.unwrap_or_default();
    let mut number = 0_u64;
    let rows = each_row(input, &layout, &mut sink, &mut |row| {
        match job(row, number, zone) {
            Ok((job, tasks)) => {
                jobs.push(job);
                all_tasks.extend(tasks);
            }
            Err(reason) => tally(dropped, reason),
        }
        number += 1;
    });
    imported.rows_read.insert(file.to_owned(), rows);
    trace.arrange();
    trace.shrink();
    trace.meta = Meta {
        source: "table derived from the Philly job log (2017)".to_owned(),
        licence: "CC BY 4.0".to_owned(),
        time_origin: EPOCH.to_owned(),
        time_zone: zone_words(options),
        ..Meta::default()
    };
    let per_server = GPUS_PER_SERVER.to_string();
    trace.meta.options.insert("gpus_per_server".to_owned(), per_server);
}

fn job(row: &mut Row<'_, '_>, number: u64, zone: Zone) -> Result<(JobRow, Vec<TaskRow>), Reason> {
    let submit_ms = when(row.str(0), zone)?.ok_or("timestamp is missing")?;
    let duration = millis(row.str(1))?.ok_or("duration is missing")?;
    let gpus = whole(row.str(2), NUMBER_MAX)?.ok_or("num_gpus is missing")?;
    if gpus == 0 {
        return Err("asks zero GPUs");
    }
    let (job_id, line) = (row.intern(0, &number.to_string()), row.line());
    let base = TaskRow { job_id, duration_ms: Some(duration).into(), line, ..TaskRow::default() };
    let shapes = evenly(gpus, gpus.div_ceil(GPUS_PER_SERVER));
    let tasks = tasks(base, &shapes, &mut |text| row.intern(0, text))?;
    let job = JobRow { job_id, queue: row.text(3), submit_ms, line, ..JobRow::default() };
    Ok((job, tasks))
}
