//! What people do to jobs that are there: cancel, hold and release, one by one or many at once.

#![expect(unused_qualifications, reason = "the macro for paths writes them")]

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use utoipa::{IntoParams, IntoResponses};

use super::App;
use super::access::{Caller, Work};
use super::fault::{ApiFault, Body, Named};
use super::jobs::with_version;
use crate::api::{JobsChange, JobsChanged, Problem};
use crate::host::{Answer, Command};
use crate::job::{JobAction, JobView};

/// The job of a change, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it is read by the document only")]
struct JobNumber {
    /// Its number.
    id: u32,
}

/// The version of a change, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it is read by the document only")]
struct JobVersion {
    /// Only if it has this version.
    #[param(
        rename = "If-Match",
        min_length = 1,
        pattern = r#"^(\*|"[0-9]{1,19}(-[0-9a-f]{16})?")$"#
    )]
    if_match: Option<String>,
}

/// Answers to a change of one job, for the document.
#[derive(IntoResponses)]
#[expect(dead_code, clippy::large_enum_variant, reason = "it is read by the document only")]
enum JobChanged {
    /// The job as it is now.
    #[response(status = 200, headers(("ETag" = String, description = "Its version.")))]
    Now(JobView),
    /// There is none for this caller.
    #[response(status = 404)]
    Missing(Problem),
    /// It is over, or it runs and cannot be held.
    #[response(status = 409)]
    WrongState(Problem),
    /// It has another version.
    #[response(status = 412)]
    OtherVersion(Problem),
}

/// Ends a job, running or not.
#[utoipa::path(
    post,
    path = "/jobs/{id}/cancel",
    tag = "jobs",
    params(JobNumber, JobVersion),
    responses(JobChanged)
)]
pub async fn cancel(
    state: State<App>,
    caller: Caller<Work>,
    job: Named<u32>,
    headers: HeaderMap,
) -> Result<Response, ApiFault> {
    change(state, caller, job, &headers, JobAction::Cancel).await
}

/// Keeps a waiting job from starting.
#[utoipa::path(
    post,
    path = "/jobs/{id}/hold",
    tag = "jobs",
    params(JobNumber, JobVersion),
    responses(JobChanged)
)]
pub async fn hold(
    state: State<App>,
    caller: Caller<Work>,
    job: Named<u32>,
    headers: HeaderMap,
) -> Result<Response, ApiFault> {
    change(state, caller, job, &headers, JobAction::Hold).await
}

/// Lets a held job go.
#[utoipa::path(
    post,
    path = "/jobs/{id}/release",
    tag = "jobs",
    params(JobNumber, JobVersion),
    responses(JobChanged)
)]
pub async fn release(
    state: State<App>,
    caller: Caller<Work>,
    job: Named<u32>,
    headers: HeaderMap,
) -> Result<Response, ApiFault> {
    change(state, caller, job, &headers, JobAction::Release).await
}

async fn change(
    State(app): State<App>,
    caller: Caller<Work>,
    Named(job): Named<u32>,
    headers: &HeaderMap,
    action: JobAction,
) -> Result<Response, ApiFault> {
    let version = if_match(headers)?;
    let command = match action {
        JobAction::Cancel => Command::Cancel { job, version },
        JobAction::Hold => Command::Hold { job, held: true, version },
        JobAction::Release => Command::Hold { job, held: false, version },
    };
    match app.host.command(&caller.who, command).await? {
        Answer::Job(job) => Ok(with_version(*job)),
        _ => Err(super::wrong_answer()),
    }
}

/// Cancels, holds or releases many jobs: whole arrays, ranges and lists.
///
/// Those that cannot be changed are told in the answer; the others are changed all the same. The
/// same request may be sent again.
#[utoipa::path(
    post, path = "/jobs/change", tag = "jobs", request_body = JobsChange,
    responses((status = 200, description = "What became of it, by job.", body = JobsChanged)),
)]
pub async fn change_many(
    State(app): State<App>,
    caller: Caller<Work>,
    Body(JobsChange { action, jobs }): Body<JobsChange>,
) -> Result<Json<JobsChanged>, ApiFault> {
    match app.host.command(&caller.who, Command::ChangeMany { action, jobs }).await? {
        Answer::Jobs(changed) => Ok(Json(*changed)),
        _ => Err(super::wrong_answer()),
    }
}

/// The version that a change is for; none when any will do.
fn if_match(headers: &HeaderMap) -> Result<Option<u64>, ApiFault> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or("").trim();
    if text == "*" {
        return Ok(None);
    }
    let tag = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let digits = tag.map(|tag| tag.split_once('-').map_or(tag, |(version, _)| version));
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(version) => Ok(Some(version)),
        None => {
            Err(ApiFault::bad("invalid `If-Match`").hint("send the `ETag` of the job as it was"))
        }
    }
}
