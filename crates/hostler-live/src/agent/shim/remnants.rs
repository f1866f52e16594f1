//! What a shim leaves behind when it is killed: its tasks die with it, what they started may not.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::ShimOrder;
use super::task::group_name;
use crate::agent::cgroup::ControlGroup;
use crate::agent::folder::LeaseFolder;
use crate::agent::processes::{self, Process};

/// Looks for remnants before giving up for now.
const LOOKS_MAX: u32 = 100;

/// Milliseconds between them.
const LOOK_MS: u64 = 10;

/// Where remnants of a lease may be found; written before any of its commands runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Remnants {
    /// The start of the machine that this is about.
    boot_id: String,
    /// First processes of the tasks; each leads a session.
    tasks: Vec<TaskPid>,
    /// Value of `HOSTLER_SOCKET`, which no other job has.
    socket: String,
    /// Control groups.
    groups: Vec<PathBuf>,
    /// File system and number of the folder that this was written to.
    #[serde(default)]
    folder: Option<(u64, u64)>,
}

/// The first process of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPid {
    /// The task.
    pub rank: u32,
    /// The process.
    pub pid: u32,
    /// When it was started.
    pub started: u64,
}

impl Remnants {
    /// Where those of a lease are to be looked for.
    pub fn of(shim: &ShimOrder, folder: &LeaseFolder, tasks: Vec<TaskPid>) -> Remnants {
        let group = |task: &TaskPid| Some(shim.cgroup.as_ref()?.join(group_name(shim, task.rank)));
        let groups = tasks.iter().filter_map(group).collect();
        let socket = shim.socket.display().to_string();
        let folder = number(folder);
        Remnants { boot_id: processes::boot_id(), tasks, socket, groups, folder }
    }

    /// The first task of all, if it is here.
    pub fn first(&self) -> Option<TaskPid> {
        // Commands that people run come behind the tasks.
        self.tasks.iter().find(|task| task.rank == 0).copied()
    }

    /// Whether this was written to a folder, and does not lie there as the copy of another: what is
    /// named in a copy belongs to somebody else.
    pub fn is_of(&self, folder: &LeaseFolder) -> bool {
        self.folder.is_none() || self.folder == number(folder)
    }

    /// All processes of a lease whose shim runs: the parent of its tasks is it, and takes on
    /// orphans.
    pub fn running(&self, all: &[Process]) -> Vec<Process> {
        let is = |task: &TaskPid, process: &Process| {
            (process.pid, process.started) == (task.pid, task.started)
        };
        let tasks = self.tasks.iter();
        let mut found = tasks.filter_map(|task| all.iter().find(|process| is(task, process)));
        found.next().map_or_else(Vec::new, |task| processes::below(task.parent, all))
    }

    fn find(&self) -> Vec<u32> {
        let all = processes::processes();
        let mut grouped = BTreeSet::new();
        for path in &self.groups {
            grouped.extend(ControlGroup::named(path, "").pids());
        }
        let ours = |process: &&Process| {
            !process.ended
                && (grouped.contains(&process.pid)
                    || self.tasks.iter().any(|task| in_session(task, process, &all))
                    || processes::has_variable(process.pid, "HOSTLER_SOCKET", &self.socket))
        };
        all.iter().filter(ours).map(|process| process.pid).collect()
    }
}

/// Whether a process is in the session of a task. A number that was given to another process since
/// names no session of ours.
fn in_session(task: &TaskPid, process: &Process, all: &[Process]) -> bool {
    let leader = all.iter().find(|leader| leader.pid == task.pid);
    process.session == task.pid
        && process.started >= task.started
        && leader.is_none_or(|leader| leader.started == task.started)
}

/// Kills what is left of a lease whose shim is dead; says whether nothing is left.
pub fn kill_remnants(remnants: &Remnants) -> bool {
    if remnants.boot_id != processes::boot_id() {
        return true;
    }
    for _ in 0..LOOKS_MAX {
        let found = remnants.find();
        if found.is_empty() {
            remnants.groups.iter().for_each(|path| _ = ControlGroup::named(path, "").remove());
            return true;
        }
        found.into_iter().for_each(|pid| processes::signal(pid, Signal::KILL));
        thread::sleep(Duration::from_millis(LOOK_MS));
    }
    false
}

fn number(folder: &LeaseFolder) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(folder.path()).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
