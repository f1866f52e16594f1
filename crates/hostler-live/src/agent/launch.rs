//! Starting the shim of a lease, and watching it to its end.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD};
use rustix::process::{Gid, Uid};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;

use hostler_core::id::LeaseId;

use super::core::AgentInput;
use super::energy;
use super::folder::{self, DataFolder, LeaseFolder, read_json, write_json};
use super::image::{Container, FOLDERS, Found, ImageSettings};
use super::refusal::{is_refusal, refused};
use super::script;
use super::shell::Incoming;
use super::shim::{Remnants, ShimOrder, kill_remnants};
use super::user::{JobUser, JobUsers};
use crate::limits::{OUTPUT_SEGMENT_BYTES, OUTPUT_SEGMENTS_MAX};
use crate::wire::{EndNotes, Stage, StartOrder};

/// Milliseconds between two looks at a shim that says nothing.
const LOOK_MS: u64 = 1000;

/// Where programs are, on most machines.
pub(super) const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How jobs run on this machine.
#[derive(Clone, Debug)]
pub struct JobSettings {
    /// Who jobs run as.
    pub users: JobUsers,
    /// The number of the only tenant whose jobs are started.
    pub only_tenant: Option<u32>,
    /// How images are run.
    pub images: ImageSettings,
    /// Folder for checkpoints that all machines share.
    pub checkpoints: Option<PathBuf>,
    /// Bytes of one file of output.
    pub segment_bytes: u64,
    /// Files that are kept of each stream.
    pub segments_max: usize,
}

impl Default for JobSettings {
    fn default() -> JobSettings {
        JobSettings {
            users: JobUsers::Own,
            only_tenant: None,
            images: ImageSettings::default(),
            checkpoints: None,
            segment_bytes: OUTPUT_SEGMENT_BYTES,
            segments_max: OUTPUT_SEGMENTS_MAX,
        }
    }
}

/// What is needed to start shims.
#[derive(Debug)]
pub(super) struct Launcher {
    pub data: DataFolder,
    /// Last words of shims.
    pub log: File,
    pub jobs: JobSettings,
    /// What runs images here, once that is known.
    pub runtimes: watch::Receiver<Option<Vec<Found>>>,
    /// Whether there is a device for each GPU.
    pub has_devices: bool,
    pub cgroup: Option<PathBuf>,
    pub mps_pipes: Option<PathBuf>,
    pub inbox: mpsc::Sender<Incoming>,
}

impl Launcher {
    /// Starts a shim and watches it.
    pub async fn launch(self: Arc<Launcher>, order: StartOrder, woken: Arc<Notify>) {
        let lease = order.lease;
        let launcher = self.clone();
        if !order.image.is_empty() {
            // Whoever would say it may be gone: then nothing runs images here.
            let _ = self.runtimes.clone().wait_for(Option::is_some).await;
        }
        let spawned = tokio::task::spawn_blocking(move || launcher.spawn(order)).await;
        match spawned.map_err(io::Error::other).and_then(|inner| inner) {
            Ok(child) => self.watch(lease, Some(child), woken).await,
            Err(fault) if is_refusal(&fault) => {
                self.seen(lease, Stage::Impossible { fault: fault.to_string() }).await;
            }
            Err(fault) => {
                // Nothing of the job's own was needed so far but its tenant and person.
                let of_machine = fault.kind() != io::ErrorKind::InvalidInput;
                let fault = format!("cannot start lease {}: {fault}", lease.0);
                self.seen(lease, Stage::NotStarted { fault, of_machine }).await;
            }
        }
    }

    /// Watches a shim until it is gone and says how its lease ended. What it says meanwhile comes
    /// another way; the truth is its lock and what it wrote.
    pub async fn watch(&self, lease: LeaseId, mut child: Option<Child>, woken: Arc<Notify>) {
        let folder = self.data.lease(lease);
        // One that was only just started has not taken its lock yet.
        let mut look = child.is_none();
        while !self.inbox.is_closed() {
            if look {
                let folder = folder.clone();
                let closed = tokio::task::spawn_blocking(move || close(&folder)).await;
                match closed.map_err(io::Error::other).and_then(|inner| inner) {
                    Ok(Some(stage)) => return self.seen(lease, stage).await,
                    Ok(None) => {}
                    Err(fault) => tracing::warn!(lease = lease.0, %fault, "cannot see to a lease"),
                }
            }
            let pause = sleep(Duration::from_millis(LOOK_MS));
            match &mut child {
                Some(running) => {
                    let _ = running.wait().await;
                    child = None;
                }
                None => tokio::select! { () = pause => {}, () = woken.notified() => {} },
            }
            look = true;
        }
    }

    async fn seen(&self, lease: LeaseId, stage: Stage) {
        // The agent ends when nobody receives; the next one looks again.
        let _ = self.inbox.send(Incoming::Happened(AgentInput::Seen { lease, stage })).await;
    }

