//! Jobs: submit, list, look, change.

#![expect(unused_qualifications, reason = "the macro for paths writes them")]

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use utoipa::IntoParams;

use super::App;
use super::access::{Caller, Look, Work};
use super::fault::{ApiFault, Body, Named, Params};
use crate::api::{Accepted, Explanation, JobFilter, JobPage, PREFIX};
use crate::host::{self, Answer, Command, Principal};
use crate::job::{Indices, JobRequest, JobState, JobView};
use crate::limits::{KEY_CHARS_MAX, PAGE_JOBS_DEFAULT, PAGE_JOBS_MAX};
use crate::selection::Selection;
use crate::store::{HistoryFilter, Role};

/// Whoever asks, as a user.
const OWN: &str = "me";

/// Makes a repeated submission harmless.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Whom a submission is charged to.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SubmitQuery {
    /// Tenant that pays, when it is not the caller's; for admins.
    #[param(min_length = 1, max_length = 128)]
    tenant: Option<String>,
}

/// Submits a job, or an array of jobs.
///
/// When the answer comes, the jobs are safe. The same idempotency key gives the same jobs.
#[utoipa::path(
    post, path = "/jobs", tag = "jobs",
    params(
        SubmitQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Any text, made by the caller.",
            min_length = 1, max_length = 128, pattern = "^[!-~]+$"),
    ),
    request_body = JobRequest,
    responses(
        (status = 201, description = "The jobs are safe.", body = Accepted,
            headers(("Location" = String, description = "The first job."))),
        (status = 200, description = "They had been submitted with this key before.",
            body = Accepted),
        (status = 404, description = "A job, tenant or GPU model that it names is not there.",
            body = crate::api::Problem),
        (status = 409, description = "A job that it is to wait for did not finish well.",
            body = crate::api::Problem),
        (status = 422, description = "The key is of another request, or a task takes up nothing.",
            body = crate::api::Problem),
    ),
)]
pub async fn submit(
    State(app): State<App>,
    caller: Caller<Work>,
    Params(query): Params<SubmitQuery>,
    headers: HeaderMap,
    Body(request): Body<JobRequest>,
) -> Result<Response, ApiFault> {
    let key = headers.get(IDEMPOTENCY_KEY).map(idempotency_key).transpose()?;
    let no_mail = !request.mail_to.is_empty() && !app.notices.mails();
    let is_mailed = !request.mail_to.is_empty() && app.notices.mails();
    let untold = !request.notify.is_empty() && !app.notices.calls() && !is_mailed;
    let command = Command::Submit { request: Box::new(request), key, tenant: query.tenant };
    let Answer::Submitted { jobs, again } = app.host.command(&caller.who, command).await? else {
        return Err(super::wrong_answer());
    };
    let first = *jobs.first().ok_or_else(super::wrong_answer)?;
    let count = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
    let status = if again { StatusCode::OK } else { StatusCode::CREATED };
    let location = format!("{PREFIX}/jobs/{first}");
    let accepted = Json(Accepted { first, count, no_mail, untold });
    Ok((status, [(header::LOCATION, location)], accepted).into_response())
}

fn idempotency_key(value: &HeaderValue) -> Result<String, ApiFault> {
    let text = value.to_str().unwrap_or("");
    let fits = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if text.is_empty() || text.len() > KEY_CHARS_MAX || !fits(text) {
        let hint = format!("use 1 to {KEY_CHARS_MAX} visible ASCII characters");
        return Err(ApiFault::bad("invalid `Idempotency-Key`").hint(hint));
    }
    Ok(text.to_owned())
}

/// Lists jobs that are not over, by number; those that are over when a state asks for them.
#[utoipa::path(
    get, path = "/jobs", tag = "jobs", params(JobFilter),
    responses((status = 200, description = "A part of the list.", body = JobPage)),
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller<Look>,
    Params(filter): Params<JobFilter>,
) -> Result<Json<JobPage>, ApiFault> {
    let over = filter.state.is_some_and(is_over);
    page(&app, caller.who, filter, over).await.map(Json)
}

