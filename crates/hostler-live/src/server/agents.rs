//! The connection of an agent: a WebSocket that carries messages between it and the host.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::App;
use super::access::{Caller, Run};
use super::fault::ApiFault;
use crate::host::{AgentLink, AgentVoice, HostHandle, Principal};
use crate::limits::{HEAD_SECS_MAX, MESSAGE_BYTES_MAX};
use crate::wire::{FromAgent, ToAgent};

/// Bytes that are read from a connection at a time, and held for it: messages are short.
const READ_BYTES: usize = 4 << 10;

/// Connects the agent of a node.
///
/// A WebSocket with JSON messages in both directions, for agents of this release and of the one
/// before.
#[utoipa::path(
    get, path = "/agent", tag = "agents",
    responses(
        (status = 101, description = "The connection stands."),
        (status = 426, description = "The request asks for no WebSocket.",
            body = crate::api::Problem),
    ),
)]
pub async fn connect(
    State(app): State<App>,
    caller: Caller<Run>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiFault> {
    let upgrade =
        upgrade.map_err(|fault| ApiFault::new(StatusCode::UPGRADE_REQUIRED, fault.body_text()))?;
    let (host, stop) = (app.host.clone(), app.stop.clone());
    Ok(upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .read_buffer_size(READ_BYTES)
        .on_upgrade(|socket| carry(socket, host, caller.who, stop)))
}

/// Carries messages until either side ends.
async fn carry(
    socket: WebSocket,
    host: HostHandle,
    who: Principal,
    mut stop: watch::Receiver<bool>,
) {
    let (sink, mut stream) = socket.split();
    let Some(mut link) = greet(&mut stream, &host, &who).await else { return };
    let voice = link.voice();
    tracing::info!(node = who.user, "an agent connected");
    tokio::select! {
        () = send_all(sink, &mut link.messages, &who.user) => {}
        () = receive_all(stream, voice) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
    tracing::info!(node = who.user, "an agent is gone");
}

/// Waits for the first words and passes them on.
async fn greet(
    stream: &mut SplitStream<WebSocket>,
    host: &HostHandle,
    who: &Principal,
) -> Option<AgentLink> {
    let limit = Duration::from_secs(HEAD_SECS_MAX);
    let said = timeout(limit, next(stream)).await.ok().flatten()?;
    let FromAgent::Hello { protocol, machine, held, last_job } = said else {
        tracing::warn!(node = who.user, "an agent does not begin with `hello`");
        return None;
    };
    host.connect_agent(who.token, protocol, *machine, held, last_job).await.ok()
}

async fn send_all(
    mut sink: SplitSink<WebSocket, Message>,
    messages: &mut mpsc::Receiver<ToAgent>,
    node: &str,
) {
    while let Some(message) = messages.recv().await {
        if let ToAgent::Refused { fault, .. } = &message {
            tracing::warn!(node, fault, "an agent is refused");
        }
        let text = serde_json::to_string(&message).expect("keys of messages are text");
        if sink.feed(Message::text(text)).await.is_err() {
            return;
        }
        // Messages that wait together leave together.
        if messages.is_empty() && sink.flush().await.is_err() {
            return;
        }
    }
    // The last words may say why.
    let _ = sink.close().await;
}

async fn receive_all(mut stream: SplitStream<WebSocket>, voice: AgentVoice) {
    while let Some(message) = next(&mut stream).await {
        if voice.said(message).await.is_err() {
            return;
        }
    }
}

/// The next message that makes sense.
async fn next(stream: &mut SplitStream<WebSocket>) -> Option<FromAgent> {
    loop {
        let Message::Text(text) = stream.next().await?.ok()? else { continue };
        match serde_json::from_str(&text) {
            Ok(message) => return Some(message),
            Err(fault) => tracing::warn!(%fault, "a message of an agent makes no sense"),
        }
    }
}
