//! Commands that people run inside a job: as its user, in its folder and control group, with its
//! variables.
//!
//! They are children of the shim like its tasks, are written down like them before they run, and
//! end with them. The thread of the tasks starts them, too: a process is killed with the thread
//! that started it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::ShimOrder;
use super::remnants::{Remnants, TaskPid};
use super::run::Inside;
use super::stage::StageInput;
use super::task::{Started, WaitingStage, begin_stage, group_name, variables_of};
use crate::agent::cgroup::ControlGroup;
use crate::agent::folder::write_json;
use crate::agent::image::{Launch, enter};
use crate::agent::processes::{self, Process};
use crate::limits::STREAMS_PER_SHIM_MAX;
use crate::stream::TerminalSize;
use crate::wire::TaskExit;

/// Milliseconds from the hang-up to the end by force of a command whose person is gone.
const HANG_UP_MS: u64 = 2000;

/// A command that is wanted.
pub(super) struct ExecAsk {
    /// Beside which task.
    pub rank: u32,
    /// Program and arguments.
    pub command: Vec<String>,
    /// With a terminal of this size; with pipes otherwise.
    pub terminal: Option<TerminalSize>,
    /// What kind of terminal the person has.
    pub term: Option<String>,
    /// Where the answer goes.
    pub reply: SyncSender<Result<RunningCommand, String>>,
}

/// A command whose stage waits for its variables.
pub(super) struct RunningCommand {
    /// Its process.
    pub process: TaskPid,
    /// What is to be written before any input.
    pub variables: Vec<u8>,
    /// Where variables and, without a terminal, input go.
    pub stdin: File,
    /// The shim's end of its terminal.
    pub terminal: Option<File>,
    /// Its output, and its errors where they are apart.
    pub outputs: Vec<File>,
    /// How it ends.
    pub exit: Receiver<TaskExit>,
}

/// Commands that run.
#[derive(Default)]
pub(super) struct Commands {
    running: BTreeMap<u32, (TaskPid, SyncSender<TaskExit>)>,
}

impl Commands {
    /// Starts a command, unless it is too late for that.
    pub fn start(
        &mut self,
        shim: &ShimOrder,
        started: &Started,
        inside: &Inside<'_>,
        ask: ExecAsk,
        is_late: bool,
    ) {
        let begun = match is_late {
            true => Err("the job is ending".to_owned()),
            false => self.try_start(shim, started, inside, &ask).map_err(|fault| fault.to_string()),
        };
        // Whoever wanted it may be gone: the pipes of its stage end with the answer, and it leaves
        // without having run.
        let _ = ask.reply.send(begun);
    }

    fn try_start(
        &mut self,
        shim: &ShimOrder,
        started: &Started,
        inside: &Inside<'_>,
        ask: &ExecAsk,
    ) -> io::Result<RunningCommand> {
        if self.running.len() >= STREAMS_PER_SHIM_MAX {
            return Err(io::Error::other("too many commands run inside the job"));
        }
        let Some(task) = shim.order.tasks.iter().find(|task| task.rank == ask.rank) else {
            return Err(io::Error::other(format!("task {} does not run here", ask.rank)));
        };
        let Launch { command, env: mut variables } = enter(shim, task, &ask.command)?;
        variables.extend(ask.term.iter().map(|term| ("TERM".to_owned(), term.clone())));
        let input = if ask.terminal.is_some() { StageInput::Terminal } else { StageInput::Pipe };
        let nothing_runs = started.nothing_runs.lock().unwrap_or_else(PoisonError::into_inner);
        if *nothing_runs {
            return Err(io::Error::other("the job is ending"));
        }
        let mut stage = begin_stage(shim, &command, input, ask.terminal)?;
        drop(nothing_runs);
        let pid = stage.child.id();
        let seen = processes::process(pid).map_or(0, |process| process.started);
        let process = TaskPid { rank: ask.rank, pid, started: seen };
        let (sender, exit) = sync_channel(1);
        self.running.insert(pid, (process, sender));
        // A fault from here on drops the pipes, and the stage leaves without having run.
        if let Some(jobs) = &shim.cgroup {
            ControlGroup::named(jobs, &group_name(shim, ask.rank)).add(pid)?;
        }
        stage.settle(shim)?;
        let WaitingStage { mut child, terminal } = stage;
        self.write_down(shim, started, inside)?;
        let outputs = match &terminal {
            Some(ours) => vec![ours.try_clone()?],
            None => {
                [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)]
                    .into_iter()
                    .flatten()
                    .map(File::from)
                    .collect()
            }
        };
        let stdin = child.stdin.take().expect("the stage was started with pipes");
        let (variables, stdin) = (variables_of(&variables), File::from(OwnedFd::from(stdin)));
        Ok(RunningCommand { process, variables, stdin, terminal, outputs, exit })
    }

    /// A process that is no task has ended.
    pub fn exited(
        &mut self,
        shim: &ShimOrder,
        started: &Started,
        inside: &Inside<'_>,
        pid: u32,
        exit: TaskExit,
    ) {
        let Some((process, sender)) = self.running.remove(&pid) else { return };
        let _ = sender.try_send(TaskExit { rank: process.rank, ..exit });
        // What it left behind is still found by its variables and control group.
        let _ = self.write_down(shim, started, inside);
    }

    /// Writes down all processes, for when this shim is killed.
    fn write_down(
        &self,
        shim: &ShimOrder,
        started: &Started,
        inside: &Inside<'_>,
    ) -> io::Result<()> {
        let commands = self.running.values().map(|(process, _)| *process);
        let all = started.tasks.iter().copied().chain(commands).collect();
        let remnants = Remnants::of(shim, inside.folder, all);
        write_json(&inside.folder.pids(), &remnants, false)
    }
}

/// Ends a command whose person is gone, as a terminal does that is closed: all of its session.
pub(super) fn hang_up(command: TaskPid) {
    let session = session_of(command);
    for process in &session {
        for signal in [Signal::HUP, Signal::TERM, Signal::CONT] {
            processes::signal(process.pid, signal);
        }
    }
    if session.is_empty() {
        return;
    }
    thread::sleep(Duration::from_millis(HANG_UP_MS));
    session_of(command).iter().for_each(|process| processes::signal(process.pid, Signal::KILL));
}

/// Sends a signal to all processes of a session that are below this shim.
pub(super) fn signal_session(leader: TaskPid, signal: Signal) {
    session_of(leader).iter().for_each(|process| processes::signal(process.pid, signal));
}

fn session_of(leader: TaskPid) -> Vec<Process> {
    let mut ours = processes::below(std::process::id(), &processes::processes());
    ours.retain(|process| {
        process.session == leader.pid && process.started >= leader.started && !process.ended
    });
    ours
}
