//! The openb lists of Alibaba's GPU-sharing cluster (2023): pods, and the machines beside them.
//!
//! A pod is a job of one instance. Pods that were never scheduled stay in, without a run time:
//! the lists are a demand to be packed as much as a history.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::values::{Reason, millis, narrow, tally, whole};
use super::{ImportOptions, Imported, Importer, detect};
use crate::trace::error::{Faults, Problem, TraceError};
use crate::trace::limits::{NODE_GPUS_MAX, NODES_MAX, NUMBER_MAX};
use crate::trace::meta::Meta;
use crate::trace::priority;
use crate::trace::rows::{Column, Layout, Row, Sink, each_row, optional, required};
use crate::trace::source::{self, Meter, Progress};
use crate::trace::table::{JobRow, NodeRow, OptU64, Status, TaskRow};

/// The importer of pod lists.
pub(super) const DEF: Importer = Importer {
    name: "openb",
    summary: "pod list of Alibaba's openb trace of 2023, or the folder with it and a node list",
    takes: &[],
    detect: |path| match path.is_dir() {
        true => pod_list(path).is_ok_and(|list| list.is_some()),
        false => detect::has_columns(path, b',', &["name", "num_gpu", "gpu_spec", "pod_phase"]),
    },
    import,
};

const DEFAULT_PODS: &str = "openb_pod_list_default.csv";
const ALL_NODES: &str = "openb_node_list_all_node.csv";

/// The list of a folder: the default one, or the only one.
fn pod_list(folder: &Path) -> Result<Option<PathBuf>, TraceError> {
    match source::find(folder, DEFAULT_PODS)? {
        Some(path) => Ok(Some(path)),
        None => detect::only(detect::files(folder, &|name| name.starts_with("openb_pod_list"))?),
    }
}

/// The machines beside a list of pods: all of them, or the only list there is.
fn node_list(folder: &Path) -> Result<Option<PathBuf>, TraceError> {
    match source::find(folder, ALL_NODES)? {
        Some(path) => Ok(Some(path)),
        None => detect::only(detect::files(folder, &|name| name.starts_with("openb_node_list"))?),
    }
}

fn import(path: &Path, _: &ImportOptions, progress: Progress<'_>) -> Result<Imported, TraceError> {
    let missing = || TraceError::Missing { name: DEFAULT_PODS, folder: path.to_owned() };
    let (folder, pods) = match path.is_dir() {
        true => (path, pod_list(path)?.ok_or_else(missing)?),
        false => (detect::folder_of(path), path.to_owned()),
    };
    let nodes = node_list(folder)?;
    let size = source::size(&pods) + nodes.as_deref().map_or(0, source::size);
    let mut meter = Meter::new(size, progress);
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    if let Some(nodes) = &nodes {
        let mut input = source::open(nodes, &mut meter)?;
        read_openb_nodes(&mut *input, &source::file_name(nodes), &mut imported, &mut faults);
    }
    let mut input = source::open(&pods, &mut meter)?;
    read_openb_pods(&mut *input, &source::file_name(&pods), &mut imported, &mut faults);
    drop(input);
    meter.finish();
    if path.is_dir() {
        let lists = detect::files(folder, &|name| name.starts_with("openb_pod_list"))?;
        lists.iter().filter(|list| **list != pods).for_each(|_| {
            tally(&mut imported.noted, "another list of pods is there; name its file to read it");
        });
    }
    imported.files.extend(nodes);
    imported.files.push(pods);
    faults.or(imported)
}

const NODES: [Column; 5] = [
    required("sn"),
    required("cpu_milli"),
    required("memory_mib"),
    required("gpu"),
    required("model"),
];

/// Reads a list of machines; `file` is only for messages.
pub fn read_openb_nodes(
    input: &mut dyn Read,
    file: &str,
    imported: &mut Imported,
    faults: &mut Faults,
) {
    let Imported { trace, dropped, .. } = imported;
    let nodes = &mut trace.nodes;
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let layout = Layout { columns: &NODES, unknown_are_faults: false };
    let rows = each_row(input, &layout, &mut sink, &mut |row| match node(row) {
        Ok(_) if nodes.len() >= NODES_MAX => row.fault(0, Problem::TooManyRows),
        Ok(node) => nodes.push(node),
        Err(reason) => tally(dropped, reason),
    });
    imported.rows_read.insert(file.to_owned(), rows);
}