/// Lists jobs that are over, those that ended last first.
#[utoipa::path(
    get, path = "/history", tag = "jobs", params(JobFilter),
    responses((status = 200, description = "A part of the list.", body = JobPage)),
)]
pub async fn history(
    State(app): State<App>,
    caller: Caller<Look>,
    Params(filter): Params<JobFilter>,
) -> Result<Json<JobPage>, ApiFault> {
    page(&app, caller.who, filter, true).await.map(Json)
}

async fn page(
    app: &App,
    who: Principal,
    filter: JobFilter,
    over: bool,
) -> Result<JobPage, ApiFault> {
    let limit = filter.limit.unwrap_or(PAGE_JOBS_DEFAULT);
    if !(1..=PAGE_JOBS_MAX).contains(&limit) {
        return Err(ApiFault::bad(format!("invalid `limit`: {limit}"))
            .hint(format!("use 1 to {PAGE_JOBS_MAX}")));
    }
    let limit = limit as usize;
    if over && filter.state.is_some_and(|state| !is_over(state)) {
        return Ok(JobPage { jobs: Vec::new(), next: None });
    }
    let tenant = match who.role {
        Role::Admin => filter.tenant,
        // Of a tenant that is not theirs they see nothing, not even that it is there.
        _ if filter.tenant.as_ref().is_some_and(|tenant| *tenant != who.tenant) => {
            return Ok(JobPage { jobs: Vec::new(), next: None });
        }
        _ => Some(who.tenant.clone()),
    };
    let numbers = match filter.jobs {
        Some(jobs) => Some(numbers_of(app, &who, jobs).await?),
        None => None,
    };
    let (state, cursor) = (filter.state, filter.cursor);
    let user = filter.user.map(|user| if user == OWN { who.user.clone() } else { user });
    let jobs = match over {
        true => {
            let before = numbers.and_then(|(_, last)| last.checked_add(1));
            let from = numbers.map(|(first, _)| first);
            let by_end = Some(ended_before(app, &who, cursor).await?);
            let micros = |secs: f64| (secs.max(0.0) * 1e6) as u64;
            let (ended_from, ended_before) = (filter.since.map(micros), filter.until.map(micros));
            let filter = HistoryFilter {
                tenant,
                user,
                state,
                from,
                before,
                by_end,
                ended_from,
                ended_before,
                limit,
                ..all()
            };
            app.host.history(filter).await?
        }
        false => {
            let states = state.into_iter().collect();
            let filter = host::JobFilter { tenant, user, states, numbers, after: cursor, limit };
            app.host.read(move |host| host.jobs(&filter)).await?
        }
    };
    let full = jobs.len() >= limit;
    let next = if full { jobs.last().map(|job| job.id) } else { None };
    Ok(JobPage { jobs, next })
}

fn all() -> HistoryFilter {
    HistoryFilter::default()
}

/// When the last job of the page before ended, and its number.
async fn ended_before(
    app: &App,
    who: &Principal,
    cursor: Option<u32>,
) -> Result<Option<(u64, u32)>, ApiFault> {
    let Some(id) = cursor else { return Ok(None) };
    let job = app.host.job(id).await?.filter(|job| who.sees(&job.tenant));
    let ended = job.and_then(|job| job.ended);
    let ended = ended.ok_or_else(|| {
        ApiFault::bad(format!("invalid `cursor`: {id}")).hint("use `next` of the part before")
    })?;
    // Times are told in seconds, and kept in millionths of them.
    Ok(Some(((ended * 1e6).round() as u64, id)))
}

/// The first and the last number of the jobs that a word means. That none of a range is there is
/// no fault, as with changes of ranges.
async fn numbers_of(app: &App, who: &Principal, jobs: Selection) -> Result<(u32, u32), ApiFault> {
    let missing = || ApiFault::missing("job", jobs);
    let number = |number: u64| u32::try_from(number).map_err(|_| missing());
    match jobs {
        Selection::Range { first, last } => Ok((number(first)?, number(last)?)),
        Selection::Job(id) => {
            let job = visible(app, who, number(id)?).await?;
            let is_array = job.array_of == Some(job.id);
            let more = if is_array { job.request.array.max(1) - 1 } else { 0 };
            Ok((job.id, job.id + more))
        }
        Selection::Indices { array, first, last } => {
            let job = visible(app, who, number(array)?).await?;
            let is_array = job.array_of == Some(job.id);
            let places = Indices::of(&job.request).places(first, last).filter(|_| is_array);
            let places = places.ok_or_else(|| match is_array {
                true => missing().hint(indices_words(&job)),
                false => missing().hint(format!("job {} is no array", job.id)),
            })?;
            Ok((job.id + places.start(), job.id + places.end()))
        }
    }
}

