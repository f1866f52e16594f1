//! What agents and the daemon say to each other, over one WebSocket, as JSON.
//!
//! Every message may be lost, repeated or late; a connection may break between any two. So orders
//! name a lease and are idempotent, reports tell the whole state of a lease and are repeated until
//! the daemon says `Forget`, and each new connection begins with everything that the agent holds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use hostler_core::decision::StopHow;
use hostler_core::id::{JobId, LeaseId, NodeId};

use crate::image::{Mount, Runtime};
use crate::person::Person;
use crate::stream::{Interactive, StreamRequest};

/// Version of this protocol. It counts up when an agent of the release before could take a message
/// for something else.
pub const PROTOCOL: u32 = 2;

/// The oldest that a daemon understands: that of the release before, so that agents can be upgraded
/// one by one after it. An agent that is ahead of its daemon is refused.
pub const PROTOCOL_OLDEST: u32 = PROTOCOL - 1;

/// The ability of an agent to suspend jobs that have whole GPUs.
pub const SUSPEND: &str = "suspend";

/// Where agents connect, with their token as bearer.
pub const AGENT_PATH: &str = "/api/v1/agent";

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "say")]
pub enum FromAgent {
    /// The first message of a connection.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// What it runs on.
        machine: Box<Machine>,
        /// Every lease that it has not been told to forget, and the highest that it ever knew.
        held: Vec<LeaseReport>,
        /// The highest job that it has files of.
        #[serde(default)]
        last_job: Option<JobId>,
    },
    /// It is alive.
    Beat {
        /// Counts up; the daemon answers with the same number.
        number: u64,
        /// Present use of its GPUs in per cent, where it can be read.
        gpu_use: Vec<u8>,
        /// Why it can start no job now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unable: Option<String>,
    },
    /// The programs that run images were tried out since the greeting.
    Programs(Programs),
    /// A lease changed; repeated until it is forgotten.
    Report(LeaseReport),
    /// A lease cannot be suspended as was asked for: it goes on.
    SuspendRefused {
        /// The lease.
        lease: LeaseId,
        /// Why.
        fault: String,
    },
    /// A job told how far it is.
    Progress {
        /// Its lease.
        lease: LeaseId,
        /// Steps done over all its stays.
        step: u64,
        /// Steps in all, if it knows.
        total: Option<u64>,
        /// Whether a restart would go on from here.
        saved: bool,
    },
    /// A piece of a job's output.
    Output {
        /// Of the request.
        request: u64,
        /// Where the piece begins in the stream.
        offset: u64,
        /// The piece; bytes that are not UTF-8 are replaced.
        text: String,
        /// The piece as it is, in base64, where the text is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
        /// Bytes that it stands for.
        bytes: u64,
        /// Whether the stream has ended and this was its last piece.
        last: bool,
        /// Why there is no output.
        fault: Option<String>,
    },
}

/// What the daemon says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "say")]
pub enum ToAgent {
    /// The connection is accepted.
    Welcome {
        /// The number of the node.
        node: NodeId,
        /// Milliseconds between beats.
        beat_ms: u64,
        /// Milliseconds after the last beat that was answered at which jobs are ended: the daemon
        /// waits longer than that before it starts them elsewhere.
        fence_ms: u64,
    },
    /// The connection is not accepted.
    Refused {
        /// Why.
        fault: String,
        /// Whether trying again may help.
        retry: bool,
    },
    /// The answer to a beat.
    BeatSeen {
        /// Its number.
        number: u64,
    },
    /// Start the tasks of a lease that belong on this node. Known leases are reported, not started.
    Start(Box<StartOrder>),
    /// End what is left of a lease. An unknown one is reported as [`Stage::Unknown`].
    Stop {
        /// The lease.
        lease: LeaseId,
        /// With or without saving.
        how: StopHow,
        /// Milliseconds from the signal to the end by force.
        grace_ms: u64,
    },
    /// A lease that was suspended, or is being, goes on after all, under its own number.
    Resume {
        /// The lease.
        lease: LeaseId,
    },
    /// The outcome of a lease is safe in the log.
    Forget {
        /// The lease.
        lease: LeaseId,
    },
    /// Send a piece of a job's output.
    ReadOutput {
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
    },
    /// Connect once more, for a stream to a job; only for agents with the ability.
    OpenStream(Box<StreamOrder>),
}

