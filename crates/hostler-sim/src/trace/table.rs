//! The native tables in memory: nodes, jobs, tasks, instances.
//!
//! Plain, compact rows: a million jobs with a million tasks stay under 200 MiB. Reading, checking
//! and writing live elsewhere; meaning for the scheduler is given where rows are lowered.

use std::ops::Range;

use hostler_core::job::Sharing;

use super::meta::Meta;
use super::text::{TextId, TextPool};

macro_rules! optional_number {
    ($name:ident, $number:ty) => {
        #[doc = concat!("A `", stringify!($number), "` that may be not known, kept in the same")]
        /// space: the largest value stands for "not known".
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name($number);

        impl $name {
            /// Not known.
            pub const NONE: $name = $name(<$number>::MAX);

            /// A known value; the largest of its type is not one.
            pub fn some(value: $number) -> $name {
                assert!(value != <$number>::MAX, "the largest value stands for `not known`");
                $name(value)
            }

            /// The value, if known.
            pub fn get(self) -> Option<$number> {
                (self.0 != <$number>::MAX).then_some(self.0)
            }

            /// The value, or `other` if not known.
            pub fn or(self, other: $number) -> $number {
                self.get().unwrap_or(other)
            }
        }

        impl From<Option<$number>> for $name {
            fn from(value: Option<$number>) -> $name {
                value.map_or($name::NONE, $name::some)
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::NONE
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.get().fmt(f)
            }
        }
    };
}

optional_number!(OptU32, u32);
optional_number!(OptU64, u64);

/// How a job or instance ended, as its source says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// Not said.
    #[default]
    Unknown,
    /// Ended well.
    Completed,
    /// Ended by an error of its own.
    Failed,
    /// Taken back by its user.
    Cancelled,
    /// Ran into its time limit.
    Timeout,
    /// Lost its node.
    NodeFail,
    /// Stopped from outside, for example preempted.
    Interrupted,
    /// Was running when the trace closed.
    Running,
    /// Was waiting when the trace closed.
    Waiting,
}

impl Status {
    /// Every status with its name in the tables.
    pub const NAMES: [(Status, &'static str); 9] = [
        (Status::Unknown, ""),
        (Status::Completed, "Completed"),
        (Status::Failed, "Failed"),
        (Status::Cancelled, "Cancelled"),
        (Status::Timeout, "Timeout"),
        (Status::NodeFail, "NodeFail"),
        (Status::Interrupted, "Interrupted"),
        (Status::Running, "Running"),
        (Status::Waiting, "Waiting"),
    ];

    /// Name in the tables; empty for unknown.
    pub fn name(self) -> &'static str {
        Status::NAMES[self as usize].1
    }

    /// Status of a name in the tables.
    pub fn from_name(name: &str) -> Option<Status> {
        Status::NAMES.iter().find(|(_, known)| *known == name).map(|(status, _)| *status)
    }
}

/// What joins the GPUs of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Link {
    /// Not said.
    #[default]
    Unknown,
    /// Nothing, or no GPUs.
    None,
    /// PCI Express.
    Pcie,
    /// NVLink.
    Nvlink,
}

impl Link {
    /// Every link with its name in the tables.
    pub const NAMES: [(Link, &'static str); 4] =
        [(Link::Unknown, ""), (Link::None, "none"), (Link::Pcie, "pcie"), (Link::Nvlink, "nvlink")];

    /// Name in the tables; empty for unknown.
    pub fn name(self) -> &'static str {
        Link::NAMES[self as usize].1
    }

    /// Link of a name in the tables.
    pub fn from_name(name: &str) -> Option<Link> {
        Link::NAMES.iter().find(|(_, known)| *known == name).map(|(link, _)| *link)
    }
}

/// A machine, or one interval of its life (`nodes.csv`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeRow {
    /// Name; several rows may share it when their intervals do not overlap.
    pub node_id: TextId,
    /// Partition or virtual cluster.
    pub pool: TextId,
    /// Model of all its GPUs.
    pub gpu_model: TextId,
    /// Number of GPUs.
    pub gpu_count: u32,
    /// Memory of one GPU.
    pub gpu_mem_mib: OptU32,
    /// Thousandths of CPU cores.
    pub cpu_milli: OptU32,
    /// Main memory.
    pub mem_mib: OptU32,
    /// Network speed.
    pub nic_mbps: OptU32,
    /// What joins its GPUs.
    pub link: Link,
    /// Rack name.
    pub rack: TextId,
    /// `key=value;key=value`, as one text.
    pub labels: TextId,
    /// Up from this second on; not known = from the beginning.
    pub up_from_s: OptU64,
    /// Up until this second (exclusive); not known = to the end.
    pub up_to_s: OptU64,
    /// Groups of GPUs with the fastest link among them (optional column).
    pub islands: OptU32,
    /// Power of the machine without load, GPUs excluded (optional column).
    pub idle_watts: OptU32,
    /// Power of the machine under full load, GPUs excluded (optional column).
    pub peak_watts: OptU32,
    /// Line in the source file; 0 = made, not read.
    pub line: u32,
}

