//! WebSockets to the daemon: the connections of agents, and streams to jobs from both their ends.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Error as WebSocketError;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::api::Problem;
use crate::limits::CONNECT_SECS_MAX;

/// What carries bytes, encrypted or not.
pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// A connection that carries messages.
pub type Socket = WebSocketStream<Box<dyn Bytes>>;

/// Where the daemon is and who asks.
pub struct Place<'a> {
    /// Host name or address.
    pub host: &'a str,
    /// Port.
    pub port: u16,
    /// How its certificate is checked; nothing is encrypted without.
    pub tls: Option<&'a Arc<ClientConfig>>,
    /// The secret of the caller; empty for one who is known without, over a socket.
    pub token: &'a str,
    /// The socket on this machine by which the daemon is reached instead.
    pub socket: Option<&'a Path>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum SocketFault {
    /// The network or TLS.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The upgrade.
    #[error("{0}")]
    WebSocket(#[from] WebSocketError),
    /// It takes too long.
    #[error("no answer within {CONNECT_SECS_MAX} s")]
    Slow,
    /// The daemon does not want it.
    #[error("the daemon answers {status}: {}", problem.error)]
    Refused {
        /// Status of its answer.
        status: u16,
        /// Its words.
        problem: Problem,
    },
    /// What cannot be said.
    #[error("the token or host holds letters that cannot be sent")]
    Letters,
}

/// Connects to a full path of the daemon; messages have so many bytes at most.
pub async fn connect(
    place: &Place<'_>,
    path: &str,
    bytes_max: usize,
) -> Result<Socket, SocketFault> {
    let limit = Duration::from_secs(CONNECT_SECS_MAX);
    let connected = timeout(limit, connect_now(place, path, bytes_max)).await;
    connected.map_err(|_| SocketFault::Slow)?
}

async fn connect_now(
    place: &Place<'_>,
    path: &str,
    bytes_max: usize,
) -> Result<Socket, SocketFault> {
    let stream = way_to(place).await?;
    let host = match place.host.contains(':') {
        true => format!("[{}]", place.host),
        false => place.host.to_owned(),
    };
    let mut request = format!("ws://{host}:{}{path}", place.port).into_client_request()?;
    if !place.token.is_empty() {
        let bearer = format!("Bearer {}", place.token).parse().map_err(|_| SocketFault::Letters)?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(bytes_max))
        .max_frame_size(Some(bytes_max));
    match client_async_with_config(request, stream, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(WebSocketError::Http(answer)) => {
            let status = answer.status();
            let body = answer.body().as_deref().unwrap_or_default();
            let problem = serde_json::from_slice(body)
                .unwrap_or_else(|_| Problem { error: status.to_string(), hint: String::new() });
            Err(SocketFault::Refused { status: status.as_u16(), problem })
        }
        Err(fault) => Err(fault.into()),
    }
}

async fn way_to(place: &Place<'_>) -> Result<Box<dyn Bytes>, SocketFault> {
    if let Some(socket) = place.socket {
        return Ok(Box::new(UnixStream::connect(socket).await?));
    }
    let stream = TcpStream::connect((place.host, place.port)).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = place.tls else { return Ok(Box::new(stream)) };
    let name = ServerName::try_from(place.host.to_owned());
    let name = name.map_err(|_| SocketFault::Letters)?;
    Ok(Box::new(TlsConnector::from(tls.clone()).connect(name, stream).await?))
}
