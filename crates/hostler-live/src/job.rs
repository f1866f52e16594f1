//! What people submit and what they are told about it: the nouns of API, job files and CLI.
//!
//! `JobRequest` is what becomes a `JobSpec` of the core plus what only agents need (command,
//! environment, folder). Not for scheduling.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::need::Need;
use crate::notice::NotifyEvent;
use crate::shapes;
use crate::store::StartEnd;
use crate::stream::Interactive;

/// A job as people write it: in flags, in a job file, or in the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobRequest {
    /// For people; the first word of the command when empty.
    #[schema(max_length = 128, pattern = r"^[^/\u0000-\u001f\u007f-\u009f]*$")]
    pub name: String,
    /// Program and arguments; no shell is involved unless it is named.
    #[schema(schema_with = shapes::command, required = true)]
    pub command: Vec<String>,
    /// A script that travels with the job, from `#!` on; it is run in place of the first word of
    /// the command, with the others as its arguments.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(max_length = 65536, pattern = r"^(#![^\u0000]*)?$")]
    pub script: String,
    /// Whether the variables of Slurm are set beside our own.
    #[serde(skip_serializing_if = "is_default")]
    pub slurm: bool,
    /// Environment on top of the agent's small one.
    #[schema(schema_with = shapes::variables)]
    pub env: BTreeMap<String, String>,
    /// Folder to run in; one of the job's own when empty.
    #[schema(schema_with = shapes::folder)]
    pub workdir: String,
    /// What its files are not open for, in octal digits as in `027`; `022` when empty.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(pattern = "^(0?[0-7]{3})?$")]
    pub umask: String,
    /// Image of a container to run it in: `docker://NAME`, an archive behind `oci-archive:` or
    /// `docker-archive:`, or a file or folder that its node has; in none when empty.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(schema_with = shapes::image)]
    pub image: String,
    /// What is seen inside of the container besides its own folders: `FROM`, `FROM:TO` or
    /// `FROM:TO:ro`.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(schema_with = shapes::mounts)]
    pub mounts: Vec<String>,
    /// GPUs of each task: 0, a fraction below 1, or whole ones.
    #[schema(schema_with = shapes::gpus)]
    pub gpus: f64,
    /// GPU memory of each task in MiB, for fractions; in proportion when zero.
    pub gpu_mem_mib: u32,
    /// GPU models that will do, best first; any when empty.
    pub gpu_models: Vec<String>,
    /// CPU cores of each task; 1 when not given. Zero, for tasks with a GPU only, is not limited.
    #[schema(schema_with = shapes::cpus)]
    pub cpus: f64,
    /// Memory of each task in MiB; not limited when zero.
    pub mem_mib: u32,
    /// Tasks that start together; their ranks count from zero.
    #[schema(minimum = 1, maximum = 4096)]
    pub tasks: u32,
    /// Whether all tasks must be on one node.
    pub one_node: bool,
    /// Whether each task must be on a node of its own.
    pub apart: bool,
    /// Larger is more important.
    pub priority: i32,
    /// Seconds from now by which it should be done.
    #[schema(minimum = 1, maximum = 3162240000u64)]
    pub deadline_secs: Option<u64>,
    /// Seconds after which it is ended.
    #[schema(minimum = 1, maximum = 3162240000u64)]
    pub max_secs: Option<u64>,
    /// Seconds that it is expected to run.
    #[schema(minimum = 1, maximum = 3162240000u64)]
    pub estimate_secs: Option<u64>,
    /// `never` or `willing`.
    pub sharing: Sharing,
    /// Jobs that do the same thing again: what one of them shows of its speed is believed of all.
    #[schema(max_length = 128, pattern = r"^[^/\u0000-\u001f\u007f-\u009f]*$")]
    pub group: String,
    /// Jobs that must finish well before it may start.
    #[schema(schema_with = shapes::after)]
    pub after: Vec<Need>,
    /// Number of copies, told apart by `HOSTLER_ARRAY_INDEX`; one plain job when zero.
    #[schema(maximum = 10000)]
    pub array: u32,
    /// Index of the first copy.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(maximum = 1000000000)]
    pub array_first: u32,
    /// Distance from one index to the next; 1 when not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100000)]
    pub array_step: Option<u32>,
    /// How many of the array run at once at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub array_limit: Option<u32>,
    /// Seconds between the signal to checkpoint or stop and the end by force.
    #[schema(maximum = 3600)]
    pub grace_secs: Option<u64>,
    /// The reservation that it runs in; outside of all when empty.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(max_length = 128, pattern = r"^[^/\u0000-\u001f\u007f-\u009f]*$")]
    pub reservation: String,
    /// Whether it can be stopped and started again from `HOSTLER_CHECKPOINT_DIR`.
    pub checkpoints: bool,
    /// Whether it is never suspended in main memory to let others have its GPUs.
    #[serde(skip_serializing_if = "is_default")]
    pub no_suspend: bool,
    /// Steps that it will do in all, when it reports progress.
    #[schema(minimum = 1)]
    pub steps: Option<u64>,
    /// How much of its model its largest tensor is, if known: the more, the more it loses on
    /// several nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub skew: Option<f64>,
    /// Of what webhooks of the operator and `mail_to` are told.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(max_items = 3)]
    pub notify: Vec<NotifyEvent>,
    /// Address that is told by mail, where the operator has mail sent.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(
        max_length = 254,
        pattern = "^([A-Za-z0-9._%+=][A-Za-z0-9._%+=-]*(@[A-Za-z0-9.][A-Za-z0-9.-]*)?)?$"
    )]
    pub mail_to: String,
    /// How people are attached to its first task; not at all when not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interactive: Option<Interactive>,
}

