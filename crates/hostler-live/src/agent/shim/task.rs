//! Starting the tasks of a lease: a small stage of this same program is started, becomes the job's
//! user (`stage`), waits until its number is written down and its limits are set, and becomes the
//! command.
//!
//! The stage makes a session of its own and asks the kernel to be killed with the shim. That wish
//! is lost when a process changes its user, which is why it cannot be made before. The variables of
//! the job come over its standard input: with them in its own environment the job could have its
//! libraries loaded into this program (`LD_PRELOAD`). What follows them there is the input of the
//! command, where it has one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};

use super::console::{Console, Tee};
use super::output::{Losses, Segments, pump};
use super::remnants::{Remnants, TaskPid};
use super::stage::{self, StageInput, StageOrder};
use super::{Happened, ShimOrder, terminal};
use crate::agent::cgroup::ControlGroup;
use crate::agent::folder::{LeaseFolder, write_json};
use crate::agent::image::launch;
use crate::agent::{login_limits, processes};
use crate::limits::{MESSAGE_BYTES_MAX, STAGE_SECS_MAX};
use crate::stream::TerminalSize;
use crate::wire::{TaskExit, TaskOrder};

/// Exit codes of the stage, as shells use them.
const CANNOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Exit code of a stage that was not told to go on.
const NOT_TOLD: i32 = 125;

/// Tries to take a control group away, and the time between them.
const REMOVE_TRIES_MAX: u32 = 100;
const REMOVE_PAUSE_MS: u64 = 10;

/// The tasks of a lease, all of them running.
pub(super) struct Started {
    /// Their numbers and processes.
    pub tasks: Vec<TaskPid>,
    /// What carries their output into files.
    pub pumps: Vec<thread::JoinHandle<()>>,
    /// Their control groups.
    pub groups: Vec<ControlGroup>,
    /// What of their output could not be written.
    pub losses: Arc<Losses>,
    /// Held while a process is started; whether it is too late for that, since nothing runs.
    pub nothing_runs: Arc<Mutex<bool>>,
}

/// A stage that waits for its variables.
pub(super) struct WaitingStage {
    pub child: Child,
    /// The shim's end of its terminal.
    pub terminal: Option<File>,
}

impl WaitingStage {
    /// Waits until it is the job's user, in the job's folder, and limits it as a login would.
    pub fn settle(&mut self, shim: &ShimOrder) -> io::Result<()> {
        self.settle_within(shim, Duration::from_secs(STAGE_SECS_MAX))
    }

    /// The same; one that takes longer is killed.
    fn settle_within(&mut self, shim: &ShimOrder, limit: Duration) -> io::Result<()> {
        let _watch = Watchdog::over(self.child.id(), limit)?;
        match (&mut self.terminal, self.child.stdout.as_mut()) {
            (Some(terminal), _) => stage::await_ready(shim, terminal)?,
            (None, Some(said)) => stage::await_ready(shim, said)?,
            (None, None) => return Err(io::Error::other("the stage has no output")),
        }
        let limits = shim.user.as_ref().map_or(&[][..], |user| &user.limits);
        login_limits::set(limits, self.child.id());
        Ok(())
    }
}

/// Kills a process that takes too long, unless it is dropped before.
struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    fn over(pid: u32, limit: Duration) -> io::Result<Watchdog> {
        let (alive, watched) = channel();
        thread::Builder::new().spawn(move || {
            if watched.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                processes::signal(pid, Signal::KILL);
            }
        })?;
        Ok(Watchdog { _alive: alive })
    }
}

/// Starts all tasks or none.
pub(super) fn start(
    shim: &ShimOrder,
    folder: &LeaseFolder,
    happened: &SyncSender<Happened>,
    console: Option<&Arc<Console>>,
) -> io::Result<Started> {
    let (tasks, pumps, groups) = (Vec::new(), Vec::new(), Vec::new());
    let (losses, nothing_runs) = (Arc::default(), Arc::default());
    let mut started = Started { tasks, pumps, groups, losses, nothing_runs };
    let mut stages = Vec::new();
    for task in &shim.order.tasks {
        // People are attached to the first task of all.
        let console = console.filter(|_| task.rank == 0);
        // A fault drops the stages before it: their pipes end and they leave without having run.
        let (stage, group) = prepare(shim, task, console.is_some())?;
        let pid = stage.child.id();
        let seen = processes::process(pid).map_or(0, |process| process.started);
        started.tasks.push(TaskPid { rank: task.rank, pid, started: seen });
        started.groups.extend(group);
        stages.push((task, stage, console));
    }
    for (_, stage, _) in &mut stages {
        stage.settle(shim)?;
    }
    let remnants = Remnants::of(shim, folder, started.tasks.clone());
    write_json(&folder.pids(), &remnants, false)?;
    for (task, stage, console) in stages {
        let carrier = Carrier { happened: happened.clone(), losses: started.losses.clone() };
        started.pumps.extend(release(shim, folder, task, stage, carrier, console)?);
    }
    let (happened, nothing_runs) = (happened.clone(), started.nothing_runs.clone());
    thread::spawn(move || reap(&happened, &nothing_runs));
    Ok(started)
}

