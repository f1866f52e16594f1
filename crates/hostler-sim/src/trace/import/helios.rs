//! The Helios logs of SenseTime (2020): jobs of Slurm. What virtual clusters have by day is read by
//! `helios_gpus`.

use std::io::Read;
use std::path::Path;

use super::helios_gpus::{GPUS_PER_NODE, read_helios_gpus};
use super::slurm_words::{state, when};
use super::values::{Reason, evenly, millis, narrow, share, tally, tasks, whole};
use super::wall_clock::{EPOCH, Zone};
use super::{ImportOptions, Imported, Importer, detect, zone_words};
use crate::trace::error::{Faults, TraceError};
use crate::trace::limits::{COUNT_MAX, NUMBER_MAX};
use crate::trace::meta::Meta;
use crate::trace::rows::{Column, Layout, Row, Sink, each_row, optional, required};
use crate::trace::source::{self, Meter, Progress};
use crate::trace::table::{JobRow, Status, TaskRow};

/// The importer of job logs.
pub(super) const DEF: Importer = Importer {
    name: "helios",
    summary: "cluster_log.csv of Helios (2020); *gpu_number.csv beside it gives the machines",
    takes: &["time-zone"],
    detect: |path| {
        detect::has_columns(path, b',', &["job_id", "vc", "gpu_num", "node_num", "submit_time"])
    },
    import,
};

fn import(
    path: &Path,
    options: &ImportOptions,
    progress: Progress<'_>,
) -> Result<Imported, TraceError> {
    let beside = detect::files(detect::folder_of(path), &|name| name.ends_with("gpu_number.csv"))?;
    let gpus = detect::only(beside)?;
    let size = source::size(path) + gpus.as_deref().map_or(0, source::size);
    let mut meter = Meter::new(size, progress);
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    if let Some(gpus) = &gpus {
        let mut input = source::open(gpus, &mut meter)?;
        let name = source::file_name(gpus);
        read_helios_gpus(&mut *input, &name, options, &mut imported, &mut faults);
    }
    let mut input = source::open(path, &mut meter)?;
    read_helios(&mut *input, &source::file_name(path), options, &mut imported, &mut faults);
    drop(input);
    meter.finish();
    if gpus.is_some() {
        let per_node = GPUS_PER_NODE.to_string();
        imported.trace.meta.options.insert("gpus_per_node".to_owned(), per_node);
    }
    imported.files.extend(gpus);
    imported.files.push(path.to_owned());
    faults.or(imported)
}

const COLUMNS: [Column; 11] = [
    required("job_id"),
    optional("user"),
    optional("vc"),
    required("gpu_num"),
    optional("cpu_num"),
    required("node_num"),
    required("state"),
    required("submit_time"),
    required("start_time"),
    required("end_time"),
    required("duration"),
];

/// Reads a log from any stream; `file` is only for messages.
pub fn read_helios(
    input: &mut dyn Read,
    file: &str,
    options: &ImportOptions,
    imported: &mut Imported,
    faults: &mut Faults,
) {
    let Imported { trace, dropped, noted, .. } = imported;
    let (jobs, all_tasks) = (&mut trace.jobs, &mut trace.tasks);
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let layout = Layout { columns: &COLUMNS, unknown_are_faults: false };
    let zone = options.time_zone.unwrap_or_default();
    let rows = each_row(input, &layout, &mut sink, &mut |row| match job(row, zone, &mut |remark| {
        tally(noted, remark)
    }) {
        Ok((job, tasks)) => {
            jobs.push(job);
            all_tasks.extend(tasks);
        }
        Err(reason) => tally(dropped, reason),
    });
    imported.rows_read.insert(file.to_owned(), rows);
    trace.arrange();
    trace.shrink();
    trace.meta = Meta {
        source: "Helios job log (2020)".to_owned(),
        licence: "CC BY 4.0".to_owned(),
        time_origin: EPOCH.to_owned(),
        time_zone: zone_words(options),
        ..Meta::default()
    };
}

fn job(
    row: &mut Row<'_, '_>,
    zone: Zone,
    remark: &mut dyn FnMut(Reason),
) -> Result<(JobRow, Vec<TaskRow>), Reason> {
    if row.bytes(0).is_empty() {
        return Err("job_id is missing");
    }
    let gpus = whole(row.str(3), NUMBER_MAX)?.ok_or("gpu_num is missing")?;
    let nodes = whole(row.str(5), COUNT_MAX)?.filter(|nodes| *nodes > 0);
    let nodes = nodes.ok_or("node_num is missing or 0")?;
    let cpus = whole(row.str(4), NUMBER_MAX)?;
    let status_in_trace = state(row.str(6));
    let submit_ms = when(row.str(7), zone)?.ok_or("submit_time is missing")?;
    let (start, end) = (when(row.str(8), zone)?, when(row.str(9), zone)?);
    let end = end.filter(|_| start.is_some() && status_in_trace != Status::Running);
    let duration = millis(row.str(10))?.filter(|_| end.is_some());
    let cpu_milli = cpus.map(|cpus| narrow(share(1000 * cpus, nodes))).transpose()?;
    if status_in_trace == Status::Unknown {
        remark("state is not a known word; status left empty");
    }
    if start.is_none() {
        remark("never started");
    }
    if !gpus.is_multiple_of(nodes) {
        remark("GPUs do not divide evenly over nodes; what is left over is on the first");
    }
    let (job_id, line) = (row.text(0), row.line());
    let base = TaskRow {
        job_id,
        cpu_milli: cpu_milli.unwrap_or_default(),
        duration_ms: duration.into(),
        start_ms: start.into(),
        end_ms: end.into(),
        line,
        ..TaskRow::default()
    };
    let tasks = tasks(base, &evenly(gpus, nodes), &mut |text| row.intern(0, text))?;
    let (user, queue) = (row.text(1), row.text(2));
    let job = JobRow { job_id, user, queue, submit_ms, status_in_trace, line, ..JobRow::default() };
    Ok((job, tasks))
}
