//! Which server is called, and with which token: from the environment or from the credentials that
//! `hostler login` keeps.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use hyper::Uri;
use serde::{Deserialize, Serialize};

use super::{ClientError, pin};
use crate::limits::PORT;
use crate::server::tls::write_secret;

/// A server, as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Whether it speaks TLS.
    pub tls: bool,
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The socket on this machine by which it is called instead: it knows callers by themselves.
    pub socket: Option<PathBuf>,
}

/// All that a caller needs.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    /// Whom to call.
    pub server: Server,
    /// The secret; empty for a caller who is known without, over a socket.
    pub token: String,
    /// SHA-256 of the server's certificate; none without TLS.
    pub fingerprint: Option<String>,
}

/// The credentials as they are kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    server: String,
    token: String,
    fingerprint: Option<String>,
}

impl Server {
    /// The server behind a socket of this machine.
    pub fn local(socket: &Path) -> Server {
        let (host, socket) = ("localhost".to_owned(), Some(socket.to_owned()));
        Server { tls: false, host, port: PORT, socket }
    }

    /// Reads `https://HOST[:PORT]`, or `unix:PATH` for a socket of this machine.
    pub fn parse(text: &str) -> Result<Server, ClientError> {
        let wrong = |fault| ClientError::Address { text: text.to_owned(), fault };
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path.is_empty() {
                true => Err(wrong("it names no socket")),
                false => Ok(Server::local(Path::new(path))),
            };
        }
        let uri: Uri = text.parse().map_err(|_| wrong("it is no address"))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("it does not begin with `https://`")),
        };
        if !matches!(uri.path(), "" | "/") {
            return Err(wrong("there is something after the port"));
        }
        let host = uri.host().ok_or_else(|| wrong("it has no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(PORT);
        let server = Server { tls, host, port, socket: None };
        if !server.tls && !server.is_loopback() {
            return Err(wrong("without TLS only servers on loopback are called"));
        }
        Ok(server)
    }

    /// Whether what is said to it stays on this machine.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(socket) = &self.socket {
            return write!(f, "unix:{}", socket.display());
        }
        let scheme = if self.tls { "https" } else { "http" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access to {}", self.server)
    }
}

impl Access {
    /// Checks what `hostler login` was given.
    pub fn new(server: &str, token: &str, fingerprint: Option<&str>) -> Result<Self, ClientError> {
        let server = Server::parse(server)?;
        match fingerprint.filter(|text| !text.is_empty()) {
            None if server.tls => {
                return Err(ClientError::NoFingerprint { server: server.to_string() });
            }
            Some(text) if server.tls && !pin::is_fingerprint(text) => {
                return Err(ClientError::Fingerprint { text: text.to_owned() });
            }
            _ => {}
        }
        let needs_token = server.socket.is_none();
        let bad = |byte: u8| !byte.is_ascii_graphic();
        if (token.is_empty() && needs_token) || token.bytes().any(bad) {
            return Err(ClientError::NoToken { server: server.to_string() });
        }
        let (token, fingerprint) = (token.to_owned(), fingerprint.map(str::to_owned));
        Ok(Access { server, token, fingerprint })
    }

    /// What the environment says, and what is kept for the same server; without either, the usual
    /// socket of this machine, if there is one.
    ///
    /// What is kept for one server is never sent to another.
    pub fn find(
        variable: impl Fn(&str) -> Option<String>,
        file: Option<&Path>,
        usual: &Path,
    ) -> Result<Access, ClientError> {
        let kept = file.map(read).transpose()?.flatten();
        let server = variable("HOSTLER_SERVER");
        let kept = match (&server, kept) {
            (Some(server), Some(kept))
                if Server::parse(server)? != Server::parse(&kept.server)? =>
            {
                None
            }
            (_, kept) => kept,
        };
        let of_kept = |field: fn(&Kept) -> Option<String>| kept.as_ref().and_then(field);
        let server = server.or_else(|| of_kept(|kept| Some(kept.server.clone())));
        let local = || usual.exists().then(|| Server::local(usual).to_string());
        let server = server.or_else(local).ok_or(ClientError::NoServer)?;
        let token = variable("HOSTLER_TOKEN").or_else(|| of_kept(|kept| Some(kept.token.clone())));
        let token = token.or_else(|| server.starts_with("unix:").then(String::new));
        let token = token.ok_or_else(|| ClientError::NoToken { server: server.clone() })?;
        let fingerprint = variable("HOSTLER_FINGERPRINT");
        let fingerprint = fingerprint.or_else(|| of_kept(|kept| kept.fingerprint.clone()));
        Access::new(&server, &token, fingerprint.as_deref())
    }