fn prepare(
    shim: &ShimOrder,
    task: &TaskOrder,
    has_console: bool,
) -> io::Result<(WaitingStage, Option<ControlGroup>)> {
    let interactive = shim.order.interactive.filter(|_| has_console);
    let (input, size) = match interactive.map(|interactive| interactive.terminal) {
        None => (StageInput::None, None),
        Some(None) => (StageInput::Pipe, None),
        Some(size) => (StageInput::Terminal, size),
    };
    let stage = begin_stage(shim, &launch(shim, task).command, input, size)?;
    let Some(jobs) = &shim.cgroup else { return Ok((stage, None)) };
    let group = ControlGroup::named(jobs, &group_name(shim, task.rank));
    group.make(shim.order.cpu_milli, shim.order.mem_mib)?;
    group.add(stage.child.id())?;
    Ok((stage, Some(group)))
}

/// Starts a stage for a command; with a terminal of that size, or with pipes.
pub(super) fn begin_stage(
    shim: &ShimOrder,
    words: &[String],
    input: StageInput,
    size: Option<TerminalSize>,
) -> io::Result<WaitingStage> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("hostler")
        .args(["shim", "--task", &std::process::id().to_string()])
        .args([&StageOrder::of(shim, input).words(), "--"])
        .args(words)
        .env_clear()
        // By this it is known as one of the lease from its first moment.
        .env("HOSTLER_SOCKET", &shim.socket)
        .current_dir("/")
        .stdin(Stdio::piped());
    let terminal = size.map(|size| terminal::open(size, shim.user.as_ref())).transpose()?;
    let terminal = match terminal {
        Some((ours, theirs)) => {
            command.stdout(theirs.try_clone()?).stderr(theirs);
            Some(ours)
        }
        None => {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            None
        }
    };
    let child = command.spawn()?;
    Ok(WaitingStage { child, terminal })
}

/// Takes away what a start that failed has made. The stages leave by themselves, which takes a
/// moment.
pub(super) fn remove_groups(shim: &ShimOrder) {
    let Some(jobs) = &shim.cgroup else { return };
    for task in &shim.order.tasks {
        let group = ControlGroup::named(jobs, &group_name(shim, task.rank));
        for _ in 0..REMOVE_TRIES_MAX {
            if group.remove() {
                break;
            }
            thread::sleep(Duration::from_millis(REMOVE_PAUSE_MS));
        }
    }
}

/// Name of a task's control group.
pub(super) fn group_name(shim: &ShimOrder, rank: u32) -> String {
    format!("lease-{}-{rank}", shim.order.lease.0)
}

/// Lets a stage go on with the variables of its task, and takes its output.
fn release(
    shim: &ShimOrder,
    folder: &LeaseFolder,
    task: &TaskOrder,
    stage: WaitingStage,
    carrier: Carrier,
    console: Option<&Arc<Console>>,
) -> io::Result<Vec<thread::JoinHandle<()>>> {
    let rank = task.rank;
    let WaitingStage { mut child, terminal } = stage;
    let segments = |stream: &str| {
        Segments::new(folder.path(), &format!("{stream}-{rank}"), shim.segment_bytes)
            .keep(shim.segments_max)
    };
    let told = variables_of(&launch(shim, task).env);
    let mut stdin = child.stdin.take().expect("the stage was started with pipes");
    let streams: [Option<Box<dyn io::Read + Send>>; 2] = match &terminal {
        Some(ours) => [Some(Box::new(ours.try_clone()?)), None],
        None => [
            child.stdout.take().map(|stream| Box::new(stream) as Box<dyn io::Read + Send>),
            child.stderr.take().map(|stream| Box::new(stream) as Box<dyn io::Read + Send>),
        ],
    };
    let own = console.cloned();
    let tell = move || {
        // One that was killed meanwhile is seen as an exit. One that is stopped by somebody makes
        // this thread wait, not the shim.
        let _ = stdin.write_all(&told);
        let input = terminal.unwrap_or_else(|| File::from(OwnedFd::from(stdin)));
        if let Some(console) = own {
            console.set_input(Arc::new(input));
        }
    };
    let mut tell = Some(tell);
    let mut pumps = Vec::new();
    for (stream, (name, errors)) in streams.into_iter().zip([("stdout", false), ("stderr", true)]) {
        let Some(mut stream) = stream else { continue };
        if let Some(console) = console {
            stream = Box::new(Tee { stream, console: console.clone(), errors });
        }
        let (carrier, segments, tell) = (carrier.clone(), segments(name), tell.take());
        pumps.push(thread::spawn(move || {
            tell.into_iter().for_each(|tell| tell());
            carrier.carry(stream, segments);
        }));
    }
    Ok(pumps)
}

