//! A person's end of a stream to a job.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use rustls::ClientConfig;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::connection::pinned;
use super::socket::{self, Place, Socket, SocketFault};
use super::{Access, ClientError, full_path};
use crate::limits::{STREAM_FRAME_BYTES_MAX, STREAM_OPEN_SECS_MAX, STREAM_SILENT_SECS_MAX};
use crate::stream::{Frame, Opened, StreamFault, StreamRequest};

/// Opens streams to the jobs of one daemon.
#[derive(Clone)]
pub struct Streams {
    access: Access,
    tls: Option<Arc<ClientConfig>>,
}

/// A stream that stands.
pub struct JobStream {
    /// What the job's side said of it.
    pub opened: Opened,
    /// What goes there.
    pub sender: StreamSender,
    /// What comes from there.
    pub receiver: StreamReceiver,
}

/// Sends frames.
pub struct StreamSender(SplitSink<Socket, Message>);

/// Receives frames.
pub struct StreamReceiver(SplitStream<Socket>);

/// Why a stream does not stand.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The daemon could not be asked, or refuses.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The daemon or the agent says why.
    #[error("{}", .0.fault)]
    Fault(StreamFault),
    /// Nothing came.
    #[error("the connection was lost")]
    Lost,
}

impl StreamError {
    /// Whether trying again in a moment may help.
    pub fn may_pass(&self) -> bool {
        match self {
            StreamError::Client(ClientError::Unreachable { .. }) | StreamError::Lost => true,
            StreamError::Client(ClientError::Refused { status, .. }) => *status == 503,
            StreamError::Client(_) => false,
            StreamError::Fault(fault) => fault.retry,
        }
    }
}

impl Streams {
    /// Streams to the jobs of a daemon that is known by its fingerprint.
    pub fn new(access: Access) -> Result<Streams, ClientError> {
        let tls = pinned(&access)?;
        Ok(Streams { access, tls })
    }

    /// Opens one, and waits until it stands.
    pub async fn open(&self, job: u32, request: &StreamRequest) -> Result<JobStream, StreamError> {
        let server = &self.access.server;
        let (tls, token) = (self.tls.as_ref(), self.access.token.as_str());
        let socket = server.socket.as_deref();
        let place = Place { host: &server.host, port: server.port, tls, token, socket };
        let path = full_path(&format!("/jobs/{job}/stream"));
        let connected = socket::connect(&place, &path, STREAM_FRAME_BYTES_MAX + 1).await;
        let connected = connected.map_err(|fault| self.fault(fault))?;
        let (sink, stream) = connected.split();
        let (mut sender, mut receiver) = (StreamSender(sink), StreamReceiver(stream));
        let text = serde_json::to_string(request).expect("keys of messages are text");
        if sender.0.send(Message::text(text)).await.is_err() {
            return Err(StreamError::Lost);
        }
        let limit = Duration::from_secs(2 * STREAM_OPEN_SECS_MAX);
        loop {
            match timeout(limit, receiver.next()).await.ok().flatten() {
                Some(Frame::Opened(opened)) => return Ok(JobStream { opened, sender, receiver }),
                Some(Frame::Fault(fault)) => return Err(StreamError::Fault(fault)),
                Some(_) => {}
                None => return Err(StreamError::Lost),
            }
        }
    }

    fn fault(&self, fault: SocketFault) -> StreamError {
        let server = self.access.server.to_string();
        StreamError::Client(match fault {
            SocketFault::Refused { status: 404, problem } if problem.error == "no such path" => {
                let fault = "it leads nobody to jobs; it is of an earlier release".to_owned();
                ClientError::Garbled { server, fault }
            }
            SocketFault::Refused { status, problem } => {
                ClientError::Refused { status, error: problem.error, hint: problem.hint }
            }
            SocketFault::Io(fault) if fault.kind() == std::io::ErrorKind::InvalidData => {
                ClientError::WrongServer { server, fault: fault.to_string() }
            }
            fault => ClientError::Unreachable { server, fault: fault.to_string() },
        })
    }
}

impl StreamSender {
    /// Sends one frame; says whether there is still somebody to send to.
    pub async fn send(&mut self, frame: &Frame) -> bool {
        self.0.send(Message::binary(frame.to_bytes())).await.is_ok()
    }

    /// Says that it is over.
    pub async fn close(mut self) {
        let _ = self.0.close().await;
    }
}

impl StreamReceiver {
    /// The next frame that is more than a sign of life; none when the stream is over or silent.
    pub async fn next(&mut self) -> Option<Frame> {
        let limit = Duration::from_secs(STREAM_SILENT_SECS_MAX);
        loop {
            let message = timeout(limit, self.0.next()).await.ok()??.ok()?;
            let Message::Binary(bytes) = message else { continue };
            match Frame::parse(&bytes)? {
                Frame::Alive => {}
                frame => return Some(frame),
            }
        }
    }
}
