//! Accounting of Slurm: the text of `sacct -a -X -P -o JobIDRaw,..`.
//!
//! A job is one gang of as many instances as it has nodes. Jobs that never started stay in,
//! without a run time. Names and constraints may hold the separator `|`, which Slurm does not
//! escape; another one (`sacct --delimiter`) is taken from the header. What recurs is told by a
//! hash of name, folder and resources.

use std::io::Read;
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::slurm_words::{Resources, node_names, resources, state, when};
use super::values::{Reason, evenly, narrow, share, tally, tasks, whole};
use super::wall_clock::{EPOCH, Zone};
use super::{ImportOptions, Imported, Importer, detect, separated, zone_words};
use crate::trace::cluster::known_tier;
use crate::trace::error::{Faults, Problem, TraceError};
use crate::trace::limits::{COUNT_MAX, FIELD_BYTES_MAX, TIME_MS_MAX};
use crate::trace::meta::Meta;
use crate::trace::priority;
use crate::trace::rows::Sink;
use crate::trace::source::{self, Meter, Progress};
use crate::trace::table::{JobRow, OptU64, Status, TaskRow};
use crate::trace::text::TextId;

/// The importer of accounting dumps.
pub(super) const DEF: Importer = Importer {
    name: "sacct",
    summary: "Slurm accounting: sacct -a -X -P -o JobIDRaw,Submit,Start,State,NNodes,ReqTRES,..",
    takes: &["time-zone"],
    detect: |path| {
        let head = detect::head(path);
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let columns: Vec<_> = line.trim_end().split(separated::after_word(&line)).collect();
        ["JobIDRaw", "State", "Submit"].iter().all(|name| columns.contains(name))
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
    read_sacct(&mut *input, &source::file_name(path), options, &mut imported, &mut faults);
    drop(input);
    meter.finish();
    imported.files.push(path.to_owned());
    faults.or(imported)
}

const COLUMNS: [&str; 18] = [
    "JobIDRaw",
    "State",
    "Submit",
    "NNodes",
    "Start",
    "End",
    "ElapsedRaw",
    "TimelimitRaw",
    "JobName",
    "User",
    "Account",
    "Partition",
    "QOS",
    "ReqTRES",
    "AllocTRES",
    "NodeList",
    "Constraints",
    "WorkDir",
];

/// The first columns must be there.
const REQUIRED: usize = 4;

/// One line with its fields by position in [`COLUMNS`].
struct Record<'a> {
    fields: &'a [&'a str],
    places: &'a [Option<usize>],
    line: u64,
    zone: Zone,
}

impl<'a> Record<'a> {
    /// A field by name; empty when the dump has no such column.
    fn get(&self, name: &str) -> &'a str {
        let column = COLUMNS.iter().position(|column| *column == name);
        let place = column.and_then(|column| self.places[column]);
        place.and_then(|place| self.fields.get(place)).copied().unwrap_or_default()
    }

    fn time(&self, name: &str) -> Result<Option<u64>, Reason> {
        when(self.get(name), self.zone)
    }
}

/// Reads a dump from any stream; `file` is only for messages.
pub fn read_sacct(
    input: &mut dyn Read,
    file: &str,
    options: &ImportOptions,
    imported: &mut Imported,
    faults: &mut Faults,
) {
    let Imported { trace, dropped, noted, .. } = imported;
    let (jobs, all_tasks) = (&mut trace.jobs, &mut trace.tasks);
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let zone = options.time_zone.unwrap_or_default();
    let mut header: Option<(usize, Vec<Option<usize>>)> = None;
    let mut rows = 0;
    separated::each_line(input, None, &mut sink, &mut |line, fields, sink| {
        let Some((width, places)) = &header else {
            header = places_of(fields, sink).map(|places| (fields.len(), places));
            return header.is_some();
        };
        rows += 1;
        if fields.len() != *width {
            tally(
                dropped,
                "fields do not match the header; sacct --delimiter takes another separator",
            );
            return true;
        }
        let record = Record { fields, places, line, zone };
        match job(&record, sink, &mut |remark| tally(noted, remark)) {
            Ok((job, tasks)) => {
                jobs.push(job);
                all_tasks.extend(tasks);
            }
            Err(reason) => tally(dropped, reason),
        }
        true
    });
    if header.is_none() && sink.faults.list.is_empty() {
        sink.fault(0, "", b"", Problem::EmptyFile);
    }
    imported.rows_read.insert(file.to_owned(), rows);
    trace.arrange();
    trace.shrink();
    trace.meta = Meta {
        source: "Slurm accounting".to_owned(),
        licence: "that of the source".to_owned(),
        time_origin: EPOCH.to_owned(),
        time_zone: zone_words(options),
        ..Meta::default()
    };
}

