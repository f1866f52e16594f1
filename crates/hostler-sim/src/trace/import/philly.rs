//! The job log of Microsoft's Philly clusters (2017): one JSON list, a job at a time.
//!
//! What a job asked is what its first attempt with machines got; jobs that got none say nothing
//! of their demand and are dropped. One job is in memory at a time, and a job has a limit.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use serde::Deserializer;
use serde::de::{SeqAccess, Visitor};
use serde_json::Value;

use super::slurm_words::when;
use super::values::{Reason, TaskShape, tally, tasks};
use super::wall_clock::{EPOCH, Zone};
use super::{ImportOptions, Imported, Importer, detect, zone_words};
use crate::trace::error::{Faults, Problem, TraceError};
use crate::trace::limits::{FIELD_BYTES_MAX, ROWS_MAX, TIME_MS_MAX};
use crate::trace::meta::Meta;
use crate::trace::rows::{Limited, RecordTooLong, Sink};
use crate::trace::source::{self, Meter, Progress};
use crate::trace::table::{JobRow, OptU32, Status, TaskRow};
use crate::trace::text::TextId;

/// The importer of job logs.
pub(super) const DEF: Importer = Importer {
    name: "philly",
    summary: "cluster_job_log of Philly (2017): a JSON list of jobs with their attempts",
    takes: &["span", "time-zone"],
    detect: |path| {
        let head = detect::head(path);
        let starts = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
        starts
            && [&b"\"attempts\""[..], b"\"jobid\"", b"\"submitted_time\""]
                .iter()
                .any(|key| head.windows(key.len()).any(|window| window == *key))
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
    read_philly(&mut *input, &source::file_name(path), options, &mut imported, &mut faults);
    drop(input);
    meter.finish();
    imported.files.push(path.to_owned());
    faults.or(imported)
}

/// Reads a log from any stream; `file` is only for messages.
pub fn read_philly(
    input: &mut dyn Read,
    file: &str,
    options: &ImportOptions,
    imported: &mut Imported,
    faults: &mut Faults,
) {
    let Imported { trace, dropped, noted, .. } = imported;
    let (jobs, all_tasks) = (&mut trace.jobs, &mut trace.tasks);
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let mut rows = 0;
    let read = each_value(input, &mut |value| {
        rows += 1;
        match job(&value, options, &mut sink, &mut |remark| tally(noted, remark)) {
            Ok((job, tasks)) => {
                jobs.push(job);
                all_tasks.extend(tasks);
            }
            Err(reason) => tally(dropped, reason),
        }
        rows < ROWS_MAX as u64 && !sink.faults.is_full()
    });
    if let Err(error) = read {
        let line = error.line() as u64;
        let problem = if rows >= ROWS_MAX as u64 { Problem::TooManyRows } else { problem(error) };
        sink.fault(line, "", b"", problem);
    }
    imported.rows_read.insert(file.to_owned(), rows);
    trace.arrange();
    trace.shrink();
    trace.meta = Meta {
        source: "Philly job log (2017)".to_owned(),
        licence: "CC BY 4.0".to_owned(),
        time_origin: EPOCH.to_owned(),
        time_zone: zone_words(options),
        ..Meta::default()
    };
    let duration = if options.span { "span" } else { "sum of attempts" };
    trace.meta.options.insert("duration".to_owned(), duration.to_owned());
}

/// Hands over the elements of a JSON list one by one, until `take` says no.
fn each_value(
    input: &mut dyn Read,
    take: &mut dyn FnMut(Value) -> bool,
) -> Result<(), serde_json::Error> {
    let pending = Rc::new(Cell::new(0));
    let limited = Limited { input, pending: Rc::clone(&pending) };
    let mut list =
        serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, limited));
    list.deserialize_seq(List { pending, take })?;
    list.end()
}

