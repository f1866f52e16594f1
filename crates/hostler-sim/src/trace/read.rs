//! Reads the native tables, from a folder or one by one from any stream.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::{Faults, Problem, TraceError};
use super::limits::{COUNT_MAX, NODE_GPUS_MAX, NODES_MAX, TIME_MS_MAX};
use super::meta::Meta;
use super::priority;
use super::rows::{Column, Layout, Row, Sink, each_row, optional, required};
use super::source::{self, Meter, Progress};
use super::table::{InstanceRow, JobRow, Link, NodeRow, SHARING_NAMES, Status, TaskRow, Trace};

/// What to read and whom to tell.
#[derive(Default)]
pub struct ReadOptions<'a> {
    /// Leave `instances.csv` out even if it is there.
    pub skip_instances: bool,
    /// Is told how far reading is.
    pub progress: Option<Progress<'a>>,
}

/// Reads a folder of native tables, packed or not. `nodes.csv`, `instances.csv` and `meta.toml`
/// may be absent.
pub fn read(folder: &Path, options: ReadOptions<'_>) -> Result<Trace, TraceError> {
    let mut trace = Trace::default();
    let meta = folder.join("meta.toml");
    if meta.is_file() {
        trace.meta = Meta::parse(&source::read_small(&meta)?, "meta.toml")?;
    }
    let instances = source::find(folder, "instances.csv")?;
    let files: [(Option<PathBuf>, TableReader); 4] = [
        (source::find(folder, "nodes.csv")?, read_nodes),
        (Some(source::need(folder, "jobs.csv")?), read_jobs),
        (Some(source::need(folder, "tasks.csv")?), read_tasks),
        (instances.filter(|_| !options.skip_instances), read_instances),
    ];
    let total = files.iter().flat_map(|(path, _)| path).map(|path| source::size(path)).sum();
    let mut silent = |_, _| {};
    let mut meter = Meter::new(total, options.progress.unwrap_or(&mut silent));
    let mut faults = Faults::default();
    for (path, read_table) in files {
        let Some(path) = path else { continue };
        let name = source::file_name(&path);
        read_table(&mut *source::open(&path, &mut meter)?, &name, &mut trace, &mut faults);
        if faults.is_full() {
            break;
        }
    }
    meter.finish();
    trace.arrange();
    trace.shrink();
    faults.or(trace)
}

type TableReader = fn(&mut dyn Read, &str, &mut Trace, &mut Faults);

/// Reads a `nodes.csv` into `trace.nodes`; `file` is only for messages.
pub fn read_nodes(input: &mut dyn Read, file: &str, trace: &mut Trace, faults: &mut Faults) {
    let nodes = &mut trace.nodes;
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let layout = Layout { columns: &NODES, unknown_are_faults: true };
    each_row(input, &layout, &mut sink, &mut |row| {
        let node = node(row);
        match nodes.len() < NODES_MAX {
            true => nodes.push(node),
            false => row.fault(0, Problem::TooManyRows),
        }
    });
}

/// Reads a `jobs.csv` into `trace.jobs`; call [`Trace::arrange`] after the last table.
pub fn read_jobs(input: &mut dyn Read, file: &str, trace: &mut Trace, faults: &mut Faults) {
    let jobs = &mut trace.jobs;
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let layout = Layout { columns: &JOBS, unknown_are_faults: true };
    each_row(input, &layout, &mut sink, &mut |row| jobs.push(job(row)));
}

/// Reads a `tasks.csv` into `trace.tasks`; call [`Trace::arrange`] after the last table.
pub fn read_tasks(input: &mut dyn Read, file: &str, trace: &mut Trace, faults: &mut Faults) {
    let tasks = &mut trace.tasks;
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let layout = Layout { columns: &TASKS, unknown_are_faults: true };
    each_row(input, &layout, &mut sink, &mut |row| tasks.push(task(row)));
}

/// Reads an `instances.csv` into `trace.instances`.
pub fn read_instances(input: &mut dyn Read, file: &str, trace: &mut Trace, faults: &mut Faults) {
    let instances = &mut trace.instances;
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let layout = Layout { columns: &INSTANCES, unknown_are_faults: true };
    each_row(input, &layout, &mut sink, &mut |row| instances.push(instance(row)));
}

/// Columns of `nodes.csv`; the last three are written only when some node has them.
pub(super) const NODES: [Column; 16] = [
    required("node_id"),
    optional("pool"),
    optional("gpu_model"),
    required("gpu_count"),
    optional("gpu_mem_mib"),
    required("cpu_milli"),
    optional("mem_mib"),
    optional("nic_mbps"),
    optional("link"),
    optional("rack"),
    optional("labels"),
    optional("up_from_s"),
    optional("up_to_s"),
    optional("islands"),
    optional("idle_watts"),
    optional("peak_watts"),
];

