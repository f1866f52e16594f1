//! The shim: one small process for each lease that keeps its tasks while agents come and go.
//!
//! It holds a lock for as long as it lives, is the parent that orphans of the job come back to,
//! pumps output into files, ends the tasks when it is told or the fence comes, and writes down how
//! they ended. If the shim itself is killed, the kernel kills the tasks. Signals of a stop: one
//! with saving sends SIGUSR1 to the processes that handle it and SIGTERM to all at half the grace;
//! where none handles it, and for a stop without saving, SIGTERM comes at once. SIGKILL ends the
//! grace, for everything below the shim.

mod console;
mod exec;
mod input;
mod link;
mod output;
mod progress;
mod remnants;
mod run;
mod signals;
mod stage;
mod streams;
mod suspend;
mod task;
mod terminal;
#[cfg(test)]
pub(super) mod tests;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use hostler_core::decision::StopHow;
use hostler_core::id::LeaseId;

use super::folder::{self, LeaseFolder, make_safe, read_json, write_json};
use super::image::Container;
use super::refusal::is_refusal;
use super::user::JobUser;
use crate::wire::{Stage, StartOrder, TaskExit};

use console::Console;
#[cfg(test)]
pub(super) use output::Segments;
pub use remnants::{Remnants, kill_remnants};
use streams::Streams;
pub use task::exec as task;

/// Events that wait for the shim at most; progress beyond that is dropped, the rest waits.
const EVENTS_MAX: usize = 256;

/// Tries to write down the end, a second apart: a full disk may be emptied meanwhile.
const END_TRIES_MAX: u32 = 600;

/// Looks for whether a lease that ended was forgotten, and the time between them.
const FORGOTTEN_LOOKS: u32 = 4;
const FORGOTTEN_LOOK_MS: u64 = 50;

/// Seconds for those who are attached to take the last output.
const LAST_READ_SECS_MAX: u64 = 30;

/// What a shim is told, in a file that only its owner may read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShimOrder {
    /// The daemon's order.
    pub order: StartOrder,
    /// Folder that the tasks run in.
    pub workdir: PathBuf,
    /// `HOSTLER_CHECKPOINT_DIR`.
    pub checkpoint_dir: PathBuf,
    /// Where the job tells its progress.
    pub socket: PathBuf,
    /// Where the agent listens.
    pub agent_socket: PathBuf,
    /// Where the fence is written.
    pub alive: PathBuf,
    /// `PATH` of the tasks.
    pub path: String,
    /// Who they run as; the agent's own user when none.
    pub user: Option<JobUser>,
    /// Below which control group they get theirs.
    pub cgroup: Option<PathBuf>,
    /// Where MPS listens, when GPUs are shared.
    pub mps_pipes: Option<PathBuf>,
    /// Bytes of one file of output.
    pub segment_bytes: u64,
    /// Files that are kept of each stream; the oldest go.
    pub segments_max: usize,
    /// The container that the tasks run in.
    #[serde(default)]
    pub container: Option<Container>,
}

/// What a shim says to the agent, one JSON object per line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "say")]
pub enum FromShim {
    /// Where the tasks stand.
    Stands {
        /// The lease.
        lease: LeaseId,
        /// Where.
        stage: Stage,
        /// Whether it knows how to suspend them: one of an earlier release does not, and passes
        /// over what it does not understand.
        #[serde(default)]
        suspends: bool,
    },
    /// The job told how far it is.
    Progress {
        /// The lease.
        lease: LeaseId,
        /// How far.
        progress: Progress,
    },
    /// The tasks cannot be suspended; they go on.
    SuspendRefused {
        /// The lease.
        lease: LeaseId,
        /// Why.
        fault: String,
    },
    /// Output could not be written, for the first time.
    OutputLost {
        /// The lease.
        lease: LeaseId,
        /// Why.
        fault: String,
    },
    /// The only word of a connection that then carries the frames of a stream.
    Stream {
        /// The lease.
        lease: LeaseId,
        /// The number that the agent gave it.
        stream: u64,
    },
}

/// What the agent says to a shim, one JSON object per line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ToShim {
    /// End or suspend the tasks.
    Stop(StopTold),
    /// Let suspended tasks go on.
    Resume {
        /// The lease that they work for from now on.
        now_for: LeaseId,
    },
    /// Connect once more, for a stream.
    Stream {
        /// Its number.
        stream: u64,
    },
}

/// Ends the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopTold {
    /// With or without saving.
    pub how: StopHow,
    /// Milliseconds from the signal to the end by force.
    pub grace_ms: u64,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps done over all its stays.
    pub step: u64,
    /// Steps in all, if it knows.
    pub total: Option<u64>,
    /// Whether a restart would go on from here.
    pub saved: bool,
}

/// What a job tells about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobWord {
    /// How far it is.
    Step(Progress),
    /// What it uses of each GPU that it has, in thousandths; the last word counts.
    GpuUse(u32),
}

