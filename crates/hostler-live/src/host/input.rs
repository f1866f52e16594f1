//! What goes into the host and what comes out of it, and who asks.
//!
//! Plain data: the host itself has no sockets, threads or clocks. Secrets never come here; the
//! border hashes them first.

use data_encoding::BASE64;
use hostler_core::event::Event;
use hostler_core::verify::Violation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::JobsChanged;
use crate::driver::{Call, Word};
use crate::job::{JobAction, JobRequest, JobState, JobView};
use crate::notice::Notice;
use crate::person::Person;
use crate::reservation::{DrainRequest, Reservation, ReservationRequest};
use crate::selection::Selection;
use crate::store::{Role, StoreError, TenantQuota};
use crate::stream::StreamRequest;
use crate::wire::{Stream, ToAgent};

use super::view::{NodeView, TenantView};

/// A connection of an agent; numbers count up from one in each life of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Something that happened to the daemon.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Somebody wants something.
    Command {
        /// Where the answer goes.
        slot: u64,
        /// Who asks.
        by: Principal,
        /// What.
        command: Box<Command>,
    },
    /// Something for the driver.
    Driver(Word),
    /// A solver is done.
    Solved {
        /// The number of the question.
        number: u64,
        /// Its answer, or the rule that the solver broke.
        answer: Result<Event, Violation>,
    },
    /// Time went on.
    Tick,
}

/// Something that the daemon does to the world, after it is safe in the store.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Answer a command.
    Reply(u64, Result<Answer, HostError>),
    /// Say something to an agent.
    Tell(SessionId, ToAgent),
    /// End a connection.
    Close(SessionId),
    /// Tell those who watch.
    Changed(Change),
    /// Tell those who are not looking.
    Notify(Box<Notice>),
    /// Ask a cluster manager for something; what came of it is a word of the driver's.
    Call(Call),
    /// Fetch the question of this number, solve it and give the answer back as an input.
    Solve(u64),
}

/// Who asks, as the border found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Principal {
    /// Number of the token; zero is the daemon itself.
    pub token: u32,
    /// Name on the token.
    pub user: String,
    /// What the token allows.
    pub role: Role,
    /// Tenant whose jobs it sees; admins see all.
    pub tenant: String,
    /// Whom machines run its jobs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<Person>,
}

impl Principal {
    /// The daemon itself, for what it does at its first start.
    pub fn daemon() -> Principal {
        let (user, tenant) = ("hostler".to_owned(), DEFAULT_TENANT.to_owned());
        Principal { token: 0, user, role: Role::Admin, tenant, person: None }
    }

    /// Whether jobs of this tenant are its business.
    pub fn sees(&self, tenant: &str) -> bool {
        self.role == Role::Admin || self.tenant == tenant
    }
}

/// The tenant of those who have no other.
pub const DEFAULT_TENANT: &str = "default";

/// Its number: a new store begins with it.
pub const DEFAULT_TENANT_NUMBER: u32 = 0;

