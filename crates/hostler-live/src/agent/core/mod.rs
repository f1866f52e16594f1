//! What an agent does, without sockets, processes, files or clocks.
//!
//! `handle` takes what happened and gives what is to be done. Times are milliseconds of a clock
//! that never goes back and counts sleep. Effects must be done in the order in which they stand; a
//! lease is safe on disk before its `Launch` leaves.

mod disk;
mod fence;
mod lease;
mod session;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hostler_core::decision::StopHow;
use hostler_core::id::{JobId, LeaseId};

use crate::limits::LEASES_MAX;
use crate::wire::{
    FromAgent, LeaseReport, Machine, Programs, Stage, StartOrder, Stream, StreamOrder, ToAgent,
};

pub use disk::{LeaseDisk, MemoryDisk};
pub use fence::Alive;
use lease::Held;
use session::Session;

/// What happened to an agent. Shims, and the folders that they have, are known by the lease that
/// they were started for, also when their tasks have gone on under another.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentInput {
    /// A connection to the daemon stands; the numbers of connections count up.
    Connected {
        /// Its number.
        session: u64,
    },
    /// A connection is over.
    Disconnected {
        /// Its number.
        session: u64,
    },
    /// The daemon said something.
    MachineOverrides {
        /// Over which connection.
        session: u64,
        /// What.
        message: ToAgent,
    },
    /// The shim of a lease was looked at, or told something; never [`Stage::Unknown`].
    Seen {
        /// The lease.
        lease: LeaseId,
        /// Where its tasks stand. A shim that is gone without a record of exits means
        /// `Ended { exits: [], interrupted: true }`, after its remnants were killed.
        stage: Stage,
    },
    /// A shim could not suspend its tasks; they go on.
    SuspendRefused {
        /// The lease that the shim was started for.
        lease: LeaseId,
        /// Why.
        fault: String,
    },
    /// A job told how far it is.
    Progress {
        /// Its lease.
        lease: LeaseId,
        /// Steps done.
        step: u64,
        /// Steps in all.
        total: Option<u64>,
        /// Whether a restart would go on from here.
        saved: bool,
    },
    /// The programs that run images were tried out.
    Tried(Programs),
    /// The use of the GPUs was read, in per cent.
    GpuUse(Vec<u8>),
    /// What leases use of each GPU that they have was measured, in thousandths.
    LeaseUse(Vec<(LeaseId, u32)>),
    /// Millijoules that leases used so far, where their GPUs tell.
    LeaseEnergy(Vec<(LeaseId, u64)>),
    /// Why no job can be started here from now on; none when they can again.
    Unable(Option<String>),
    /// Time passed.
    Tick,
}

/// What an agent wants done. Shims and folders are known by the lease that they were started for.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "only a greeting is large, and there are few effects")]
pub enum AgentEffect {
    /// Say something to the daemon.
    Send {
        /// Over which connection; nothing is sent when it is over.
        session: u64,
        /// What.
        message: FromAgent,
    },
    /// End a connection.
    Close {
        /// Its number.
        session: u64,
        /// Why.
        fault: String,
        /// Whether to connect again.
        retry: bool,
    },
    /// Start the shim of a lease. A fault comes back as `Seen` with `NotStarted`.
    Launch(Box<StartOrder>),
    /// Look at the shim of a lease that an earlier agent took on, and go on watching it. The answer
    /// is `Seen`.
    Watch {
        /// The lease.
        lease: LeaseId,
    },
    /// Tell a shim to end its tasks; nothing to do when it is not there (it is told again when it
    /// is seen).
    Stop {
        /// The lease.
        lease: LeaseId,
        /// With or without saving.
        how: StopHow,
        /// Milliseconds from the signal to the end by force.
        grace_ms: u64,
    },
    /// Tell a shim that its suspended tasks go on, under this number; it is told again when it is
    /// seen to be suspended still.
    Resume {
        /// The lease that the shim was started for.
        lease: LeaseId,
        /// The lease that they go on for.
        now_for: LeaseId,
    },
    /// Write down until when the shims may go on.
    StillAlive(Alive),
    /// Read a piece of output and send it as [`FromAgent::Output`].
    ReadOutput {
        /// Over which connection.
        session: u64,
        /// Number of the request.
        request: u64,
        /// The lease.
        lease: LeaseId,
        /// The task.
        rank: u32,
        /// Which stream.
        stream: Stream,
        /// From where; negative counts from the end.
        offset: i64,
        /// Whether nothing more will be written.
        ended: bool,
    },
    /// Connect to the daemon for a stream, and lead it to the lease.
    OpenStream {
        /// What is wanted.
        order: Box<StreamOrder>,
        /// Whether the lease runs here.
        runs: bool,
    },
    /// What is kept of a lease beside its output may go.
    Forgotten {
        /// The lease.
        lease: LeaseId,
    },
}

