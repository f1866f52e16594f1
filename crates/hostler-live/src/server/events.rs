//! Changes as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::{self, Stream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout_at};

use super::App;
use super::access::{Caller, Look};
use super::fault::ApiFault;
use crate::host::{Change, Changed, Changes, Principal};
use crate::limits::STREAM_SECS_MAX;

/// Follows changes of jobs, nodes and the policy.
///
/// Each event is a change as JSON, named by what changed and numbered. An event `gap` says that
/// changes were missed. The stream ends now and then: go on with `Last-Event-ID`.
#[utoipa::path(
    get, path = "/events", tag = "jobs",
    params((
        "Last-Event-ID" = Option<u64>, Header,
        description = "Number of the last change that was seen."
    )),
    responses(
        (status = 200, description = "Changes, as they happen.", body = Change,
            content_type = "text/event-stream"),
    ),
)]
pub async fn events(
    State(app): State<App>,
    caller: Caller<Look>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiFault> {
    let after = headers.get("last-event-id").map(|value| {
        let number = value.to_str().ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| {
            ApiFault::bad("invalid `Last-Event-ID`").hint("send the number of the last event")
        })
    });
    let after = after.transpose()?;
    let place = app.streams.clone().try_acquire_owned();
    let place = place.map_err(|_| ApiFault::too_many("too many streams of changes"))?;
    let Changes { missed, coming, gap } = app.host.changes(after);
    let follower = Follower {
        who: caller.who,
        missed: missed.into(),
        coming,
        gap,
        stop: app.stop.clone(),
        until: Instant::now() + Duration::from_secs(STREAM_SECS_MAX),
        _place: place,
    };
    let events = stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((Ok(event), follower))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// One who follows.
struct Follower {
    who: Principal,
    missed: std::collections::VecDeque<Change>,
    coming: tokio::sync::broadcast::Receiver<Change>,
    gap: bool,
    stop: watch::Receiver<bool>,
    until: Instant,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    /// The next event that is the follower's business; none at the end.
    async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.gap) {
            return Some(gap());
        }
        loop {
            if let Some(change) = self.missed.pop_front() {
                match self.event(&change) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let coming = tokio::select! {
                coming = timeout_at(self.until, self.coming.recv()) => coming.ok()?,
                _ = self.stop.wait_for(|stop| *stop) => return None,
            };
            match coming {
                Ok(change) => self.missed.push_back(change),
                Err(RecvError::Lagged(_)) => return Some(gap()),
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn event(&self, change: &Change) -> Option<Event> {
        let name = match &change.what {
            Changed::Job { tenant, .. } if !self.who.sees(tenant) => return None,
            Changed::Job { .. } => "job",
            Changed::Node { .. } => "node",
            Changed::Policy => "policy",
        };
        let event = Event::default().id(change.number.to_string()).event(name);
        event.json_data(change).ok()
    }
}

fn gap() -> Event {
    Event::default().event("gap").data("{}")
}