/// What happens to a shim.
enum Happened {
    /// A process below it ended.
    Exited { pid: u32, exit: TaskExit },
    /// Nothing is below it any more.
    Empty,
    /// The agent wants the tasks ended or suspended.
    Stop(StopTold),
    /// The agent wants suspended tasks to go on, for a lease.
    Resume(LeaseId),
    /// The tasks have left their GPUs, or cannot.
    Left(Result<suspend::Away, String>),
    /// They are back, or cannot be.
    Back(Result<(), String>),
    /// The job told something.
    Told(JobWord),
    /// Output could not be written.
    OutputLost(String),
    /// A person wants a command run beside the tasks.
    Exec(Box<exec::ExecAsk>),
}

/// Runs the lease of a folder to its end. Does nothing when another shim has it or it is over.
pub fn main(path: &Path) -> io::Result<()> {
    let folder = LeaseFolder::at(path);
    // Before there is a process of the job's user: others of that user could take it over.
    rustix::thread::set_no_new_privs(true)?;
    signals::catch_ignored()?;
    // A shim that was started from a shell to look at it leads a group already; that is no harm.
    let _ = rustix::process::setsid();
    let Some(_lock) = take_over(&folder)? else { return Ok(()) };
    let shim: ShimOrder = read_json(&folder.order())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "cannot read `order.json`"))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let (happened, inbox) = sync_channel(EVENTS_MAX);
    let interactive = shim.order.interactive.filter(|_| is_first(&shim));
    let console = interactive.map(|how| Arc::new(Console::new(how.terminal.is_some())));
    let streams = Streams::new(&shim, happened.clone(), console.clone());
    let link = link::Link::start(&shim, happened.clone(), streams);
    let listening = progress::listen(&shim, happened.clone());
    let started = listening.and_then(|()| check_image(&shim));
    let start = |()| task::start(&shim, &folder, &happened, console.as_ref());
    let stage = match started.and_then(start) {
        Ok(started) => {
            let inside = run::Inside { folder: &folder, console: console.as_deref() };
            run::until_over(&shim, started, &link, (&happened, &inbox), inside)
        }
        Err(fault) => {
            task::remove_groups(&shim);
            not_started(&shim, &fault)
        }
    };
    let is_whole = matches!(&stage, Stage::Ended { exits, interrupted: false, .. }
        if exits.iter().all(|exit| exit.signal.is_none()));
    finish(&folder, &link, stage, console.as_deref());
    if let Some(container) = shim.container.as_ref().filter(|_| !is_whole) {
        // What was killed did not clean up behind itself.
        container.clean(&shim);
    }
    Ok(())
}

/// Whether the first task of all is here: people are attached to it alone.
fn is_first(shim: &ShimOrder) -> bool {
    shim.order.tasks.iter().any(|task| task.rank == 0)
}

/// Exit code of the first task, as shells tell it.
fn first_code(stage: &Stage) -> i32 {
    let Stage::Ended { exits, .. } = stage else { return 1 };
    let first = exits.iter().find(|exit| exit.rank == 0);
    first.map_or(1, |exit| exit.code.or(exit.signal.map(|signal| 128 + signal)).unwrap_or(1))
}

/// Whether the image that the job names is there at all: what runs it would fail in its own words.
fn check_image(shim: &ShimOrder) -> io::Result<()> {
    match shim.container.as_ref().and_then(Container::fault) {
        Some(fault) => Err(io::Error::new(io::ErrorKind::InvalidInput, fault)),
        None => Ok(()),
    }
}

/// What a start that failed means.
fn not_started(shim: &ShimOrder, fault: &io::Error) -> Stage {
    let words = fault.to_string();
    let no_image = shim.container.as_ref().is_some_and(|container| container.fault().is_some());
    if no_image || is_refusal(fault) {
        return Stage::Impossible { fault: words };
    }
    let of_machine = folder::is_of_machine(fault.kind(), shim.order.workdir.is_empty());
    Stage::NotStarted { fault: words, of_machine }
}

/// Takes the lock of a lease that is not over. Who holds it may write its end, nobody else.
fn take_over(folder: &LeaseFolder) -> io::Result<Option<File>> {
    let lock = folder.lock()?;
    Ok(lock.filter(|_| !folder.end().exists()))
}

/// Writes down the end and tells it. The record is made safe only where nobody forgets the lease
/// soon: once the daemon knows the end, a loss of power does not matter.
fn finish(folder: &LeaseFolder, link: &link::Link, stage: Stage, console: Option<&Console>) {
    let _ = std::fs::remove_file(folder.socket());
    for attempt in 1..=END_TRIES_MAX {
        match write_json(&folder.end(), &stage, false) {
            Ok(()) => break,
            // The agent may be able to tell the daemon although the disk is full.
            Err(_) if attempt == 1 => link.say(stage.clone()),
            Err(_) => {}
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    let code = first_code(&stage);
    link.say(stage);
    if let Some(console) = console {
        console.close(code);
        // Nothing holds the machine any more; only what is on its way still goes there.
        console.until_left(Duration::from_secs(LAST_READ_SECS_MAX));
    }
    for _ in 0..FORGOTTEN_LOOKS {
        std::thread::sleep(Duration::from_millis(FORGOTTEN_LOOK_MS));
        // The agent removes the order when the lease is forgotten.
        if !folder.order().exists() {
            return;
        }
    }
    // Without that a loss of power makes the job run again, which is no fault of the record.
    let _ = make_safe(&folder.end());
}
