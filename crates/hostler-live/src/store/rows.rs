//! The rows of the store, as values.

use std::fmt;

use hostler_core::account::Budget;
use hostler_core::units::Span;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::starts::Start;
use super::stays::StayRow;
use crate::job::{JobRequest, JobState};
use crate::limits::BUDGET_DAYS_DEFAULT;
use crate::person::Person;
use crate::reservation::Reservation;
use crate::wire::Machine;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Everything.
    Admin,
    /// Its own tenant's jobs.
    User,
    /// Looking at its own tenant's jobs.
    Viewer,
    /// Running jobs on a node.
    Agent,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Admin => "admin",
            Role::User => "user",
            Role::Viewer => "viewer",
            Role::Agent => "agent",
        })
    }
}

/// A job, over or not.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// Its number.
    pub id: u32,
    /// Changes with every change.
    pub version: u64,
    /// Who pays.
    pub tenant: String,
    /// Who submitted it.
    pub user: String,
    /// Where it stands.
    pub state: JobState,
    /// When it was submitted, in microseconds.
    pub submitted: u64,
    /// When it ended, in microseconds.
    pub ended: Option<u64>,
    /// First job of its array.
    pub array_of: Option<u32>,
    /// What was asked for; never changes.
    pub request: JobRequest,
    /// The rest.
    pub facts: JobFacts,
    /// Where it comes from; never changes.
    pub origin: JobOrigin,
}

/// Where a job comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JobOrigin {
    /// Somebody submitted it here.
    #[default]
    Ours,
    /// The driver found it.
    Found {
        /// What the driver calls it; no other job is ever called so.
        by: String,
    },
}

impl JobOrigin {
    /// What the driver calls a job that it found.
    pub fn found(&self) -> Option<&str> {
        match self {
            JobOrigin::Ours => None,
            JobOrigin::Found { by } => Some(by),
        }
    }
}

/// What is known of a job besides what is searched for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobFacts {
    /// First start, in microseconds.
    pub started: Option<u64>,
    /// How its last stay ended.
    pub exit_code: Option<i32>,
    /// Nodes of its last stay.
    pub nodes: Vec<String>,
    /// Tasks on each of them.
    pub tasks: Vec<u32>,
    /// Its last lease.
    pub lease: Option<u32>,
    /// Times it was started again.
    pub restarts: u32,
    /// Steps done.
    pub steps_done: Option<u64>,
    /// Steps in all, as the job said.
    pub steps_total: Option<u64>,
    /// Index in its array.
    pub array_index: Option<u32>,
    /// What it took at reference speed, in microseconds, once it finished.
    pub run: Option<u64>,
    /// Why it ended as it did, in words.
    pub reason: String,
    /// Who submitted it, as machines know people; never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<Person>,
    /// When it had which GPUs, in order of their beginnings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<StayRow>,
    /// The newest of its starts, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<Start>,
    /// The first task that failed in its last stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_rank: Option<u32>,
    /// What it asked for where it was found, in its driver's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub asked_there: String,
}

/// What a tenant may use; none means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TenantQuota {
    /// Share of the cluster that is due to it, relative to the others, for policies that go by it.
    /// When not given it stays as it is; it is 1 for a new tenant.
    #[schema(minimum = 1)]
    pub weight: Option<u32>,
    /// Jobs that are not over.
    pub jobs_max: Option<u32>,
    /// Jobs that wait.
    pub queued_max: Option<u32>,
    /// GPUs that its jobs use at a time.
    pub gpus_max: Option<u32>,
    /// GPU hours that its jobs may use in each period. When they are used up, jobs that run go on
    /// and others wait for the next period.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000000000)]
    pub budget_gpu_hours: Option<u32>,
    /// Length of such a period in days, from the moment at which the budget is given; 30 when not
    /// given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3660)]
    pub budget_days: Option<u32>,
}