fn node(row: &mut Row<'_, '_>) -> NodeRow {
    if !are_labels(row.str(10)) {
        row.fault(10, Problem::Labels);
    }
    NodeRow {
        node_id: row.name(0),
        pool: row.text(1),
        gpu_model: row.text(2),
        gpu_count: row.needed(3, u64::from(NODE_GPUS_MAX)) as u32,
        gpu_mem_mib: row.number(4),
        cpu_milli: row.number(5),
        mem_mib: row.number(6),
        nic_mbps: row.number(7),
        link: row.word(8, &Link::NAMES),
        rack: row.text(9),
        labels: row.text(10),
        up_from_s: row.long(11),
        up_to_s: row.long(12),
        islands: row.number(13),
        idle_watts: row.number(14),
        peak_watts: row.number(15),
        line: row.line(),
    }
}

fn are_labels(text: &str) -> bool {
    let is_label = |part: &str| part.split_once('=').is_some_and(|(key, _)| !key.is_empty());
    text.is_empty() || text.split(';').all(is_label)
}

/// Columns of `jobs.csv`.
pub(super) const JOBS: [Column; 13] = [
    required("job_id"),
    optional("user"),
    optional("group_tag"),
    optional("queue"),
    optional("priority_class"),
    required("submit_ms"),
    optional("deadline_ms"),
    optional("time_limit_ms"),
    optional("est_ms"),
    optional("status_in_trace"),
    optional("workload"),
    optional("attempts"),
    optional("sharing"),
];

fn job(row: &mut Row<'_, '_>) -> JobRow {
    let class = row.str(4);
    JobRow {
        job_id: row.name(0),
        user: row.text(1),
        group_tag: row.text(2),
        queue: row.text(3),
        priority_class: row.intern(4, class),
        priority: priority::resolve(class).unwrap_or(0),
        submit_ms: row.needed(5, TIME_MS_MAX),
        deadline_ms: row.long(6),
        time_limit_ms: row.long(7),
        est_ms: row.long(8),
        status_in_trace: row.word(9, &Status::NAMES),
        workload: row.text(10),
        attempts: row.number(11),
        sharing: row.word(12, &SHARING_NAMES),
        tasks_start: 0,
        tasks_count: 0,
        line: row.line(),
    }
}

/// Columns of `tasks.csv`.
pub(super) const TASKS: [Column; 19] = [
    required("job_id"),
    optional("task"),
    required("count"),
    optional("gang"),
    optional("min_count"),
    optional("max_count"),
    optional("gpu_milli"),
    optional("gpu_models"),
    optional("gpu_mem_mib"),
    optional("cpu_milli"),
    optional("mem_mib"),
    optional("duration_ms"),
    optional("work"),
    optional("model"),
    optional("start_ms"),
    optional("end_ms"),
    optional("placement"),
    optional("gpu_use_milli"),
    optional("gpu_mem_use_mib"),
];

const GANG: [(Option<bool>, &str); 3] = [(None, ""), (Some(false), "0"), (Some(true), "1")];

fn task(row: &mut Row<'_, '_>) -> TaskRow {
    TaskRow {
        job_id: row.name(0),
        task: row.text(1),
        count: row.needed(2, COUNT_MAX) as u32,
        gang: row.word(3, &GANG),
        min_count: row.number(4),
        max_count: row.number(5),
        gpu_milli: row.number(6),
        gpu_models: row.text(7),
        gpu_mem_mib: row.number(8),
        cpu_milli: row.number(9),
        mem_mib: row.number(10),
        duration_ms: row.long(11),
        work: row.long(12),
        model: row.text(13),
        start_ms: row.long(14),
        end_ms: row.long(15),
        placement: row.text(16),
        gpu_use_milli: row.number(17),
        gpu_mem_use_mib: row.number(18),
        line: row.line(),
    }
}

/// Columns of `instances.csv`.
pub(super) const INSTANCES: [Column; 10] = [
    required("job_id"),
    optional("task"),
    optional("index"),
    optional("node_id"),
    optional("start_ms"),
    optional("end_ms"),
    optional("status"),
    optional("cpu_use_milli"),
    optional("gpu_use_milli"),
    optional("gpu_mem_used_mib"),
];

fn instance(row: &mut Row<'_, '_>) -> InstanceRow {
    InstanceRow {
        job_id: row.name(0),
        task: row.text(1),
        index: row.number(2),
        node_id: row.text(3),
        start_ms: row.long(4),
        end_ms: row.long(5),
        status: row.word(6, &Status::NAMES),
        cpu_use_milli: row.number(7),
        gpu_use_milli: row.number(8),
        gpu_mem_used_mib: row.number(9),
        line: row.line(),
    }
}
