//! Times for which nodes are kept.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::App;
use super::access::{Caller, Look, Operate};
use super::fault::{ApiFault, Body, Named};
use crate::api::Problem;
use crate::host::{Answer, Command};
use crate::reservation::{Reservation, ReservationRequest};

/// Lists reservations that are not over.
#[utoipa::path(
    get, path = "/reservations", tag = "cluster",
    responses((status = 200, description = "By their beginning.", body = Vec<Reservation>)),
)]
pub async fn reservations(
    State(app): State<App>,
    _: Caller<Look>,
) -> Result<Json<Vec<Reservation>>, ApiFault> {
    Ok(Json(app.host.read(|host| host.reservations()).await?))
}

/// Keeps nodes for a time.
#[utoipa::path(
    post, path = "/reservations", tag = "cluster", request_body = ReservationRequest,
    responses(
        (status = 201, description = "They are kept.", body = Reservation),
        (status = 404, description = "No such node or tenant.", body = Problem),
    ),
)]
pub async fn reserve(
    State(app): State<App>,
    caller: Caller<Operate>,
    Body(request): Body<ReservationRequest>,
) -> Result<(StatusCode, Json<Reservation>), ApiFault> {
    match app.host.command(&caller.who, Command::Reserve(Box::new(request))).await? {
        Answer::Reservation(kept) => Ok((StatusCode::CREATED, Json(*kept))),
        _ => Err(super::wrong_answer()),
    }
}

/// Ends a reservation before its time.
#[utoipa::path(
    delete, path = "/reservations/{name}", tag = "cluster",
    params((
        "name" = String,
        Path,
        description = "Its name.",
        min_length = 1,
        max_length = 128,
        pattern = "^[^/\\u0000-\\u001f\\u007f-\\u009f]+$"
    )),
    responses(
        (status = 204, description = "The nodes take all jobs again."),
        (status = 404, description = "There is none.", body = Problem),
    ),
)]
pub async fn unreserve(
    State(app): State<App>,
    caller: Caller<Operate>,
    Named(name): Named<String>,
) -> Result<StatusCode, ApiFault> {
    app.host.command(&caller.who, Command::Unreserve { name }).await?;
    Ok(StatusCode::NO_CONTENT)
}