    /// Keeps it in a file that only its owner reads.
    pub fn keep(&self, file: &Path) -> Result<(), ClientError> {
        let fault = |fault: String| ClientError::File { path: file.display().to_string(), fault };
        let kept = Kept {
            server: self.server.to_string(),
            token: self.token.clone(),
            fingerprint: self.fingerprint.clone(),
        };
        let text = toml::to_string(&kept).map_err(|error| fault(error.to_string()))?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(|error| fault(error.to_string()))?;
        }
        write_secret(file, &text).map_err(|error| fault(error.to_string()))
    }
}

fn read(file: &Path) -> Result<Option<Kept>, ClientError> {
    let fault = |fault: String| ClientError::File { path: file.display().to_string(), fault };
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error.to_string())),
    };
    // The message alone: the parser would quote the line, and with it the token.
    let kept = toml::from_str(&text).map_err(|error| fault(error.message().to_owned()))?;
    Ok(Some(kept))
}

/// Where a daemon that serves a whole machine listens to its users.
pub const USUAL_SOCKET: &str = "/run/hostler/hostler.sock";

/// Where `hostler login` keeps credentials.
pub fn credentials_file(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(config.join("hostler/credentials.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVICE: &str = "; write `https://HOST:PORT`";

    #[test]
    fn servers_are_read_and_written() {
        let same = |text: &str| Server::parse(text).map(|server| server.to_string());
        assert_eq!(same("https://gpu.example").unwrap(), "https://gpu.example:7717");
        assert_eq!(same("https://[::1]:80/").unwrap(), "https://[::1]:80");
        assert_eq!(same("http://127.0.0.1:1").unwrap(), "http://127.0.0.1:1");
        let faults = ["gpu.example", "http://gpu.example", "https://a/b", "ftp://a", "https://"];
        let faults: Vec<_> =
            faults.map(|text| same(text).unwrap_err().to_string().replace(ADVICE, "")).into();
        expect_test::expect![[r#"
            invalid server `gpu.example`: it does not begin with `https://`
            invalid server `http://gpu.example`: without TLS only servers on loopback are called
            invalid server `https://a/b`: there is something after the port
            invalid server `ftp://a`: it does not begin with `https://`
            invalid server `https://`: it is no address"#]]
        .assert_eq(&faults.join("\n"));
    }

    #[test]
    fn a_socket_needs_no_token_and_comes_last() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, file) = (folder.path().join("socket"), folder.path().join("credentials"));
        let none = |_: &str| None;
        let missing = Access::find(none, Some(&file), &socket).unwrap_err();
        assert!(matches!(missing, ClientError::NoServer), "{missing}");
        std::fs::write(&socket, "").unwrap();
        let found = Access::find(none, Some(&file), &socket).unwrap();
        assert_eq!((found.token.as_str(), found.server.socket.as_ref()), ("", Some(&socket)));
        let kept = Access::new("http://127.0.0.1:1", "secret", None).unwrap();
        kept.keep(&file).unwrap();
        assert_eq!(Access::find(none, Some(&file), &socket).unwrap(), kept);
        let named = |name: &str| (name == "HOSTLER_SERVER").then(|| "unix:///a/b".to_owned());
        let named = Access::find(named, Some(&file), &socket).unwrap();
        assert_eq!((named.server.to_string(), named.token.as_str()), ("unix:/a/b".into(), ""));
        assert!(Server::parse("unix:").is_err());
    }

    #[test]
    fn a_server_with_tls_is_known_by_its_fingerprint() {
        let fault = |fingerprint| {
            let access = Access::new("https://gpu.example", "secret", fingerprint);
            access.unwrap_err().to_string()
        };
        let none = "no fingerprint for `https://gpu.example:7717`; give `--fingerprint sha256:..`";
        assert!(fault(None).starts_with(none), "{}", fault(None));
        assert!(fault(Some("")).starts_with(none));
        assert!(fault(Some("sha256:1")).starts_with("invalid fingerprint `sha256:1`"));
        let good = format!("sha256:{}", "0".repeat(64));
        assert!(Access::new("https://gpu.example", "secret", Some(&good)).is_ok());
    }

    #[test]
    fn a_kept_token_does_not_go_to_another_server() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hostler/credentials.toml");
        let kept = Access::new("http://127.0.0.1:1", "secret", None).unwrap();
        kept.keep(&file).unwrap();
        let find = |server: &'static str| {
            let set = move |name: &str| (name == "HOSTLER_SERVER").then(|| server.to_owned());
            Access::find(set, Some(&file), Path::new("/no/such/socket"))
        };
        assert_eq!(find("http://127.0.0.1:1").unwrap(), kept);
        let error = find("http://127.0.0.1:2").unwrap_err();
        assert!(matches!(error, ClientError::NoToken { .. }), "{error}");
    }
}