/// A stream that an agent is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamOrder {
    /// Its number; nobody can guess it.
    pub number: u64,
    /// The lease.
    pub lease: LeaseId,
    /// What a person wants of it.
    pub request: StreamRequest,
}

/// What a node has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the node; the daemon knows it by this and the enrolled token.
    pub name: String,
    /// Version of its agent; empty before agents said it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Address at which other nodes reach it, for gangs.
    pub address: String,
    /// CPU in thousandths of a core.
    pub cpu_milli: u32,
    /// Main memory in MiB.
    pub mem_mib: u32,
    /// Model of its GPUs; empty without any.
    pub gpu_model: String,
    /// Memory of each GPU in MiB.
    pub gpu_mem_mib: u32,
    /// Number of GPUs.
    pub gpus: u32,
    /// Rack, for locality.
    pub rack: u32,
    /// Which of all agents that may show this node's token it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
    /// What its agent can do that not every release could, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abilities: Vec<String>,
    /// Programs that run images of containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runtimes: Vec<Runtime>,
    /// Those that are there and start nothing, each with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unusable_runtimes: Vec<String>,
    /// Why its agent does not suspend jobs, where it could be otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cannot_suspend: String,
    /// Whether they are still tried out: what was known of them holds until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untried: bool,
}

/// What runs images of containers on a machine, once that is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Programs {
    /// Those that do.
    pub runtimes: Vec<Runtime>,
    /// Those that are there and start nothing, each with why.
    pub unusable: Vec<String>,
}

impl Machine {
    /// Its programs are known now.
    pub fn tell_programs(&mut self, programs: Programs) {
        (self.runtimes, self.unusable_runtimes) = (programs.runtimes, programs.unusable);
        self.untried = false;
    }

    /// Whether its agent has an ability.
    pub fn can(&self, ability: &str) -> bool {
        self.abilities.iter().any(|able| able == ability)
    }
}

/// What tells an agent from one whose folder is a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Changes with every start of the machine.
    pub boot: String,
    /// The installation of its system; empty where it has no number.
    pub machine: String,
    /// Path of the data folder.
    pub folder: String,
    /// The file system that the folder is on, until the machine is started again.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// What two agents with one token are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinship {
    /// They have one folder, whose lock lets only one of them live.
    Same,
    /// The machine was started again, or is the copy of another.
    Restarted,
    /// Another folder or machine.
    Strange,
}

impl Instance {
    /// What this one is to the one that spoke before.
    pub fn kinship(&self, before: &Instance) -> Kinship {
        let at = |it: &Instance| (it.boot.clone(), it.device, it.inode);
        let lasting = |it: &Instance| (it.machine.clone(), it.folder.clone(), it.inode);
        if at(self) == at(before) && self.machine == before.machine {
            Kinship::Same
        } else if self.boot != before.boot && lasting(self) == lasting(before) {
            Kinship::Restarted
        } else {
            Kinship::Strange
        }
    }
}

