//! The agent: runs jobs on one machine for the daemon.
//!
//! `core` decides (which leases are held, what is reported, when the machine is fenced) and has no
//! socket, process or clock; everything else here does what it says. A job does not hang on the
//! agent: a shim of its own keeps it, so the agent may be killed and started again at any time.

pub mod cgroup;
mod clock;
mod connect;
pub mod core;
pub mod discover;
mod energy;
mod environment;
pub mod folder;
pub mod gpus;
pub mod image;
mod journal;
mod launch;
mod login_limits;
mod mps;
pub mod output;
pub mod place;
mod ports;
mod processes;
pub mod progress;
mod refusal;
mod room;
mod sampling;
mod script;
mod shell;
pub mod shim;
mod shims;
mod streams;
mod suspending;
pub mod user;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::FlockOperation;
use rustix::process::geteuid;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use self::core::{AgentCore, AgentInput};
use self::discover::MachineOverrides;
use self::folder::DataFolder;
use self::gpus::Gpus;
use self::image::Found;
use self::journal::Journal;
use self::launch::Launcher;
use self::shell::{INBOX_MAX, Incoming, Shell};
use self::streams::Streams;
use crate::image::Runtime;
use crate::wire::Programs;

pub use connect::{Daemon, DaemonError};
pub use launch::JobSettings;
pub use suspending::Suspending;

/// Bytes of the last words of shims that are kept over a start: they rarely say anything.
const SHIMS_LOG_BYTES_MAX: u64 = 1 << 20;

/// What an agent is told at its start.
pub struct AgentOptions {
    /// Where the daemon is.
    pub daemon: Daemon,
    /// Where it keeps what must survive it.
    pub data: PathBuf,
    /// What is said about the machine.
    pub said: MachineOverrides,
    /// Its GPUs.
    pub gpus: Gpus,
    /// How jobs run.
    pub jobs: JobSettings,
    /// Whether jobs that share a GPU are kept apart by MPS.
    pub share_gpus: bool,
    /// Whether jobs are suspended.
    pub suspend: Suspending,
}

/// Why an agent ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The data folder cannot be used.
    #[error("cannot use the data folder `{path}`: {fault}")]
    Data {
        /// The folder.
        path: PathBuf,
        /// Why.
        fault: io::Error,
    },
    /// Jobs could not work in it.
    #[error(
        "jobs run as `{user}`, who cannot work in `{path}`: {fault}; name a folder with `--data` \
         that everybody may pass through (mode 711, and all above it), or another `--job-user`"
    )]
    Closed {
        /// The folder.
        path: PathBuf,
        /// Who jobs run as.
        user: String,
        /// Why.
        fault: io::Error,
    },
    /// Another agent uses it.
    #[error("another agent uses the data folder `{path}`; stop it, or set another folder")]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// The daemon does not accept the token.
    #[error(
        "the daemon answers {status} to this agent's token: it is unknown, spent or revoked; make \
         another with `hostler token create --role agent NAME`, remove `token` from the data \
         folder, and start the agent by the line that it prints"
    )]
    Unwanted {
        /// Status of its answer.
        status: u16,
    },
    /// The daemon does not want this agent.
    #[error("the daemon refuses this agent: {fault}")]
    Refused {
        /// Why.
        fault: String,
    },
    /// It was told to stop.
    #[error("the agent was stopped")]
    Stopped,
}

