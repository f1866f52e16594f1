//! What is analysed, whatever it was read from: tasks, instances, machines and what was measured.
//!
//! Requests are in per cent of a core or GPU and in GB, as in the published study; times are in
//! seconds. A number that is not known is NaN, which keeps 7.5 million instances below 1 GiB.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::simulator::JobSimulator;
use crate::trace::{Status, TextId, TextPool};

/// No machine, or no usage.
pub const NONE: u32 = u32::MAX;

/// A task: a role of a job with `count` instances that ask for the same.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Number of its job.
    pub job: u32,
    /// Who submitted it.
    pub user: TextId,
    /// Where it waited.
    pub queue: TextId,
    /// Its recurrence tag; the user where there is none.
    pub group: TextId,
    /// Kind of work.
    pub workload: TextId,
    /// GPU type that it got, or asked for.
    pub gpu_type: TextId,
    /// Instances.
    pub count: u32,
    /// When it was submitted (native) or launched (PAI).
    pub asked: f64,
    /// When it ended.
    pub end: f64,
    /// First start of an instance.
    pub start: f64,
    /// Mean run time of its instances.
    pub run: f64,
    /// CPU per instance, per cent of a core.
    pub cpu: f32,
    /// GPU per instance, per cent of a GPU.
    pub gpu: f32,
    /// Main memory per instance in GB.
    pub mem: f32,
    /// How it ended.
    pub status: Status,
}

impl Default for Task {
    fn default() -> Task {
        Task {
            job: NONE,
            user: TextId::EMPTY,
            queue: TextId::EMPTY,
            group: TextId::EMPTY,
            workload: TextId::EMPTY,
            gpu_type: TextId::EMPTY,
            count: 0,
            asked: f64::NAN,
            end: f64::NAN,
            start: f64::NAN,
            run: f64::NAN,
            cpu: f32::NAN,
            gpu: f32::NAN,
            mem: f32::NAN,
            status: Status::Unknown,
        }
    }
}

impl Task {
    /// Seconds from being asked for to the first start; NaN if not known.
    pub fn wait(&self) -> f64 {
        self.start - self.asked
    }

    /// GPU share asked for; none counts as zero.
    pub fn gpu_or_zero(&self) -> f64 {
        if self.gpu.is_nan() { 0.0 } else { f64::from(self.gpu) }
    }

    /// CPU share asked for; none counts as zero.
    pub fn cpu_or_zero(&self) -> f64 {
        if self.cpu.is_nan() { 0.0 } else { f64::from(self.cpu) }
    }
}

/// One recorded instance.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    /// Hash of its name, which joins it with what was measured.
    pub key: u64,
    /// When it started.
    pub start: f64,
    /// When it ended.
    pub end: f64,
    /// Row of its task.
    pub task: u32,
    /// Row of its machine.
    pub machine: u32,
    /// First row of its usage; further rows follow while the key is the same.
    pub usage: u32,
    /// How it ended.
    pub status: Status,
    /// Whether it is the last row of its name; earlier ones are attempts that were repeated.
    pub last: bool,
}

impl Worker {
    /// Seconds that it ran; NaN if not known or not positive.
    pub fn run(&self) -> f64 {
        let run = self.end - self.start;
        if run > 0.0 { run } else { f64::NAN }
    }
}

/// What an instance used on one GPU, averaged over its life.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Hash of the instance's name.
    pub key: u64,
    /// Name of the GPU on its machine; empty if not known.
    pub gpu_name: TextId,
    /// Per cent of a core.
    pub cpu: f32,
    /// Per cent of a GPU.
    pub gpu: f32,
    /// Main memory in GB.
    pub mem: f32,
    /// Bytes read from the network per second.
    pub read: f32,
}

/// A machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Its name.
    pub name: TextId,
    /// Type of its GPUs; `CPU` or empty without.
    pub gpu_type: TextId,
    /// Cores.
    pub cpu: f64,
    /// Main memory in GB.
    pub mem: f64,
    /// GPUs.
    pub gpu: f64,
    /// Whether a table of machines has it; otherwise only its name is known.
    pub known: bool,
}

/// What a machine did while an instance ran, in per cent.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Hash of the instance's name.
    pub key: u64,
    /// From when on.
    pub start: f64,
    /// Until when.
    pub end: f64,
    /// Row of the machine.
    pub machine: u32,
    /// CPU waiting for devices.
    pub iowait: f32,
    /// CPU in the kernel.
    pub kernel: f32,
    /// CPU in programs.
    pub usr: f32,
    /// All CPU.
    pub cpu: f32,
    /// GPUs, mean of all.
    pub gpu: f32,
}

/// Where the tables come from; decides how missing ones are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Native tables.
    #[default]
    Native,
    /// Tables of the PAI trace.
    Pai,
    /// CSV of the PAI job simulator.
    PaiSimulator,
}

/// Mini-batch times of one job.
#[derive(Clone, Debug, Default)]
pub struct MiniBatches {
    /// File it comes from.
    pub name: String,
    /// Normalised times.
    pub times: Vec<f64>,
}

