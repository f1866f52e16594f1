//! The words of the REST interface besides jobs themselves: what the server writes and the client
//! reads.
//!
//! Plain data. Nothing here knows how it is stored or who may see it.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::host::OutputPiece;
use crate::job::{HeldBy, JobAction, JobState, JobView};
use crate::person::Person;
use crate::selection::Selection;
use crate::shapes;
use crate::store::Role;
use crate::wire::Stream;

/// Version of the interface, as the first part of every path.
pub const PREFIX: &str = "/api/v1";

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// What is wrong, with the value.
    pub error: String,
    /// What to do about it; may be empty.
    #[serde(default)]
    pub hint: String,
}

/// Jobs that a request made: their numbers are adjacent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// The first one.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// Whether they ask for mail and this daemon sends none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_mail: bool,
    /// Whether they ask to be told of and nobody would hear it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untold: bool,
}

/// Part of a list of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<JobView>,
    /// Where the next part begins, for `cursor`; none at the end.
    pub next: Option<u32>,
}

/// Which jobs are listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct JobFilter {
    /// Only jobs in this state.
    #[param(inline)]
    pub state: Option<JobState>,
    /// Only jobs of this tenant.
    pub tenant: Option<String>,
    /// Only jobs of this user; `me` for those of the caller.
    pub user: Option<String>,
    /// Only those that ended at or after this time, in seconds since the epoch; of the history.
    #[param(minimum = 0)]
    pub since: Option<f64>,
    /// Only those that ended before this time; of the history.
    #[param(minimum = 0)]
    pub until: Option<f64>,
    /// Only these: `17`, which is all of an array if one begins with it, a range as in `12-40`, or
    /// indices of an array as in `12_3` and `12_3-7`.
    #[param(value_type = Option<String>, pattern = "^[0-9]{1,10}(_[0-9]{1,10})?(-[0-9]{1,10})?$")]
    pub jobs: Option<Selection>,
    /// From the `next` of the part before.
    pub cursor: Option<u32>,
    /// Jobs in one part; 100 when not given.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
}

/// Part of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogPage {
    /// Its records, each one line of a log as JSON.
    pub records: Vec<String>,
    /// Where the next part begins, for `after`; none at the end.
    pub next: Option<u64>,
}

/// Which records are listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// From the `next` of the part before; from the beginning when not given.
    pub after: Option<u64>,
    /// Records in one part; 1000 when not given. Large records make a part shorter.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
}

/// A change of many jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobsChange {
    /// What is done to each of them.
    pub action: JobAction,
    /// Which jobs: `17`, which is all of an array if one begins with it, a range as in `12-40`, or
    /// indices of an array as in `12_3` and `12_3-7`.
    #[schema(schema_with = shapes::selections)]
    pub jobs: Vec<Selection>,
}

/// What became of a change of many jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobsChanged {
    /// Jobs for which it holds now, by number. Jobs of arrays and ranges that are over are not
    /// among them.
    pub jobs: Vec<JobNow>,
    /// Those that could not be changed; the others were.
    pub refused: Vec<RefusedJobs>,
}

/// A job and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobNow {
    /// Its number.
    pub id: u32,
    /// Where it stands.
    pub state: JobState,
}

/// Jobs that could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedJobs {
    /// Number of the job, or what was named where there is no such job.
    pub jobs: String,
    /// Why.
    pub error: String,
}

/// Why a job stands where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The job.
    pub id: u32,
    /// Where it stands.
    pub state: JobState,
    /// What holds it, while it is held.
    pub held_by: Option<HeldBy>,
    /// Why, in words.
    pub reason: String,
    /// Seconds since the epoch from which on it has been so.
    pub since: f64,
    /// Seconds since the epoch at which it may start, where the scheduler can tell.
    pub expected_start: Option<f64>,
    /// Jobs that it waits for.
    pub waits_for: Vec<u32>,
}

/// Which piece of a job's output is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OutputQuery {
    /// Which stream; `stdout` when not given.
    #[param(inline)]
    pub stream: Option<Stream>,
    /// Which task; 0 when not given.
    pub rank: Option<u32>,
    /// First byte; negative counts from the end; 0 when not given.
    pub offset: Option<i64>,
    /// Start of the job, by `restart` of the last piece, in whose output `offset` counts. What is
    /// left of it comes first, then the output of later starts from their beginnings.
    pub restart: Option<u32>,
    /// Only this start of the job, by its `restart`, which may be an earlier one.
    pub start: Option<u32>,
    /// Seconds to wait for something new.
    #[param(maximum = 30)]
    pub wait_secs: Option<u32>,
}

/// A piece of a job's output, and of which start of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobOutput {
    /// How often the job was started again before it printed this.
    pub restart: u32,
    /// The piece; it is the last one when the job is over.
    #[serde(flatten)]
    pub piece: OutputPiece,
}

/// A policy with its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyText {
    /// TOML: `kind = ".."` and settings.
    #[schema(max_length = 65536, example = "kind = 'fifo'\n")]
    pub toml: String,
    /// The rule that the policy before it broke, for which this one took over. Only told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violation: Option<String>,
    /// Whether it is the culprit itself, with nobody to take over: nothing is started until a
    /// person sets another. Only told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nobody_decides: bool,
}

/// A token to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it may do. An `agent` token enrols one node, once.
    pub role: Role,
    /// Who uses it; the name of the user on its jobs.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^/\u0000-\u001f\u007f-\u009f]+$")]
    pub name: String,
    /// Whose jobs; the default tenant when left out.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^/\u0000-\u001f\u007f-\u009f]+$")]
    pub tenant: Option<String>,
    /// Whether a tenant that is not there is added.
    #[serde(default)]
    pub new_tenant: bool,
    /// The Unix user that nodes run its jobs as, where they run jobs as people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 96, pattern = "^[A-Za-z0-9_][A-Za-z0-9_.@+$-]*$")]
    pub unix_user: Option<String>,
}

/// A user of the daemon's machine who is let in by its socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// Name of the account.
    #[schema(min_length = 1, max_length = 96, pattern = "^[A-Za-z0-9_][A-Za-z0-9_.@+$-]*$")]
    pub name: String,
    /// What it may do; agents have tokens instead.
    pub role: Role,
    /// Whose jobs; the default tenant when left out.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^/\u0000-\u001f\u007f-\u009f]+$")]
    pub tenant: Option<String>,
    /// Whether a tenant that is not there is added.
    #[serde(default)]
    pub new_tenant: bool,
}

/// Who the caller is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// Name on jobs.
    pub user: String,
    /// What the caller may do.
    pub role: Role,
    /// Whose jobs the caller sees.
    pub tenant: String,
    /// Whom machines may run the caller's jobs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<Person>,
    /// Whether there are nodes that do: jobs then start in the folder of their submission.
    #[serde(default)]
    pub in_place: bool,
}

/// A token that was made: the only time that it is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeToken {
    /// Its number.
    pub id: u32,
    /// The secret.
    pub token: String,
}

/// What an agent says to become a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Enrolment {
    /// Name of the node.
    #[schema(min_length = 1, max_length = 128, pattern = r"^[^/\u0000-\u001f\u007f-\u009f]+$")]
    pub node: String,
    /// SHA-256 of the secret that the agent made for itself, in hexadecimal digits.
    #[schema(min_length = 64, max_length = 64, pattern = "^[0-9a-f]+$")]
    pub hash: String,
}

/// A node that has enrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Enrolled {
    /// Number of the token that speaks for it: the secret is the agent's.
    pub id: u32,
}
