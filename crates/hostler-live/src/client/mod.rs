//! The other end of the REST interface: what the command line uses.
//!
//! Blocking, one request at a time. The token goes to the server that it belongs to and to no
//! other: over TLS with a pinned certificate, or in the clear on loopback.

mod access;
mod connection;
pub mod pin;
pub mod socket;
pub mod stream;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hyper::body::Bytes;
pub use hyper::{Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::ClientConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

pub use access::{Access, Server, USUAL_SOCKET, credentials_file};
use connection::Connection;

use crate::api::{PREFIX, Problem};

/// Why a request has no answer, or not the one that was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No server is known.
    #[error(
        "no server is known; start one with `hostler serve`, then use the `hostler login` line \
         that it prints"
    )]
    NoServer,
    /// No token is known.
    #[error("no token for `{server}`; use `hostler login`, or set HOSTLER_TOKEN")]
    NoToken {
        /// The server.
        server: String,
    },
    /// The address cannot be read.
    #[error("invalid server `{text}`: {fault}; write `https://HOST:PORT`")]
    Address {
        /// What was given.
        text: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Without the fingerprint of its certificate, anybody could be the server.
    #[error(
        "no fingerprint for `{server}`; give `--fingerprint sha256:..` as in the `hostler login` \
         line that `hostler serve` prints, or set HOSTLER_FINGERPRINT"
    )]
    NoFingerprint {
        /// The server.
        server: String,
    },
    /// The fingerprint cannot be read.
    #[error(
        "invalid fingerprint `{text}`; write `sha256:` and 64 hexadecimal digits, as \
         `hostler serve` prints it"
    )]
    Fingerprint {
        /// What was given.
        text: String,
    },
    /// The credentials cannot be read or written.
    #[error("cannot use `{path}`: {fault}")]
    File {
        /// The file.
        path: String,
        /// Why.
        fault: String,
    },
    /// Nobody answers.
    #[error("cannot reach `{server}`: {fault}; is the daemon running? `hostler serve` starts it")]
    Unreachable {
        /// The server.
        server: String,
        /// Why.
        fault: String,
    },
    /// Somebody answers, but not the server that is known.
    #[error(
        "`{server}` does not have the known certificate: {fault}; if it was made anew, use \
         `hostler login` again"
    )]
    WrongServer {
        /// The server.
        server: String,
        /// What TLS says.
        fault: String,
    },
    /// The server says no.
    #[error("{error}{}{hint}", if hint.is_empty() { "" } else { "; " })]
    Refused {
        /// What kind of refusal.
        status: u16,
        /// Its words.
        error: String,
        /// Its advice.
        hint: String,
    },
    /// The answer makes no sense.
    #[error("`{server}` answered something else than expected: {fault}")]
    Garbled {
        /// The server.
        server: String,
        /// What is wrong with it.
        fault: String,
    },
}

/// A request.
pub struct Ask<'a> {
    /// What to do.
    pub method: Method,
    /// With what, below the prefix.
    pub path: &'a str,
    /// More headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// A JSON body.
    pub body: Option<Vec<u8>>,
}

/// An answer, whatever it says.
pub struct HttpAnswer {
    /// Its status.
    pub status: StatusCode,
    /// Version of what it shows.
    pub etag: Option<String>,
    /// The clock of the server.
    pub date: Option<SystemTime>,
    /// Its text.
    pub body: Bytes,
}

/// A caller of the interface.
pub struct Client {
    runtime: Runtime,
    connection: Connection,
}

impl Client {
    /// A client that has not connected yet and knows its server by the fingerprint.
    pub fn new(access: Access) -> Result<Client, ClientError> {
        let tls = connection::pinned(&access)?;
        Client::over(access, tls)
    }

    /// A client that checks its server like this; nothing is encrypted without.
    pub fn over(access: Access, tls: Option<Arc<ClientConfig>>) -> Result<Client, ClientError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ClientError::Unreachable {
            server: access.server.to_string(),
            fault: error.to_string(),
        })?;
        Ok(Client { runtime, connection: Connection::new(access, tls) })
    }

    /// The server that is called.
    pub fn server(&self) -> &Server {
        self.connection.server()
    }

    /// Asks and gives whatever answer comes.
    pub fn ask(&mut self, ask: &Ask<'_>) -> Result<HttpAnswer, ClientError> {
        self.runtime.block_on(self.connection.ask(ask))
    }

    /// Reads.
    pub fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, ClientError> {
        self.call(&Ask { method: Method::GET, path, headers: &[], body: None })
    }

    /// Does.
    pub fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = Some(json(body));
        self.call(&Ask { method: Method::POST, path, headers: &[], body })
    }

    /// Puts in place.
    pub fn put<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = Some(json(body));
        self.call(&Ask { method: Method::PUT, path, headers: &[], body })
    }

    /// Asks for an answer in JSON.
    pub fn call<T: DeserializeOwned>(&mut self, ask: &Ask<'_>) -> Result<T, ClientError> {
        self.call_with_status(ask).map(|(_, answer)| answer)
    }

    /// Asks for an answer in JSON, and which kind of success it is.
    pub fn call_with_status<T: DeserializeOwned>(
        &mut self,
        ask: &Ask<'_>,
    ) -> Result<(StatusCode, T), ClientError> {
        let answer = self.ask(ask)?;
        if !answer.status.is_success() {
            return Err(refused(&answer));
        }
        let body = if answer.body.is_empty() { &b"null"[..] } else { &answer.body };
        let read = serde_json::from_slice(body).map_err(|error| ClientError::Garbled {
            server: self.server().to_string(),
            fault: error.to_string(),
        });
        read.map(|read| (answer.status, read))
    }

    /// Reads an answer of any size piece by piece; none may be later than `pause`.
    pub fn fetch(
        &mut self,
        path: &str,
        pause: Duration,
        each: impl FnMut(&[u8]) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let ask = Ask { method: Method::GET, path, headers: &[], body: None };
        self.runtime.block_on(self.connection.fetch(&ask, pause, each))
    }

    /// Follows a stream by lines until it ends, `each` says false, or nothing comes for `pause`.
    pub fn follow(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        pause: Duration,
        each: impl FnMut(&str) -> bool,
    ) -> Result<(), ClientError> {
        let ask = Ask { method: Method::GET, path, headers, body: None };
        self.runtime.block_on(self.connection.follow(&ask, pause, each))
    }
}

fn json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("the words of the interface have only text as keys")
}

fn refused(answer: &HttpAnswer) -> ClientError {
    let Problem { error, hint } = serde_json::from_slice(&answer.body).unwrap_or_else(|_| {
        let error = format!("the server answered {}", answer.status);
        Problem { error, hint: String::new() }
    });
    ClientError::Refused { status: answer.status.as_u16(), error, hint }
}

/// The full path of something below the prefix; paths that begin with `//` stand for themselves.
fn full_path(path: &str) -> String {
    match path.strip_prefix("//") {
        Some(path) => format!("/{path}"),
        None => format!("{PREFIX}{path}"),
    }
}

/// A path with the parameters that are given, escaped.
pub fn query(path: &str, parameters: &[(&str, Option<String>)]) -> String {
    let mut full = path.to_owned();
    let mut separator = '?';
    for (name, value) in parameters {
        let Some(value) = value else { continue };
        full.push(separator);
        full.push_str(name);
        full.push('=');
        full.push_str(&escaped(value));
        separator = '&';
    }
    full
}

/// All but what RFC 3986 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as one part of a path or one value of a query.
pub fn escaped(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}