/// Everything that figures are computed from.
#[derive(Default)]
pub struct Input {
    /// Where it comes from.
    pub source: Source,
    /// Name of the file or folder.
    pub name: String,
    /// Names of users, groups, types, machines.
    pub text: TextPool,
    /// Tasks.
    pub tasks: Vec<Task>,
    /// Whether a table of tasks was there; otherwise they were gathered from instances, and their
    /// sizes are lower bounds.
    pub tasks_listed: bool,
    /// Whether a table of jobs was there.
    pub jobs_listed: bool,
    /// Instances in the order of their tasks.
    pub workers: Vec<Worker>,
    /// What instances used, by key.
    pub usage: Vec<Usage>,
    /// Machines.
    pub machines: Vec<Machine>,
    /// What machines did, by key.
    pub metrics: Vec<Metric>,
    /// The published job simulator, for a table of its own.
    pub simulator: Option<Box<dyn JobSimulator>>,
    /// Mini-batch times.
    pub minibatches: Vec<MiniBatches>,
    /// Whether any job has a recurrence tag.
    pub groups_listed: bool,
    /// Number of jobs.
    pub jobs: usize,
    /// Seconds to add to a time for the local clock.
    pub zone_secs: f64,
    /// Whether local hours mean anything.
    pub clock_known: bool,
    /// Rows read of each table.
    pub rows: BTreeMap<String, u64>,
    /// Rows left out, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Files that were read.
    pub files: Vec<PathBuf>,
}

impl Input {
    /// The text of an id.
    pub fn str(&self, id: TextId) -> &str {
        self.text.get(id)
    }

    /// Instances, each once: the last row of each name.
    pub fn last_workers(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(|worker| worker.last)
    }

    /// The task of an instance.
    pub fn task_of(&self, worker: &Worker) -> &Task {
        &self.tasks[worker.task as usize]
    }

    /// The machine of an instance, if a table of machines has it.
    pub fn machine_of(&self, worker: &Worker) -> Option<&Machine> {
        self.machines.get(worker.machine as usize).filter(|machine| machine.known)
    }

    /// What an instance used, one row per GPU.
    pub fn usage_of(&self, worker: &Worker) -> &[Usage] {
        let Some(from) = self.usage.get(worker.usage as usize..) else { return &[] };
        let rows = from.iter().take_while(|usage| usage.key == worker.key).count();
        &from[..rows]
    }

    /// What the machine of an instance did meanwhile.
    pub fn metric_of(&self, worker: &Worker) -> Option<&Metric> {
        let at = self.metrics.partition_point(|metric| metric.key < worker.key);
        self.metrics.get(at).filter(|metric| metric.key == worker.key)
    }

    /// Class of a machine: its GPUs and their type.
    pub fn class_of(&self, machine: &Machine) -> String {
        match machine.gpu >= 1.0 {
            true => format!("{}-GPU {}", machine.gpu, self.str(machine.gpu_type)),
            false => "no GPU".to_owned(),
        }
    }

    /// Gives unused memory back.
    pub(super) fn shrink(&mut self) {
        self.tasks.shrink_to_fit();
        self.workers.shrink_to_fit();
        self.usage.shrink_to_fit();
        self.metrics.shrink_to_fit();
    }

    /// Puts rows in order and joins them: the last row of each name, usage by name.
    pub(super) fn join(&mut self) {
        let order = |worker: &Worker| (worker.key, status_rank(worker.status));
        self.workers.sort_unstable_by(|one, other| {
            let times = one.start.total_cmp(&other.start).then(one.end.total_cmp(&other.end));
            order(one).cmp(&order(other)).then(times).then(one.task.cmp(&other.task))
        });
        // In place: a stable sort of 7.5 million rows would need as much memory again.
        self.usage.sort_unstable_by_key(|usage| (usage.key, usage.gpu_name));
        self.metrics.sort_unstable_by(|one, other| {
            one.key.cmp(&other.key).then(one.start.total_cmp(&other.start))
        });
        let mut usage = 0;
        for at in 0..self.workers.len() {
            let key = self.workers[at].key;
            self.workers[at].last = self.workers.get(at + 1).is_none_or(|next| next.key != key);
            while self.usage.get(usage).is_some_and(|row| row.key < key) {
                usage += 1;
            }
            if self.usage.get(usage).is_some_and(|row| row.key == key) {
                self.workers[at].usage = usage as u32;
            }
        }
        self.workers.sort_unstable_by_key(|worker| (worker.task, worker.key, worker.last));
        for task in &mut self.tasks {
            if task.group.is_empty() {
                task.group = task.user;
            }
        }
    }
}

/// Place of a status in the order of its published name (`Terminated` is success).
pub(super) fn status_rank(status: Status) -> u8 {
    match status {
        Status::Unknown => 0,
        Status::Cancelled => 1,
        Status::Failed => 2,
        Status::Interrupted => 3,
        Status::NodeFail => 4,
        Status::Running => 5,
        Status::Completed => 6,
        Status::Timeout => 7,
        Status::Waiting => 8,
    }
}
