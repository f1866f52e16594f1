//! Jobs in containers: which programs run images on this machine, and the words by which one of
//! them runs a task.
//!
//! The program is started where the task would be, as the job's user and without more rights, and
//! the task is below it: signals, limits and the end of a lease reach it as any other. Variables
//! of the job are not among its arguments, which others can read.

mod apptainer;
mod enroot;
mod enter;
mod find;
mod podman;
mod probe;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

pub use find::{Found, find};
pub use probe::try_out;

use super::environment::environment;
use super::processes::{self, Process};
use super::shim::ShimOrder;
use super::user::{self, JobUser};
use crate::image::{ImageKind, Mount, Program, path_of};
use crate::wire::{StartOrder, TaskOrder};

/// Names the image inside of a container, and nowhere else: by this the shim knows who is inside.
const INSIDE: &str = "HOSTLER_IMAGE";

/// Seconds for a program to take away what is left of a container.
const CLEAN_SECS_MAX: u64 = 20;

/// How images are run here.
#[derive(Clone, Debug)]
pub struct ImageSettings {
    /// Programs that may be used; the first that is here and can is.
    pub programs: Vec<Program>,
    /// The operator's own words for them, before the image.
    pub args: Vec<String>,
}

impl Default for ImageSettings {
    fn default() -> ImageSettings {
        ImageSettings { programs: Program::ALL.to_vec(), args: Vec::new() }
    }
}

/// What a shim needs to know to run its tasks in a container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Container {
    /// What runs it.
    pub program: Program,
    /// Where that is.
    pub path: PathBuf,
    /// The image.
    pub image: String,
    /// What is seen inside.
    pub mounts: Vec<Mount>,
    /// The operator's words.
    pub args: Vec<String>,
    /// Where the program keeps images and its own things, for this user.
    pub folder: PathBuf,
    /// Variables that the program itself goes by.
    pub env: BTreeMap<String, String>,
    /// Whether there is a device to be shown for each GPU; made-up ones have none.
    pub has_devices: bool,
}

/// A command and all its variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its environment.
    pub env: BTreeMap<String, String>,
}

/// Folders below that of a [`Container`] that must be there.
pub const FOLDERS: [&str; 4] = ["cache", "data", "run", "tmp"];

impl Container {
    /// The container of an order, run by the first program that can.
    pub fn of(
        order: &StartOrder,
        found: &[Found],
        args: &[String],
        folder: PathBuf,
    ) -> io::Result<Container> {
        let kind = ImageKind::of(&order.image);
        let able = |found: &&Found| kind.is_some_and(|kind| found.program.runs(kind));
        let Some(Found { program, path, .. }) = found.iter().find(able) else {
            let fault = format!("nothing here runs its image `{}`", order.image);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
        };
        Ok(Container {
            program: *program,
            path: path.clone(),
            image: order.image.clone(),
            mounts: order.mounts.clone(),
            args: args.to_vec(),
            folder,
            env: find::passed_on(),
            has_devices: true,
        })
    }

    /// Lets something be seen inside under its own path, unless a mount of the job is there.
    pub fn show(&mut self, path: &Path) {
        let Some(path) = path.to_str().filter(|path| *path != "/") else { return };
        if !self.mounts.iter().any(|mount| mount.to == path) {
            self.mounts.push(Mount::same(path));
        }
    }

    /// The GPUs of a task that can be shown to it.
    fn gpus(&self, task: &TaskOrder) -> Vec<u32> {
        task.gpus.iter().filter(|_| self.has_devices).map(|(gpu, _)| *gpu).collect()
    }

    /// What is seen inside, in the words of a program; the last of them for what cannot be written.
    fn mounted(
        &self,
        read_only: &str,
        word: impl Fn(&str, &str, &str) -> String,
    ) -> impl Iterator<Item = String> {
        self.mounts.iter().map(move |mount| {
            let how = if mount.read_only { read_only } else { "" };
            word(&mount.from, &mount.to, how)
        })
    }