struct List<'a> {
    /// Bytes since the last element was complete.
    pending: Rc<Cell<u64>>,
    take: &'a mut dyn FnMut(Value) -> bool,
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element()? {
            self.pending.set(0);
            if !(self.take)(value) {
                return Err(serde::de::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

fn problem(error: serde_json::Error) -> Problem {
    let message = error.to_string();
    let too_long = error.is_io()
        && io::Error::from(error).get_ref().is_some_and(|inner| inner.is::<RecordTooLong>());
    if too_long { Problem::RecordTooLong } else { Problem::Unreadable(message) }
}

const STATUSES: [(Status, &str); 3] =
    [(Status::Completed, "Pass"), (Status::Cancelled, "Killed"), (Status::Failed, "Failed")];

type Remark<'a> = &'a mut dyn FnMut(Reason);

fn job(
    value: &Value,
    options: &ImportOptions,
    sink: &mut Sink<'_>,
    remark: Remark<'_>,
) -> Result<(JobRow, Vec<TaskRow>), Reason> {
    let zone = options.time_zone.unwrap_or_default();
    let name = text_of(&value["jobid"])?;
    if name.is_empty() {
        return Err("jobid is missing");
    }
    let submit = when(text_of(&value["submitted_time"])?, zone)?;
    let submit_ms = submit.ok_or("submitted_time is missing")?;
    let attempts = value["attempts"].as_array().map_or(&[][..], Vec::as_slice);
    if attempts.is_empty() {
        return Err("no attempt: never started, and what it asked is not known");
    }
    let runs = Runs::of(attempts, zone)?;
    let machines = machines(attempts, remark)?;
    let status = text_of(&value["status"])?;
    let known = STATUSES.iter().find(|(_, word)| *word == status);
    if known.is_none() {
        remark("status is not a known word; left empty");
    }
    let mut text = |value: &str| {
        sink.text.intern(value).unwrap_or_else(|full| {
            sink.fault(0, "", value.as_bytes(), full.into());
            TextId::EMPTY
        })
    };
    let job_id = text(name);
    let base = TaskRow { job_id, ..runs.recorded(options.span, remark) };
    let shapes: Vec<_> = machines.iter().map(|(shape, _)| *shape).collect();
    let mut tasks = tasks(base, &shapes, &mut text)?;
    for (task, (_, placement)) in tasks.iter_mut().zip(&machines) {
        task.placement = text(placement);
    }
    let job = JobRow {
        job_id,
        user: text(text_of(&value["user"])?),
        queue: text(text_of(&value["vc"])?),
        submit_ms,
        attempts: OptU32::some(attempts.len() as u32),
        status_in_trace: known.map_or(Status::Unknown, |(status, _)| *status),
        ..JobRow::default()
    };
    Ok((job, tasks))
}

/// A text, or nothing where the log has `null` or no such key.
fn text_of(value: &Value) -> Result<&str, Reason> {
    match value {
        Value::Null => Ok(""),
        Value::String(text) if text.len() <= FIELD_BYTES_MAX => Ok(text),
        Value::String(_) => Err("a text is too long"),
        _ => Err("a value is not a text"),
    }
}

/// When the attempts of a job ran.
#[derive(Default)]
struct Runs {
    first_start: Option<u64>,
    last_end: Option<u64>,
    sum_ms: Option<u64>,
    incomplete: bool,
}

impl Runs {
    fn of(attempts: &[Value], zone: Zone) -> Result<Runs, Reason> {
        let mut runs = Runs::default();
        for attempt in attempts {
            let start = when(text_of(&attempt["start_time"])?, zone)?;
            let end = when(text_of(&attempt["end_time"])?, zone)?;
            runs.first_start = runs.first_start.into_iter().chain(start).min();
            runs.last_end = runs.last_end.into_iter().chain(end).max();
            match start.zip(end) {
                Some((start, end)) if end < start => return Err("attempt ends before it starts"),
                Some((start, end)) => {
                    runs.sum_ms = Some(runs.sum_ms.unwrap_or(0) + (end - start));
                }
                None => runs.incomplete = true,
            }
        }
        match runs.sum_ms.is_some_and(|sum| sum > TIME_MS_MAX) {
            true => Err("a number is too large"),
            false => Ok(runs),
        }
    }

    fn recorded(&self, span: bool, remark: Remark<'_>) -> TaskRow {
        if self.incomplete {
            remark("attempt without start or end; not part of the run time");
        }
        let ends = self.first_start.zip(self.last_end);
        let duration = match span {
            true => ends.map(|(start, end)| end.saturating_sub(start)),
            false => self.sum_ms,
        };
        TaskRow {
            duration_ms: duration.into(),
            start_ms: self.first_start.into(),
            end_ms: self.last_end.filter(|_| self.first_start.is_some()).into(),
            ..TaskRow::default()
        }
    }
}

/// Machines of the first attempt that names any: most GPUs first, equal ones together, with names.
fn machines(attempts: &[Value], remark: Remark<'_>) -> Result<Vec<(TaskShape, String)>, Reason> {
    let mut details = attempts.iter().filter_map(|attempt| attempt["detail"].as_array());
    let detail = details.find(|detail| !detail.is_empty());
    let detail = detail.ok_or("no attempt names machines: what it asked is not known")?;
    let mut by_size: BTreeMap<Reverse<u64>, Vec<&str>> = BTreeMap::new();
    for server in detail {
        let gpus = server["gpus"].as_array().map_or(0, Vec::len) as u64;
        match gpus {
            0 => remark("machine without GPUs in an attempt; left out"),
            _ => by_size.entry(Reverse(gpus)).or_default().push(text_of(&server["ip"])?),
        }
    }
    if by_size.is_empty() {
        return Err("no GPUs, and what else it asked is not known");
    }
    let named = by_size.into_iter().map(|(Reverse(gpus), mut names)| {
        let shape = TaskShape { count: names.len() as u64, gpus };
        names.sort_unstable();
        names.retain(|name| !name.is_empty());
        let placement = names.join(";");
        let fits = placement.len() <= FIELD_BYTES_MAX;
        if fits { Ok((shape, placement)) } else { Err("a text is too long") }
    });
    named.collect()
}
