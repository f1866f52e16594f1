//! Does what the core says: sends, starts, stops, writes and reads.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use hostler_core::id::LeaseId;

use super::AgentError;
use super::clock::{ago_ms, boot_ms, until};
use super::core::{AgentCore, AgentEffect, AgentInput};
use super::folder::{LeaseFolder, overwrite, write_json};
use super::journal::Journal;
use super::launch::Launcher;
use super::output::{Piece, read_piece};
use super::shim::{StopTold, ToShim};
use super::streams::Streams;
use crate::limits::OUTPUT_LEASES_MAX;
use crate::wire::{FromAgent, Stage, Stream};

/// Things that wait for the agent; senders wait beyond that.
pub(super) const INBOX_MAX: usize = 4096;

/// Things that are taken in together, with one sync of the disk.
const BATCH_MAX: usize = 256;

/// Milliseconds without anything after which the core is asked anyway.
const IDLE_MS: u64 = 60_000;

/// What arrives at the agent.
#[derive(Debug)]
pub(super) enum Incoming {
    /// For the core.
    Happened(AgentInput),
    /// A connection stands; it ends when the sender is dropped.
    Connected { session: u64, sender: mpsc::Sender<FromAgent> },
    /// A shim can be told something.
    ShimCame { lease: LeaseId, sender: mpsc::Sender<ToShim> },
    /// Output of a job cannot be written.
    OutputLost { lease: LeaseId, fault: String },
    /// A shim is gone, or was too slow.
    ShimLeft { lease: LeaseId },
}

/// The agent's hands.
pub(super) struct Shell {
    core: AgentCore<Journal>,
    launcher: Arc<Launcher>,
    session: Option<(u64, mpsc::Sender<FromAgent>)>,
    shims: BTreeMap<LeaseId, mpsc::Sender<ToShim>>,
    /// Wakes who watches a lease.
    watched: BTreeMap<LeaseId, Arc<Notify>>,
    /// Folders that are kept for their output only, those that were over first in front.
    over: VecDeque<LeaseId>,
    /// Asks whether the disk takes anything.
    room: Arc<Notify>,
    streams: Streams,
}

impl Shell {
    pub fn new(
        core: AgentCore<Journal>,
        launcher: Arc<Launcher>,
        room: Arc<Notify>,
        streams: Streams,
    ) -> Shell {
        let (shims, watched) = (BTreeMap::new(), BTreeMap::new());
        let leases = launcher.data.path().join("leases");
        drop_dangling(&leases);
        let mut over = folders(&leases);
        core.shims().for_each(|shim| _ = over.remove(&shim));
        let over: VecDeque<LeaseId> = over.into_iter().collect();
        // An agent that died just after it forgot a lease left its environment here.
        over.iter().for_each(|lease| tidy(&launcher.data.lease(*lease), None));
        Shell { core, launcher, session: None, shims, watched, over, room, streams }
    }

    /// Works until the daemon refuses this agent for good.
    pub async fn run(
        mut self,
        first: Vec<AgentEffect>,
        mut inbox: mpsc::Receiver<Incoming>,
    ) -> AgentError {
        if let Err(fault) = self.act(first) {
            return fault;
        }
        let mut batch = Vec::new();
        loop {
            let wake_ms = self.core.wake_at().unwrap_or_else(|| boot_ms() + IDLE_MS);
            tokio::select! {
                count = inbox.recv_many(&mut batch, BATCH_MAX) => if count == 0 {
                    return AgentError::Stopped;
                },
                () = sleep(until(wake_ms).min(Duration::from_millis(IDLE_MS))) => {}
            }
            let mut inputs: Vec<_> =
                batch.drain(..).filter_map(|incoming| self.take(incoming)).collect();
            inputs.push(AgentInput::Tick);
            let effects = blocking(|| self.core.handle(boot_ms(), inputs));
            if let Err(fault) = self.act(effects) {
                return fault;
            }
        }
    }

