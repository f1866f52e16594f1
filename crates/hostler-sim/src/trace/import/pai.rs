//! The tables of Alibaba's PAI trace of 2020 as a source of native tables.
//!
//! A job without a submission time and a task without a job are dropped and counted. The start,
//! end and run time of a task are those of its instances; where no table of instances is there,
//! they stay unknown, and so does the run time that a simulation needs. What its workers used of
//! their GPUs is the mean of what the sensors saw.

use std::collections::HashMap;
use std::path::Path;

use hostler_core::job::Sharing;

use super::pai_tables::{PaiRow, PaiTable, Reason, each_pai_row, find_pai_tables};
use super::{ImportOptions, Imported, Importer};
use crate::trace::error::TraceError;
use crate::trace::limits::{COUNT_MAX, NODE_GPUS_MAX, NUMBER_MAX};
use crate::trace::meta::Meta;
use crate::trace::source::{self, Meter, Progress};
use crate::trace::table::{InstanceRow, JobRow, NodeRow, OptU32, OptU64, Status, TaskRow, Trace};
use crate::trace::text::TextId;

/// The importer of the published tables.
pub(super) const DEF: Importer = Importer {
    name: "pai-tables",
    summary: "a folder of tables of the PAI trace of 2020 (pai_job_table.csv, ..)",
    detect: |path| {
        let listed = |table| find_pai_tables(path).is_ok_and(|files| files.contains_key(&table));
        path.is_dir() && listed(PaiTable::Task)
    },
    takes: &[],
    import,
};

/// Tables that others refer to come first.
const ORDER: [PaiTable; 6] = [
    PaiTable::MachineSpec,
    PaiTable::GroupTag,
    PaiTable::Job,
    PaiTable::Task,
    PaiTable::Instance,
    PaiTable::Sensor,
];

fn import(path: &Path, _: &ImportOptions, progress: Progress<'_>) -> Result<Imported, TraceError> {
    let files = find_pai_tables(path)?;
    // What jobs ask for is nowhere else.
    if !files.contains_key(&PaiTable::Task) {
        let name = PaiTable::Task.name();
        return Err(TraceError::Missing { name, folder: path.to_owned() });
    }
    let read = ORDER.iter().filter_map(|table| files.get(table).map(|path| (*table, path)));
    let total = read.clone().map(|(_, path)| source::size(path)).sum();
    let mut meter = Meter::new(total, progress);
    let mut imported = Imported::default();
    let listed = files.contains_key(&PaiTable::Job);
    let mut tables = Tables { unlisted: (!listed).then(HashMap::new), ..Tables::default() };
    for (table, path) in read {
        let mut take = |row: &PaiRow<'_>| tables.take(table, row);
        let rows = each_pai_row(table, path, &mut meter, &mut imported.dropped, &mut take)?;
        imported.rows_read.insert(table.name().to_owned(), rows);
        imported.files.push(path.clone());
    }
    meter.finish();
    if let Some(jobs) = &tables.unlisted {
        let note = "without pai_job_table a job is submitted when its first task starts, by nobody";
        imported.noted.insert(note.to_owned(), jobs.len() as u64);
    }
    imported.trace = tables.finish();
    Ok(imported)
}

#[derive(Default)]
struct Tables {
    trace: Trace,
    /// Group, workload and asked GPU type by instance id.
    tags: HashMap<TextId, Tag>,
    /// Asked GPU type by job.
    jobs: HashMap<TextId, TextId>,
    /// Rows of jobs that follow from their tasks, where no table lists them.
    unlisted: Option<HashMap<TextId, usize>>,
    tasks: HashMap<(TextId, TextId), u32>,
    /// Of each task: instances with a run time, and the sum of those in ms.
    runs: Vec<(u64, u64)>,
    /// Of tasks that were measured: workers, and sums of GPU per cent and of GPU memory in GB.
    uses: HashMap<u32, (f64, f64, f64)>,
}

#[derive(Clone, Copy, Default)]
struct Tag {
    group: TextId,
    workload: TextId,
    gpu_type: TextId,
}