/// The tasks of one lease on one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartOrder {
    /// The lease.
    pub lease: LeaseId,
    /// The job.
    pub job: JobId,
    /// How often the job was started before.
    pub restart: u32,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The job's own environment.
    pub env: BTreeMap<String, String>,
    /// Folder to run in; one of the job's own when empty.
    pub workdir: String,
    /// Tasks of this node.
    pub tasks: Vec<TaskOrder>,
    /// Tasks over all nodes.
    pub world_size: u32,
    /// Where rank 0 listens.
    pub master_addr: String,
    /// Its port.
    pub master_port: u16,
    /// CPU of each task in thousandths of a core; not limited when zero.
    pub cpu_milli: u32,
    /// Memory of each task in MiB; not limited when zero.
    pub mem_mib: u32,
    /// Index in an array.
    pub array_index: Option<u32>,
    /// Milliseconds that a stop gives before it ends by force.
    pub grace_ms: u64,
    /// Number of the tenant that it belongs to.
    #[serde(default)]
    pub tenant: u32,
    /// Milliseconds that it may run. The daemon ends it then; its shim does so a little later, for
    /// a daemon that is away.
    #[serde(default)]
    pub limit_ms: Option<u64>,
    /// A script that is run in place of the first word of the command; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub script: String,
    /// Whose job it is, as machines know people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<Person>,
    /// What its files are not open for, as `umask` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// The image of the container that it runs in; empty when it runs in none. Only for agents that
    /// know what that is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// What is seen inside of the container besides the job's own folders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// The lease whose suspended processes go on under this one. Nothing is started then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<LeaseId>,
    /// How people are attached to its first task, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interactive: Option<Interactive>,
}

/// One task of a start order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskOrder {
    /// Rank over all nodes.
    pub rank: u32,
    /// Rank on this node.
    pub local_rank: u32,
    /// GPUs of this node, by local number, with thousandths of each.
    pub gpus: Vec<(u32, u32)>,
    /// GPU memory on each, in MiB.
    pub gpu_mem_mib: u32,
}

/// All that an agent knows about a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaseReport {
    /// The lease.
    pub lease: LeaseId,
    /// Where its tasks on this node stand.
    pub stage: Stage,
}

/// Where the tasks of a lease on one node stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Stage {
    /// The order is written down; not every task runs yet.
    Starting,
    /// Every task runs.
    Running,
    /// Every process of it stands still in main memory and has nothing on GPUs.
    Suspended {
        /// The lease for which they worked up to then.
        of: LeaseId,
    },
    /// Nothing of it runs, and nothing ever did.
    NotStarted {
        /// Why.
        fault: String,
        /// Whether the machine is at fault, so that other jobs would fare no better there.
        #[serde(default)]
        of_machine: bool,
    },
    /// Nothing of it runs, nothing ever did, and nothing would on another try: the job names what
    /// is not there.
    Impossible {
        /// Why.
        fault: String,
    },
    /// Nothing of it runs any more.
    Ended {
        /// How each task ended, in the order in which they did.
        exits: Vec<TaskExit>,
        /// Whether it was ended from outside: an order, the fence, a machine that was restarted.
        /// Otherwise the exits are the job's own.
        interrupted: bool,
        /// Mean compute used of each GPU that it held here, in thousandths, where the job told it
        /// or it was measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gpu_milli: Option<u32>,
        /// What else is to be told.
        #[serde(default)]
        notes: EndNotes,
    },
    /// The agent holds nothing of this name: it never came, or was forgotten.
    Unknown,
}

/// What else is known of how the tasks of a lease on one node ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndNotes {
    /// Bytes of output that could not be written.
    #[serde(default)]
    pub lost_bytes: u64,
    /// When the last task ended, by the clocks of the machine; for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Moment>,
    /// Milliseconds from then to when this was sent; for the daemon, whose clock is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ago_ms: Option<u64>,
    /// Energy of its parts of GPUs, where these tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules: Option<u64>,
    /// Why its shim ended it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A moment by the clocks of one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The start of the machine from which the first clock counts.
    pub boot: String,
    /// Milliseconds since then.
    pub boot_ms: u64,
    /// Milliseconds since the epoch, for when the machine was started again.
    pub unix_ms: u64,
}

/// How one task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskExit {
    /// Which.
    pub rank: u32,
    /// Exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// The signal.
    pub signal: Option<i32>,
}

/// A stream of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}
