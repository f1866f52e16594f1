//! Fills the input from the tables of the PAI trace.
//!
//! Names of jobs, workers and instances only join rows, so 64 bits of hash stand for them; two of
//! 7.5 million names meet in one hash with a probability of 2 in a million. The hash has a fixed
//! key: results are the same in every run.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use super::input::{Input, Machine, Metric, NONE, Source, Task, Usage, Worker, status_rank};
use super::minibatch;
use crate::trace::import::pai::status;
use crate::trace::import::pai_tables::{
    PaiFiles, PaiRow, PaiTable, Reason, each_pai_row, find_pai_tables,
};
use crate::trace::source::{self, Meter, Progress};
use crate::trace::{Status, TextId, TraceError};

/// The PAI trace keeps local hours in UTC+8.
const ZONE_SECS: f64 = 8.0 * 3600.0;

/// Whether a folder holds any table of the trace.
pub fn detect(folder: &Path) -> bool {
    folder.is_dir() && find_pai_tables(folder).is_ok_and(|files| !files.is_empty())
}

/// Reads all tables of a folder.
pub fn read(folder: &Path, progress: Progress<'_>) -> Result<Input, TraceError> {
    let files = find_pai_tables(folder)?;
    let total = files.values().map(|path| source::size(path)).sum();
    let mut meter = Meter::new(total, progress);
    let mut reader = Reader::default();
    reader.input.source = Source::Pai;
    reader.input.zone_secs = ZONE_SECS;
    reader.input.clock_known = true;
    for table in ORDER {
        reader.table(table, &files, &mut meter)?;
    }
    meter.finish();
    reader.input.minibatches = minibatch::read(folder)?;
    reader.input.files = files.into_values().collect();
    Ok(reader.finish())
}

/// Tables that others refer to come first.
const ORDER: [PaiTable; 7] = [
    PaiTable::MachineSpec,
    PaiTable::GroupTag,
    PaiTable::Job,
    PaiTable::Task,
    PaiTable::Instance,
    PaiTable::Sensor,
    PaiTable::MachineMetric,
];

#[derive(Default)]
struct Reader {
    input: Input,
    machines: HashMap<u64, u32>,
    /// Group and workload by instance id.
    groups: HashMap<u64, (TextId, TextId)>,
    jobs: HashMap<u64, Job>,
    tasks: HashMap<u64, u32>,
    /// Of each task: instances with a run time, and the sum of those.
    runs: Vec<(u32, f64)>,
    statuses: Vec<Status>,
}

#[derive(Clone, Copy, Default)]
struct Job {
    number: u32,
    user: TextId,
    group: TextId,
    workload: TextId,
}