/// The state of an agent.
#[derive(Debug)]
pub struct AgentCore<D> {
    machine: Machine,
    disk: D,
    leases: BTreeMap<LeaseId, Held>,
    /// Which lease a shim has the tasks of, where that is not the one it was started for.
    carried: BTreeMap<LeaseId, LeaseId>,
    session: Option<Session>,
    alive: Option<Alive>,
    gpu_use: Vec<u8>,
    /// Why no job can be started here.
    unable: Option<String>,
    /// The highest job that there are files of.
    last_job: Option<JobId>,
    /// Whether something was written that is not synced.
    unsynced: bool,
}

impl<D: LeaseDisk> AgentCore<D> {
    /// An agent that goes on where the last one on this disk ended.
    pub fn open(machine: Machine, disk: D) -> (AgentCore<D>, Vec<AgentEffect>) {
        let held: Vec<(LeaseId, LeaseId)> =
            disk.held().into_iter().map(|lease| (lease, disk.shim_of(lease))).collect();
        let effects = held.iter().map(|(_, shim)| AgentEffect::Watch { lease: *shim }).collect();
        let carried = held.iter().filter(|(lease, shim)| lease != shim);
        let core = AgentCore {
            machine,
            disk,
            carried: carried.map(|(lease, shim)| (*shim, *lease)).collect(),
            leases: held.into_iter().map(|(lease, shim)| (lease, Held::new(shim))).collect(),
            session: None,
            alive: None,
            gpu_use: Vec::new(),
            unable: None,
            last_job: None,
            unsynced: false,
        };
        (core, effects)
    }

    /// There are files of a job.
    pub fn has_files_of(&mut self, job: JobId) {
        self.last_job = self.last_job.max(Some(job));
    }

    /// Takes in everything that happened until now; one sync of the disk covers all of it.
    pub fn handle(&mut self, now_ms: u64, inputs: Vec<AgentInput>) -> Vec<AgentEffect> {
        let mut effects = Vec::new();
        for input in inputs {
            self.take(now_ms, input, &mut effects);
        }
        self.sync(&mut effects);
        effects
    }

    /// When `Tick` is due although nothing happens.
    pub fn wake_at(&self) -> Option<u64> {
        self.session.as_ref().map(Session::wake_at)
    }

    /// Until when the machine may go on; none before the first answer of the daemon.
    pub fn alive(&self) -> Option<Alive> {
        self.alive
    }