fn places_of(header: &[&str], sink: &mut Sink<'_>) -> Option<Vec<Option<usize>>> {
    let place = |name: &&str| header.iter().position(|column| column == name);
    let places: Vec<_> = COLUMNS.iter().map(place).collect();
    let before = sink.faults.list.len();
    for (name, place) in COLUMNS.iter().zip(&places).take(REQUIRED) {
        if place.is_none() {
            sink.fault(1, name, b"", Problem::MissingColumn);
        }
    }
    (sink.faults.list.len() == before).then_some(places)
}

type Remark<'a> = &'a mut dyn FnMut(Reason);

fn job(
    record: &Record<'_>,
    sink: &mut Sink<'_>,
    remark: Remark<'_>,
) -> Result<(JobRow, Vec<TaskRow>), Reason> {
    let id = record.get("JobIDRaw");
    if id.is_empty() {
        return Err("JobIDRaw is missing");
    }
    if id.contains('.') {
        return Err("step of a job; sacct -X leaves them out");
    }
    let submit_ms = record.time("Submit")?.ok_or("Submit is missing")?;
    let status = state(record.get("State"));
    if status == Status::Unknown {
        remark("State is not a known word; status left empty");
    }
    let line = u32::try_from(record.line).unwrap_or(u32::MAX);
    let mut text = |value: &str| intern(sink, record.line, value);
    let job_id = text(id);
    let base = TaskRow { job_id, line, ..times(record, status, remark)? };
    let tasks = demand(record, base, &mut text, remark)?;
    let class = record.get("QOS");
    let limit = limit(record.get("TimelimitRaw"))?;
    let job = JobRow {
        job_id,
        user: text(record.get("User")),
        group_tag: text(&group_tag(record)),
        queue: text(&queue(record.get("Account"), record.get("Partition"))?),
        priority_class: text(class),
        priority: priority::resolve(class).unwrap_or(0),
        submit_ms,
        time_limit_ms: limit,
        // Slurm knows no other word of the user on how long the job runs; backfill goes by it.
        est_ms: limit,
        status_in_trace: status,
        line,
        ..JobRow::default()
    };
    Ok((job, tasks))
}

fn intern(sink: &mut Sink<'_>, line: u64, value: &str) -> TextId {
    sink.text.intern(value).unwrap_or_else(|full| {
        sink.fault(line, "", value.as_bytes(), full.into());
        TextId::EMPTY
    })
}

/// Start, end and run time. What has not ended has no run time yet.
fn times(record: &Record<'_>, status: Status, remark: Remark<'_>) -> Result<TaskRow, Reason> {
    let start = record.time("Start")?;
    if start.is_none() {
        remark("never started");
        return Ok(TaskRow::default());
    }
    let end = record.time("End")?.filter(|_| status != Status::Running);
    let elapsed = whole(record.get("ElapsedRaw"), TIME_MS_MAX / 1000)?;
    let elapsed = elapsed.filter(|_| end.is_some()).map(|secs| 1000 * secs);
    let (start_ms, end_ms) = (OptU64::from(start), OptU64::from(end));
    Ok(TaskRow { start_ms, end_ms, duration_ms: elapsed.into(), ..TaskRow::default() })
}

