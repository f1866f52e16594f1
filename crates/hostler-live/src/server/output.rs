//! Output of jobs, read from the agents that have it.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use tokio::time::{Instant, sleep, timeout};

use super::App;
use super::access::{Caller, Look};
use super::fault::{ApiFault, Named, Params};
use super::jobs::visible;
use crate::api::{JobOutput, OutputQuery, Problem};
use crate::host::{Answer, Command, HostError, OutputPiece, Principal};
use crate::job::JobView;
use crate::limits::{OUTPUT_ANSWER_SECS_MAX, OUTPUT_WAIT_SECS_MAX};
use crate::wire::Stream;

/// Time between two looks for something new.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Reads a piece of a job's output.
///
/// With `wait_secs` the answer comes when there is something new, or the job is over, or the time
/// is over. To follow a job, ask again from `offset` plus `bytes`, with `restart`, until `last`:
/// that goes on from one start of it to the next.
#[utoipa::path(
    get, path = "/jobs/{id}/output", tag = "jobs",
    params(("id" = u32, Path, description = "Its number."), OutputQuery),
    responses(
        (status = 200, description = "A piece, which may be empty.", body = JobOutput),
        (status = 404, description = "There is none for this caller.", body = Problem),
        (status = 409, description = "Its node does not answer.", body = Problem),
    ),
)]
pub async fn output(
    State(app): State<App>,
    caller: Caller<Look>,
    Named(job): Named<u32>,
    Params(query): Params<OutputQuery>,
) -> Result<Json<JobOutput>, ApiFault> {
    let wait = query.wait_secs.unwrap_or(0);
    if wait > OUTPUT_WAIT_SECS_MAX {
        let fault = ApiFault::bad(format!("invalid `wait_secs`: {wait}"));
        return Err(fault.hint(format!("use 0 to {OUTPUT_WAIT_SECS_MAX}")));
    }
    let until = Instant::now() + Duration::from_secs(u64::from(wait));
    let mut place = Place { start: None, offset: query.offset.unwrap_or(0) };
    loop {
        let view = visible(&app, &caller.who, job).await?;
        let (current, is_over) = (view.restarts, view.ended.is_some());
        let asked = query.start.or(query.restart.map(|restart| restart.min(current)));
        let restart = *place.start.get_or_insert(asked.unwrap_or(current));
        let is_past = restart < current;
        // Who does not ask for one start alone goes on to the next.
        let goes_on = is_past && query.start.is_none();
        let is_late = Instant::now() + LOOK_AGAIN > until;
        match read(&app, &caller.who, job, &query, &place).await {
            Ok(mut piece) => {
                // What ended may be one stay of a job that will be started again.
                piece.last &= !goes_on && (is_past || is_over);
                if piece.bytes > 0 || piece.last || (is_late && !goes_on) {
                    return Ok(Json(JobOutput { restart, piece }));
                }
                if goes_on {
                    place = Place::beginning_of(next_start(&view, restart));
                    continue;
                }
            }
            // Its node may be gone, or has kept no output of so long ago.
            Err(HostError::NoOutput { .. } | HostError::Silent { .. }) if goes_on => {
                place = Place::beginning_of(next_start(&view, restart));
                continue;
            }
            // A job that has not started has no output yet: that is worth waiting for, too.
            Err(HostError::NoOutput { .. }) if !is_late && !is_over => {}
            Err(HostError::Silent { .. }) if !is_late => {}
            Err(HostError::NoOutput { .. }) if wait > 0 && !is_over => {
                let piece = OutputPiece {
                    offset: u64::try_from(place.offset).unwrap_or(0),
                    text: String::new(),
                    base64: None,
                    bytes: 0,
                    last: false,
                };
                return Ok(Json(JobOutput { restart, piece }));
            }
            Err(fault) => return Err(fault.into()),
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// Where in the output of a job is read.
struct Place {
    /// In which start, once that is known.
    start: Option<u32>,
    offset: i64,
}

impl Place {
    fn beginning_of(start: u32) -> Place {
        Place { start: Some(start), offset: 0 }
    }
}

/// The start that comes after another one, as far as that is known.
fn next_start(view: &JobView, restart: u32) -> u32 {
    let mut later = view.starts.iter().map(|start| start.restart).filter(|it| *it > restart);
    later.next().unwrap_or(view.restarts)
}

async fn read(
    app: &App,
    who: &Principal,
    job: u32,
    query: &OutputQuery,
    place: &Place,
) -> Result<OutputPiece, HostError> {
    let command = Command::ReadOutput {
        job,
        rank: query.rank.unwrap_or(0),
        stream: query.stream.unwrap_or(Stream::Stdout),
        offset: place.offset,
        start: place.start,
    };
    let limit = Duration::from_secs(OUTPUT_ANSWER_SECS_MAX);
    match timeout(limit, app.host.command(who, command)).await {
        Ok(Ok(Answer::Output(piece))) => Ok(piece),
        Ok(Ok(_)) => Err(HostError::NoOutput { fault: "no piece came".to_owned() }),
        Ok(Err(fault)) => Err(fault),
        Err(_) => Err(HostError::Silent { node: "of the job".to_owned() }),
    }
}