/// What somebody wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Run a job, or an array of them.
    Submit {
        /// What it asks for.
        request: Box<JobRequest>,
        /// The same key gives the same answer, however often it is sent.
        key: Option<String>,
        /// Whom to charge; only admins may name another tenant than their own.
        tenant: Option<String>,
    },
    /// End a job.
    Cancel {
        /// Its number.
        job: u32,
        /// Only if it still has this version.
        version: Option<u64>,
    },
    /// Keep a waiting job from starting, or let it go.
    Hold {
        /// Its number.
        job: u32,
        /// Whether it is to be held.
        held: bool,
        /// Only if it still has this version.
        version: Option<u64>,
    },
    /// Do the same to many jobs; those that refuse keep no others from it.
    ChangeMany {
        /// What.
        action: JobAction,
        /// Which jobs.
        jobs: Vec<Selection>,
    },
    /// Let a node take nothing new, or let it again.
    Drain {
        /// Its name.
        node: String,
        /// Whether it drains.
        draining: bool,
        /// Why, and until when jobs may stay.
        how: DrainRequest,
    },
    /// Keep nodes for a time.
    Reserve(Box<ReservationRequest>),
    /// Keep them no more.
    Unreserve {
        /// The name of the reservation.
        name: String,
    },
    /// Let another policy decide.
    SetPolicy {
        /// Its settings, as TOML.
        settings: String,
    },
    /// Add a tenant or change what it may use.
    SetTenant {
        /// Its name.
        name: String,
        /// What it may use.
        quota: TenantQuota,
    },
    /// Let somebody in.
    CreateToken {
        /// SHA-256 of the secret, in hexadecimal digits.
        hash: String,
        /// What it allows.
        role: Role,
        /// Whose jobs it sees.
        tenant: String,
        /// Name of its owner, or of the node for an agent.
        name: String,
        /// Whether it only enrols one agent and is then spent.
        one_time: bool,
        /// Whom machines run its jobs as.
        person: Option<Person>,
    },
    /// Let a user of the daemon's machine in by its socket, or say otherwise what one may do.
    SetUser {
        /// Name of the account.
        name: String,
        /// What it allows.
        role: Role,
        /// Whose jobs it sees.
        tenant: String,
    },
    /// Let such a user in no more.
    RemoveUser {
        /// Name of the account.
        name: String,
    },
    /// Let somebody in no more.
    RevokeToken {
        /// Its number.
        token: u32,
    },
    /// Exchange a one-time token (the principal's) for one that is bound to a node.
    Enrol {
        /// SHA-256 of the agent's new secret.
        hash: String,
        /// Name of the node.
        node: String,
    },
    /// Read a piece of a job's output from the agent that has it.
    ReadOutput {
        /// The job.
        job: u32,
        /// Its task.
        rank: u32,
        /// Which stream.
        stream: Stream,
        /// From where; negative counts from the end.
        offset: i64,
        /// Of which start, by how often it had been started before; the last one when none.
        start: Option<u32>,
    },
    /// Lead a stream to a running job.
    OpenStream {
        /// The job.
        job: u32,
        /// Number of the stream.
        number: u64,
        /// What is wanted.
        request: StreamRequest,
    },
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The jobs are safe.
    Submitted {
        /// Their numbers, ascending.
        jobs: Vec<u32>,
        /// Whether the same key had been used before.
        again: bool,
    },
    /// The job as it is now.
    Job(Box<JobView>),
    /// Many jobs as they are now.
    Jobs(Box<JobsChanged>),
    /// The node as it is now.
    Node(Box<NodeView>),
    /// The tenant as it is now.
    Tenant {
        /// The tenant.
        tenant: Box<TenantView>,
        /// Whether it was added just now.
        is_new: bool,
    },
    /// The reservation as it is now.
    Reservation(Box<Reservation>),
    /// The number of the token.
    Token(u32),
    /// A piece of output.
    Output(OutputPiece),
    /// The agent with this token was told to connect for the stream.
    Stream {
        /// Number of the token.
        token: u32,
    },
    /// It is done.
    Done,
}

/// A piece of a job's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputPiece {
    /// Where it begins in the stream.
    pub offset: u64,
    /// The piece; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The piece as it is, in base64, where the text is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Bytes that it stands for.
    pub bytes: u64,
    /// Whether the stream has ended and this was its last piece.
    pub last: bool,
}

impl OutputPiece {
    /// The piece as the job wrote it.
    pub fn raw(&self) -> Vec<u8> {
        let raw = self.base64.as_ref().and_then(|text| BASE64.decode(text.as_bytes()).ok());
        raw.unwrap_or_else(|| self.text.clone().into_bytes())
    }

    /// The same piece with other content.
    pub fn set_raw(&mut self, raw: Vec<u8>) {
        self.bytes = raw.len() as u64;
        (self.text, self.base64) = crate::agent::output::words(raw);
    }
}

/// Something that those who watch may want to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// Counts up, over restarts too; not every number is used.
    pub number: u64,
    /// Seconds since the epoch.
    pub at: f64,
    /// What changed.
    #[serde(flatten)]
    pub what: Changed,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "changed")]
pub enum Changed {
    /// A job is in another state, or was changed by a person.
    Job {
        /// Its number.
        job: u32,
        /// Its tenant: others are not told.
        tenant: String,
        /// Where it stands now.
        state: JobState,
    },
    /// A node joined, left, or takes jobs or none.
    Node {
        /// Its name.
        node: String,
        /// `up`, `draining`, `down` or `silent`.
        health: String,
    },
    /// Another policy decides.
    Policy,
}

