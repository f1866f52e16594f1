//! The agent's one connection: outwards, a WebSocket, made again with growing pauses.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::{Error as WebSocketError, Message};

use super::AgentError;
use super::core::AgentInput;
use super::shell::Incoming;
use crate::client::socket::{self, Place, Socket, SocketFault};
use crate::client::{Access, Server, pin};
use crate::limits::{MESSAGE_BYTES_MAX, STREAM_FRAME_BYTES_MAX};
use crate::stream::AGENT_STREAM_PATH;
use crate::wire::{AGENT_PATH, FromAgent, ToAgent};

/// Milliseconds before the first new try, and the most that the pause grows to.
const PAUSE_MS: u64 = 250;
const PAUSE_MS_MAX: u64 = 15_000;

/// Messages that wait to be sent: reports of every lease fit many times.
pub(super) const SENDS_MAX: usize = 4096;

/// Milliseconds after which a connection counts as good, so that the next pause is short again.
const GOOD_MS: u64 = 1_000;

/// Where the daemon is and how it is known.
#[derive(Clone)]
pub struct Daemon {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// How its certificate is checked; nothing is encrypted without.
    pub tls: Option<Arc<ClientConfig>>,
    /// The agent's own secret.
    pub token: String,
}

impl Daemon {
    /// A daemon whose certificate is known by its fingerprint, or one on this machine.
    pub fn pinned(access: &Access) -> Result<Daemon, DaemonError> {
        let tls = access.fingerprint.as_ref().filter(|_| access.server.tls);
        let tls = tls.map(|fingerprint| pin::config(fingerprint)).transpose()?;
        let Server { host, port, .. } = access.server.clone();
        Ok(Daemon { host, port, tls, token: access.token.clone() })
    }

    /// A daemon whose certificate is signed by an authority of this file.
    pub fn signed(server: &Server, token: &str, authorities: &Path) -> Result<Daemon, DaemonError> {
        let unread = |fault| DaemonError::File { path: authorities.to_owned(), fault };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(authorities).map_err(unread)? {
            roots.add(certificate.map_err(unread)?)?;
        }
        let tls = ClientConfig::builder_with_provider(pin::provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let Server { host, port, .. } = server.clone();
        Ok(Daemon { host, port, tls: Some(Arc::new(tls)), token: token.to_owned() })
    }
}

/// Why it cannot be said how a daemon is known.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The file of authorities cannot be read.
    #[error("cannot read certificates of `{path}`: {fault}; it must be a file in PEM")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        fault: rustls::pki_types::pem::Error,
    },
    /// A certificate or setting cannot be used.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Keeps one connection at a time until the agent ends or the daemon does not want this agent.
pub(super) async fn keep(daemon: Daemon, inbox: mpsc::Sender<Incoming>) -> AgentError {
    let (mut pause_ms, mut session, mut known) = (PAUSE_MS, 0, false);
    loop {
        let begun = tokio::time::Instant::now();
        match connect(&daemon).await {
            Ok(socket) => {
                (session, known) = (session + 1, true);
                tracing::info!(host = daemon.host, port = daemon.port, "connected");
                if carry(socket, session, &inbox).await.is_none() {
                    return AgentError::Stopped;
                }
            }
            Err(SocketFault::Refused { status, .. }) if !known && [401, 403].contains(&status) => {
                return AgentError::Unwanted { status };
            }
            Err(fault) => tracing::warn!(%fault, "cannot connect to the daemon"),
        }
        if begun.elapsed() > Duration::from_millis(GOOD_MS) {
            pause_ms = PAUSE_MS;
        }
        sleep(Duration::from_millis(jitter(pause_ms))).await;
        pause_ms = (pause_ms * 2).min(PAUSE_MS_MAX);
    }
}

async fn connect(daemon: &Daemon) -> Result<Socket, SocketFault> {
    let Daemon { host, port, tls, token } = daemon;
    let place = Place { host, port: *port, tls: tls.as_ref(), token, socket: None };
    socket::connect(&place, AGENT_PATH, MESSAGE_BYTES_MAX).await
}

/// Connects once more, for one stream to a job.
pub(super) async fn connect_stream(daemon: &Daemon, number: u64) -> Result<Socket, SocketFault> {
    let Daemon { host, port, tls, token } = daemon;
    let place = Place { host, port: *port, tls: tls.as_ref(), token, socket: None };
    let path = format!("{AGENT_STREAM_PATH}{number}");
    socket::connect(&place, &path, STREAM_FRAME_BYTES_MAX + 1).await
}

/// Carries messages until the connection ends, from either side. None when the agent has ended.
async fn carry(socket: Socket, session: u64, inbox: &mpsc::Sender<Incoming>) -> Option<()> {
    let (sink, stream) = socket.split();
    let (sender, sends) = mpsc::channel(SENDS_MAX);
    inbox.send(Incoming::Connected { session, sender }).await.ok()?;
    // The agent closes a connection by dropping its sender.
    let ended = tokio::select! {
        ended = send_all(sink, sends) => ended,
        ended = receive_all(stream, session, inbox) => ended,
    };
    match ended {
        Ok(()) => tracing::info!("the connection has ended"),
        Err(fault) => tracing::warn!(%fault, "the connection has broken"),
    }
    inbox.send(Incoming::Happened(AgentInput::Disconnected { session })).await.ok()
}

async fn send_all(
    mut sink: SplitSink<Socket, Message>,
    mut sends: mpsc::Receiver<FromAgent>,
) -> Result<(), WebSocketError> {
    while let Some(message) = sends.recv().await {
        let text = serde_json::to_string(&message).expect("keys of messages are text");
        sink.feed(Message::text(text)).await?;
        // Messages that wait together leave together.
        if sends.is_empty() {
            sink.flush().await?;
        }
    }
    sink.close().await
}

async fn receive_all(
    mut stream: SplitStream<Socket>,
    session: u64,
    inbox: &mpsc::Sender<Incoming>,
) -> Result<(), WebSocketError> {
    while let Some(message) = stream.next().await {
        let Message::Text(text) = message? else { continue };
        match serde_json::from_str::<ToAgent>(&text) {
            Ok(message) => {
                let said = Incoming::Happened(AgentInput::MachineOverrides { session, message });
                if inbox.send(said).await.is_err() {
                    return Ok(());
                }
            }
            Err(fault) => tracing::warn!(%fault, "a message of the daemon makes no sense"),
        }
    }
    Ok(())
}

/// Somewhere between half and all of a pause, so that agents of a restarted daemon spread.
fn jitter(pause_ms: u64) -> u64 {
    let chance = getrandom::u32().unwrap_or(0);
    pause_ms / 2 + u64::from(chance) * (pause_ms / 2) / u64::from(u32::MAX)
}