    fn take(&mut self, incoming: Incoming) -> Option<AgentInput> {
        match incoming {
            Incoming::Happened(input) => {
                if let AgentInput::Disconnected { session } = &input {
                    self.session.take_if(|(current, _)| current == session);
                }
                Some(input)
            }
            Incoming::Connected { session, sender } => {
                self.session = Some((session, sender));
                Some(AgentInput::Connected { session })
            }
            Incoming::ShimCame { lease, sender } => {
                self.shims.insert(lease, sender);
                None
            }
            Incoming::OutputLost { lease, fault } => {
                tracing::error!(lease = lease.0, fault, "output of a job is lost");
                self.room.notify_one();
                None
            }
            Incoming::ShimLeft { lease } => {
                self.shims.remove(&lease);
                self.watched.get(&lease).into_iter().for_each(|woken| woken.notify_one());
                None
            }
        }
    }

    fn act(&mut self, effects: Vec<AgentEffect>) -> Result<(), AgentError> {
        effects.into_iter().try_for_each(|effect| self.act_one(effect))
    }

    fn act_one(&mut self, effect: AgentEffect) -> Result<(), AgentError> {
        match effect {
            AgentEffect::Send { session, message } => self.send(session, message),
            AgentEffect::Close { session, fault, retry } => {
                self.session.take_if(|(current, _)| *current == session);
                if !retry {
                    return Err(AgentError::Refused { fault });
                }
                tracing::warn!(fault, "the connection is given up");
            }
            AgentEffect::Launch(order) => {
                let woken = self.watcher(order.lease);
                tokio::spawn(self.launcher.clone().launch(*order, woken));
            }
            AgentEffect::Watch { lease } => {
                let (woken, launcher) = (self.watcher(lease), self.launcher.clone());
                tokio::spawn(async move { launcher.watch(lease, None, woken).await });
            }
            AgentEffect::Stop { lease, how, grace_ms } => {
                // One that cannot be told now is told when it is seen.
                if let Some(shim) = self.shims.get(&lease) {
                    let _ = shim.try_send(ToShim::Stop(StopTold { how, grace_ms }));
                }
            }
            AgentEffect::Resume { lease, now_for } => {
                // Its output is asked for by either number.
                let link = self.launcher.data.lease(now_for);
                if now_for != lease && !link.path().exists() {
                    // Nobody asks by the numbers between: of one start the last one is known.
                    drop_links(self.launcher.data.lease(lease).path());
                    let _ = std::os::unix::fs::symlink(lease.0.to_string(), link.path());
                }
                if let Some(shim) = self.shims.get(&lease) {
                    let _ = shim.try_send(ToShim::Resume { now_for });
                }
            }
            AgentEffect::StillAlive(alive) => {
                let path = self.launcher.data.alive();
                // A full disk is no reason to end jobs: the old file has room for the new value.
                let written =
                    write_json(&path, &alive, false).or_else(|_| overwrite(&path, &alive));
                if let Err(fault) = written {
                    tracing::error!(%fault, "cannot write the fence; jobs will end when it comes");
                }
            }
            AgentEffect::ReadOutput { session, request, lease, rank, stream, offset, ended } => {
                let read = Read { request, lease, rank, stream, offset, ended };
                self.read(session, read);
            }
            AgentEffect::OpenStream { order, runs } => {
                let shim = self.shims.get(&order.lease).filter(|_| runs).cloned();
                let folder = self.launcher.data.lease(order.lease);
                tokio::spawn(self.streams.clone().open(*order, shim, folder));
            }
            AgentEffect::Forgotten { lease } => self.forget(lease),
        }
        Ok(())
    }

    fn watcher(&mut self, lease: LeaseId) -> Arc<Notify> {
        self.watched.entry(lease).or_default().clone()
    }

    fn send(&mut self, session: u64, mut message: FromAgent) {
        tell_ages(&mut message);
        let Some((_, sender)) = self.session.as_ref().filter(|(current, _)| *current == session)
        else {
            return;
        };
        if sender.try_send(message).is_err() {
            // Nobody reads any more: end it, the next connection begins with everything.
            self.session = None;
        }
    }