/// Runs an agent until the daemon refuses it. Dropping the future stops it and leaves its jobs
/// running: the next agent on the same data folder takes them over.
pub async fn run(options: AgentOptions) -> Result<(), AgentError> {
    let AgentOptions { daemon, data: path, said, gpus, jobs, share_gpus, suspend } = options;
    let cannot = |fault| AgentError::Data { path: path.clone(), fault };
    let data = DataFolder::open(&path).map_err(cannot)?;
    let taken = || AgentError::Taken { path: path.clone() };
    let _lock = lock(&data).map_err(cannot)?.ok_or_else(taken)?;
    check_user(&data, &jobs)?;
    let log = shims_log(&data).map_err(cannot)?;
    let journal = Journal::open(&data.journal()).map_err(cannot)?;
    let mut machine = discover::machine(&said, &gpus, &format!("{}:{}", daemon.host, daemon.port));
    machine.instance = Some(data.instance().map_err(cannot)?);
    machine.abilities.extend(jobs.users.ability());
    suspend.offer(&gpus, &mut machine);
    machine.untried = !jobs.images.programs.is_empty();
    tracing::info!(?machine, "agent");
    let (inbox, incoming) = mpsc::channel(INBOX_MAX);
    let (known, runtimes) = watch::channel((!machine.untried).then(Vec::new));
    let _trial = Aborts(tokio::spawn(try_programs(&jobs, &data, known, inbox.clone())));
    let streams = Streams::new(daemon.clone());
    let listening = shims::listen(&data.agent_socket(), inbox.clone(), streams.arrivals());
    let _shims = Aborts(listening.map_err(cannot)?);
    let (mut core, first) = AgentCore::open(machine, journal);
    data.last_job().into_iter().for_each(|job| core.has_files_of(job));
    let (cgroup, mps_pipes) = (limits(&data), share_gpus.then(|| shared(&data)).flatten());
    let (folder, leases) = (data.path().to_owned(), data.path().join("leases"));
    let launcher = Launcher {
        data,
        log,
        jobs,
        runtimes,
        has_devices: !matches!(gpus, Gpus::Fake(_)),
        cgroup,
        mps_pipes,
        inbox: inbox.clone(),
    };
    let gpus = Arc::new(gpus);
    let measuring = energy::measure(gpus.clone(), leases.clone(), inbox.clone());
    let _measuring = Aborts(tokio::spawn(measuring));
    let _sampling = Aborts(tokio::spawn(sampling::sample(gpus, leases, inbox.clone())));
    let asked = Arc::new(Notify::new());
    let _room = Aborts(tokio::spawn(room::watch(folder, asked.clone(), inbox.clone())));
    let shell = Shell::new(core, Arc::new(launcher), asked, streams);
    // Whoever ends first says why; the other is dropped.
    Err(tokio::select! {
        fault = shell.run(first, incoming) => fault,
        fault = connect::keep(daemon, inbox) => fault,
    })
}

/// Finds the programs that run images, tries them out and tells which do. It may take a while, in
/// which other jobs are run and those with an image wait.
fn try_programs(
    jobs: &JobSettings,
    data: &DataFolder,
    known: watch::Sender<Option<Vec<Found>>>,
    inbox: mpsc::Sender<Incoming>,
) -> impl Future<Output = ()> + use<> {
    let user = jobs.users.any();
    let uid = user.as_ref().map_or_else(|| geteuid().as_raw(), |user| user.uid);
    let (settings, things) = (jobs.images.clone(), data.images(uid));
    async move {
        if settings.programs.is_empty() {
            return;
        }
        let trial = move || {
            let path = std::env::var("PATH").unwrap_or_default();
            let found = image::find(&settings.programs, &path);
            image::try_out(found, &settings.args, &things, user.as_ref())
        };
        let tried = tokio::task::spawn_blocking(trial).await;
        let (found, unusable) = tried.unwrap_or_else(|fault| {
            tracing::error!(%fault, "programs that run images could not be tried");
            Default::default()
        });
        unusable.iter().for_each(|why| tracing::warn!("{why}"));
        let runtimes: Vec<Runtime> = found.iter().map(Found::runtime).collect();
        tracing::info!(?runtimes, "images");
        // The launcher first: the daemon may send a job with an image at once.
        known.send_replace(Some(found));
        let tried = AgentInput::Tried(Programs { runtimes, unusable });
        // An agent that has ended does not care.
        let _ = inbox.send(Incoming::Happened(tried)).await;
    }
}

/// Finds out before the first job whether jobs can come to where they run.
fn check_user(data: &DataFolder, jobs: &JobSettings) -> Result<(), AgentError> {
    let Some(user) = jobs.users.any() else { return Ok(()) };
    let closed =
        |fault| AgentError::Closed { path: data.path().to_owned(), user: user.name.clone(), fault };
    user.can_work_in(data.path()).map_err(closed)
}

/// Keeps a second agent out.
fn lock(data: &DataFolder) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let path = data.path().join("agent.lock");
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
    let free = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    Ok(free.then_some(file))
}

/// The file for the last words of shims; a long one is begun anew.
fn shims_log(data: &DataFolder) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).mode(0o600).open(data.shims_log())?;
    if file.metadata()?.len() > SHIMS_LOG_BYTES_MAX {
        file.set_len(0)?;
    }
    Ok(file)
}

fn limits(data: &DataFolder) -> Option<PathBuf> {
    let jobs = cgroup::prepare(data.path());
    if let Err(fault) = &jobs {
        tracing::warn!(%fault, "jobs run without limits of CPU and memory: no control groups");
    }
    jobs.ok()
}

fn shared(data: &DataFolder) -> Option<PathBuf> {
    let pipes = mps::start(data.path());
    if let Err(fault) = &pipes {
        tracing::warn!(%fault, "jobs that share a GPU are not kept apart: MPS cannot be started");
    }
    pipes.ok()
}

/// A task that ends with its owner.
struct Aborts(JoinHandle<()>);

impl Drop for Aborts {
    fn drop(&mut self) {
        self.0.abort();
    }
}