    /// Every lease that was not forgotten, and where it stands.
    pub fn held(&self) -> impl Iterator<Item = LeaseReport> + '_ {
        self.leases.iter().map(|(lease, held)| held.report(*lease))
    }

    /// The shims of all of them.
    pub fn shims(&self) -> impl Iterator<Item = LeaseId> + '_ {
        self.leases.values().map(|held| held.shim)
    }

    /// The lease that a shim has the tasks of.
    fn lease_of(&self, shim: LeaseId) -> LeaseId {
        self.carried.get(&shim).copied().unwrap_or(shim)
    }

    /// The shim that has, or had, the tasks of a lease.
    fn shim_of(&self, lease: LeaseId) -> LeaseId {
        self.leases.get(&lease).map_or(lease, |held| held.shim)
    }

    /// The disk, for the next agent of this machine.
    pub fn into_disk(self) -> D {
        self.disk
    }

    fn take(&mut self, now_ms: u64, input: AgentInput, effects: &mut Vec<AgentEffect>) {
        match input {
            AgentInput::Connected { session } => self.connected(now_ms, session, effects),
            AgentInput::Disconnected { session } => {
                self.session.take_if(|current| current.number == session);
            }
            AgentInput::MachineOverrides { session, message } => {
                // What an old connection still delivers was sent before the daemon knew better.
                if self.session.as_ref().is_some_and(|current| current.number == session) {
                    self.said(now_ms, session, message, effects);
                }
            }
            AgentInput::Seen { lease, stage } => self.seen(self.lease_of(lease), stage, effects),
            AgentInput::SuspendRefused { lease, fault } => {
                let lease = self.lease_of(lease);
                let Some(held) = self.leases.get_mut(&lease) else { return };
                held.stays();
                self.send(Some(FromAgent::SuspendRefused { lease, fault }), effects);
            }
            AgentInput::Progress { lease, step, total, saved } => {
                let lease = self.lease_of(lease);
                let Some(held) = self.leases.get_mut(&lease) else { return };
                held.progress = Some(FromAgent::Progress { lease, step, total, saved });
                let progress = held.progress.clone();
                self.send(progress, effects);
            }
            AgentInput::Tried(programs) => {
                self.machine.tell_programs(programs.clone());
                // A greeting that left before did not tell it, whether it was answered or not.
                if let Some(Session { number, .. }) = self.session {
                    let message = FromAgent::Programs(programs);
                    effects.push(AgentEffect::Send { session: number, message });
                }
            }
            AgentInput::GpuUse(gpu_use) => self.gpu_use = gpu_use,
            AgentInput::Unable(unable) => self.unable = unable,
            AgentInput::LeaseUse(samples) => {
                for (shim, milli) in samples {
                    let lease = self.lease_of(shim);
                    self.leases.get_mut(&lease).into_iter().for_each(|held| held.sampled(milli));
                }
            }
            AgentInput::LeaseEnergy(sums) => {
                for (shim, sum) in sums {
                    let lease = self.lease_of(shim);
                    self.leases.get_mut(&lease).into_iter().for_each(|held| held.used(sum));
                }
            }
            AgentInput::Tick => self.tick(now_ms, effects),
        }
    }

    fn connected(&mut self, now_ms: u64, number: u64, effects: &mut Vec<AgentEffect>) {
        self.session = Some(Session::new(number, now_ms));
        let mut held: Vec<LeaseReport> = self.held().collect();
        // A daemon that was restored from a backup must not give its number out again.
        if let Some(lease) = self.disk.last().filter(|last| !self.leases.contains_key(last)) {
            held.push(LeaseReport { lease, stage: Stage::Unknown });
        }
        let machine = Box::new(self.machine.clone());
        let (protocol, last_job) = (crate::wire::PROTOCOL, self.last_job);
        let message = FromAgent::Hello { protocol, machine, held, last_job };
        effects.push(AgentEffect::Send { session: number, message });
    }

    fn said(
        &mut self,
        now_ms: u64,
        session: u64,
        message: ToAgent,
        effects: &mut Vec<AgentEffect>,
    ) {
        match message {
            ToAgent::Welcome { node: _, beat_ms, fence_ms } => {
                let current = self.session.as_mut().expect("the caller found the session");
                let sent_ms = current.welcome(now_ms, beat_ms, fence_ms);
                self.answered(sent_ms, effects);
                let progress: Vec<_> =
                    self.leases.values().filter_map(|held| held.progress.clone()).collect();
                progress.into_iter().for_each(|message| self.send(Some(message), effects));
            }
            ToAgent::Refused { fault, retry } => {
                self.session = None;
                effects.push(AgentEffect::Close { session, fault, retry });
            }
            ToAgent::BeatSeen { number } => {
                let current = self.session.as_mut().expect("the caller found the session");
                if let Some(sent_ms) = current.beat_seen(number) {
                    self.answered(sent_ms, effects);
                }
            }
            ToAgent::Start(order) => self.start(now_ms, order, effects),
            ToAgent::Stop { lease, how, grace_ms } => self.stop(lease, how, grace_ms, effects),
            ToAgent::Resume { lease } => self.resume(lease, effects),
            ToAgent::Forget { lease } => self.forget(lease, effects),
            ToAgent::ReadOutput { request, lease, rank, stream, offset } => {
                let ended = self.leases.get(&lease).is_none_or(|held| held.is_over());
                let lease = self.shim_of(lease);
                let read = AgentEffect::ReadOutput {
                    session,
                    request,
                    lease,
                    rank,
                    stream,
                    offset,
                    ended,
                };
                effects.push(read);
            }
            ToAgent::OpenStream(mut order) => {
                let held = self.leases.get(&order.lease);
                let runs = held.is_some_and(|held| !held.is_over());
                order.lease = self.shim_of(order.lease);
                effects.push(AgentEffect::OpenStream { order, runs });
            }
        }
    }

    /// The daemon answered what was sent at `sent_ms`.
    fn answered(&mut self, sent_ms: u64, effects: &mut Vec<AgentEffect>) {
        let Some(fence_ms) = self.session.as_ref().and_then(Session::fence_ms) else { return };
        let alive = Alive { sent_ms, fence_ms };
        // Answers may come out of order; an older one proves less.
        if self.alive.is_none_or(|before| before.sent_ms < sent_ms || before.fence_ms != fence_ms) {
            self.alive = Some(alive);
            effects.push(AgentEffect::StillAlive(alive));
        }
    }

    /// Whether the daemon surely believes this machine to be alive.
    fn is_trusted(&self, now_ms: u64) -> bool {
        let welcomed = self.session.as_ref().and_then(Session::fence_ms).is_some();
        welcomed && self.alive.is_some_and(|alive| !alive.is_over(now_ms))
    }

    fn start(&mut self, now_ms: u64, order: Box<StartOrder>, effects: &mut Vec<AgentEffect>) {
        let lease = order.lease;
        if self.disk.is_forgotten(lease) {
            return self.report_unknown(lease, effects);
        }
        // Past the fence the job may already run elsewhere.
        if !self.is_trusted(now_ms) {
            return;
        }
        if let Some(of) = order.resumes.filter(|_| !self.leases.contains_key(&lease)) {
            return self.go_on(lease, of, effects);
        }
        let Entry::Vacant(slot) = self.leases.entry(lease) else {
            return self.report(lease, effects);
        };
        slot.insert(Held::new(lease));
        if self.leases.len() > LEASES_MAX {
            let fault = format!("this machine holds {LEASES_MAX} leases already");
            return self.seen(lease, Stage::NotStarted { fault, of_machine: true }, effects);
        }
        if let Some(fault) = self.unable.clone() {
            // It was never taken on: only the daemon's word is needed to forget it.
            return self.seen(lease, Stage::NotStarted { fault, of_machine: true }, effects);
        }
        match self.disk.accept(lease) {
            Ok(()) => {
                self.unsynced = true;
                self.has_files_of(order.job);
                effects.push(AgentEffect::Launch(order));
            }
            Err(fault) => self.not_started(lease, &fault, effects),
        }
    }

    /// Lets the suspended tasks of a lease go on for another. They may not have been seen since
    /// this agent was started.
    fn go_on(&mut self, lease: LeaseId, of: LeaseId, effects: &mut Vec<AgentEffect>) {
        let waiting = self.leases.get(&of).filter(|held| !held.is_over());
        let Some(shim) = waiting.map(|held| held.shim) else {
            self.leases.insert(lease, Held::new(lease));
            let fault = "what it was to go on from is not there any more".to_owned();
            return self.seen(lease, Stage::NotStarted { fault, of_machine: false }, effects);
        };
        if let Err(fault) = self.disk.carry_on(lease, of) {
            self.leases.insert(lease, Held::new(lease));
            return self.not_started(lease, &fault, effects);
        }
        self.unsynced = true;
        self.leases.remove(&of);
        self.leases.insert(lease, Held::new(shim));
        self.carried.insert(shim, lease);
        effects.push(AgentEffect::Resume { lease: shim, now_for: lease });
    }

    /// Takes back that a lease is suspended.
    fn resume(&mut self, lease: LeaseId, effects: &mut Vec<AgentEffect>) {
        let Some(held) = self.leases.get_mut(&lease).filter(|held| !held.is_over()) else {
            return self.report(lease, effects);
        };
        held.stays();
        held.resumes = true;
        effects.push(AgentEffect::Resume { lease: held.shim, now_for: lease });
    }

    fn stop(
        &mut self,
        lease: LeaseId,
        how: StopHow,
        grace_ms: u64,
        effects: &mut Vec<AgentEffect>,
    ) {
        let Some(held) = self.leases.get_mut(&lease) else {
            // The order to start it may still be on its way and must not run then.
            if !self.disk.is_forgotten(lease) && self.disk.forget(lease).is_ok() {
                self.unsynced = true;
            }
            return self.report_unknown(lease, effects);
        };
        if held.is_over() {
            return self.report(lease, effects);
        }
        held.stop = Some((how, grace_ms));
        match held.stop_due() {
            Some(_) => effects.push(AgentEffect::Stop { lease: held.shim, how, grace_ms }),
            // It is suspended already.
            None => self.report(lease, effects),
        }
    }

    fn forget(&mut self, lease: LeaseId, effects: &mut Vec<AgentEffect>) {
        // One that still runs stays held: its reports tell the daemon that it is wrong.
        if !self.leases.get(&lease).is_some_and(Held::is_over) {
            return;
        }
        // If that cannot be written, the daemon will be asked to say it again.
        if self.disk.forget(lease).is_ok() {
            let shim = self.shim_of(lease);
            self.leases.remove(&lease);
            self.carried.remove(&shim);
            effects.push(AgentEffect::Forgotten { lease: shim });
        }
    }

    fn seen(&mut self, lease: LeaseId, stage: Stage, effects: &mut Vec<AgentEffect>) {
        let Some(held) = self.leases.get_mut(&lease) else { return };
        if let Stage::Suspended { of } = &stage
            && (*of != lease || held.resumes)
        {
            // It was not told yet, or is at it.
            return effects.push(AgentEffect::Resume { lease: held.shim, now_for: lease });
        }
        held.resumes &= stage != Stage::Running;
        let changed = held.advance(stage);
        if let Some((how, grace_ms)) = held.stop_due() {
            effects.push(AgentEffect::Stop { lease: held.shim, how, grace_ms });
        }
        if changed {
            self.report(lease, effects);
        }
    }

    fn tick(&mut self, now_ms: u64, effects: &mut Vec<AgentEffect>) {
        let Some(session) = self.session.as_mut() else { return };
        let number = session.number;
        if let Some(fault) = session.silence(now_ms) {
            self.session = None;
            effects.push(AgentEffect::Close { session: number, fault, retry: true });
            return;
        }
        let Some(beat) = session.beat(now_ms) else { return };
        let (gpu_use, unable) = (self.gpu_use.clone(), self.unable.clone());
        let message = FromAgent::Beat { number: beat, gpu_use, unable };
        effects.push(AgentEffect::Send { session: number, message });
        for (lease, held) in &mut self.leases {
            if held.is_due() {
                let message = FromAgent::Report(held.report(*lease));
                effects.push(AgentEffect::Send { session: number, message });
            }
        }
    }

    /// Makes the disk safe; without that nothing may be launched.
    fn sync(&mut self, effects: &mut Vec<AgentEffect>) {
        if !std::mem::take(&mut self.unsynced) {
            return;
        }
        let Err(fault) = self.disk.sync() else { return };
        let all = std::mem::take(effects);
        for effect in all {
            match effect {
                AgentEffect::Launch(order) => self.not_started(order.lease, &fault, effects),
                other => effects.push(other),
            }
        }
    }

    fn not_started(
        &mut self,
        lease: LeaseId,
        fault: &std::io::Error,
        effects: &mut Vec<AgentEffect>,
    ) {
        let fault = format!("cannot write down the order: {fault}; look at the agent's disk");
        self.seen(lease, Stage::NotStarted { fault, of_machine: true }, effects);
    }

    fn report(&mut self, lease: LeaseId, effects: &mut Vec<AgentEffect>) {
        let report = self.leases.get(&lease).map(|held| FromAgent::Report(held.report(lease)));
        self.send(report, effects);
    }

    fn report_unknown(&mut self, lease: LeaseId, effects: &mut Vec<AgentEffect>) {
        let report = LeaseReport { lease, stage: Stage::Unknown };
        self.send(Some(FromAgent::Report(report)), effects);
    }

    /// Says something, once the daemon has accepted the connection; the rest is in `Hello`.
    fn send(&self, message: Option<FromAgent>, effects: &mut Vec<AgentEffect>) {
        let Some(session) = &self.session else { return };
        if let (Some(message), Some(_)) = (message, session.fence_ms()) {
            effects.push(AgentEffect::Send { session: session.number, message });
        }
    }
}
