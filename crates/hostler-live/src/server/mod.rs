//! The REST interface of the daemon: HTTP in, commands to the host out.
//!
//! Says who may ask what, in which words, how often and how much at a time. What is done about it
//! is decided by the host.

mod access;
mod agents;
mod backup;
mod changes;
mod cluster;
mod document;
mod engine;
mod events;
pub mod fault;
mod health;
mod jobs;
mod listen;
mod local;
mod log;
mod measures;
pub mod notices;
mod output;
mod people;
pub mod rate;
mod reservations;
mod start;
mod streams;
pub mod tls;
mod usage;
mod users;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use engine::Engine;
pub use local::LocalSettings;
pub use start::{ADMIN_TOKEN, Certificate, Running, ServeError, Settings, reset_admin, start};

use crate::api::PREFIX;
use crate::host::{HostError, HostHandle};
use crate::limits::{REQUEST_BYTES_MAX, REQUEST_SECS_MAX};
use fault::ApiFault;
use rate::Buckets;

/// What every handler can reach.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// See [`App`].
pub struct Parts {
    host: HostHandle,
    buckets: Buckets,
    guesses: Buckets,
    pulse: health::Pulse,
    streams: Arc<Semaphore>,
    job_streams: Arc<streams::JobStreams>,
    stop: tokio::sync::watch::Receiver<bool>,
    document: Arc<Value>,
    backups: Arc<backup::Backups>,
    local_tenant: Option<String>,
    notices: Arc<notices::Counts>,
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// Every path that is served, and the document about them.
fn paths() -> (Router<App>, Value) {
    let api = OpenApiRouter::new()
        .routes(routes!(jobs::list, jobs::submit))
        .routes(routes!(jobs::show))
        .routes(routes!(changes::change_many))
        .routes(routes!(changes::cancel))
        .routes(routes!(changes::hold))
        .routes(routes!(changes::release))
        .routes(routes!(jobs::explain))
        .routes(routes!(output::output))
        .routes(routes!(jobs::history))
        .routes(routes!(usage::usage))
        .routes(routes!(cluster::nodes))
        .routes(routes!(cluster::drain))
        .routes(routes!(cluster::undrain))
        .routes(routes!(reservations::reservations, reservations::reserve))
        .routes(routes!(reservations::unreserve))
        .routes(routes!(cluster::policy, cluster::set_policy))
        .routes(routes!(log::log))
        .routes(routes!(backup::backup))
        .routes(routes!(people::tenants))
        .routes(routes!(people::set_tenant))
        .routes(routes!(people::tokens, people::create_token))
        .routes(routes!(people::revoke_token))
        .routes(routes!(users::me))
        .routes(routes!(users::users, users::add_user))
        .routes(routes!(users::remove_user))
        .routes(routes!(people::enrol))
        .routes(routes!(agents::connect))
        .routes(routes!(streams::open))
        .routes(routes!(streams::answer))
        .routes(routes!(events::events))
        .routes(routes!(document::openapi));
    let (router, document) = OpenApiRouter::with_openapi(document::head())
        .nest(PREFIX, api)
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(measures::metrics))
        .split_for_parts();
    (router, document::complete(document))
}

/// The paths with what holds for all of them.
fn router(paths: Router<App>, app: App) -> Router {
    paths
        .fallback(|| async { ApiFault::new(StatusCode::NOT_FOUND, "no such path").hint(SEE) })
        .method_not_allowed_fallback(|| async {
            ApiFault::new(StatusCode::METHOD_NOT_ALLOWED, "no such method here").hint(SEE)
        })
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .layer(middleware::from_fn(in_time))
        .with_state(app)
}

const SEE: &str = "see GET /api/v1/openapi.json";

/// Ends what takes too long, and tells about each request.
///
/// A stream's answer begins at once; what it carries later is not counted.
async fn in_time(request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let has_body = has_body(request.headers());
    let answered = timeout(Duration::from_secs(REQUEST_SECS_MAX), next.run(request)).await;
    let mut response = answered.unwrap_or_else(|_| {
        ApiFault::new(StatusCode::REQUEST_TIMEOUT, "the request took too long").into_response()
    });
    // A body that nobody read ends the connection: whoever sent it must know before the next one.
    if has_body && leaves_body(response.status()) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let (status, ms) = (response.status().as_u16(), begun.elapsed().as_millis() as u64);
    let path = path.as_deref().unwrap_or("unknown");
    tracing::debug!(%method, path, status, ms, "request");
    response
}

/// Whether a request carries a body.
fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    length.is_some_and(|length| length.as_bytes() != b"0")
        || headers.contains_key(header::TRANSFER_ENCODING)
}

/// Whether such an answer may come before the body is read.
fn leaves_body(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::TOO_MANY_REQUESTS
    )
}

/// The host answered something that does not belong to the question.
fn wrong_answer() -> ApiFault {
    ApiFault::unavailable("the daemon gave no fitting answer")
}

impl From<HostError> for ApiFault {
    fn from(error: HostError) -> ApiFault {
        let status = match &error {
            HostError::Unknown { .. }
            | HostError::UnknownModel { .. }
            | HostError::NoOutput { .. } => StatusCode::NOT_FOUND,
            HostError::Forbidden { .. }
            | HostError::NotInvited { .. }
            | HostError::OtherPerson { .. }
            | HostError::Untrusted { .. } => StatusCode::FORBIDDEN,
            HostError::Invalid { .. } | HostError::Policy { .. } => StatusCode::BAD_REQUEST,
            HostError::OverQuota { .. } | HostError::Busy => StatusCode::TOO_MANY_REQUESTS,
            HostError::OtherVersion { .. } => StatusCode::PRECONDITION_FAILED,
            HostError::WrongState { .. }
            | HostError::OtherNode { .. }
            | HostError::LastAdmin { .. }
            | HostError::Enrolled { .. }
            | HostError::OldAgent { .. }
            | HostError::TakesNoJobs { .. }
            | HostError::Silent { .. } => StatusCode::CONFLICT,
            HostError::KeyReused { .. } | HostError::TooFewCores { .. } => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            HostError::Stopped { .. } | HostError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        let hint = match &error {
            HostError::Unknown { what, .. } => fault::who_lists(what),
            HostError::OverQuota { .. } => "an admin raises it with `hostler tenant set`",
            _ => "",
        };
        ApiFault::new(status, error.to_string()).hint(hint)
    }
}
