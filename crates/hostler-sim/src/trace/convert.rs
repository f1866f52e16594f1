//! From any known source to checked native tables: `trace convert`.
//!
//! Jobs that break a rule are dropped, counted by reason and noted in the meta, together with
//! the hash of every input. Nothing is repaired.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::check::{Finding, Severity, Table, each_finding};
use super::error::TraceError;
use super::import::{ImportOptions, Imported, Importer, importer, moved_origin};
use super::meta::Maker;
use super::source::{Compression, Progress, fingerprint};
use super::table::{JobRow, NO_JOB, OptU64, TaskRow, Trace};
use super::write::write;

/// How to convert.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConvertOptions {
    /// Name of the importer; none = the first that knows the files.
    pub from: Option<String>,
    /// Packing of the tables.
    pub packing: Compression,
    /// Leave times as they are; otherwise the earliest submission becomes 0.
    pub keep_times: bool,
    /// Any dropped row is an error, and nothing is written.
    pub strict: bool,
    /// Drop jobs without a run time, which a simulation cannot run.
    pub runnable: bool,
    /// Drop the GPU models that tasks ask for.
    pub any_gpu: bool,
    /// What only some sources can be told.
    pub reading: ImportOptions,
}

/// What a conversion did.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// Importer that was used.
    pub importer: &'static str,
    /// Rows of each input.
    pub rows_read: BTreeMap<String, u64>,
    /// Rows left out, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Rows kept with a remark, by remark.
    pub noted: BTreeMap<String, u64>,
    /// Rows of each table as written.
    pub rows: BTreeMap<String, u64>,
}

/// Imports a file or folder, drops what breaks the rules, and writes native tables.
pub fn convert(
    input: &Path,
    output: &Path,
    options: &ConvertOptions,
    progress: Progress<'_>,
) -> Result<Converted, TraceError> {
    let importer = importer(options.from.as_deref(), input)?;
    let (trace, report) = import(importer, input, options, progress)?;
    write(&trace, output, options.packing)?;
    Ok(report)
}

/// Like [`convert`], but keeps the trace in memory.
pub fn import(
    importer: &'static Importer,
    input: &Path,
    options: &ConvertOptions,
    progress: Progress<'_>,
) -> Result<(Trace, Converted), TraceError> {
    options.reading.check(importer)?;
    let imported = (importer.import)(input, &options.reading, progress)?;
    let Imported { mut trace, files, rows_read, mut dropped, mut noted } = imported;
    if options.any_gpu {
        count(&mut noted, "GPU model that a task asked for is dropped", trace.drop_gpu_models());
    }
    let endless = endless_jobs(&trace);
    match options.runnable {
        true => drop_endless(&mut trace, &endless, &mut dropped),
        false => {
            count(&mut noted, "run time is not known; `--runnable` drops", endless.len() as u64)
        }
    }
    for (reason, rows) in drop_bad(&mut trace) {
        *dropped.entry(reason).or_default() += rows;
    }
    let nodes_before = trace.nodes.len();
    let shifted_ms = if options.keep_times { 0 } else { shift_to_zero(&mut trace) };
    let gone = (nodes_before - trace.nodes.len()) as u64;
    count(&mut dropped, "node interval ended before the first submission", gone);
    if options.strict && !dropped.is_empty() {
        let reasons: Vec<_> = dropped.iter().map(|(why, rows)| format!("{why}: {rows}")).collect();
        let (total, reasons) = (dropped.values().sum(), reasons.join(", "));
        return Err(TraceError::Dropped { total, reasons });
    }
    let meta = &mut trace.meta;
    meta.importer = Some(Maker::own(importer.name));
    if let Some(origin) = moved_origin(&meta.time_origin, shifted_ms) {
        meta.time_origin = origin;
    }
    meta.options.extend([
        ("shifted_ms".to_owned(), shifted_ms.to_string()),
        ("strict".to_owned(), options.strict.to_string()),
        ("runnable".to_owned(), options.runnable.to_string()),
    ]);
    if options.any_gpu {
        meta.options.insert("any_gpu".to_owned(), true.to_string());
    }
    meta.inputs = files.iter().map(|file| fingerprint(file)).collect::<Result<_, _>>()?;
    (meta.rows_read, meta.rows_dropped) = (rows_read.clone(), dropped.clone());
    meta.rows_noted = noted.clone();
    trace.meta.rows = trace.row_counts();
    let rows = trace.meta.rows.clone();
    Ok((trace, Converted { importer: importer.name, rows_read, dropped, noted, rows }))
}

/// Rows of jobs none of whose tasks has a run time, work, or both a start and an end.
fn endless_jobs(trace: &Trace) -> BTreeSet<u32> {
    let ends = |task: &TaskRow| {
        let span = task.start_ms.get().and(task.end_ms.get());
        task.duration_ms.get().or(task.work.get()).or(span).is_some()
    };
    let is_endless = |job: &JobRow| job.tasks_count > 0 && !trace.tasks_of(job).iter().any(ends);
    let rows = trace.jobs.iter().enumerate().filter(|(_, job)| is_endless(job));
    rows.map(|(row, _)| row as u32).collect()
}