    fn read(&self, session: u64, read: Read) {
        let Some((_, sender)) = self.session.as_ref().filter(|(current, _)| *current == session)
        else {
            return;
        };
        let (sender, folder) = (sender.clone(), self.launcher.data.lease(read.lease));
        tokio::task::spawn_blocking(move || {
            let _ = sender.try_send(read.answer(&folder));
        });
    }

    fn forget(&mut self, lease: LeaseId) {
        self.shims.remove(&lease);
        self.watched.remove(&lease);
        if !self.over.contains(&lease) {
            self.over.push_back(lease);
        }
        let oldest = (self.over.len() > OUTPUT_LEASES_MAX).then(|| self.over.pop_front());
        let oldest = oldest.flatten().map(|lease| self.launcher.data.lease(lease));
        let folder = self.launcher.data.lease(lease);
        tokio::task::spawn_blocking(move || tidy(&folder, oldest));
    }
}

/// Says how long ago leases ended: the daemon has another clock.
fn tell_ages(message: &mut FromAgent) {
    let reports = match message {
        FromAgent::Hello { held, .. } => held.as_mut_slice(),
        FromAgent::Report(report) => std::slice::from_mut(report),
        FromAgent::Beat { .. }
        | FromAgent::Programs(_)
        | FromAgent::SuspendRefused { .. }
        | FromAgent::Progress { .. }
        | FromAgent::Output { .. } => &mut [],
    };
    for report in reports {
        if let Stage::Ended { notes, .. } = &mut report.stage {
            notes.ago_ms = notes.ended.take().map(|moment| ago_ms(&moment));
        }
    }
}

/// Keeps the output of a lease that is over and drops the rest, secrets first.
fn tidy(folder: &LeaseFolder, oldest: Option<LeaseFolder>) {
    let files =
        [folder.order(), folder.pids(), folder.socket(), folder.energy(), folder.suspended()];
    files.iter().for_each(|file| _ = std::fs::remove_file(file));
    if let Some(oldest) = oldest {
        drop_links(oldest.path());
        let _ = std::fs::remove_dir_all(oldest.path());
    }
}

/// A request for output.
struct Read {
    request: u64,
    lease: LeaseId,
    rank: u32,
    stream: Stream,
    offset: i64,
    ended: bool,
}

impl Read {
    fn answer(self, folder: &LeaseFolder) -> FromAgent {
        let (piece, fault) = match read_piece(folder.path(), self.rank, self.stream, self.offset) {
            Ok(piece) => (piece, None),
            Err(fault) => {
                let fault = format!("no output of lease {} here: {fault}", self.lease.0);
                (Piece { at_end: true, ..Piece::default() }, Some(fault))
            }
        };
        let Piece { offset, text, base64, bytes, at_end } = piece;
        let last = fault.is_some() || (self.ended && at_end);
        FromAgent::Output { request: self.request, offset, text, base64, bytes, last, fault }
    }
}

/// Leases that have a folder of their own, and not that of the one that they went on from.
pub(super) fn folders(path: &Path) -> BTreeSet<LeaseId> {
    let Ok(entries) = std::fs::read_dir(path) else { return BTreeSet::new() };
    let number = |name: std::ffi::OsString| name.to_str()?.parse().ok().map(LeaseId);
    let own = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    own.filter_map(|entry| number(entry.file_name())).collect()
}

/// Removes second names of folders that are gone.
fn drop_dangling(path: &Path) {
    let Ok(entries) = std::fs::read_dir(path) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_symlink() && !path.exists() {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes second names of a folder.
fn drop_links(folder: &Path) {
    let (Some(all), Some(name)) = (folder.parent(), folder.file_name()) else { return };
    let Ok(entries) = std::fs::read_dir(all) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if std::fs::read_link(&path).is_ok_and(|target| target.as_os_str() == name) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Lets other tasks go on elsewhere while this one waits for the disk, where there is an elsewhere.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}