/// A job (`jobs.csv`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JobRow {
    /// Name, unique in the trace.
    pub job_id: TextId,
    /// Who submitted it.
    pub user: TextId,
    /// Recurrence tag: jobs with the same tag do the same again.
    pub group_tag: TextId,
    /// Queue, virtual cluster or account.
    pub queue: TextId,
    /// Priority as written: an integer or a name.
    pub priority_class: TextId,
    /// Kind of work, for reports.
    pub workload: TextId,
    /// Submission time.
    pub submit_ms: u64,
    /// Wanted finish time.
    pub deadline_ms: OptU64,
    /// Longest run time allowed.
    pub time_limit_ms: OptU64,
    /// Run time as the user estimated it.
    pub est_ms: OptU64,
    /// `priority_class` as a number; larger is more important.
    pub priority: i32,
    /// First row of its tasks in [`Trace::tasks`].
    pub tasks_start: u32,
    /// Number of its tasks.
    pub tasks_count: u32,
    /// Times the source started it.
    pub attempts: OptU32,
    /// Line in the source file; 0 = made, not read.
    pub line: u32,
    /// How it ended in the source. The simulator does not read it.
    pub status_in_trace: Status,
    /// Whether it shares GPUs beyond what it asks for, if said.
    pub sharing: Option<Sharing>,
}

/// Words for [`JobRow::sharing`] in the tables.
pub const SHARING_NAMES: [(Option<Sharing>, &str); 3] =
    [(None, ""), (Some(Sharing::Never), "never"), (Some(Sharing::Willing), "willing")];

impl JobRow {
    /// Where its tasks lie in [`Trace::tasks`].
    pub fn tasks(&self) -> Range<usize> {
        let start = self.tasks_start as usize;
        start..start + self.tasks_count as usize
    }
}

/// A role of a job: `count` instances that ask the same (`tasks.csv`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskRow {
    /// Run time of an instance as recorded.
    pub duration_ms: OptU64,
    /// Work in iterations.
    pub work: OptU64,
    /// Start as recorded.
    pub start_ms: OptU64,
    /// End as recorded.
    pub end_ms: OptU64,
    /// Name of the job it belongs to.
    pub job_id: TextId,
    /// Name of the role.
    pub task: TextId,
    /// Number of instances.
    pub count: u32,
    /// Fewest instances it can run with.
    pub min_count: OptU32,
    /// Most instances it can use.
    pub max_count: OptU32,
    /// Thousandths of a GPU per instance; above 1000 only whole multiples.
    pub gpu_milli: OptU32,
    /// Models that will do, `A|B` as one text; empty = any.
    pub gpu_models: TextId,
    /// GPU memory per instance.
    pub gpu_mem_mib: OptU32,
    /// Thousandths of CPU cores per instance.
    pub cpu_milli: OptU32,
    /// Main memory per instance.
    pub mem_mib: OptU32,
    /// GPU that an instance really uses, in thousandths over all its devices.
    pub gpu_use_milli: OptU32,
    /// GPU memory that an instance really uses on each device.
    pub gpu_mem_use_mib: OptU32,
    /// Key into a throughput table.
    pub model: TextId,
    /// Nodes as recorded, `a;b` as one text.
    pub placement: TextId,
    /// Line in the source file; 0 = made, not read.
    pub line: u32,
    /// Whether the instances must start together, if said.
    pub gang: Option<bool>,
}

impl TaskRow {
    /// Whether the instances start together; when the trace does not say, several do.
    pub fn is_gang(&self) -> bool {
        self.gang.unwrap_or(self.count > 1)
    }

    /// Run time of an instance: as said, or else from recorded start to end.
    pub fn run_ms(&self) -> Option<u64> {
        let span = self.end_ms.get().zip(self.start_ms.get());
        self.duration_ms.get().or(span.map(|(end, start)| end.saturating_sub(start)))
    }
}