impl Tables {
    fn take(&mut self, table: PaiTable, row: &PaiRow<'_>) -> Result<(), Reason> {
        match table {
            PaiTable::MachineSpec => self.node(row),
            PaiTable::GroupTag => self.tag(row),
            PaiTable::Job => self.job(row),
            PaiTable::Task => self.task(row),
            PaiTable::Instance => self.instance(row),
            PaiTable::Sensor => self.sensor(row),
            PaiTable::MachineMetric => Ok(()),
        }
    }

    fn text(&mut self, row: &PaiRow<'_>, column: usize) -> Result<TextId, Reason> {
        self.trace.text.intern(row.text(column)?).map_err(|_| "too much distinct text")
    }

    fn node(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        row.name(0)?;
        let gpus = row.number(4)?.unwrap_or(0.0).round();
        if gpus > f64::from(NODE_GPUS_MAX) {
            return Err("a number is too large");
        }
        let node = NodeRow {
            node_id: self.text(row, 0)?,
            gpu_model: if gpus > 0.0 { self.text(row, 1)? } else { TextId::EMPTY },
            gpu_count: gpus as u32,
            cpu_milli: scaled(row, 2, 1000.0)?,
            mem_mib: scaled(row, 3, 1024.0)?,
            ..NodeRow::default()
        };
        self.trace.nodes.push(node);
        Ok(())
    }

    fn tag(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        row.name(0)?;
        let id = self.text(row, 0)?;
        let gpu_type = self.text(row, 2)?;
        let tag = Tag { group: self.text(row, 3)?, workload: self.text(row, 4)?, gpu_type };
        self.tags.insert(id, tag);
        Ok(())
    }

    fn job(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        row.name(0)?;
        let submit = row.time(4)?.ok_or("start_time (submission) is missing")?;
        let known = self.trace.text.find(row.text(1)?);
        let tag = known.and_then(|id| self.tags.get(&id)).copied().unwrap_or_default();
        let job_id = self.text(row, 0)?;
        let job = JobRow {
            job_id,
            user: self.text(row, 2)?,
            group_tag: tag.group,
            workload: tag.workload,
            submit_ms: millis(submit),
            status_in_trace: status(row.bytes(3)),
            ..JobRow::default()
        };
        self.jobs.insert(job_id, tag.gpu_type);
        self.trace.jobs.push(job);
        Ok(())
    }

    /// A job that is known by its tasks alone.
    fn job_of_task(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        row.name(0)?;
        let submit = row.time(4)?.ok_or("start_time is missing, and there is no table of jobs")?;
        let (job_id, gpu_type) = (self.text(row, 0)?, self.text(row, 9)?);
        let next = self.trace.jobs.len();
        let Some(rows) = &mut self.unlisted else { return Ok(()) };
        let at = *rows.entry(job_id).or_insert(next);
        if at == next {
            let (submit_ms, status_in_trace) = (millis(submit), status(row.bytes(3)));
            self.jobs.insert(job_id, gpu_type);
            self.trace.jobs.push(JobRow {
                job_id,
                submit_ms,
                status_in_trace,
                ..JobRow::default()
            });
        }
        let job = &mut self.trace.jobs[at];
        job.submit_ms = job.submit_ms.min(millis(submit));
        Ok(())
    }

    fn task(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        if self.unlisted.is_some() {
            self.job_of_task(row)?;
        }
        let job = self.trace.text.find(row.text(0)?).filter(|job| self.jobs.contains_key(job));
        let job_id = job.ok_or("its job is not in the table of jobs")?;
        let count = row.number(2)?.ok_or("inst_num is missing")?.round();
        if !(1.0..=COUNT_MAX as f64).contains(&count) {
            return Err("inst_num is out of range");
        }
        let task = TaskRow {
            job_id,
            task: self.text(row, 1)?,
            count: count as u32,
            gang: Some(count > 1.0),
            gpu_milli: scaled(row, 8, 10.0)?,
            gpu_models: self.jobs[&job_id],
            cpu_milli: scaled(row, 6, 10.0)?,
            mem_mib: scaled(row, 7, 1024.0)?,
            ..TaskRow::default()
        };
        let at = self.trace.tasks.len() as u32;
        if self.tasks.insert((task.job_id, task.task), at).is_some() {
            return Err("the same task twice");
        }
        self.trace.tasks.push(task);
        self.runs.push((0, 0));
        Ok(())
    }