fn demand(
    record: &Record<'_>,
    base: TaskRow,
    text: &mut dyn FnMut(&str) -> TextId,
    remark: Remark<'_>,
) -> Result<Vec<TaskRow>, Reason> {
    let nodes = whole(record.get("NNodes"), COUNT_MAX)?.filter(|nodes| *nodes > 0);
    let nodes = nodes.ok_or("NNodes is missing or 0")?;
    let asked = match record.get("ReqTRES") {
        "" => {
            remark("ReqTRES is empty; AllocTRES taken");
            resources(record.get("AllocTRES"))?
        }
        asked => held(resources(asked)?, resources(record.get("AllocTRES"))?, remark),
    };
    if !asked.gpus.is_multiple_of(nodes) {
        remark("GPUs do not divide evenly over nodes; what is left over is on the first");
    }
    let per_node = |total: Option<u64>, unit: u64| {
        total.map(|total| narrow(share(unit * total, nodes))).transpose()
    };
    let models = models(asked.model, asked.gpus, record.get("Constraints"), remark);
    let base = TaskRow {
        cpu_milli: per_node(asked.cpus, 1000)?.unwrap_or_default(),
        mem_mib: per_node(asked.mem_mib, 1)?.unwrap_or_default(),
        gpu_models: text(&models),
        ..base
    };
    let mut tasks = tasks(base, &evenly(asked.gpus, nodes), text)?;
    // Of an uneven job it is not known which nodes had how many GPUs.
    if let [task] = &mut tasks[..] {
        task.placement = text(&placement(record.get("NodeList"), remark));
    }
    Ok(tasks)
}

/// What a job kept from others: with `--exclusive` more than it asked for. A few cores more are the
/// rounding of Slurm to whole ones.
fn held<'a>(asked: Resources<'a>, got: Resources<'a>, remark: Remark<'_>) -> Resources<'a> {
    if asked.gpus > 0 && got.gpus > asked.gpus {
        remark("AllocTRES has more GPUs than ReqTRES, as with --exclusive: imported as allocated");
        let model = if got.model.is_empty() { asked.model } else { got.model };
        return Resources { model, ..got };
    }
    if got.cpus.zip(asked.cpus).is_some_and(|(got, asked)| got > 2 * asked.max(1)) {
        remark(
            "AllocTRES has more than twice the cores of ReqTRES, as with --exclusive: imported as \
             requested",
        );
    }
    asked
}

/// The model that is asked, or the constraint where it speaks of nothing but GPU models.
fn models(model: &str, gpus: u64, constraint: &str, remark: Remark<'_>) -> String {
    let inner = constraint.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = inner.unwrap_or(constraint);
    let are_models = gpus > 0 && inner.split('|').all(|word| known_tier(word).is_some());
    match (model, are_models) {
        ("", true) => inner.to_owned(),
        (model, _) => {
            if !constraint.is_empty() && !are_models {
                remark("Constraints that are no GPU model are not kept");
            }
            model.to_owned()
        }
    }
}

fn placement(list: &str, remark: Remark<'_>) -> String {
    if list.is_empty() || list.eq_ignore_ascii_case("None assigned") {
        return String::new();
    }
    let joined = node_names(list).map(|names| names.join(";"));
    joined.filter(|names| names.len() <= FIELD_BYTES_MAX).unwrap_or_else(|| {
        remark("NodeList cannot be read or is too long; placement left empty");
        String::new()
    })
}

fn queue(account: &str, partition: &str) -> Result<String, Reason> {
    let parts = [account, partition].into_iter().filter(|part| !part.is_empty());
    let queue = parts.collect::<Vec<_>>().join("/");
    if queue.len() > FIELD_BYTES_MAX { Err("a text is too long") } else { Ok(queue) }
}

/// Minutes; words such as `UNLIMITED` mean that there is none.
fn limit(minutes: &str) -> Result<OptU64, Reason> {
    if minutes.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        return Ok(OptU64::NONE);
    }
    Ok(whole(minutes, TIME_MS_MAX / 60_000)?.map(|minutes| 60_000 * minutes).into())
}

/// Jobs of the same name, folder and resources do the same again.
fn group_tag(record: &Record<'_>) -> String {
    let mut hash = Sha256::new();
    for name in ["JobName", "WorkDir", "ReqTRES"] {
        hash.update(record.get(name).as_bytes());
        hash.update([0]);
    }
    HEXLOWER.encode(&hash.finalize()[..8])
}
