//! From the start of the tasks to the moment at which nothing of them is left.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use hostler_core::decision::StopHow;
use hostler_core::id::LeaseId;

use super::console::Console;
use super::exec::Commands;
use super::link::Link;
use super::suspend::{self, Away, Whereabouts};
use super::task::Started;
use super::{Happened, JobWord, Progress, ShimOrder, StopTold};
use crate::agent::clock::{boot_ms, moment, until};
use crate::agent::core::Alive;
use crate::agent::folder::{LeaseFolder, read_json};
use crate::agent::image::listeners;
use crate::agent::processes::{self, Process};
use crate::limits::SHIM_SLEEP_MS_MAX;
use crate::wire::{EndNotes, Moment, Stage, TaskExit};

/// Milliseconds between two looks for processes that are to be killed.
const SWEEP_MS: u64 = 20;

/// Milliseconds for what the tasks left behind to end by itself. Most leave nothing, and to look
/// through all processes of a machine costs more than a short job.
const LEFT_MS: u64 = 10;

/// Milliseconds between two reports of progress: a fast loop must not flood the daemon.
const PROGRESS_MS: u64 = 500;

/// Milliseconds beyond a time limit after which the shim sees to it. The daemon, which counts from
/// when it heard of the start, comes first if it is there.
const LATE_MS: u64 = 5000;

/// Milliseconds for the last output after every process is gone.
const DRAIN_MS: u64 = 1000;

/// Waits for the end of all tasks, and brings it about when it must.
pub(super) fn until_over(
    shim: &ShimOrder,
    started: Started,
    link: &Link,
    (happened, inbox): (&SyncSender<Happened>, &Receiver<Happened>),
    inside: Inside<'_>,
) -> Stage {
    link.say(Stage::Running);
    let mut run = Run {
        shim,
        started,
        link,
        happened,
        inside,
        whereabouts: Whereabouts::Here,
        now_for: shim.order.lease,
        left_at_ms: 0,
        commands: Commands::default(),
        exits: Vec::new(),
        ending: None,
        interrupted: false,
        left: false,
        alive: read_json(&shim.alive),
        limit_at_ms: limit_at(boot_ms(), shim.order.limit_ms),
        progress: None,
        progress_at_ms: 0,
        gpu_milli: None,
        ended: None,
        note: None,
    };
    loop {
        let wake_ms = run.act(boot_ms());
        let pause = until(wake_ms).min(Duration::from_millis(SHIM_SLEEP_MS_MAX));
        match inbox.recv_timeout(pause) {
            Ok(Happened::Empty) | Err(RecvTimeoutError::Disconnected) => break,
            Ok(happened) => run.take(happened),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    run.finish()
}

/// Where people who go inside the job come to.
pub(super) struct Inside<'a> {
    /// Where its processes are written down.
    pub folder: &'a LeaseFolder,
    /// What they are attached to.
    pub console: Option<&'a Console>,
}

struct Run<'a> {
    shim: &'a ShimOrder,
    started: Started,
    link: &'a Link,
    /// For what takes long and is done beside.
    happened: &'a SyncSender<Happened>,
    inside: Inside<'a>,
    /// Where the tasks are, and the lease that they work for.
    whereabouts: Whereabouts,
    now_for: LeaseId,
    /// When they left their GPUs.
    left_at_ms: u64,
    /// What people run beside the tasks.
    commands: Commands,
    /// In the order in which they ended.
    exits: Vec<TaskExit>,
    ending: Option<Ending>,
    /// Whether the ending was wanted from outside.
    interrupted: bool,
    /// Whether all tasks have ended and only what they started may be left.
    left: bool,
    alive: Option<Alive>,
    /// When the tasks have run for too long.
    limit_at_ms: Option<u64>,
    progress: Option<Progress>,
    progress_at_ms: u64,
    /// What the job said last that it uses of each of its GPUs.
    gpu_milli: Option<u32>,
    /// When the last task ended.
    ended: Option<Moment>,
    /// Why the tasks were ended, where nobody else knows.
    note: Option<String>,
}

