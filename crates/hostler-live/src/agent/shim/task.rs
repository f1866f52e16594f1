//! Starting the tasks of a lease: a small stage of this same program is started, becomes the job's
//! user (`stage`), waits until its number is written down and its limits are set, and becomes the
//! command.
//!
//! The stage makes a session of its own and asks the kernel to be killed with the shim. That wish
//! is lost when a process changes its user, which is why it cannot be made before. The variables of
//! the job come over its standard input: with them in its own environment the job could have its
//! libraries loaded into this program (`LD_PRELOAD`).

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus};

use super::output::{Losses, Segments, pump};
use super::remnants::{Remnants, TaskPid};
use super::stage::{self, StageOrder};
use super::{Happened, ShimOrder};
use crate::agent::cgroup::ControlGroup;
use crate::agent::folder::{LeaseFolder, write_json};
use crate::agent::image::launch;
use crate::agent::{login_limits, processes};
use crate::limits::MESSAGE_BYTES_MAX;
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
#[derive(Debug)]
pub(super) struct Started {
    /// Their numbers and processes.
    pub tasks: Vec<TaskPid>,
    /// What carries their output into files.
    pub pumps: Vec<thread::JoinHandle<()>>,
    /// Their control groups.
    pub groups: Vec<ControlGroup>,
    /// What of their output could not be written.
    pub losses: Arc<Losses>,
}

/// Starts all tasks or none.
pub(super) fn start(
    shim: &ShimOrder,
    folder: &LeaseFolder,
    happened: &SyncSender<Happened>,
) -> io::Result<Started> {
    let (tasks, pumps, groups) = (Vec::new(), Vec::new(), Vec::new());
    let mut started = Started { tasks, pumps, groups, losses: Arc::default() };
    let mut stages = Vec::new();
    for task in &shim.order.tasks {
        // A fault drops the stages before it: their pipes end and they leave without having run.
        let (child, group) = prepare(shim, task)?;
        let seen = processes::process(child.id()).map_or(0, |process| process.started);
        started.tasks.push(TaskPid { rank: task.rank, pid: child.id(), started: seen });
        started.groups.extend(group);
        stages.push((task, child));
    }
    for (_, child) in &mut stages {
        let said = child.stdout.as_mut().expect("the stage was started with pipes");
        stage::await_ready(shim, said)?;
        let limits = shim.user.as_ref().map_or(&[][..], |user| &user.limits);
        login_limits::set(limits, child.id());
    }
    let remnants = Remnants::of(shim, folder, started.tasks.clone());
    write_json(&folder.pids(), &remnants, false)?;
    for (task, child) in stages {
        let carrier = Carrier { happened: happened.clone(), losses: started.losses.clone() };
        started.pumps.extend(release(shim, folder, task, child, carrier));
    }
    let happened = happened.clone();
    thread::spawn(move || reap(&happened));
    Ok(started)
}

fn prepare(shim: &ShimOrder, task: &TaskOrder) -> io::Result<(Child, Option<ControlGroup>)> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("hostler")
        .args(["shim", "--task", &std::process::id().to_string()])
        .args([&StageOrder::of(shim).words(), "--"])
        .args(launch(shim, task).command)
        .env_clear()
        // By this it is known as one of the lease from its first moment.
        .env("HOSTLER_SOCKET", &shim.socket)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn()?;
    let Some(jobs) = &shim.cgroup else { return Ok((child, None)) };
    let group = ControlGroup::named(jobs, &group_name(shim, task.rank));
    group.make(shim.order.cpu_milli, shim.order.mem_mib)?;
    group.add(child.id())?;
    Ok((child, Some(group)))
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
    mut child: Child,
    carrier: Carrier,
) -> [thread::JoinHandle<()>; 2] {
    let rank = task.rank;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let stdout = stdout.expect("the stage was started with pipes");
    let stderr = stderr.expect("the stage was started with pipes");
    let segments = |stream: &str| {
        Segments::new(folder.path(), &format!("{stream}-{rank}"), shim.segment_bytes)
            .keep(shim.segments_max)
    };
    let (out, err) = (segments("stdout"), segments("stderr"));
    let variables = serde_json::to_vec(&launch(shim, task).env).expect("names are text");
    let also = carrier.clone();
    let mut stdin = child.stdin.take().expect("the stage was started with pipes");
    let carry = move || {
        // One that was killed meanwhile is seen as an exit. One that is stopped by somebody makes
        // this thread wait, not the shim.
        let _ = stdin.write_all(&variables);
        drop(stdin);
        also.carry(stdout, out);
    };
    [thread::spawn(carry), thread::spawn(move || carrier.carry(stderr, err))]
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

/// Reads off every process that ends below this one, until there is none.
fn reap(happened: &SyncSender<Happened>) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => {
                let Ok(pid) = u32::try_from(pid.as_raw_nonzero().get()) else { continue };
                let _ = happened.send(Happened::Exited { pid, exit: exit(status) });
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => break,
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
    if !stage::take_on(order) {
        return NOT_TOLD;
    }
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
    let variables = io::stdin().lock().take(MESSAGE_BYTES_MAX as u64);
    let Ok(variables) = serde_json::from_reader::<_, BTreeMap<String, String>>(variables) else {
        return NOT_TOLD;
    };
    let mut task = Command::new(program);
    let fault = task.args(arguments).env_clear().envs(variables).stdin(Stdio::null()).exec();
    let _ = writeln!(io::stderr(), "hostler: cannot run `{program}`: {fault}");
    let missing = fault.kind() == io::ErrorKind::NotFound;
    if missing { NOT_FOUND } else { CANNOT_RUN }
}