/// One task with one core. A job that asks for nothing would fit everywhere, any number of times.
impl Default for JobRequest {
    fn default() -> JobRequest {
        JobRequest {
            name: String::new(),
            command: Vec::new(),
            script: String::new(),
            slurm: false,
            env: BTreeMap::new(),
            workdir: String::new(),
            umask: String::new(),
            image: String::new(),
            mounts: Vec::new(),
            gpus: 0.0,
            gpu_mem_mib: 0,
            gpu_models: Vec::new(),
            cpus: 1.0,
            mem_mib: 0,
            tasks: 1,
            one_node: false,
            apart: false,
            priority: 0,
            deadline_secs: None,
            max_secs: None,
            estimate_secs: None,
            sharing: Sharing::default(),
            group: String::new(),
            after: Vec::new(),
            array: 0,
            array_first: 0,
            array_step: None,
            array_limit: None,
            grace_secs: None,
            reservation: String::new(),
            checkpoints: false,
            no_suspend: false,
            steps: None,
            skew: None,
            notify: Vec::new(),
            mail_to: String::new(),
            interactive: None,
        }
    }
}

impl JobRequest {
    /// All but the environment and the script, which may be long and are nobody's business in a
    /// list.
    pub fn without_env(&self) -> JobRequest {
        JobRequest {
            name: self.name.clone(),
            command: self.command.clone(),
            script: String::new(),
            env: BTreeMap::new(),
            workdir: self.workdir.clone(),
            umask: self.umask.clone(),
            image: self.image.clone(),
            mounts: self.mounts.clone(),
            gpu_models: self.gpu_models.clone(),
            group: self.group.clone(),
            reservation: self.reservation.clone(),
            after: self.after.clone(),
            notify: self.notify.clone(),
            mail_to: self.mail_to.clone(),
            ..*self
        }
    }
}

/// The mask of three octal digits, with or without a zero before them; none for another text.
pub fn umask_of(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
    let sane = digits.len() == 3 && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    sane.then(|| u32::from_str_radix(digits, 8).ok()).flatten()
}

/// Whether a field is as it is when nobody names it, and need not be written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Whether a text can be the name of a variable that every shell understands.
pub fn is_variable(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|byte| !byte.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The indices of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indices {
    /// How many there are.
    pub count: u32,
    /// The first.
    pub first: u32,
    /// Distance from one to the next.
    pub step: u32,
}

impl Indices {
    /// Those of the array that a request asks for.
    pub fn of(request: &JobRequest) -> Indices {
        let step = request.array_step.unwrap_or(1).max(1);
        Indices { count: request.array, first: request.array_first, step }
    }

    /// The index of a job, by its place in the array.
    pub fn at(&self, place: u32) -> u32 {
        self.first.saturating_add(place.saturating_mul(self.step))
    }

    /// Places in the array of the indices from one to another; none where an end is outside of it,
    /// or nothing lies between.
    pub fn places(&self, from: u64, to: u64) -> Option<RangeInclusive<u32>> {
        let (first, step) = (u64::from(self.first), u64::from(self.step));
        let last = u64::from(self.at(self.count.checked_sub(1)?));
        if from < first || to > last || from > to {
            return None;
        }
        let begin = u32::try_from((from - first).div_ceil(step)).ok()?;
        let end = u32::try_from((to - first) / step).ok()?;
        (begin <= end).then_some(begin..=end)
    }
}

/// Whether a job shares GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Its devices are its own.
    #[default]
    Never,
    /// It may be packed with others.
    Willing,
}

/// What people do to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobAction {
    /// End it, running or not.
    Cancel,
    /// Keep it from starting while it waits.
    Hold,
    /// Let it go.
    Release,
}