impl Reader {
    fn table(
        &mut self,
        table: PaiTable,
        files: &PaiFiles,
        meter: &mut Meter<'_>,
    ) -> Result<(), TraceError> {
        let Some(path) = files.get(&table) else { return Ok(()) };
        let mut dropped = std::mem::take(&mut self.input.left_out);
        let mut take = |row: &PaiRow<'_>| match table {
            PaiTable::MachineSpec => self.machine_spec(row),
            PaiTable::GroupTag => self.group_tag(row),
            PaiTable::Job => self.job(row),
            PaiTable::Task => self.task(row),
            PaiTable::Instance => self.instance(row),
            PaiTable::Sensor => self.sensor(row),
            PaiTable::MachineMetric => self.machine_metric(row),
        };
        let rows = each_pai_row(table, path, meter, &mut dropped, &mut take)?;
        self.input.left_out = dropped;
        self.input.rows.insert(table.name().to_owned(), rows);
        self.input.shrink();
        match table {
            PaiTable::Task => self.input.tasks_listed = true,
            PaiTable::Job => self.input.jobs_listed = true,
            PaiTable::GroupTag => self.input.groups_listed = rows > 0,
            _ => {}
        }
        Ok(())
    }

    fn intern(&mut self, text: &str) -> Result<TextId, Reason> {
        self.input.text.intern(text).map_err(|_| "too much distinct text")
    }

    fn machine_spec(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        let at = self.machine(row.name(0)?, row.text(0)?)?;
        let gpu_type = self.intern(row.text(1)?)?;
        let cpu = row.number(2)?.ok_or("cap_cpu is missing")?;
        let gpu = row.number(4)?.unwrap_or(0.0);
        let mem = row.number(3)?.unwrap_or(f64::NAN);
        let machine = &mut self.input.machines[at as usize];
        (machine.gpu_type, machine.cpu, machine.mem, machine.gpu) = (gpu_type, cpu, mem, gpu);
        machine.known = true;
        Ok(())
    }

    fn machine(&mut self, key: &[u8], name: &str) -> Result<u32, Reason> {
        let key = hash(&[key]);
        if let Some(at) = self.machines.get(&key) {
            return Ok(*at);
        }
        let at = self.input.machines.len() as u32;
        let (name, nan) = (self.intern(name)?, f64::NAN);
        let gpu_type = TextId::EMPTY;
        let machine = Machine { name, gpu_type, cpu: nan, mem: nan, gpu: nan, known: false };
        self.input.machines.push(machine);
        self.machines.insert(key, at);
        Ok(at)
    }

    fn group_tag(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        let key = hash(&[row.name(0)?]);
        let tag = (self.intern(row.text(3)?)?, self.intern(row.text(4)?)?);
        self.groups.insert(key, tag);
        Ok(())
    }

    fn job(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        let key = hash(&[row.name(0)?]);
        let user = self.intern(row.text(2)?)?;
        let tag = self.groups.get(&hash(&[row.bytes(1)])).copied();
        let (group, workload) = tag.unwrap_or_default();
        let number = self.jobs.len() as u32;
        self.jobs.entry(key).or_insert(Job { number, user, group, workload });
        Ok(())
    }

    fn task(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        let key = hash(&[row.name(0)?, row.bytes(1)]);
        let job = self.job_named(row.name(0)?);
        let float = |column| row.number(column).map(|number| number.map_or(f32::NAN, |n| n as f32));
        let count = row.number(2)?.unwrap_or(1.0).round().clamp(0.0, 1e6) as u32;
        let task = Task {
            job: job.number,
            user: job.user,
            group: job.group,
            workload: job.workload,
            gpu_type: self.intern(row.text(9)?)?,
            count,
            asked: row.time(4)?.unwrap_or(f64::NAN),
            end: row.time(5)?.unwrap_or(f64::NAN),
            cpu: float(6)?,
            mem: float(7)?,
            gpu: float(8)?,
            status: status(row.bytes(3)),
            ..Task::default()
        };
        if self.tasks.contains_key(&key) {
            return Err("the same task twice");
        }
        self.push_task(key, task);
        Ok(())
    }

    fn push_task(&mut self, key: u64, task: Task) -> u32 {
        let at = self.input.tasks.len() as u32;
        self.tasks.insert(key, at);
        self.input.tasks.push(task);
        self.runs.push((0, 0.0));
        self.statuses.push(Status::Unknown);
        at
    }

    fn job_named(&mut self, name: &[u8]) -> Job {
        let number = self.jobs.len() as u32;
        *self.jobs.entry(hash(&[name])).or_insert(Job { number, ..Job::default() })
    }

    fn instance(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        let worker = Worker {
            key: hash(&[row.name(3)?]),
            start: row.time(6)?.unwrap_or(f64::NAN),
            end: row.time(7)?.unwrap_or(f64::NAN),
            task: self.task_named(row)?,
            machine: match row.bytes(8) {
                b"" => NONE,
                name => self.machine(name, row.text(8)?)?,
            },
            usage: NONE,
            status: status(row.bytes(5)),
            last: true,
        };
        self.gather(&worker);
        self.input.workers.push(worker);
        Ok(())
    }

    /// The task of an instance. Without a table of tasks they are gathered from instances.
    fn task_named(&mut self, row: &PaiRow<'_>) -> Result<u32, Reason> {
        let key = hash(&[row.name(0)?, row.bytes(1)]);
        if let Some(at) = self.tasks.get(&key) {
            return Ok(*at);
        }
        if self.input.tasks_listed {
            return Err("its task is not in the table of tasks");
        }
        let job = self.job_named(row.name(0)?);
        let Job { number, user, group, workload } = job;
        let tag = self.groups.get(&hash(&[row.bytes(4)])).copied();
        let (group, workload) = tag.unwrap_or((group, workload));
        let task = Task { job: number, user, group, workload, ..Task::default() };
        Ok(self.push_task(key, task))
    }

    /// First start, last end, mean run time and last status of the instances of a task.
    fn gather(&mut self, worker: &Worker) {
        let at = worker.task as usize;
        let task = &mut self.input.tasks[at];
        task.start = task.start.min(worker.start);
        if !self.input.tasks_listed {
            task.count += 1;
            task.end = task.end.max(worker.end);
        }
        let run = worker.end - worker.start;
        if run >= 0.0 {
            self.runs[at].0 += 1;
            self.runs[at].1 += run;
        }
        if status_rank(worker.status) > status_rank(self.statuses[at]) {
            self.statuses[at] = worker.status;
        }
    }

    fn sensor(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        let float = |column| row.number(column).map(|number| number.map_or(f32::NAN, |n| n as f32));
        let usage = Usage {
            key: hash(&[row.name(2)?]),
            gpu_name: self.intern(row.text(5)?)?,
            cpu: float(6)?,
            gpu: float(7)?,
            mem: float(8)?,
            read: float(12)?,
        };
        self.input.usage.push(usage);
        Ok(())
    }

    fn machine_metric(&mut self, row: &PaiRow<'_>) -> Result<(), Reason> {
        let float = |column| row.number(column).map(|number| number.map_or(f32::NAN, |n| n as f32));
        let metric = Metric {
            key: hash(&[row.name(0)?]),
            start: row.time(2)?.unwrap_or(f64::NAN),
            end: row.time(3)?.unwrap_or(f64::NAN),
            machine: self.machine(row.name(1)?, row.text(1)?)?,
            iowait: float(4)?,
            kernel: float(5)?,
            usr: float(6)?,
            gpu: float(7)?,
            cpu: float(11)?,
        };
        self.input.metrics.push(metric);
        Ok(())
    }

    fn finish(mut self) -> Input {
        let gathered = self.runs.iter().zip(&self.statuses);
        for (task, ((count, sum), status)) in self.input.tasks.iter_mut().zip(gathered) {
            if *count > 0 {
                task.run = sum / f64::from(*count);
            }
            if task.status == Status::Unknown {
                task.status = *status;
            }
        }
        self.input.jobs = self.jobs.len();
        (self.machines, self.groups) = Default::default();
        (self.jobs, self.tasks) = Default::default();
        let mut input = self.input;
        input.join();
        if !input.tasks_listed {
            types_from_machines(&mut input);
        }
        input
    }
}

/// Without a table of tasks the machine tells the GPU type.
fn types_from_machines(input: &mut Input) {
    for worker in &input.workers {
        if let Some(machine) = input.machines.get(worker.machine as usize) {
            input.tasks[worker.task as usize].gpu_type = machine.gpu_type;
        }
    }
}

fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in parts {
        hasher.write(part);
        hasher.write_u8(b',');
    }
    hasher.finish()
}