    fn instance(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        let named = |column| row.text(column).map(|text| self.trace.text.find(text));
        let key = named(0)?.zip(named(1)?);
        let at = key.and_then(|key| self.tasks.get(&key)).copied();
        let at = at.ok_or("its task is not in the table of tasks")? as usize;
        let (start, end) = (row.time(6)?.map(millis), row.time(7)?.map(millis));
        let node_id = self.text(row, 8)?;
        let task = &mut self.trace.tasks[at];
        let earliest = start.into_iter().chain(task.start_ms.get()).min();
        let latest = end.into_iter().chain(task.end_ms.get()).max();
        (task.start_ms, task.end_ms) = (earliest.into(), latest.into());
        if let Some(run) = end.zip(start).and_then(|(end, start)| end.checked_sub(start)) {
            self.runs[at].0 += 1;
            self.runs[at].1 += run;
        }
        let instance = InstanceRow {
            start_ms: start.into(),
            end_ms: end.into(),
            job_id: task.job_id,
            task: task.task,
            node_id,
            status: status(row.bytes(5)),
            ..InstanceRow::default()
        };
        self.trace.instances.push(instance);
        Ok(())
    }

    /// What a worker used of its GPUs; those without GPUs tell nothing.
    fn sensor(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        let named = |column| row.text(column).map(|text| self.trace.text.find(text));
        let key = named(0)?.zip(named(1)?);
        let at = key.and_then(|key| self.tasks.get(&key)).copied();
        let at = at.ok_or("its task is not in the table of tasks")?;
        if let Some(percent) = row.number(7)? {
            let (workers, percents, gigabytes) = self.uses.entry(at).or_default();
            *workers += 1.0;
            *percents += percent;
            *gigabytes += row.number(11)?.unwrap_or(0.0);
        }
        Ok(())
    }

    fn finish(self) -> Trace {
        let Tables { mut trace, runs, uses, .. } = self;
        for (at, (workers, percents, gigabytes)) in uses {
            let mean = |sum: f64, factor: f64| (sum / workers * factor).round();
            let small = |value: f64| OptU32::some(value.min(NUMBER_MAX as f64) as u32);
            let task = &mut trace.tasks[at as usize];
            task.gpu_use_milli = small(mean(percents, 10.0));
            task.gpu_mem_use_mib = small(mean(gigabytes, 1024.0));
        }
        for (task, (count, sum)) in trace.tasks.iter_mut().zip(runs) {
            task.duration_ms = sum.checked_div(count).map_or(OptU64::NONE, OptU64::some);
        }
        trace.arrange();
        // Whoever asks PAI for less than a GPU shares it.
        let Trace { jobs, tasks, .. } = &mut trace;
        for job in jobs {
            let asked = tasks[job.tasks()].iter().map(|task| task.gpu_milli.or(0));
            let part = asked.max().is_some_and(|most| (1..1000).contains(&most));
            job.sharing = part.then_some(Sharing::Willing);
        }
        trace.shrink();
        trace.meta = Meta {
            source: "Alibaba cluster-trace-gpu-v2020 (Weng et al., NSDI'22)".to_owned(),
            licence: "CC BY 4.0".to_owned(),
            time_origin: "relative".to_owned(),
            time_zone: "UTC+8".to_owned(),
            ..Meta::default()
        };
        trace
    }
}

fn millis(secs: f64) -> u64 {
    (secs * 1000.0).round() as u64
}

fn scaled(row: &PaiRow<'_>, column: usize, factor: f64) -> Result<OptU32, Reason> {
    let Some(value) = row.number(column)? else { return Ok(OptU32::NONE) };
    let value = (value * factor).round();
    match value > NUMBER_MAX as f64 {
        true => Err("a number is too large"),
        false => Ok(OptU32::some(value as u32)),
    }
}

/// How the trace says it; only `Terminated` is success.
pub(crate) fn status(word: &[u8]) -> Status {
    match word {
        b"Terminated" => Status::Completed,
        b"Failed" => Status::Failed,
        b"Running" => Status::Running,
        b"Interrupted" => Status::Interrupted,
        b"Waiting" => Status::Waiting,
        _ => Status::Unknown,
    }
}