/// Where a job stands, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// Waits for other jobs, for its tenant's quota, or because a person holds it.
    Held,
    /// Waits for its turn.
    Queued,
    /// Its machines have been told to start it.
    Starting,
    /// Runs.
    Running,
    /// Has been told to stop.
    Stopping,
    /// Ended with exit code 0.
    Finished,
    /// Ended with another code, by a signal, or could not be started.
    Failed,
    /// A person cancelled it.
    Cancelled,
    /// Ran into its time limit.
    TimedOut,
    /// Can never run here.
    Rejected,
}

/// What keeps a held job from the scheduler. Where it is more than one thing, the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeldBy {
    /// A person said so: `hostler release` lets it go.
    Person,
    /// Jobs that it needs are not over.
    Jobs,
    /// A start that failed: it is tried again soon.
    Start,
    /// No node can hold it: another one has to join.
    Nodes,
    /// As many jobs of its array run as may at once.
    Array,
    /// Jobs of its tenant that run, or wait before it, take all GPUs of the quota.
    Quota,
    /// Its tenant has used up the GPU hours of its budget.
    Budget,
    /// Its reservation has not begun, or is over.
    Reservation,
    /// The cluster manager that runs the jobs keeps it back; its reason says why.
    Engine,
}

/// What people are told about a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobView {
    /// Its number.
    pub id: u32,
    /// Changes with every change of the job; for `If-Match`.
    pub version: u64,
    /// For people.
    pub name: String,
    /// Who pays.
    pub tenant: String,
    /// Who submitted it.
    pub user: String,
    /// Where it stands.
    pub state: JobState,
    /// What holds it, while it is held.
    pub held_by: Option<HeldBy>,
    /// Why it waits, in words; empty when it does not.
    pub reason: String,
    /// Seconds since the epoch, to the microsecond.
    pub submitted: f64,
    /// First start.
    pub started: Option<f64>,
    /// End.
    pub ended: Option<f64>,
    /// Believed start of a job that waits, where the scheduler can tell.
    pub expected_start: Option<f64>,
    /// Believed end.
    pub expected_end: Option<f64>,
    /// Exit code of the first task that failed, else of rank 0; 128 + signal when killed by one.
    pub exit_code: Option<i32>,
    /// Nodes that it runs on, or last ran on.
    pub nodes: Vec<String>,
    /// Times it was started again.
    pub restarts: u32,
    /// Steps done, when it reports them.
    pub steps_done: Option<u64>,
    /// Energy of its stays that are over, where their GPUs tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_kwh: Option<f64>,
    /// Index in its array.
    pub array_index: Option<u32>,
    /// First job of its array.
    pub array_of: Option<u32>,
    /// The first task that failed in its last stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_rank: Option<u32>,
    /// The node of that task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_node: Option<String>,
    /// Its starts, the newest of many, in order; not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<StartView>,
    /// What the cluster manager calls it that runs it; none where agents do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_id: Option<String>,
    /// What was asked for; in lists, without the environment and the script.
    pub request: JobRequest,
}

/// What people are told about one start of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StartView {
    /// How often it had been started before.
    pub restart: u32,
    /// When it began, in seconds since the epoch.
    pub started: f64,
    /// When it ended.
    pub ended: Option<f64>,
    /// How it ended.
    pub end: Option<StartEnd>,
    /// Exit code of the first task that failed, else of rank 0; 128 + signal when killed by one.
    pub exit_code: Option<i32>,
    /// The first task that failed.
    pub failed_rank: Option<u32>,
    /// The node of that task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_node: Option<String>,
    /// Its nodes.
    pub nodes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_three_octal_digits() {
        assert_eq!(
            (umask_of("027"), umask_of("0077"), umask_of("777")),
            (Some(23), Some(63), Some(511))
        );
        for wrong in ["", "27", "028", "1022", "00022", "+22", "0o22"] {
            assert_eq!(umask_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn indices_of_arrays_are_found_by_first_and_step() {
        let plain = Indices { count: 4, first: 0, step: 1 };
        assert_eq!(plain.places(0, 3), Some(0..=3));
        assert_eq!((plain.places(3, 4), plain.places(2, 1)), (None, None));
        let odd = Indices { count: 3, first: 1, step: 2 };
        assert_eq!([0, 1, 2].map(|place| odd.at(place)), [1, 3, 5]);
        assert_eq!((odd.places(3, 3), odd.places(2, 2)), (Some(1..=1), None));
        assert_eq!((odd.places(2, 5), odd.places(0, 5)), (Some(1..=2), None));
        assert_eq!(Indices { count: 0, first: 0, step: 1 }.places(0, 0), None);
    }
}
