//! Traces of the Gavel simulator: lines between tabs, without a header, in two layouts.
//!
//! A job has work (steps) and a model of throughput, no run time. The number of its line, from
//! 0, is its name.

use std::io::Read;
use std::path::Path;

use hostler_core::job::Sharing;

use super::values::{Reason, millis, tally, whole};
use super::{ImportOptions, Imported, Importer, detect, separated};
use crate::trace::error::{Faults, Problem, TraceError};
use crate::trace::limits::{COUNT_MAX, TIME_MS_MAX};
use crate::trace::meta::Meta;
use crate::trace::priority;
use crate::trace::rows::Sink;
use crate::trace::source::{self, Meter, Progress};
use crate::trace::table::{JobRow, OptU32, OptU64, TaskRow};
use crate::trace::text::TextId;

/// The importer of simulator traces.
pub(super) const DEF: Importer = Importer {
    name: "gavel",
    summary: "trace of the Gavel simulator: 10 (or, older, 7) columns between tabs",
    takes: &[],
    detect: |path| {
        let head = detect::head(path);
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let columns = line.split(|byte| *byte == b'\t').count();
        Columns::of(columns).is_some()
    },
    import,
};

fn import(path: &Path, _: &ImportOptions, progress: Progress<'_>) -> Result<Imported, TraceError> {
    let mut meter = Meter::new(source::size(path), progress);
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    let mut input = source::open(path, &mut meter)?;
    read_gavel(&mut *input, &source::file_name(path), &mut imported, &mut faults);
    drop(input);
    meter.finish();
    imported.files.push(path.to_owned());
    faults.or(imported)
}

/// Where the needed values stand.
#[derive(Clone, Copy)]
struct Columns {
    steps: usize,
    scale: usize,
    arrival: usize,
    /// Weight and service goal; the older layout has neither.
    weight_goal: Option<(usize, usize)>,
}

impl Columns {
    fn of(count: usize) -> Option<Columns> {
        match count {
            7 => Some(Columns { steps: 4, scale: 6, arrival: 5, weight_goal: None }),
            10 => Some(Columns { steps: 5, scale: 6, arrival: 9, weight_goal: Some((7, 8)) }),
            _ => None,
        }
    }
}

/// Reads a trace from any stream; `file` is only for messages.
pub fn read_gavel(input: &mut dyn Read, file: &str, imported: &mut Imported, faults: &mut Faults) {
    let Imported { trace, dropped, noted, .. } = imported;
    let (jobs, tasks) = (&mut trace.jobs, &mut trace.tasks);
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let mut layout: Option<(usize, Columns)> = None;
    let mut rows = 0;
    separated::each_line(input, Some('\t'), &mut sink, &mut |line, fields, sink| {
        let found = Columns::of(fields.len()).map(|columns| (fields.len(), columns));
        let Some((expected, columns)) = layout.or(found) else {
            sink.fault(line, "", b"", Problem::Fields { expected: "7 or 10", found: fields.len() });
            return false;
        };
        layout = Some((expected, columns));
        rows += 1;
        if fields.len() != expected {
            tally(dropped, "number of columns differs from the first line");
            return true;
        }
        match job(line, fields, columns, sink, &mut |remark| tally(noted, remark)) {
            Ok((job, task)) => {
                jobs.push(job);
                tasks.push(task);
            }
            Err(reason) => tally(dropped, reason),
        }
        true
    });
    imported.rows_read.insert(file.to_owned(), rows);
    trace.arrange();
    trace.shrink();
    trace.meta = Meta {
        source: "Gavel simulator trace".to_owned(),
        licence: "that of the source".to_owned(),
        time_origin: "relative".to_owned(),
        time_zone: "none".to_owned(),
        ..Meta::default()
    };
}

fn job(
    line: u64,
    fields: &[&str],
    columns: Columns,
    sink: &mut Sink<'_>,
    remark: &mut dyn FnMut(Reason),
) -> Result<(JobRow, TaskRow), Reason> {
    if fields[0].is_empty() {
        return Err("job_type is missing");
    }
    let steps = whole(fields[columns.steps], TIME_MS_MAX)?.ok_or("total_steps is missing")?;
    let scale = whole(fields[columns.scale], COUNT_MAX)?.ok_or("scale_factor is missing")?;
    if scale < 1 {
        return Err("scale_factor is below 1");
    }
    let submit_ms = millis(fields[columns.arrival])?.ok_or("arrival_time is missing")?;
    let mut class = "";
    if let Some((weight, goal)) = columns.weight_goal {
        match fields[weight].parse::<i32>() {
            Ok(_) => class = fields[weight],
            Err(_) => remark("priority_weight is not a whole number; priority left empty"),
        }
        if fields[goal].parse().is_ok_and(|goal: f64| goal >= 0.0) {
            remark("SLO is a factor of a run time that is not known; deadline left empty");
        }
    }
    let mut text = |value: &str| {
        sink.text.intern(value).unwrap_or_else(|full| {
            sink.fault(line, "", value.as_bytes(), full.into());
            TextId::EMPTY
        })
    };
    let job_id = text(&(line - 1).to_string());
    let row = u32::try_from(line).unwrap_or(u32::MAX);
    let job = JobRow {
        job_id,
        priority_class: text(class),
        priority: priority::resolve(class).unwrap_or(0),
        submit_ms,
        // Any two of them may share GPUs there, if the policy packs.
        sharing: Some(Sharing::Willing),
        line: row,
        ..JobRow::default()
    };
    let task = TaskRow {
        job_id,
        task: text("worker"),
        count: scale as u32,
        gang: Some(scale > 1),
        gpu_milli: OptU32::some(1000),
        work: OptU64::some(steps),
        model: text(fields[0]),
        line: row,
        ..TaskRow::default()
    };
    Ok((job, task))
}
