//! What carries decisions out: agents on machines, or Slurm; one of them in each daemon.
//!
//! A driver is a state machine below the [`Host`](crate::host::Host): it hears words from outside,
//! enters facts, and gives effects that leave when everything before them is safe in the store. It
//! has no thread, socket or clock, and decides nothing about who runs where. What it may use of the
//! host is the [`Desk`].

pub mod agents;
pub mod slurm;

use hostler_core::ability::Abilities;
use hostler_core::decision::StopHow;
use hostler_core::id::{LeaseId, NodeId};
use hostler_core::units::Span;

pub use agents::{AgentDriver, AgentWord};
pub use slurm::{SlurmDriver, SlurmSettings};

use crate::host::{Desk, HostError};
use crate::store::JobOrigin;
use crate::stream::StreamRequest;
use crate::wire::Stream;

/// Carries out what was decided, and tells what came of it.
///
/// - Every effect carries its lease or job, and giving it twice is giving it once.
/// - Each start is confirmed or denied by a fact (`Started`, `StartFailed` or `Stopped`), and each
///   stop by `Stopped`, however long that takes. Nothing is confirmed because it was asked for.
/// - After a restart it finds out by itself what runs; leases of the state are the only memory that
///   it can rely on. Starts and stops that may not have left are given again.
/// - What it finds that nobody submitted here it enters through [`Desk::find_job`] and
///   [`Desk::add_node`], under a name that stays the same each time it is found.
/// - It never blocks. What takes time is an effect, and its outcome a word.
/// - Whole gangs are started and stopped: what to do with each part is its own business.
pub trait Driver: Send {
    /// What it can do. Decisions that it cannot carry out do not reach it: policies see this, and
    /// it is checked.
    fn abilities(&self) -> Abilities;

    /// Takes over from the one before: nodes, jobs and leases are as they were in the store.
    fn restore(&mut self, desk: &mut Desk);

    /// Hears something from outside.
    fn hear(&mut self, desk: &mut Desk, word: Word);

    /// Starts a lease that was just decided; it may be over already.
    fn start(&mut self, desk: &mut Desk, lease: LeaseId);

    /// Ends a lease, which may be over already; called again when it is to end in another way.
    fn stop(&mut self, desk: &mut Desk, lease: LeaseId, how: StopHow);

    /// A lease is over in the state: nothing of it is expected any more.
    fn forget(&mut self, desk: &mut Desk, lease: LeaseId);

    /// Time went on. Called a few times a second at most.
    fn tick(&mut self, desk: &mut Desk);

    /// A person lets a node take nothing new, or lets it again: its row says which.
    fn drain(&mut self, desk: &mut Desk, node: NodeId);

    /// A token does not let anybody in any more.
    fn revoked(&mut self, desk: &mut Desk, token: u32);

    /// Reads a piece of output; the answer is an effect, now or later.
    fn read_output(&mut self, desk: &mut Desk, read: OutputRead) -> Result<(), HostError>;

    /// Leads a stream to a job that runs; gives the token with which it will be answered.
    fn open_stream(&mut self, desk: &mut Desk, open: StreamOpen) -> Result<u32, HostError>;

    /// What is known of a node besides the state.
    fn node(&self, desk: &Desk, node: NodeId) -> NodeStatus;

    /// How many connections there are to what runs jobs.
    fn connected(&self) -> usize;

    /// Whether jobs that came in this way are its business. A store with others is not taken.
    fn runs(&self, origin: &JobOrigin) -> bool {
        *origin == JobOrigin::Ours
    }

    /// Why jobs are not submitted here, and where they are instead; nothing where they are.
    fn takes_no_jobs(&self) -> Option<String> {
        None
    }
}

/// Something from outside, for the driver whose language it is; each driver has its own.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "inputs wait in boxes")]
pub enum Word {
    /// About agents.
    Agent(AgentWord),
    /// About Slurm.
    Slurm(slurm::SlurmWord),
}

/// Something that a cluster manager is asked for, in its language. Each is answered by a word,
/// whatever becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Of Slurm.
    Slurm(slurm::SlurmCall),
}

/// Has calls carried out. It must not block.
pub trait Caller: Send {
    /// Begins a call.
    fn call(&mut self, call: Call);
}

/// A piece of output that somebody wants to see.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputRead {
    /// Where the answer goes.
    pub slot: u64,
    /// The stay that wrote it.
    pub lease: LeaseId,
    /// Name of the node on which the task ran.
    pub node: String,
    /// The task.
    pub rank: u32,
    /// Which stream.
    pub stream: Stream,
    /// From where; negative counts from the end.
    pub offset: i64,
}

/// A stream that somebody wants to a running job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOpen {
    /// Its number; nobody can guess it.
    pub number: u64,
    /// The stay.
    pub lease: LeaseId,
    /// Name of the node on which the task runs.
    pub node: String,
    /// What is wanted.
    pub request: StreamRequest,
}

/// What a driver knows of a node, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStatus {
    /// Whether somebody is there to speak for it.
    pub connected: bool,
    /// Time since something was last heard of it.
    pub silence: Span,
    /// Whether that is too long, or nobody speaks for it any more.
    pub silent: bool,
    /// Use of each GPU in per cent, where it can be read.
    pub gpu_use: Vec<u8>,
    /// Why it gets no jobs, besides what a person wants; empty when it does.
    pub reason: String,
}