fn node(row: &mut Row<'_, '_>) -> Result<NodeRow, Reason> {
    if row.bytes(0).is_empty() {
        return Err("sn of a node is missing");
    }
    let gpus = whole(row.str(3), u64::from(NODE_GPUS_MAX))?;
    Ok(NodeRow {
        node_id: row.text(0),
        cpu_milli: whole(row.str(1), NUMBER_MAX)?.map(|value| value as u32).into(),
        mem_mib: whole(row.str(2), NUMBER_MAX)?.map(|value| value as u32).into(),
        gpu_count: gpus.ok_or("number of GPUs of a node is missing")? as u32,
        gpu_model: row.text(4),
        line: row.line(),
        ..NodeRow::default()
    })
}

const PODS: [Column; 11] = [
    required("name"),
    required("cpu_milli"),
    required("memory_mib"),
    required("num_gpu"),
    required("gpu_milli"),
    optional("gpu_spec"),
    optional("qos"),
    optional("pod_phase"),
    required("creation_time"),
    required("deletion_time"),
    required("scheduled_time"),
];

const PHASES: [(Status, &str); 4] = [
    (Status::Running, "Running"),
    (Status::Completed, "Succeeded"),
    (Status::Failed, "Failed"),
    (Status::Waiting, "Pending"),
];

/// Reads a list of pods; `file` is only for messages.
pub fn read_openb_pods(
    input: &mut dyn Read,
    file: &str,
    imported: &mut Imported,
    faults: &mut Faults,
) {
    let Imported { trace, dropped, noted, .. } = imported;
    let (jobs, tasks) = (&mut trace.jobs, &mut trace.tasks);
    let mut sink = Sink { file, text: &mut trace.text, faults };
    let layout = Layout { columns: &PODS, unknown_are_faults: false };
    let rows = each_row(input, &layout, &mut sink, &mut |row| match pod(row) {
        Ok((job, task)) => {
            if job.status_in_trace == Status::Unknown && !row.bytes(7).is_empty() {
                tally(noted, "pod_phase is not a known word; status left empty");
            }
            jobs.push(job);
            tasks.push(task);
        }
        Err(reason) => tally(dropped, reason),
    });
    imported.rows_read.insert(file.to_owned(), rows);
    trace.arrange();
    trace.shrink();
    trace.meta = Meta {
        source: "Alibaba openb trace (2023)".to_owned(),
        licence: "that of the source".to_owned(),
        time_origin: "relative".to_owned(),
        time_zone: "not stated".to_owned(),
        ..Meta::default()
    };
}

fn pod(row: &mut Row<'_, '_>) -> Result<(JobRow, TaskRow), Reason> {
    if row.bytes(0).is_empty() {
        return Err("name is missing");
    }
    let gpus = whole(row.str(3), NUMBER_MAX)?.ok_or("num_gpu is missing")?;
    let milli = whole(row.str(4), NUMBER_MAX)?.ok_or("gpu_milli is missing")?;
    if gpus > 1 && milli != 1000 {
        return Err("a part of each of several GPUs");
    }
    if gpus == 1 && milli > 1000 {
        return Err("gpu_milli is above 1000");
    }
    let submit_ms = millis(row.str(8))?.ok_or("creation_time is missing")?;
    let (end, start) = (millis(row.str(9))?, millis(row.str(10))?);
    if end.zip(start).is_some_and(|(end, start)| end < start) {
        return Err("deletion_time is before scheduled_time");
    }
    let class = row.str(6);
    let phase = row.str(7);
    let job_id = row.text(0);
    let job = JobRow {
        job_id,
        priority_class: row.intern(6, class),
        priority: priority::resolve(class).unwrap_or(0),
        submit_ms,
        status_in_trace: PHASES
            .iter()
            .find(|(_, name)| *name == phase)
            .map_or(Status::Unknown, |(status, _)| *status),
        line: row.line(),
        ..JobRow::default()
    };
    let task = TaskRow {
        job_id,
        task: row.intern(0, "pod"),
        count: 1,
        gang: Some(false),
        gpu_milli: narrow(gpus * milli)?,
        gpu_models: row.text(5),
        cpu_milli: whole(row.str(1), NUMBER_MAX)?.map(|value| value as u32).into(),
        mem_mib: whole(row.str(2), NUMBER_MAX)?.map(|value| value as u32).into(),
        duration_ms: end.zip(start).map(|(end, start)| end - start).into(),
        start_ms: OptU64::from(start),
        // Without a start the deletion ends a wait, not a run.
        end_ms: OptU64::from(end.filter(|_| start.is_some())),
        line: row.line(),
        ..TaskRow::default()
    };
    Ok((job, task))
}
