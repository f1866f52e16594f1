//! A webhook: one POST with a JSON document for each notice, signed where there is a secret.
//!
//! Addresses come from the operator alone. Their path may be a secret itself, as that of a chat
//! room is, so the log has host and port only.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use sha2::Sha256;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{NoticesError, Tried};
use crate::client::pin;
use crate::limits::WEBHOOK_SECS_MAX;
use crate::notice::Notice;

/// Where systems keep the certificates of authorities.
const BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// One receiver.
pub(super) struct Webhook {
    host: String,
    port: u16,
    path: String,
    tls: Option<Arc<ClientConfig>>,
    secret: Option<Arc<[u8]>>,
}

/// All receivers that are named.
pub(super) fn all(
    addresses: &[String],
    secret: Option<Vec<u8>>,
    authorities: Option<PathBuf>,
) -> Result<Vec<Webhook>, NoticesError> {
    let secret: Option<Arc<[u8]>> = secret.map(Arc::from);
    let mut trusted = None;
    let mut webhooks = Vec::new();
    for (number, address) in addresses.iter().enumerate() {
        let wrong = |fault| NoticesError::Address { number: number + 1, fault };
        let uri: Uri = address.trim().parse().map_err(|_| wrong("it is no address"))?;
        let (is_tls, usual) = match uri.scheme_str() {
            Some("https") => (true, 443),
            Some("http") => (false, 80),
            _ => return Err(wrong("it does not begin with `https://`")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("a name before `@` is not sent; a secret signs what is"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if is_tls && trusted.is_none() {
            trusted = Some(trust(authorities.as_ref())?);
        }
        webhooks.push(Webhook {
            host,
            port: uri.port_u16().unwrap_or(usual),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            tls: trusted.clone().filter(|_| is_tls),
            secret: secret.clone(),
        });
    }
    Ok(webhooks)
}

/// TLS towards those whose certificate an authority has signed.
fn trust(file: Option<&PathBuf>) -> Result<Arc<ClientConfig>, NoticesError> {
    let known = BUNDLES.iter().map(PathBuf::from).find(|path| path.exists());
    let path = file.cloned().or(known);
    let place = path
        .as_ref()
        .map_or("on this system".to_owned(), |path| format!("in `{}`", path.display()));
    let cannot = |fault: String| NoticesError::Authorities { place: place.clone(), fault };
    let path = path.ok_or_else(|| cannot("none of the usual files is there".to_owned()))?;
    let found: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(&path).and_then(Iterator::collect);
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.map_err(|f| cannot(f.to_string()))?);
    if added == 0 {
        return Err(cannot("it holds none".to_owned()));
    }
    let config = ClientConfig::builder_with_provider(pin::provider())
        .with_safe_default_protocol_versions()
        .map_err(|fault| cannot(fault.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

impl Webhook {
    /// How it is called in the log.
    pub fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Tells it once.
    pub async fn post(&self, notice: &Notice) -> Tried {
        let body = serde_json::to_vec(notice).expect("a notice is plain data");
        let limit = Duration::from_secs(WEBHOOK_SECS_MAX);
        let status = match timeout(limit, self.exchange(notice, body)).await {
            Ok(Ok(status)) => status,
            Ok(Err(fault)) => return Tried::Failed(fault),
            Err(_) => return Tried::Failed(format!("no answer within {WEBHOOK_SECS_MAX} s")),
        };
        let busy = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status);
        match status {
            status if status.is_success() => Tried::Delivered,
            status if status.is_server_error() || busy => {
                Tried::Failed(format!("it says {status}"))
            }
            status => Tried::Refused(format!("it says {status}")),
        }
    }

    async fn exchange(&self, notice: &Notice, body: Vec<u8>) -> Result<StatusCode, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(|fault| fault.to_string())?;
        let request = self.request(notice, body)?;
        let Some(tls) = &self.tls else { return send(stream, request).await };
        let name = ServerName::try_from(self.host.clone()).map_err(|fault| fault.to_string())?;
        let stream = TlsConnector::from(tls.clone()).connect(name, stream).await;
        send(stream.map_err(|fault| fault.to_string())?, request).await
    }

    fn request(&self, notice: &Notice, body: Vec<u8>) -> Result<Request<Full<Bytes>>, String> {
        let host = match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        };
        let mut request = Request::post(&self.path)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("hostler/", env!("CARGO_PKG_VERSION")))
            .header("hostler-delivery", notice.number);
        if let Some(secret) = &self.secret {
            request = request.header("hostler-signature", signature(secret, &body));
        }
        request.body(Full::new(Bytes::from(body))).map_err(|fault| fault.to_string())
    }
}

/// What shows that the body comes from who knows the secret.
fn signature(secret: &[u8], body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a secret may have any length");
    mac.update(body);
    format!("sha256={}", HEXLOWER.encode(&mac.finalize().into_bytes()))
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>) -> Result<StatusCode, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, driver) = shaken.map_err(|fault| fault.to_string())?;
    // It ends with the connection; what the answer holds besides its status is not read.
    let driver = tokio::spawn(async move { drop(driver.await) });
    let answer = sender.send_request(request).await;
    driver.abort();
    answer.map(|answer| answer.status()).map_err(|fault| fault.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_rfc_4231() {
        // Test case 2.
        let signed = signature(b"Jefe", b"what do ya want for nothing?");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signed, format!("sha256={expected}"));
    }

    #[test]
    fn addresses_are_read_or_refused_without_showing_them() {
        let read = |text: &str| all(&[text.to_owned()], None, None);
        let plain = read("http://127.0.0.1:8080/hook?key=s3cret").unwrap().remove(0);
        assert_eq!((plain.name().as_str(), plain.port), ("127.0.0.1:8080", 8080));
        assert_eq!(plain.path, "/hook?key=s3cret");
        assert_eq!(read("http://[::1]/").unwrap()[0].host, "::1");
        for wrong in ["ftp://host/s3cret", "host/s3cret", "http://ada:s3cret@host/", ""] {
            let fault = read(wrong).err().expect(wrong).to_string();
            assert!(fault.contains("invalid webhook number 1"), "{fault}");
            assert!(!fault.contains("s3cret"), "{fault}");
        }
    }
}
