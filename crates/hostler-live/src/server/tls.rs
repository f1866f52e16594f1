//! The certificate of the server: one's own, or one that is made on first start and kept.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::client::pin;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or written.
    #[error("cannot use `{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("no certificate or key in `{}`: {source}; PEM is expected", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// Certificate and key do not go together.
    #[error("cannot use the certificate: {0}")]
    Rustls(#[from] rustls::Error),
}

/// What the server shows to its callers.
pub struct Identity {
    /// For the acceptor.
    pub config: Arc<ServerConfig>,
    /// SHA-256 of the certificate, for clients to pin.
    pub fingerprint: String,
}

/// Reads a certificate chain and its key.
pub fn own(certificates: &Path, key: &Path) -> Result<Identity, TlsError> {
    let pem = |path: &Path, source| TlsError::Pem { path: path.to_owned(), source };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect)
        .map_err(|source| pem(certificates, source))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|source| pem(key, source))?;
    let nothing = rustls::pki_types::pem::Error::NoItemsFound;
    let first = chain.first().ok_or_else(|| pem(certificates, nothing))?;
    let fingerprint = pin::fingerprint(first);
    let mut config = ServerConfig::builder_with_provider(pin::provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, secret)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Identity { config: Arc::new(config), fingerprint })
}

/// The certificate of a data folder; made when there is none yet.
pub fn kept(folder: &Path, address: IpAddr) -> Result<Identity, TlsError> {
    let (certificates, key) = (folder.join("tls-cert.pem"), folder.join("tls-key.pem"));
    if !certificates.exists() {
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        if !address.is_unspecified() && !address.is_loopback() {
            names.push(address.to_string());
        }
        names.extend(host_name());
        let made = rcgen::generate_simple_self_signed(names)?;
        // The certificate comes last: where it is, the key is complete.
        write_secret(&key, &made.signing_key.serialize_pem())?;
        write_secret(&certificates, &made.cert.pem())?;
    }
    own(&certificates, &key)
}

/// The name of this machine, where it has one that fits into a certificate.
pub fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (!name.is_empty() && name.chars().all(fits)).then_some(name)
}

/// Writes a file that only its owner reads, whole or not at all.
pub fn write_secret(path: &Path, text: &str) -> Result<(), TlsError> {
    let fault = |source| TlsError::File { path: path.to_owned(), source };
    let draft = path.with_extension("draft");
    let _ = fs::remove_file(&draft);
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft);
    let mut file: File = open.map_err(fault)?;
    file.write_all(text.as_bytes()).map_err(fault)?;
    file.sync_all().map_err(fault)?;
    fs::rename(&draft, path).map_err(fault)?;
    // Without this the name may be gone after a loss of power, and what it held with it.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new(".")));
    folder.and_then(|folder| folder.sync_all()).map_err(fault)
}
