//! Fills the input from native tables.

use std::collections::HashMap;
use std::path::Path;

use super::input::{Input, Machine, NONE, Source, Task, Usage, Worker};
use crate::trace::import::{Zone, parse_origin};
use crate::trace::source::Progress;
use crate::trace::{
    JobRow, NodeRow, OptU32, OptU64, ReadOptions, Status, TaskRow, TextId, Trace, TraceError, read,
};

/// Reads a folder of native tables.
pub fn from_folder(folder: &Path, progress: Progress<'_>) -> Result<Input, TraceError> {
    let options = ReadOptions { progress: Some(progress), ..ReadOptions::default() };
    Ok(from_trace(read(folder, options)?))
}

/// The input of a trace in memory.
pub fn from_trace(trace: Trace) -> Input {
    let mut input = Input { source: Source::Native, ..Input::default() };
    input.rows = trace.row_counts();
    let zone = Zone::parse(&trace.meta.time_zone).map(Zone::east_secs);
    let origin = match trace.meta.time_origin.as_str() {
        "relative" => zone.map(|_| 0),
        origin => parse_origin(origin),
    };
    // Times that do not say their zone are those of the clock that wrote them.
    input.clock_known = origin.is_some();
    input.zone_secs = zone.unwrap_or(0) as f64 + origin.unwrap_or(0) as f64;
    input.tasks_listed = true;
    input.jobs_listed = trace.jobs.iter().any(|job| !job.user.is_empty());
    input.groups_listed = trace.jobs.iter().any(|job| !job.group_tag.is_empty());
    input.jobs = trace.jobs.len();
    let machines = machines(&trace, &mut input);
    let mut rows: HashMap<(TextId, TextId), u32> = HashMap::new();
    for (number, job) in trace.jobs.iter().enumerate() {
        for task in trace.tasks_of(job) {
            rows.entry((task.job_id, task.task)).or_insert(input.tasks.len() as u32);
            let row = self::task(&trace, number as u32, job, task);
            input.tasks.push(row);
        }
    }
    instances(&trace, &mut input, &rows, &machines);
    input.text = trace.text;
    input.join();
    input
}

fn machines(trace: &Trace, input: &mut Input) -> HashMap<TextId, u32> {
    let mut rows = HashMap::new();
    for node in &trace.nodes {
        rows.entry(node.node_id).or_insert_with(|| {
            input.machines.push(machine(node));
            input.machines.len() as u32 - 1
        });
    }
    rows
}

fn machine(node: &NodeRow) -> Machine {
    Machine {
        name: node.node_id,
        gpu_type: node.gpu_model,
        cpu: number(node.cpu_milli) / 1000.0,
        mem: number(node.mem_mib) / 1024.0,
        gpu: f64::from(node.gpu_count),
        known: true,
    }
}

fn task(trace: &Trace, number_of_job: u32, job: &JobRow, task: &TaskRow) -> Task {
    let start = secs(task.start_ms);
    let run = secs(task.duration_ms);
    let end = if task.end_ms.get().is_some() { secs(task.end_ms) } else { start + run };
    // A list of models is no single type.
    let alone = trace.list(task.gpu_models, '|').count() == 1;
    Task {
        job: number_of_job,
        user: job.user,
        queue: job.queue,
        group: job.group_tag,
        workload: job.workload,
        gpu_type: if alone { task.gpu_models } else { TextId::EMPTY },
        count: task.count,
        asked: job.submit_ms as f64 / 1000.0,
        end,
        start,
        run: if run.is_nan() { end - start } else { run },
        cpu: number(task.cpu_milli) as f32 / 10.0,
        gpu: number(task.gpu_milli) as f32 / 10.0,
        mem: number(task.mem_mib) as f32 / 1024.0,
        status: job.status_in_trace,
    }
}

fn instances(
    trace: &Trace,
    input: &mut Input,
    rows: &HashMap<(TextId, TextId), u32>,
    machines: &HashMap<TextId, u32>,
) {
    for (key, row) in trace.instances.iter().enumerate() {
        let Some(task) = rows.get(&(row.job_id, row.task)) else {
            *input.left_out.entry("instances: their task is missing".to_owned()).or_default() += 1;
            continue;
        };
        let key = key as u64;
        let machine = machines.get(&row.node_id).copied().unwrap_or(NONE);
        let worker = Worker {
            key,
            start: secs(row.start_ms),
            end: secs(row.end_ms),
            task: *task,
            machine,
            usage: NONE,
            status: row.status,
            last: true,
        };
        let of_task = &mut input.tasks[*task as usize];
        of_task.start = of_task.start.min(worker.start);
        if of_task.status == Status::Unknown {
            of_task.status = row.status;
        }
        if of_task.gpu_type.is_empty() && machine != NONE && of_task.gpu_or_zero() > 0.0 {
            of_task.gpu_type = input.machines[machine as usize].gpu_type;
        }
        input.workers.push(worker);
        if row.cpu_use_milli.get().is_some() || row.gpu_use_milli.get().is_some() {
            input.usage.push(Usage {
                key,
                gpu_name: TextId::EMPTY,
                cpu: number(row.cpu_use_milli) as f32 / 10.0,
                gpu: number(row.gpu_use_milli) as f32 / 10.0,
                mem: f32::NAN,
                read: f32::NAN,
            });
        }
    }
}

fn secs(time: OptU64) -> f64 {
    time.get().map_or(f64::NAN, |ms| ms as f64 / 1000.0)
}

fn number(value: OptU32) -> f64 {
    value.get().map_or(f64::NAN, f64::from)
}