/// Variables as a stage is told them: their length and then themselves, since more may follow.
pub(super) fn variables_of(variables: &BTreeMap<String, String>) -> Vec<u8> {
    let text = serde_json::to_vec(variables).expect("names are text");
    let length = u32::try_from(text.len()).expect("an order fits a message");
    [&length.to_be_bytes()[..], &text].concat()
}

/// What carries output into files needs besides them.
#[derive(Clone)]
struct Carrier {
    happened: SyncSender<Happened>,
    losses: Arc<Losses>,
}

impl Carrier {
    fn carry(&self, stream: impl io::Read, segments: Segments) {
        pump(stream, segments, &self.losses, |fault| {
            // A shim that is behind hears of it by the end.
            let _ = self.happened.try_send(Happened::OutputLost(fault.to_string()));
        });
    }
}

/// Reads off every process that ends below this one, until there is none. Not while one is being
/// started: whoever starts it reads off one that never came to be.
fn reap(happened: &SyncSender<Happened>, nothing_runs: &Mutex<bool>) {
    loop {
        // Tells that there is one, and leaves it.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let seen = rustix::process::waitid(WaitId::All, look);
        if matches!(seen, Err(Errno::INTR)) {
            continue;
        }
        let mut too_late = nothing_runs.lock().unwrap_or_else(PoisonError::into_inner);
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                drop(too_late);
                let Ok(pid) = u32::try_from(pid.as_raw_nonzero().get()) else { continue };
                let _ = happened.send(Happened::Exited { pid, exit: exit(status) });
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => {
                *too_late = true;
                break;
            }
        }
    }
    let _ = happened.send(Happened::Empty);
}

fn exit(status: WaitStatus) -> TaskExit {
    TaskExit { rank: 0, code: status.exit_status(), signal: status.terminating_signal() }
}

/// The stage: becomes the command once the shim says so. Returns an exit code when that failed.
pub fn exec(parent: u32, order: &str, command: &[String]) -> i32 {
    let _ = rustix::process::setsid();
    let Some(input) = stage::take_on(order) else { return NOT_TOLD };
    let bound = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let alive = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    // A shim that died before the wish was made kills nobody.
    if bound.is_err() || alive != i32::try_from(parent).ok() {
        return NOT_TOLD;
    }
    let Some((program, arguments)) = command.split_first() else {
        return CANNOT_RUN;
    };
    // Half of them is no word to go on.
    let Some(variables) = told_variables() else { return NOT_TOLD };
    let stdin = match input {
        StageInput::None => Stdio::null(),
        StageInput::Pipe => Stdio::inherit(),
        StageInput::Terminal => {
            // The session is ours, so that keys such as Ctrl-C reach all that the command starts.
            let terminal = io::stdout().as_fd().try_clone_to_owned();
            let Ok(terminal) = terminal else { return NOT_TOLD };
            if rustix::process::ioctl_tiocsctty(&terminal).is_err() {
                return NOT_TOLD;
            }
            Stdio::from(terminal)
        }
    };
    let mut task = Command::new(program);
    let fault = task.args(arguments).env_clear().envs(variables).stdin(stdin).exec();
    let _ = writeln!(io::stderr(), "hostler: cannot run `{program}`: {fault}");
    let missing = fault.kind() == io::ErrorKind::NotFound;
    if missing { NOT_FOUND } else { CANNOT_RUN }
}

/// Reads the variables and not a byte more: what follows is the command's.
fn told_variables() -> Option<BTreeMap<String, String>> {
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let mut length = [0; 4];
    stdin.read_exact(&mut length).ok()?;
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    let mut text = vec![0; Some(length).filter(|length| *length <= MESSAGE_BYTES_MAX)?];
    stdin.read_exact(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::agent::shim::tests::shim_order;

    #[test]
    fn a_stage_that_hangs_is_killed_after_its_limit() {
        let mut command = Command::new("sleep");
        let child = command.arg("600").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut stage = WaitingStage { child: child.unwrap(), terminal: None };
        let begun = Instant::now();
        let limit = Duration::from_millis(200);
        let fault = stage.settle_within(&shim_order(&["true"]), limit).unwrap_err();
        assert!(fault.to_string().contains("ended before it was anybody's"), "{fault}");
        assert!(begun.elapsed() >= limit && begun.elapsed() < Duration::from_secs(60));
        let killed = std::os::unix::process::ExitStatusExt::signal(&stage.child.wait().unwrap());
        assert_eq!(killed, Some(9));
    }
}