    fn spawn(&self, order: StartOrder) -> io::Result<Child> {
        let folder = self.data.lease(order.lease);
        // Fails where the folder is: a lease is started once.
        DirBuilder::new().mode(0o711).create(folder.path())?;
        let shim = self.order(order, &folder)?;
        write_json(&folder.order(), &shim, false)?;
        // What was open when the agent was started, or what a library of its GPUs opened, is no
        // business of jobs.
        close_fds::set_fds_cloexec_threadsafe(3, &[]);
        // By this name it is the same program even after another was installed.
        Command::new("/proc/self/exe")
            .arg0("hostler")
            .arg("shim")
            .arg(folder.path())
            .env_clear()
            // Its few threads hardly allocate: a heap for each costs more than they would wait.
            .env("MALLOC_ARENA_MAX", "1")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.log.try_clone()?)
            .spawn()
    }

    fn order(&self, mut order: StartOrder, folder: &LeaseFolder) -> io::Result<ShimOrder> {
        if self.jobs.only_tenant.is_some_and(|only| only != order.tenant) {
            let fault = "jobs of its tenant could read the secrets of the daemon there";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
        }
        let user = self.jobs.users.of(&order)?;
        script::place(&mut order, folder, user.as_ref())?;
        let shared = self.jobs.checkpoints.clone().unwrap_or_else(|| self.data.checkpoints());
        let checkpoint_dir = shared.join(order.job.0.to_string());
        give(&checkpoint_dir, user.as_ref())?;
        let workdir = if order.workdir.is_empty() {
            let workdir = self.data.job(order.job);
            give(&workdir, user.as_ref())?;
            workdir
        } else if Path::new(&order.workdir).is_absolute() {
            PathBuf::from(&order.workdir)
        } else {
            return Err(refused(format!(
                "its folder `{}` is not named from `/` on",
                order.workdir
            )));
        };
        let container = match order.image.is_empty() {
            true => None,
            false => {
                Some(self.container(&order, folder, user.as_ref(), [&workdir, &checkpoint_dir])?)
            }
        };
        Ok(ShimOrder {
            workdir,
            checkpoint_dir,
            socket: folder.socket(),
            agent_socket: self.data.agent_socket(),
            alive: self.data.alive(),
            path: self.path(),
            user,
            cgroup: self.cgroup.clone(),
            mps_pipes: self.mps_pipes.clone(),
            segment_bytes: self.jobs.segment_bytes,
            segments_max: self.jobs.segments_max,
            container,
            order,
        })
    }

    /// The container of an order, with the folders of its job in it. What runs it keeps its own
    /// things by user: none can change the image of another.
    fn container(
        &self,
        order: &StartOrder,
        folder: &LeaseFolder,
        user: Option<&JobUser>,
        folders: [&Path; 2],
    ) -> io::Result<Container> {
        let uid = user.map_or_else(|| rustix::process::geteuid().as_raw(), |user| user.uid);
        let images = self.data.images(uid);
        let runtimes = self.runtimes.borrow().clone().unwrap_or_default();
        let mut container =
            Container::of(order, &runtimes, &self.jobs.images.args, images.clone())?;
        container.has_devices = self.has_devices;
        give(&images, user)?;
        FOLDERS.iter().try_for_each(|name| give(&images.join(name), user))?;
        folders.into_iter().for_each(|path| container.show(path));
        container.show(&folder.socket());
        if folder.script().exists() {
            container.show(&folder.script());
        }
        self.mps_pipes.iter().for_each(|pipes| container.show(pipes));
        Ok(container)
    }

    /// The agent's own `PATH`, or the usual one for another user: root's names folders that others
    /// may not enter.
    fn path(&self) -> String {
        let own = std::env::var("PATH").ok().filter(|_| self.jobs.users == JobUsers::Own);
        own.unwrap_or_else(|| USUAL_PATH.to_owned())
    }
}

/// Makes a folder that belongs to the job's user alone, unless it is there. One that still belongs
/// to the agent is what a crash between the two steps left.
pub(super) fn give(path: &Path, user: Option<&JobUser>) -> io::Result<()> {
    let mut made = DirBuilder::new().mode(0o700).create(path);
    if made.as_ref().is_err_and(|fault| fault.kind() == io::ErrorKind::NotFound) {
        path.parent().map_or(Ok(()), |parent| folder::make(parent, 0o711))?;
        made = DirBuilder::new().mode(0o700).create(path);
    }
    match made {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    let Some(user) = user else { return Ok(()) };
    let found = path.symlink_metadata()?;
    if !found.is_dir() {
        return Err(io::Error::other(format!("`{}` is no folder", path.display())));
    }
    let ours = found.uid() == rustix::process::geteuid().as_raw();
    if ours && user.uid != rustix::process::geteuid().as_raw() {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        rustix::fs::chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// How a lease ended, if no shim has it. One that left no record is closed: what remains of it is
/// killed, and a shim that comes late finds the record.
fn close(folder: &LeaseFolder) -> io::Result<Option<Stage>> {
    if !folder.path().exists() {
        return Ok(Some(interrupted()));
    }
    let Some(_lock) = folder.lock()? else { return Ok(None) };
    if let Some(stage) = read_json(&folder.end()) {
        return Ok(Some(measured(stage, folder)));
    }
    let remnants: Option<Remnants> = read_json(&folder.pids());
    let remnants = remnants.filter(|remnants| remnants.is_of(folder));
    if !remnants.is_none_or(|remnants| kill_remnants(&remnants)) {
        return Err(io::Error::other("processes of a killed shim do not end"));
    }
    if let Some(shim) = read_json::<ShimOrder>(&folder.order())
        && let Some(container) = &shim.container
    {
        container.clean(&shim);
    }
    write_json(&folder.end(), &interrupted(), true)?;
    Ok(Some(measured(interrupted(), folder)))
}

/// An end that an earlier agent missed, with the energy that it saw.
fn measured(mut stage: Stage, folder: &LeaseFolder) -> Stage {
    if let Stage::Ended { notes, .. } = &mut stage {
        notes.joules = notes.joules.or(energy::written(folder).map(|sum| sum / 1000));
    }
    stage
}

fn interrupted() -> Stage {
    Stage::Ended {
        exits: Vec::new(),
        interrupted: true,
        gpu_milli: None,
        notes: EndNotes::default(),
    }
}