/// Tasks that are being ended.
#[derive(Clone, Copy)]
struct Ending {
    /// When SIGTERM is due, unless it was sent.
    ask_ms: Option<u64>,
    /// When SIGKILL is due.
    kill_ms: u64,
}

impl Run<'_> {
    /// Does what is due and says when to look again.
    fn act(&mut self, now_ms: u64) -> u64 {
        let mut wake_ms = self.fence(now_ms).min(self.limit(now_ms)).min(self.linger(now_ms));
        if self.exits.len() == self.started.tasks.len() && !self.left {
            // What the tasks left behind goes with them.
            self.left = true;
            self.ending = Some(Ending { ask_ms: None, kill_ms: now_ms + LEFT_MS });
        }
        let has_terminal = self.has_terminal();
        if let Some(ending) = &mut self.ending {
            if ending.ask_ms.is_some_and(|ask_ms| ask_ms <= now_ms) {
                ending.ask_ms = None;
                terminate(&listeners(self.shim, everything()), has_terminal);
            }
            let kill_ms = ending.kill_ms;
            wake_ms = wake_ms.min(kill_ms).min(ending.ask_ms.unwrap_or(kill_ms));
            if kill_ms <= now_ms {
                everything().iter().for_each(|it| processes::signal(it.pid, Signal::KILL));
                wake_ms = now_ms + SWEEP_MS;
            }
        }
        if let Some(progress) = self.progress {
            let due_ms = self.progress_at_ms + PROGRESS_MS;
            if due_ms > now_ms {
                return wake_ms.min(due_ms);
            }
            (self.progress, self.progress_at_ms) = (None, now_ms);
            self.link.tell(progress);
        }
        wake_ms
    }

    /// Ends the tasks when the daemon has not been heard for too long. The file is read again only
    /// when the last known value runs out.
    fn fence(&mut self, now_ms: u64) -> u64 {
        let grace_ms = self.shim.order.grace_ms;
        if self.alive.is_none_or(|alive| alive.ask_ms(grace_ms) <= now_ms) {
            self.alive = read_json(&self.shim.alive).or(self.alive);
        }
        // The agent writes the file before it starts anything: without it there is nobody to trust.
        let alive = self.alive.unwrap_or(Alive { sent_ms: 0, fence_ms: 0 });
        let ask_ms = alive.ask_ms(grace_ms);
        if ask_ms > now_ms {
            return ask_ms;
        }
        self.end(now_ms, StopHow::Checkpoint, alive.end_ms().saturating_sub(now_ms), true);
        now_ms + SHIM_SLEEP_MS_MAX
    }

    /// Ends the tasks when they have run for too long and nobody has ended them.
    fn limit(&mut self, now_ms: u64) -> u64 {
        match self.limit_at_ms {
            // Who stands still does not run for too long.
            Some(_) if !matches!(self.whereabouts, Whereabouts::Here) => u64::MAX,
            Some(limit_at_ms) if limit_at_ms > now_ms => limit_at_ms,
            Some(_) => {
                self.limit_at_ms = None;
                self.end(now_ms, StopHow::Kill, self.shim.order.grace_ms, true);
                u64::MAX
            }
            None => u64::MAX,
        }
    }

    /// Ends the tasks when those who were attached have been gone for too long.
    fn linger(&mut self, now_ms: u64) -> u64 {
        let interactive = self.shim.order.interactive.and_then(|how| how.linger_secs);
        let (Some(linger_secs), Some(console)) = (interactive, self.inside.console) else {
            return u64::MAX;
        };
        // Nobody can attach to what stands still.
        if self.ending.is_some() || !matches!(self.whereabouts, Whereabouts::Here) {
            return u64::MAX;
        }
        let linger = Duration::from_secs(linger_secs);
        match console.alone_for() {
            Some(alone) if alone >= linger => {
                self.note = Some(format!("nobody was attached to it for {linger_secs} s"));
                self.end(now_ms, StopHow::Kill, self.shim.order.grace_ms, false);
                u64::MAX
            }
            Some(alone) => {
                let left_ms = linger.saturating_sub(alone).as_millis();
                now_ms.saturating_add(u64::try_from(left_ms).unwrap_or(u64::MAX)).max(now_ms + 1)
            }
            None => u64::MAX,
        }
    }

    /// Whether a hang-up means something to the tasks. Shells of people ignore other requests.
    fn has_terminal(&self) -> bool {
        self.inside.console.is_some_and(|console| console.terminal)
    }

    fn take(&mut self, happened: Happened) {
        match happened {
            Happened::Exited { pid, exit } => {
                let tasks = &self.started.tasks;
                let Some(task) = tasks.iter().find(|task| task.pid == pid) else {
                    return self.commands.exited(self.shim, &self.started, &self.inside, pid, exit);
                };
                self.exits.push(TaskExit { rank: task.rank, ..exit });
                self.ended = Some(moment());
                if exit.code != Some(0) {
                    // A gang without one of its members only waits for it.
                    self.end(boot_ms(), StopHow::Kill, self.shim.order.grace_ms, false);
                }
            }
            Happened::Stop(StopTold { how: StopHow::Suspend, .. }) => self.suspend(),
            Happened::Stop(StopTold { how, grace_ms }) => {
                self.end(boot_ms(), how, grace_ms, true);
            }
            Happened::Resume(now_for) => self.resume(now_for),
            Happened::Left(left) => self.left_gpus(left),
            Happened::Back(back) => self.is_back(back),
            Happened::Told(JobWord::Step(progress)) => self.progress = Some(progress),
            Happened::Told(JobWord::GpuUse(milli)) => self.gpu_milli = Some(milli),
            Happened::OutputLost(fault) => self.link.lost(fault),
            Happened::Exec(ask) => {
                let is_late = self.ending.is_some() || self.left;
                self.commands.start(self.shim, &self.started, &self.inside, *ask, is_late);
            }
            Happened::Empty => {}
        }
    }

    /// Begins to suspend the tasks, unless they are on their way or at their end.
    fn suspend(&mut self) {
        match &self.whereabouts {
            Whereabouts::Here if self.ending.is_none() && !self.left => {
                self.whereabouts = Whereabouts::Leaving(None);
                self.left_at_ms = boot_ms();
                suspend::leave(everything, self.happened.clone());
            }
            Whereabouts::Leaving(Some(_)) => self.whereabouts = Whereabouts::Leaving(None),
            Whereabouts::Away(_) => self.link.say(Stage::Suspended { of: self.now_for }),
            Whereabouts::Here | Whereabouts::Leaving(None) | Whereabouts::Returning { .. } => {}
        }
    }

    /// Lets suspended tasks go on, now or as soon as they have left.
    fn resume(&mut self, now_for: LeaseId) {
        match std::mem::take(&mut self.whereabouts) {
            Whereabouts::Away(away) if self.ending.is_none() => {
                let anew = self.now_for != now_for;
                self.now_for = now_for;
                self.come_back(away, anew);
            }
            Whereabouts::Leaving(_) => self.whereabouts = Whereabouts::Leaving(Some(now_for)),
            Whereabouts::Here => {
                self.now_for = now_for;
                self.link.say(Stage::Running);
            }
            other @ (Whereabouts::Away(_) | Whereabouts::Returning { .. }) => {
                self.whereabouts = other;
            }
        }
    }

    fn come_back(&mut self, away: Away, anew: bool) {
        let _ = std::fs::remove_file(self.inside.folder.suspended());
        self.whereabouts = Whereabouts::Returning { anew };
        suspend::come_back(away, everything, self.happened.clone());
    }

    fn left_gpus(&mut self, left: Result<Away, String>) {
        let back_for = match &self.whereabouts {
            Whereabouts::Leaving(back_for) => *back_for,
            _ => None,
        };
        match left {
            // Their end came first: it is not to be slept through.
            Ok(away) if self.left || self.ending.is_some() => self.come_back(away, false),
            Ok(away) => {
                self.whereabouts = Whereabouts::Away(away);
                if let Some(now_for) = back_for {
                    return self.resume(now_for);
                }
                // Only figures depend on it.
                let _ = std::fs::write(self.inside.folder.suspended(), "");
                self.link.say(Stage::Suspended { of: self.now_for });
            }
            Err(fault) => {
                self.whereabouts = Whereabouts::Here;
                self.link.refuse(fault);
            }
        }
    }

    fn is_back(&mut self, back: Result<(), String>) {
        let whereabouts = std::mem::take(&mut self.whereabouts);
        match back {
            Ok(()) => {
                let (now_ms, limit_ms) = (boot_ms(), self.shim.order.limit_ms);
                let away_ms = now_ms.saturating_sub(self.left_at_ms);
                self.limit_at_ms = match whereabouts {
                    // The daemon counts from the begin of each stay.
                    Whereabouts::Returning { anew: true } => limit_at(now_ms, limit_ms),
                    _ => self.limit_at_ms.map(|at_ms| at_ms.saturating_add(away_ms)),
                };
                // Nobody could attach meanwhile.
                self.inside.console.iter().for_each(|console| console.begin_waiting_anew());
                self.link.say(Stage::Running);
            }
            Err(fault) => {
                self.note = Some(format!("it was suspended and cannot go on: {fault}"));
                self.end(boot_ms(), StopHow::Kill, 0, true);
            }
        }
    }

    /// Begins to end the tasks, or ends them sooner than was said before.
    fn end(&mut self, now_ms: u64, how: StopHow, grace_ms: u64, from_outside: bool) {
        let kill_ms = now_ms.saturating_add(grace_ms);
        if let Some(ending) = &mut self.ending {
            ending.kill_ms = ending.kill_ms.min(kill_ms);
            return;
        }
        self.interrupted = from_outside;
        let ask_ms = match how {
            // Who stands still cannot save anything.
            StopHow::Checkpoint if !matches!(self.whereabouts, Whereabouts::Here) => now_ms,
            StopHow::Checkpoint if grace_ms > 0 && ask_to_save(self.shim) => now_ms + grace_ms / 2,
            StopHow::Suspend | StopHow::Checkpoint | StopHow::Kill => now_ms,
        };
        self.ending = Some(Ending { ask_ms: Some(ask_ms), kill_ms });
    }

    fn finish(mut self) -> Stage {
        if let Some(progress) = self.progress.take() {
            self.link.tell(progress);
        }
        let end = Instant::now() + Duration::from_millis(DRAIN_MS);
        for pump in self.started.pumps {
            // A pipe may have been handed to a process elsewhere; it is not waited for.
            while !pump.is_finished() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.started.groups.iter().for_each(|group| _ = group.remove());
        let lost_bytes = self.started.losses.bytes();
        let (ended, why) = (self.ended, self.note);
        let notes = EndNotes { lost_bytes, ended, why, ..EndNotes::default() };
        let Run { exits, interrupted, gpu_milli, .. } = self;
        Stage::Ended { exits, interrupted, gpu_milli, notes }
    }
}

/// When tasks that begin now have run for too long.
fn limit_at(now_ms: u64, limit_ms: Option<u64>) -> Option<u64> {
    limit_ms.map(|limit_ms| now_ms.saturating_add(limit_ms).saturating_add(LATE_MS))
}

/// All processes of the job.
fn everything() -> Vec<Process> {
    processes::below(std::process::id(), &processes::processes())
}

fn ask_to_save(shim: &ShimOrder) -> bool {
    let mut listeners = listeners(shim, everything());
    listeners.retain(|process| processes::catches(process.pid, Signal::USR1));
    listeners.iter().for_each(|process| processes::signal(process.pid, Signal::USR1));
    !listeners.is_empty()
}

fn terminate(family: &[Process], hang_up: bool) {
    for process in family {
        if processes::is_first(process.pid) && !processes::catches(process.pid, Signal::TERM) {
            // It would not end by that, as any other would.
            processes::signal(process.pid, Signal::KILL);
            continue;
        }
        if hang_up {
            processes::signal(process.pid, Signal::HUP);
        }
        processes::signal(process.pid, Signal::TERM);
        // One that is stopped would sleep through it.
        processes::signal(process.pid, Signal::CONT);
    }
}
