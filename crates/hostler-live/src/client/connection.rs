//! One connection to the server, made when it is needed and made again when it broke.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::access::{Access, Server};
use super::{Ask, ClientError, HttpAnswer, full_path, pin, refused};
use crate::limits::{ANSWER_BYTES_MAX, ANSWER_SECS_MAX, CONNECT_SECS_MAX, LINE_BYTES_MAX};

/// A way to a server.
pub struct Connection {
    access: Access,
    tls: Option<Arc<ClientConfig>>,
    open: Option<SendRequest<Full<Bytes>>>,
}

/// How the server of an access is known by its fingerprint.
pub fn pinned(access: &Access) -> Result<Option<Arc<ClientConfig>>, ClientError> {
    let wrong = |error: rustls::Error| ClientError::WrongServer {
        server: access.server.to_string(),
        fault: error.to_string(),
    };
    let fingerprint = access.fingerprint.as_ref().filter(|_| access.server.tls);
    fingerprint.map(|fingerprint| pin::config(fingerprint)).transpose().map_err(wrong)
}

impl Connection {
    /// Not connected yet.
    pub fn new(access: Access, tls: Option<Arc<ClientConfig>>) -> Connection {
        Connection { access, tls, open: None }
    }

    /// Whom it leads to.
    pub fn server(&self) -> &Server {
        &self.access.server
    }

    /// Asks and reads the whole answer.
    pub async fn ask(&mut self, ask: &Ask<'_>) -> Result<HttpAnswer, ClientError> {
        let limit = Duration::from_secs(ANSWER_SECS_MAX);
        match timeout(limit, self.exchange(ask)).await {
            Ok(answer) => answer,
            Err(_) => {
                self.open = None;
                Err(self.unreachable(format!("no answer within {ANSWER_SECS_MAX} s")))
            }
        }
    }

    async fn exchange(&mut self, ask: &Ask<'_>) -> Result<HttpAnswer, ClientError> {
        let response = self.send(ask).await?;
        let status = response.status();
        let etag = response.headers().get(header::ETAG);
        let etag = etag.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let date = response.headers().get(header::DATE);
        let date = date.and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| self.unreachable(error.to_string()))?.to_bytes();
        Ok(HttpAnswer { status, etag, date, body })
    }

    /// Reads the answer line by line.
    pub async fn follow(
        &mut self,
        ask: &Ask<'_>,
        pause: Duration,
        mut each: impl FnMut(&str) -> bool,
    ) -> Result<(), ClientError> {
        let mut body = self.stream(ask).await?;
        let mut rest = Vec::new();
        while let Ok(Some(frame)) = timeout(pause, body.frame()).await {
            let frame = frame.map_err(|error| self.unreachable(error.to_string()))?;
            rest.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                if !each(String::from_utf8_lossy(&line).trim_end()) {
                    return Ok(());
                }
            }
            if rest.len() > LINE_BYTES_MAX {
                return Err(self.garbled("a line without end"));
            }
        }
        Ok(())
    }

    /// Reads the answer piece by piece.
    pub async fn fetch(
        &mut self,
        ask: &Ask<'_>,
        pause: Duration,
        mut each: impl FnMut(&[u8]) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let mut body = self.stream(ask).await?;
        loop {
            let late = |_| self.unreachable("it fell silent in the middle".to_owned());
            let Some(frame) = timeout(pause, body.frame()).await.map_err(late)? else {
                return Ok(());
            };
            let frame = frame.map_err(|error| self.unreachable(error.to_string()))?;
            each(frame.data_ref().map_or(&[], |data| data))?;
        }
    }

    /// The body of an answer that is a success.
    async fn stream(&mut self, ask: &Ask<'_>) -> Result<Incoming, ClientError> {
        let response = self.send(ask).await?;
        // The connection carries the rest of the stream; the next request needs another.
        self.open = None;
        let status = response.status();
        let body = response.into_body();
        if status.is_success() {
            return Ok(body);
        }
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| self.unreachable(error.to_string()))?.to_bytes();
        Err(refused(&HttpAnswer { status, etag: None, date: None, body }))
    }

    /// Sends over the open connection, or over a new one when the old one was closed meanwhile.
    async fn send(&mut self, ask: &Ask<'_>) -> Result<Response<Incoming>, ClientError> {
        let limit = Duration::from_secs(ANSWER_SECS_MAX);
        for fresh in [false, true] {
            let mut sender = match self.open.take() {
                Some(sender) if !fresh => sender,
                _ => self.connect().await?,
            };
            if sender.ready().await.is_err() {
                continue;
            }
            let sent = timeout(limit, sender.send_request(self.request(ask)?)).await;
            match sent {
                Ok(Ok(response)) => {
                    self.open = Some(sender);
                    return Ok(response);
                }
                // Nothing was written: it is safe to ask again.
                Ok(Err(error)) if error.is_canceled() && !fresh => {}
                Ok(Err(error)) => return Err(self.unreachable(error.to_string())),
                Err(_) => return Err(self.unreachable("no answer in time".to_owned())),
            }
        }
        Err(self.unreachable("the connection was closed".to_owned()))
    }

    fn request(&self, ask: &Ask<'_>) -> Result<Request<Full<Bytes>>, ClientError> {
        let server = &self.access.server;
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(full_path(ask.path))
            .header(header::HOST, format!("{}:{}", server.host, server.port));
        if !self.access.token.is_empty() {
            let shown = format!("Bearer {}", self.access.token);
            request = request.header(header::AUTHORIZATION, shown);
        }
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        if ask.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(ask.body.clone().unwrap_or_default()));
        request.body(body).map_err(|error| self.garbled(&error.to_string()))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let limit = Duration::from_secs(CONNECT_SECS_MAX);
        match timeout(limit, self.connect_now()).await {
            Ok(sender) => sender,
            Err(_) => Err(self.unreachable(format!("no connection within {CONNECT_SECS_MAX} s"))),
        }
    }

    async fn connect_now(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let server = &self.access.server;
        if let Some(socket) = &server.socket {
            let stream = UnixStream::connect(socket).await;
            let stream = stream.map_err(|error| self.unreachable(error.to_string()))?;
            return self.shake_hands(stream).await;
        }
        let stream = TcpStream::connect((server.host.as_str(), server.port)).await;
        let stream = stream.map_err(|error| self.unreachable(error.to_string()))?;
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return self.shake_hands(stream).await };
        let name = ServerName::try_from(server.host.clone())
            .map_err(|error| self.unreachable(error.to_string()))?;
        let stream = TlsConnector::from(tls.clone()).connect(name, stream).await;
        let stream = stream.map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => {
                ClientError::WrongServer { server: server.to_string(), fault: error.to_string() }
            }
            _ => self.unreachable(error.to_string()),
        })?;
        self.shake_hands(stream).await
    }

    async fn shake_hands<S>(&self, stream: S) -> Result<SendRequest<Full<Bytes>>, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (sender, driver) = shaken.map_err(|error| self.unreachable(error.to_string()))?;
        // Its end shows at the next request.
        tokio::spawn(async move { drop(driver.await) });
        Ok(sender)
    }

    fn unreachable(&self, fault: String) -> ClientError {
        ClientError::Unreachable { server: self.access.server.to_string(), fault }
    }

    fn garbled(&self, fault: &str) -> ClientError {
        let server = self.access.server.to_string();
        ClientError::Garbled { server, fault: fault.to_owned() }
    }
}