fn indices_words(job: &JobView) -> String {
    let indices = Indices::of(&job.request);
    let last = indices.at(indices.count.saturating_sub(1));
    let steps =
        if indices.step > 1 { format!(" in steps of {}", indices.step) } else { String::new() };
    format!("the array {} has indices from {} to {last}{steps}", job.id, indices.first)
}

/// A job that is the caller's business.
pub(super) async fn visible(app: &App, who: &Principal, id: u32) -> Result<JobView, ApiFault> {
    let job = app.host.job(id).await?;
    job.filter(|job| who.sees(&job.tenant)).ok_or_else(|| ApiFault::missing("job", id))
}

/// Whether a job in this state is over.
pub fn is_over(state: JobState) -> bool {
    match state {
        JobState::Held
        | JobState::Queued
        | JobState::Starting
        | JobState::Running
        | JobState::Stopping => false,
        JobState::Finished
        | JobState::Failed
        | JobState::Cancelled
        | JobState::TimedOut
        | JobState::Rejected => true,
    }
}

/// Shows a job.
#[utoipa::path(
    get, path = "/jobs/{id}", tag = "jobs",
    params(
        ("id" = u32, Path, description = "Its number."),
        ("If-None-Match" = Option<String>, Header, description = "The version that is known."),
    ),
    responses(
        (status = 200, description = "The job.", body = JobView,
            headers(("ETag" = String, description = "Its version."))),
        (status = 304, description = "It has the version that is known."),
        (status = 404, description = "There is none for this caller.", body = crate::api::Problem),
    ),
)]
pub async fn show(
    State(app): State<App>,
    caller: Caller<Look>,
    Named(id): Named<u32>,
    headers: HeaderMap,
) -> Result<Response, ApiFault> {
    let job = visible(&app, &caller.who, id).await?;
    let known = headers.get(header::IF_NONE_MATCH);
    if known.is_some_and(|known| known.as_bytes() == etag(&job).as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, etag(&job))]).into_response());
    }
    Ok(with_version(job))
}

/// Says why a job stands where it stands.
#[utoipa::path(
    get, path = "/jobs/{id}/explain", tag = "jobs",
    params(("id" = u32, Path, description = "Its number.")),
    responses(
        (status = 200, description = "Why, since when, and when it may start.", body = Explanation),
        (status = 404, description = "There is none for this caller.", body = crate::api::Problem),
    ),
)]
pub async fn explain(
    State(app): State<App>,
    caller: Caller<Look>,
    Named(id): Named<u32>,
) -> Result<Json<Explanation>, ApiFault> {
    let job = visible(&app, &caller.who, id).await?;
    let JobView { id, state, held_by, reason, submitted, started, ended, expected_start, .. } = job;
    // A job that has ended in the meantime is told about as it was.
    let looked = app.host.read(move |host| (host.job_since(id), host.job_needs(id)));
    let (stands, waits_for) = looked.await?;
    let since = ended.or(stands).or(started).unwrap_or(submitted);
    Ok(Json(Explanation { id, state, held_by, reason, since, expected_start, waits_for }))
}

pub(super) fn with_version(job: JobView) -> Response {
    ([(header::ETAG, etag(&job))], Json(job)).into_response()
}

/// The version, which changes are for, and a mark of all that is shown: what the scheduler believes
/// and how far a job is change without a change of the job.
fn etag(job: &JobView) -> String {
    let shown = serde_json::to_vec(job).expect("a job is plain data");
    let mark = HEXLOWER.encode(&Sha256::digest(shown)[..8]);
    format!("\"{}-{mark}\"", job.version)
}
