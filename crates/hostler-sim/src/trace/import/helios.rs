//! The Helios logs of SenseTime (2020): jobs of Slurm, and GPUs of each virtual cluster by day.
//!
//! The table of GPUs, if it lies beside the log, becomes machines with intervals. It does not
//! say how GPUs sit in machines: eight to each, as the source describes its clusters.

use std::io::Read;
use std::path::Path;

use super::slurm_words::{state, when};
use super::values::{Reason, evenly, millis, narrow, share, tally, tasks, whole};
use super::wall_clock::{EPOCH, Zone, parse_day};
use super::{ImportOptions, Imported, Importer, detect, separated, zone_words};
use crate::trace::error::{Faults, Problem, TraceError};
use crate::trace::limits::{COUNT_MAX, FIELD_BYTES_MAX, NODES_MAX, NUMBER_MAX};
use crate::trace::meta::Meta;
use crate::trace::rows::{Column, Layout, Row, Sink, each_row, optional, required};
use crate::trace::source::{self, Meter, Progress};
use crate::trace::table::{JobRow, NodeRow, OptU64, Status, TaskRow};
use crate::trace::text::TextId;

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

const GPUS_PER_NODE: u64 = 8;

/// Leaves room for the number of a machine behind the name of its cluster.
const CLUSTER_NAME_BYTES_MAX: usize = FIELD_BYTES_MAX / 2;

/// Reads a table of GPUs, a row per day and a column per virtual cluster, as machines.
pub fn read_helios_gpus(
    input: &mut dyn Read,
    file: &str,
    options: &ImportOptions,
    imported: &mut Imported,
    faults: &mut Faults,
) {
    let Imported { trace, dropped, .. } = imported;
    let mut park = Park { nodes: &mut trace.nodes, opened: 0 };
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let zone = options.time_zone.unwrap_or_default();
    let mut clusters: Vec<Machines> = Vec::new();
    let (mut rows, mut last_day) = (0, None);
    separated::each_line(input, Some(','), &mut sink, &mut |line, fields, sink| {
        if line == 1 {
            if fields.iter().any(|name| name.len() > CLUSTER_NAME_BYTES_MAX) {
                sink.fault(line, "", b"", Problem::FieldTooLong);
                return false;
            }
            clusters = fields.iter().skip(1).map(|name| Machines::new(name)).collect();
            return true;
        }
        rows += 1;
        let day = parse_day(fields[0], zone);
        let Some(day) = day.filter(|day| last_day.is_none_or(|last| last < *day)) else {
            tally(dropped, "day of a GPU table cannot be read or is out of order");
            return true;
        };
        let counts = counts(&fields[1..]).filter(|counts| counts.len() == clusters.len());
        let Some(counts) = counts else {
            tally(dropped, "day of a GPU table has a number that cannot be read");
            return true;
        };
        last_day = Some(day);
        let pairs = clusters.iter_mut().zip(counts).filter(|(cluster, _)| cluster.name != "total");
        for (cluster, gpus) in pairs {
            if !cluster.change(day, gpus, &mut park, sink) {
                sink.fault(line, &cluster.name, b"", Problem::TooManyRows);
                return false;
            }
        }
        true
    });
    for cluster in &mut clusters {
        cluster.close(None, 0, &mut park, &mut sink);
    }
    imported.rows_read.insert(file.to_owned(), rows);
}

fn counts(fields: &[&str]) -> Option<Vec<u64>> {
    const GPUS_MAX: u64 = NODES_MAX as u64 * GPUS_PER_NODE;
    fields.iter().map(|field| whole(field, GPUS_MAX).ok().flatten()).collect()
}

/// All intervals: those that ended, and how many were begun.
struct Park<'a> {
    nodes: &'a mut Vec<NodeRow>,
    opened: usize,
}

/// Machines of a virtual cluster that are up, each since a day.
struct Machines {
    name: String,
    /// Since when, and with how many GPUs; the place is the number of the machine.
    up: Vec<(u64, u64)>,
}

impl Machines {
    fn new(name: &str) -> Machines {
        Machines { name: name.to_owned(), up: Vec::new() }
    }

    /// From `day` on there are so many GPUs: the last machines come and go first. Says no when
    /// there would be too many intervals.
    fn change(&mut self, day: u64, gpus: u64, park: &mut Park<'_>, sink: &mut Sink<'_>) -> bool {
        let (full, left) = (gpus / GPUS_PER_NODE, gpus % GPUS_PER_NODE);
        let mut wanted = vec![GPUS_PER_NODE; full as usize];
        wanted.extend((left > 0).then_some(left));
        let same = self.up.iter().zip(&wanted).take_while(|((_, gpus), now)| gpus == *now).count();
        self.close(Some(day), same, park, sink);
        park.opened += wanted.len() - same;
        if park.opened > NODES_MAX {
            return false;
        }
        self.up.extend(wanted[same..].iter().map(|gpus| (day, *gpus)));
        true
    }

    /// Ends the intervals of machines from `keep` on; no day = they stay up.
    fn close(&mut self, day: Option<u64>, keep: usize, park: &mut Park<'_>, sink: &mut Sink<'_>) {
        for (number, (since, gpus)) in self.up.drain(keep..).enumerate() {
            let number = keep + number + 1;
            // A machine with fewer GPUs is another machine: one name has one size.
            let name = match gpus {
                GPUS_PER_NODE => format!("{}-{number}", self.name),
                _ => format!("{}-{number}-{gpus}", self.name),
            };
            let mut intern = |text: &str| {
                sink.text.intern(text).unwrap_or_else(|full| {
                    sink.fault(0, "", text.as_bytes(), full.into());
                    TextId::EMPTY
                })
            };
            park.nodes.push(NodeRow {
                node_id: intern(&name),
                pool: intern(&self.name),
                gpu_count: gpus as u32,
                up_from_s: OptU64::some(since),
                up_to_s: day.into(),
                ..NodeRow::default()
            });
        }
    }
}