    /// The image in the words of programs that must be told what kind of archive one is.
    fn source(&self) -> String {
        let image = self.image.as_str();
        match (ImageKind::of(image), path_of(image)) {
            (Some(ImageKind::Archive), Some(path)) if path == image => {
                format!("docker-archive:{path}")
            }
            _ => image.to_owned(),
        }
    }

    /// Why it cannot be run at all, where that can be told.
    pub fn fault(&self) -> Option<String> {
        let path = path_of(&self.image)?;
        match std::fs::metadata(path) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                Some(format!("its image `{path}` cannot be read: {fault}"))
            }
            // It may be open to the job's user all the same.
            Err(_) => None,
            Ok(found) if ImageKind::of(&self.image) == Some(ImageKind::Folder) => {
                (!found.is_dir()).then(|| format!("its image `{path}` is no folder of files"))
            }
            Ok(found) => found.is_dir().then(|| format!("its image `{path}` is a folder")),
        }
    }

    /// Name of the container of a task, where the program wants one.
    fn name(shim: &ShimOrder, rank: u32) -> String {
        format!("hostler-{}-{rank}", shim.order.lease.0)
    }

    fn folder(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Takes away what a program that was killed left of the containers of a lease. Nothing of them
    /// runs any more.
    pub fn clean(&self, shim: &ShimOrder) {
        if self.program != Program::Podman {
            return;
        }
        let launch = podman::remove(self, shim);
        let limit = Duration::from_secs(CLEAN_SECS_MAX);
        let done = run_as(shim.user.as_ref(), &launch, limit, Stdio::null());
        let fault = match done {
            Ok(status) if status.success() => None,
            Ok(status) => Some(status.to_string()),
            Err(fault) => Some(fault.to_string()),
        };
        if let Some(fault) = fault {
            tracing::warn!(lease = shim.order.lease.0, %fault, "a container is left");
        }
        end_leftovers(shim);
    }
}

/// Ends what a program left that is over: without root Podman leaves a process behind that keeps
/// its namespace for the next time.
fn end_leftovers(shim: &ShimOrder) {
    let socket = shim.socket.display().to_string();
    for process in processes::processes() {
        if processes::has_variable(process.pid, "HOSTLER_SOCKET", &socket) {
            processes::signal(process.pid, Signal::KILL);
        }
    }
}

/// What becomes of a task: its command as it is, or in a container.
pub fn launch(shim: &ShimOrder, task: &TaskOrder) -> Launch {
    let env = environment(shim, task);
    let Some(container) = &shim.container else {
        return Launch { command: shim.order.command.clone(), env };
    };
    match container.program {
        Program::Apptainer | Program::Singularity => apptainer::launch(container, shim, task, env),
        Program::Podman => podman::launch(container, shim, task, env),
        Program::Enroot => enroot::launch(container, shim, task, env),
    }
}

/// What becomes of a command that is run beside a task: it is run as it is, or in the container of
/// the task.
pub fn enter(shim: &ShimOrder, task: &TaskOrder, command: &[String]) -> io::Result<Launch> {
    match &shim.container {
        Some(container) => enter::launch(container, shim, task.rank, command),
        None => Ok(Launch { command: command.to_vec(), env: environment(shim, task) }),
    }
}

/// The variables of a task inside of a container. Paths of the machine mean nothing there.
fn inside(
    shim: &ShimOrder,
    image: &str,
    env: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let of_machine = ["PATH", "SHELL", "HOME", "USER", "LOGNAME"];
    let said = &shim.order.env;
    let own = |name: &String| !of_machine.contains(&name.as_str()) || said.contains_key(name);
    let mut inside: BTreeMap<String, String> =
        env.into_iter().filter(|(name, _)| own(name)).collect();
    inside.insert(INSIDE.to_owned(), image.to_owned());
    inside
}