impl TenantQuota {
    /// The budget as the scheduler keeps it.
    pub fn budget(&self) -> Option<Budget> {
        let hours = self.budget_gpu_hours?;
        let days = self.budget_days.unwrap_or(BUDGET_DAYS_DEFAULT);
        let gpu_time = Span::from_secs(u64::from(hours) * 3600);
        Some(Budget { gpu_time, every: Span::from_secs(u64::from(days) * 86_400) })
    }
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantRow {
    /// Its number in the log.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it may use.
    pub quota: TenantQuota,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Its number.
    pub id: u32,
    /// SHA-256 of the secret, in hexadecimal digits.
    pub hash: String,
    /// What it allows.
    pub role: Role,
    /// Whose jobs it sees.
    pub tenant: String,
    /// Its owner, or the node that it is for.
    pub name: String,
    /// When it was made, in microseconds.
    pub created: u64,
    /// When it was revoked or spent, in microseconds.
    pub revoked: Option<u64>,
    /// Whether it only enrols one agent.
    pub one_time: bool,
    /// Whom machines run its jobs as.
    pub person: Option<Person>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// Its number in the log; a machine that changed gets another.
    pub id: u32,
    /// The token that speaks for it; none for one that the driver found.
    pub token: Option<u32>,
    /// Whether a person lets it take nothing new.
    pub draining: bool,
    /// What it has.
    pub machine: Machine,
}

/// An idempotency key that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// The token that used it.
    pub token: u32,
    /// The key.
    pub key: String,
    /// SHA-256 of the request.
    pub request: String,
    /// First job that it made.
    pub first_job: u32,
    /// Number of jobs that it made.
    pub jobs: u32,
    /// When, in microseconds.
    pub at: u64,
}

/// One change of the rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    /// A new job.
    JobAdded(Box<JobRow>),
    /// A job that changed; its request stays.
    JobChanged(Box<JobRow>),
    /// A token that is new or changed.
    Token(TokenRow),
    /// A tenant that is new or changed.
    Tenant(TenantRow),
    /// A node that is new or changed.
    Node(Box<NodeRow>),
    /// A recurrence group and its number.
    Group(String, u32),
    /// A key that was used.
    Key(KeyRow),
    /// One key is forgotten.
    KeyGone {
        /// The token that used it.
        token: u32,
        /// The key.
        key: String,
    },
    /// Keys that were used before this time are forgotten.
    KeysGone(u64),
    /// All reservations and notes on drained nodes.
    Reservations(Vec<Reservation>),
    /// The policy that decides, as TOML.
    Policy(String),
    /// The longest fence by which a node may still go, in microseconds.
    Fence(u64),
    /// Numbers were left out for what was lost with the store before this one.
    GapLeft,
}

/// What one commit writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Records of the log, numbered on from the last.
    pub records: Vec<(u64, String)>,
    /// The state after a record; replaces the snapshot before.
    pub snapshot: Option<(u64, String)>,
    /// Changes of rows, in order.
    pub rows: Vec<Row>,
}

impl Batch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.snapshot.is_none() && self.rows.is_empty()
    }
}

/// What a store holds, but for the log and jobs that are over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// Names this cluster; made with the store.
    pub cluster: String,
    /// The newest snapshot and the record after which it was taken.
    pub snapshot: Option<(u64, String)>,
    /// Number of the last record.
    pub last_record: u64,
    /// Jobs that are not over, ascending.
    pub jobs: Vec<JobRow>,
    /// Tokens, ascending.
    pub tokens: Vec<TokenRow>,
    /// Tenants, ascending.
    pub tenants: Vec<TenantRow>,
    /// Nodes, by name.
    pub nodes: Vec<NodeRow>,
    /// Reservations and notes on drained nodes.
    pub reservations: Vec<Reservation>,
    /// Recurrence groups.
    pub groups: Vec<(String, u32)>,
    /// Keys that were used lately.
    pub keys: Vec<KeyRow>,
    /// The policy that decides, as TOML.
    pub policy: Option<String>,
    /// The longest fence by which a node may still go, in microseconds.
    pub fence: Option<u64>,
    /// Whether it came from a backup and no numbers were left out yet for what is not in it.
    pub restored: bool,
}