/// Why a command is not done, or why the daemon cannot go on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HostError {
    /// There is no such thing, or it is not the principal's business.
    #[error("no {what} `{name}`")]
    Unknown {
        /// `job`, `node`, `tenant`, `reservation`, `token` or `user`.
        what: &'static str,
        /// What was asked for.
        name: String,
    },
    /// No node has such GPUs.
    #[error("invalid `gpu_models`: no node has `{name}`; known: {known}")]
    UnknownModel {
        /// The model.
        name: String,
        /// Those that nodes have.
        known: String,
    },
    /// The token does not allow it.
    #[error("the role `{role}` may not do this; an admin may")]
    Forbidden {
        /// The role.
        role: Role,
    },
    /// What its jobs could read is not for this tenant.
    #[error(
        "jobs of tenant `{tenant}` are not taken: they would run under the daemon's own account \
         and could read its secrets; start `hostler serve --with-agent` as root, or, where all \
         tenants are trusted, with `--trust-tenants`"
    )]
    Untrusted {
        /// The tenant.
        tenant: String,
    },
    /// The job runs as somebody else.
    #[error("job {job} runs as another person; only that person and admins go inside")]
    OtherPerson {
        /// The job.
        job: u32,
    },
    /// The reservation is for others.
    #[error("reservation `{name}` is not for you; `hostler reservation list` says for whom")]
    NotInvited {
        /// Its name.
        name: String,
    },
    /// The token enrols another node.
    #[error("this token enrols node `{named}`, not `{node}`; make one for that")]
    OtherNode {
        /// The node on the token.
        named: String,
        /// The node that was asked for.
        node: String,
    },
    /// Another token speaks for the node.
    #[error("token {token} speaks for node `{node}`; revoke it before another one can")]
    Enrolled {
        /// The node.
        node: String,
        /// The token.
        token: u32,
    },
    /// Nobody could come in any more.
    #[error("token {token} is the last one of an admin; make another before it is revoked")]
    LastAdmin {
        /// The token.
        token: u32,
    },
    /// A task that takes up nothing.
    #[error("invalid `cpus`: {cores}; a task without a GPU needs {least} or more")]
    TooFewCores {
        /// Cores asked for.
        cores: f64,
        /// Cores that it needs.
        least: f64,
    },
    /// What was asked for makes no sense.
    #[error("invalid `{field}`: {fault}")]
    Invalid {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        fault: String,
    },
    /// A quota is used up.
    #[error("tenant `{tenant}` may have {most} {what}; ask for less")]
    OverQuota {
        /// Whose.
        tenant: String,
        /// `jobs`, `waiting jobs` or `GPUs in one job`.
        what: &'static str,
        /// The quota.
        most: u64,
    },
    /// Somebody else changed it first.
    #[error("job {job} has version {found}, not {expected}; look at it again")]
    OtherVersion {
        /// The job.
        job: u32,
        /// The version that was expected.
        expected: u64,
        /// The version that it has.
        found: u64,
    },
    /// The job is where this cannot be done.
    #[error("job {job} {fault}")]
    WrongState {
        /// The job.
        job: u32,
        /// Why.
        fault: String,
    },
    /// The key was used for something else.
    #[error("idempotency key `{key}` was used for another request; use a fresh one")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// The agent that has it does not answer.
    #[error("node `{node}` does not answer; try again when it is back")]
    Silent {
        /// Its name.
        node: String,
    },
    /// The agent has no output to give.
    #[error("no output: {fault}")]
    NoOutput {
        /// Why.
        fault: String,
    },
    /// The agent is too old for what is asked.
    #[error(
        "node `{node}` runs an agent of an earlier release, which leads nobody to its jobs; \
         upgrade it (jobs go on meanwhile)"
    )]
    OldAgent {
        /// Its name.
        node: String,
    },
    /// What runs the jobs takes them itself.
    #[error("this daemon takes no jobs: {instead}")]
    TakesNoJobs {
        /// Where they are submitted.
        instead: String,
    },
    /// Too much is going on.
    #[error("too many requests are waiting; try again in a moment")]
    Busy,
    /// The daemon has stopped.
    #[error("the daemon has stopped: {fault}")]
    Stopped {
        /// Why.
        fault: String,
    },
    /// The policy's settings are wrong.
    #[error("{fault}")]
    Policy {
        /// What is wrong.
        fault: String,
    },
    /// The store failed; nothing that was not acknowledged is promised.
    #[error(transparent)]
    Store(#[from] StoreError),
}