/// Variables of the program itself: few, and those by which the lease is known.
fn outside(container: &Container, shim: &ShimOrder) -> BTreeMap<String, String> {
    let mut env = container.env.clone();
    let home = shim.user.as_ref().map(|user| user.home.clone()).filter(|home| is_home(home));
    let home = home.unwrap_or_else(|| container.folder.display().to_string());
    env.entry("HOME".to_owned()).or_insert(home);
    env.insert("PATH".to_owned(), shim.path.clone());
    env.insert("LANG".to_owned(), "C.UTF-8".to_owned());
    env.insert("TMPDIR".to_owned(), container.folder("tmp"));
    env.insert("XDG_RUNTIME_DIR".to_owned(), container.folder("run"));
    env.insert("HOSTLER_SOCKET".to_owned(), shim.socket.display().to_string());
    env
}

/// Whether a program that runs images, or the shell that it is written in, would itself go by a
/// variable: one that is meant for the inside is told to it as an argument. None of them is a place
/// for secrets. The mark of the inside is among them, which the program must not have.
fn is_of_program(name: &str) -> bool {
    let names = [
        INSIDE,
        "BASH_ENV",
        "ENV",
        "GODEBUG",
        "GOGC",
        "GOMAXPROCS",
        "GOMEMLIMIT",
        "HOME",
        "IFS",
        "PATH",
        "REGISTRY_AUTH_FILE",
        "STORAGE_DRIVER",
        "STORAGE_OPTS",
        "TMPDIR",
    ];
    let beginnings = ["CONTAINERS_", "ENROOT_", "LD_", "XDG_"];
    names.contains(&name) || beginnings.iter().any(|beginning| name.starts_with(beginning))
}

fn is_home(home: &str) -> bool {
    home != "/" && Path::new(home).is_dir()
}

/// Names of variables for the inside, for a program that takes their values from its own. Values
/// that it would go by itself are told with the name.
fn told(
    seen: BTreeMap<String, String>,
    own: &mut BTreeMap<String, String>,
) -> impl Iterator<Item = String> {
    seen.into_iter().map(|(name, value)| {
        if is_of_program(&name) {
            return format!("{name}={value}");
        }
        own.insert(name.clone(), value);
        name
    })
}

/// The GPUs of a task as they are counted where only they are seen.
fn recounted(env: &mut BTreeMap<String, String>, task: &TaskOrder) {
    let numbers: Vec<String> = (0..task.gpus.len()).map(|seen| seen.to_string()).collect();
    env.insert("CUDA_VISIBLE_DEVICES".to_owned(), numbers.join(","));
}

/// Those of a lease's processes that signals are for: who is inside of its container. While nobody
/// is, all of them.
pub fn listeners(shim: &ShimOrder, all: Vec<Process>) -> Vec<Process> {
    let Some(container) = &shim.container else { return all };
    let marked =
        |process: &&Process| processes::has_variable(process.pid, INSIDE, &container.image);
    let roots: BTreeSet<u32> = all.iter().filter(marked).map(|process| process.pid).collect();
    if roots.is_empty() {
        return all;
    }
    let mut inside: Vec<Process> = Vec::new();
    for root in roots {
        inside.extend(all.iter().filter(|process| process.pid == root));
        inside.extend(processes::below(root, &all));
    }
    inside.sort_by_key(|process| process.pid);
    inside.dedup();
    inside
}

/// Runs a program as a job's user, without more rights than that has, and waits for its end. What
/// it complains of goes where it is told.
fn run_as(
    user: Option<&JobUser>,
    launch: &Launch,
    limit: Duration,
    complaints: impl Into<Stdio>,
) -> io::Result<ExitStatus> {
    let [program, arguments @ ..] = launch.command.as_slice() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&launch.env).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
    user::run_as(user, &mut command, |command| find::wait(&mut command.spawn()?, limit))
}
