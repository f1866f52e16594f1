//! Streams between people and running jobs: one WebSocket of the person, one of the agent that the
//! daemon asked for, and bytes in between.
//!
//! Who may end a job may go inside. A stream has its own connection at both ends, so that nothing
//! that flows there delays the beats of an agent, and who does not read slows down only who writes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::App;
use super::access::{Caller, Run, Work};
use super::fault::{ApiFault, Named};
use super::jobs::visible;
use crate::api::Problem;
use crate::host::{Answer, Command, HostError, Principal};
use crate::limits::{
    COMMAND_BYTES_MAX, HEAD_SECS_MAX, JOB_STREAMS_MAX, JOB_STREAMS_PER_JOB_MAX,
    JOB_STREAMS_PER_TOKEN_MAX, STREAM_CHECK_SECS, STREAM_FRAME_BYTES_MAX,
    STREAM_LAST_WORDS_SECS_MAX, STREAM_OPEN_SECS_MAX, STREAM_SILENT_SECS_MAX,
};
use crate::stream::{Frame, StreamFault, StreamKind, StreamRequest};

/// Bytes of one message: a frame with its kind, or a request with a full command.
const MESSAGE_BYTES_MAX: usize = STREAM_FRAME_BYTES_MAX + 1;

/// Bytes that are read from a connection at a time, and held for it.
const READ_BYTES: usize = 16 << 10;

/// All streams, and those whose agent has not come yet.
#[derive(Default)]
pub struct JobStreams {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    waiting: BTreeMap<u64, oneshot::Sender<(u32, WebSocket)>>,
    by_token: BTreeMap<u32, usize>,
    by_job: BTreeMap<u32, usize>,
    open: usize,
}

/// The place of one stream.
struct Place {
    streams: Arc<JobStreams>,
    token: u32,
    job: u32,
    number: u64,
}

impl JobStreams {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, if there is one; says which bound keeps it out otherwise.
    fn place(self: &Arc<Self>, token: u32, job: u32) -> Result<Place, String> {
        let number = getrandom::u64().map_err(|fault| format!("no randomness: {fault}"))?;
        let mut inner = self.lock();
        let of_token = inner.by_token.get(&token).copied().unwrap_or(0);
        let of_job = inner.by_job.get(&job).copied().unwrap_or(0);
        for (count, most, whose) in [
            (inner.open, JOB_STREAMS_MAX, "of this daemon"),
            (of_token, JOB_STREAMS_PER_TOKEN_MAX, "with this token"),
            (of_job, JOB_STREAMS_PER_JOB_MAX, "to this job"),
        ] {
            if count >= most {
                return Err(format!("{most} streams {whose} are open; close one of them first"));
            }
        }
        inner.open += 1;
        *inner.by_token.entry(token).or_default() += 1;
        *inner.by_job.entry(job).or_default() += 1;
        Ok(Place { streams: self.clone(), token, job, number })
    }

    /// Who waits for the agent of a stream; taken once.
    fn take(&self, number: u64) -> Option<oneshot::Sender<(u32, WebSocket)>> {
        self.lock().waiting.remove(&number)
    }
}

impl Place {
    fn expect(&self) -> oneshot::Receiver<(u32, WebSocket)> {
        let (sender, receiver) = oneshot::channel();
        self.streams.lock().waiting.insert(self.number, sender);
        receiver
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inner = self.streams.lock();
        inner.waiting.remove(&self.number);
        inner.open -= 1;
        less(&mut inner.by_token, self.token);
        less(&mut inner.by_job, self.job);
    }
}

fn less(counts: &mut BTreeMap<u32, usize>, key: u32) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