fn drop_endless(trace: &mut Trace, rows: &BTreeSet<u32>, dropped: &mut BTreeMap<String, u64>) {
    let bad = Bad { jobs: rows.clone(), ..Bad::default() };
    count(dropped, "run time is not known", rows.len() as u64);
    for (reason, rows) in remove(trace, bad) {
        count(dropped, &reason, rows);
    }
}

/// Removes every job that breaks a rule, with its tasks and instances, and every node row, task
/// or instance that does by itself. Returns rows by reason; a row is counted under one reason.
pub fn drop_bad(trace: &mut Trace) -> BTreeMap<String, u64> {
    let mut bad = Bad::default();
    let job_rows = trace.job_rows();
    each_finding(trace, &mut |finding| bad.note(trace, &job_rows, &finding));
    if bad.reasons.is_empty() {
        return BTreeMap::new();
    }
    remove(trace, bad)
}

fn remove(trace: &mut Trace, bad: Bad) -> BTreeMap<String, u64> {
    let Bad { nodes, jobs, orphans, instances, mut reasons } = bad;
    let names: BTreeSet<_> = jobs.iter().map(|row| trace.jobs[*row as usize].job_id).collect();
    retain_rows(&mut trace.nodes, |row, _| !nodes.contains(&row));
    retain_rows(&mut trace.jobs, |row, _| !jobs.contains(&row));
    let kept: BTreeSet<_> = match names.is_empty() {
        true => BTreeSet::new(),
        false => trace.jobs.iter().map(|job| job.job_id).collect(),
    };
    let of_dropped = |id| names.contains(&id) && !kept.contains(&id);
    let before = trace.tasks.len() - orphans.len();
    retain_rows(&mut trace.tasks, |row, task| !orphans.contains(&row) && !of_dropped(task.job_id));
    count(&mut reasons, "task of a dropped job", (before - trace.tasks.len()) as u64);
    let before = trace.instances.len() - instances.len();
    retain_rows(&mut trace.instances, |row, instance| {
        !instances.contains(&row) && !of_dropped(instance.job_id)
    });
    count(&mut reasons, "instance of a dropped job", (before - trace.instances.len()) as u64);
    trace.arrange();
    reasons
}

/// Rows to be dropped, by table.
#[derive(Default)]
struct Bad {
    nodes: BTreeSet<u32>,
    jobs: BTreeSet<u32>,
    orphans: BTreeSet<u32>,
    instances: BTreeSet<u32>,
    reasons: BTreeMap<String, u64>,
}

impl Bad {
    fn note(&mut self, trace: &Trace, job_rows: &[u32], finding: &Finding) {
        if finding.severity() < Severity::Error {
            return;
        }
        let is_new = match finding.table {
            Table::Nodes => self.nodes.insert(finding.row),
            Table::Jobs => self.jobs.insert(finding.row),
            Table::Instances => self.instances.insert(finding.row),
            Table::Tasks => {
                let task = &trace.tasks[finding.row as usize];
                match job_rows[task.job_id.index()] {
                    NO_JOB => self.orphans.insert(finding.row),
                    job => self.jobs.insert(job),
                }
            }
            Table::Meta => false,
        };
        if is_new {
            count(&mut self.reasons, finding.rule.words(), 1);
        }
    }
}

fn count(reasons: &mut BTreeMap<String, u64>, reason: &str, rows: u64) {
    if rows > 0 {
        *reasons.entry(reason.to_owned()).or_default() += rows;
    }
}

fn retain_rows<T>(rows: &mut Vec<T>, keep: impl Fn(u32, &T) -> bool) {
    let mut row = 0;
    rows.retain(|value| {
        row += 1;
        keep(row - 1, value)
    });
}

/// Moves all times so that the earliest submission is 0, and returns by how many milliseconds.
/// Times before it become 0; node intervals that ended before it go.
pub fn shift_to_zero(trace: &mut Trace) -> u64 {
    let first = trace.jobs.iter().map(|job| job.submit_ms).min().unwrap_or(0);
    let shift = |time: &mut OptU64, by: u64| {
        *time = OptU64::from(time.get().map(|value| value.saturating_sub(by)));
    };
    for job in &mut trace.jobs {
        job.submit_ms -= first;
        shift(&mut job.deadline_ms, first);
    }
    for task in &mut trace.tasks {
        shift(&mut task.start_ms, first);
        shift(&mut task.end_ms, first);
    }
    for instance in &mut trace.instances {
        shift(&mut instance.start_ms, first);
        shift(&mut instance.end_ms, first);
    }
    let first_secs = first / 1000;
    trace.nodes.retain(|node| node.up_to_s.or(u64::MAX) > first_secs);
    for node in &mut trace.nodes {
        shift(&mut node.up_from_s, first_secs);
        shift(&mut node.up_to_s, first_secs);
    }
    first
}