/// One recorded instance of a task (`instances.csv`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InstanceRow {
    /// Start as recorded.
    pub start_ms: OptU64,
    /// End as recorded.
    pub end_ms: OptU64,
    /// Name of its job.
    pub job_id: TextId,
    /// Name of its role.
    pub task: TextId,
    /// Number within the task.
    pub index: OptU32,
    /// Where it ran.
    pub node_id: TextId,
    /// CPU used on average, in thousandths of a core.
    pub cpu_use_milli: OptU32,
    /// GPU used on average, in thousandths of a GPU.
    pub gpu_use_milli: OptU32,
    /// GPU memory used.
    pub gpu_mem_used_mib: OptU32,
    /// Line in the source file; 0 = made, not read.
    pub line: u32,
    /// How it ended.
    pub status: Status,
}

/// Stands for the row of a job that does not exist; sorts after all others.
pub(super) const NO_JOB: u32 = u32::MAX;

/// A whole trace in memory.
///
/// Jobs are sorted by submission (ties in source order); the tasks of a job are contiguous, in
/// job order. Tasks whose job is missing come after all others, so that `check` can name them.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// All text.
    pub text: TextPool,
    /// Machines.
    pub nodes: Vec<NodeRow>,
    /// Jobs by submission.
    pub jobs: Vec<JobRow>,
    /// Tasks by job.
    pub tasks: Vec<TaskRow>,
    /// Recorded instances, if the source has them.
    pub instances: Vec<InstanceRow>,
    /// Where the trace comes from.
    pub meta: Meta,
}

impl Trace {
    /// Tasks of a job.
    pub fn tasks_of(&self, job: &JobRow) -> &[TaskRow] {
        &self.tasks[job.tasks()]
    }

    /// Lets every task run on any GPU model, and says how many named some.
    pub fn drop_gpu_models(&mut self) -> u64 {
        let naming = self.tasks.iter_mut().filter(|task| !task.gpu_models.is_empty());
        naming.map(|task| task.gpu_models = TextId::EMPTY).count() as u64
    }

    /// The text of an id.
    pub fn str(&self, id: TextId) -> &str {
        self.text.get(id)
    }

    /// Names in a list such as `gpu_models` (`A|B`) or `placement` (`a;b`); none for empty.
    pub fn list(&self, id: TextId, separator: char) -> impl Iterator<Item = &str> {
        self.text.get(id).split(separator).filter(|name| !name.is_empty())
    }

    /// Restores the order of rows after rows were added or times changed: jobs by (submission,
    /// present order), tasks by job. Of two jobs with the same name the first gets the tasks.
    pub fn arrange(&mut self) {
        if !self.jobs.is_sorted_by_key(|job| job.submit_ms) {
            self.jobs.sort_by_key(|job| job.submit_ms);
        }
        let job_rows = self.job_rows();
        let owner = |task: &TaskRow| job_rows[task.job_id.index()];
        if !self.tasks.is_sorted_by_key(owner) {
            self.tasks.sort_by_key(owner);
        }
        for job in &mut self.jobs {
            (job.tasks_start, job.tasks_count) = (0, 0);
        }
        for (row, task) in self.tasks.iter().enumerate() {
            let Some(job) = self.jobs.get_mut(owner(task) as usize) else {
                break;
            };
            if job.tasks_count == 0 {
                job.tasks_start = row as u32;
            }
            job.tasks_count += 1;
        }
    }

    /// For each text the first job of that name, [`NO_JOB`] where there is none.
    pub(super) fn job_rows(&self) -> Vec<u32> {
        let mut rows = vec![NO_JOB; self.text.len()];
        for (row, job) in self.jobs.iter().enumerate() {
            let first = &mut rows[job.job_id.index()];
            if *first == NO_JOB {
                *first = row as u32;
            }
        }
        rows
    }

    /// First row of the tasks whose job is missing.
    pub fn orphans_start(&self) -> usize {
        self.jobs.iter().map(|job| job.tasks_count as usize).sum()
    }

    /// Gives unused memory back.
    pub fn shrink(&mut self) {
        self.text.shrink();
        self.nodes.shrink_to_fit();
        self.jobs.shrink_to_fit();
        self.tasks.shrink_to_fit();
        self.instances.shrink_to_fit();
    }

    /// Heap bytes of the tables and their text.
    pub fn heap_bytes(&self) -> usize {
        self.text.heap_bytes()
            + self.nodes.capacity() * size_of::<NodeRow>()
            + self.jobs.capacity() * size_of::<JobRow>()
            + self.tasks.capacity() * size_of::<TaskRow>()
            + self.instances.capacity() * size_of::<InstanceRow>()
    }
}