/// Leads a stream to a running job.
///
/// A WebSocket. The first message is text: `{"open": "attach"}`, `{"open": "exec", "command":
/// [..]}` or `{"open": "port", "port": 8888}`, each with `rank` where it is not 0. Then frames flow
/// in both directions, as `docs/api.md` has them.
#[utoipa::path(
    get, path = "/jobs/{id}/stream", tag = "jobs", operation_id = "stream",
    params(("id" = u32, Path, description = "Its number.")),
    responses(
        (status = 101, description = "The connection stands."),
        (status = 404, description = "There is none for this caller.", body = Problem),
        (status = 426, description = "The request asks for no WebSocket.", body = Problem),
    ),
)]
pub async fn open(
    State(app): State<App>,
    caller: Caller<Work>,
    Named(job): Named<u32>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiFault> {
    visible(&app, &caller.who, job).await?;
    let upgrade = upgraded(upgrade, COMMAND_BYTES_MAX.max(MESSAGE_BYTES_MAX) * 2)?;
    Ok(upgrade.on_upgrade(move |socket| serve(socket, app, caller.who, job)))
}

/// Connects an agent for one stream.
///
/// A WebSocket, for agents that were told the number of the stream.
#[utoipa::path(
    get, path = "/agent/streams/{number}", tag = "agents", operation_id = "answer_stream",
    params(("number" = u64, Path, description = "Its number.")),
    responses(
        (status = 101, description = "The connection stands."),
        (status = 404, description = "Nobody waits for it.", body = Problem),
        (status = 426, description = "The request asks for no WebSocket.", body = Problem),
    ),
)]
pub async fn answer(
    State(app): State<App>,
    caller: Caller<Run>,
    Named(number): Named<u64>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiFault> {
    let upgrade = upgraded(upgrade, MESSAGE_BYTES_MAX)?;
    let gone = || ApiFault::new(StatusCode::NOT_FOUND, "nobody waits for this stream");
    let waiting = app.job_streams.take(number).ok_or_else(gone)?;
    // Whoever waited may be gone by now; the socket is closed then.
    Ok(upgrade.on_upgrade(move |socket| async move {
        let _ = waiting.send((caller.who.token, socket));
    }))
}

fn upgraded(
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    bytes_max: usize,
) -> Result<WebSocketUpgrade, ApiFault> {
    let refused = |fault: WebSocketUpgradeRejection| {
        ApiFault::new(StatusCode::UPGRADE_REQUIRED, fault.body_text())
    };
    let upgrade = upgrade.map_err(refused)?;
    Ok(upgrade.max_message_size(bytes_max).max_frame_size(bytes_max).read_buffer_size(READ_BYTES))
}

/// Serves one stream from its first message to its end.
async fn serve(mut socket: WebSocket, app: App, who: Principal, job: u32) {
    let limit = Duration::from_secs(HEAD_SECS_MAX);
    let Ok(Some(Ok(Message::Text(text)))) = timeout(limit, socket.recv()).await else { return };
    let mut stop = app.stop.clone();
    let opened = match serde_json::from_str::<StreamRequest>(&text) {
        Ok(request) => lead(&app, &who, job, request).await,
        Err(fault) => Err(Frame::fault(format!("the first message makes no sense: {fault}"))),
    };
    let (place, agent) = match opened {
        Ok(opened) => opened,
        Err(fault) => {
            let _ = socket.send(Message::binary(fault.to_bytes())).await;
            let _ = socket.send(Message::Close(None)).await;
            return;
        }
    };
    tokio::select! {
        () = pipe(socket, agent) => {}
        () = revoked(&app, who.token) => {
            tracing::info!(user = who.user, job, "a stream ends with its token");
        }
        _ = stop.wait_for(|stop| *stop) => {}
    }
    tracing::debug!(user = who.user, job, "a stream has ended");
    drop(place);
}

/// Asks the agent of the job and waits for its connection.
async fn lead(
    app: &App,
    who: &Principal,
    job: u32,
    request: StreamRequest,
) -> Result<(Place, WebSocket), Frame> {
    check(&request.what).map_err(Frame::fault)?;
    let place = app.job_streams.place(who.token, job).map_err(Frame::fault)?;
    let arrival = place.expect();
    let (rank, what) = (request.rank, request.what.note());
    let command = Command::OpenStream { job, number: place.number, request };
    let asked = app.host.command(who, command).await;
    // Who went inside which job is noted whether it came about or not.
    let (allowed, tenant) = (asked.is_ok(), &who.tenant);
    tracing::info!(user = who.user, token = who.token, tenant, job, rank, what, allowed, "stream");
    let token = match asked.map_err(fault_of)? {
        Answer::Stream { token } => token,
        _ => return Err(Frame::fault("the daemon gave no fitting answer")),
    };
    let late = |_| retry("the agent of the job does not answer");
    let arrived =
        timeout(Duration::from_secs(STREAM_OPEN_SECS_MAX), arrival).await.map_err(late)?;
    match arrived {
        Ok((found, socket)) if found == token => Ok((place, socket)),
        Ok(_) => Err(Frame::fault("another agent answered for the node of the job")),
        Err(_) => Err(retry("the agent of the job was lost")),
    }
}

fn retry(fault: &str) -> Frame {
    Frame::Fault(StreamFault { fault: fault.to_owned(), retry: true })
}

/// Why the host refuses, for the person.
fn fault_of(error: HostError) -> Frame {
    let retry = matches!(error, HostError::Silent { .. } | HostError::Busy);
    Frame::Fault(StreamFault { fault: error.to_string(), retry })
}

/// Whether a request makes sense.
fn check(what: &StreamKind) -> Result<(), String> {
    match what {
        StreamKind::Attach { .. } => Ok(()),
        StreamKind::Port { port: 0 } => Err("port 0 is no port".to_owned()),
        StreamKind::Port { .. } => Ok(()),
        StreamKind::Exec { command, term, .. } => {
            let bytes: usize = command.iter().chain(term).map(String::len).sum();
            let words = command.iter().chain(term);
            if command.first().is_none_or(String::is_empty) {
                return Err("the command names no program".to_owned());
            }
            if bytes > COMMAND_BYTES_MAX {
                return Err(format!("the command has over {COMMAND_BYTES_MAX} bytes"));
            }
            match words.into_iter().any(|word| word.contains('\0')) {
                true => Err("the command holds a zero byte".to_owned()),
                false => Ok(()),
            }
        }
    }
}

/// Comes back when the token lets nobody in any more.
async fn revoked(app: &App, token: u32) {
    while app.host.lets_in(token) {
        sleep(Duration::from_secs(STREAM_CHECK_SECS)).await;
    }
}

/// Passes frames on until either side ends or falls silent.
async fn pipe(person: WebSocket, agent: WebSocket) {
    let (mut to_person, mut from_person) = person.split();
    let (mut to_agent, mut from_agent) = agent.split();
    let limit = Duration::from_secs(HEAD_SECS_MAX);
    let unread = tokio::select! {
        () = carry_to_agent(&mut from_person, &mut to_agent) => false,
        ended = carry(&mut from_agent, &mut to_person) => ended == CarryEnd::Unread,
    };
    if unread {
        // The last words of a person who has gone may have come before it is seen.
        let limit = Duration::from_secs(STREAM_LAST_WORDS_SECS_MAX);
        let _ = timeout(limit, carry(&mut from_person, &mut to_agent)).await;
    }
    let _ = timeout(limit, to_person.close()).await;
    let _ = timeout(limit, to_agent.close()).await;
}

/// Carries what the person says until that one is gone. An agent that does not listen any more may
/// still have something to say: how it ended.
async fn carry_to_agent(
    from_person: &mut SplitStream<WebSocket>,
    to_agent: &mut SplitSink<WebSocket, Message>,
) {
    if carry(from_person, to_agent).await == CarryEnd::Unread {
        while let Some(Ok(message)) = from_person.next().await {
            if matches!(message, Message::Close(_)) {
                return;
            }
        }
    }
}

/// Why one direction is over.
#[derive(Debug, PartialEq, Eq)]
enum CarryEnd {
    /// Nothing more comes.
    Over,
    /// Nobody takes it.
    Unread,
}

/// Each end says something now and then, so silence means that it is gone. Only waiting for words
/// counts: an end that does not read is waited for.
async fn carry(
    from: &mut SplitStream<WebSocket>,
    to: &mut SplitSink<WebSocket, Message>,
) -> CarryEnd {
    let limit = Duration::from_secs(STREAM_SILENT_SECS_MAX);
    while let Ok(Some(Ok(message))) = timeout(limit, from.next()).await {
        match message {
            Message::Binary(bytes) => {
                if to.send(Message::Binary(bytes)).await.is_err() {
                    return CarryEnd::Unread;
                }
            }
            Message::Close(_) => break,
            Message::Text(_) | Message::Ping(_) | Message::Pong(_) => {}
        }
    }
    CarryEnd::Over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_given_back() {
        let streams = Arc::new(JobStreams::default());
        let mut held: Vec<Place> =
            (0..JOB_STREAMS_PER_JOB_MAX).map(|_| streams.place(1, 7).unwrap()).collect();
        assert!(streams.place(2, 7).err().unwrap().contains("to this job"));
        held.extend((0..JOB_STREAMS_PER_JOB_MAX).map(|_| streams.place(1, 8).unwrap()));
        assert!(streams.place(1, 9).err().unwrap().contains("with this token"));
        drop(held.pop());
        drop(streams.place(1, 9).unwrap());
        held.clear();
        let inner = streams.lock();
        assert_eq!((inner.open, inner.by_job.len(), inner.by_token.len()), (0, 0, 0));
    }

    #[test]
    fn an_agent_takes_a_stream_once() {
        let streams = Arc::new(JobStreams::default());
        let place = streams.place(1, 7).unwrap();
        let _arrival = place.expect();
        assert!(streams.take(place.number).is_some());
        assert!(streams.take(place.number).is_none());
    }

    #[test]
    fn commands_that_cannot_be_run_are_refused() {
        let exec = |words: &[&str]| StreamKind::Exec {
            command: words.iter().map(|word| (*word).to_owned()).collect(),
            terminal: None,
            term: None,
        };
        assert!(check(&exec(&["true"])).is_ok());
        for wrong in [exec(&[]), exec(&[""]), exec(&["a\0b"]), StreamKind::Port { port: 0 }] {
            assert!(check(&wrong).is_err(), "{wrong:?}");
        }
        assert!(check(&exec(&[&"a".repeat(COMMAND_BYTES_MAX + 1)])).is_err());
    }
}
