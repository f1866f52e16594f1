//! Webhooks over TLS, whose certificate an authority of the operator's has signed.

use std::sync::Arc;
use std::time::Duration;

use hostler_live::api::Accepted;
use hostler_live::client::{Access, Client};
use hostler_live::server::notices;
use hostler_live::server::{self, Certificate, Settings};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::daemon::{job, runtime, settings};

/// Answers every request that comes over TLS, and passes its first bytes on.
async fn listen(listener: TcpListener, tls: TlsAcceptor, heard: mpsc::Sender<String>) {
    loop {
        let (stream, _) = listener.accept().await.expect("the system does as it is told");
        // Who does not trust the certificate goes away.
        let Ok(mut stream) = tls.accept(stream).await else { continue };
        let mut bytes = vec![0; 8192];
        let count = stream.read(&mut bytes).await.unwrap_or(0);
        let _ = stream.write_all(b"HTTP/1.1 204 Good\r\n\r\n").await;
        let _ = heard.send(String::from_utf8_lossy(&bytes[..count]).into_owned()).await;
    }
}

#[test]
fn a_webhook_is_known_by_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let authorities = folder.path().join("authorities.pem");
    std::fs::write(&authorities, made.cert.pem()).unwrap();
    runtime().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (told, mut heard) = mpsc::channel(8);
        tokio::spawn(listen(listener, TlsAcceptor::from(Arc::new(tls)), told));
        let notices = notices::Settings {
            webhooks: vec![format!("https://localhost:{port}/a?b=c")],
            authorities: Some(authorities),
            ..notices::Settings::default()
        };
        let data = folder.path().join("data");
        let settings = Settings { notices, ..settings(&data, Certificate::None) };
        let running = server::start(settings).await.unwrap();
        let access = Access::new(&running.url(), running.first_token().unwrap(), None).unwrap();
        let cancelled = tokio::task::spawn_blocking(move || {
            let mut client = Client::new(access).unwrap();
            let mut job = job();
            job["notify"] = serde_json::json!(["end"]);
            let Accepted { first, .. } = client.post("/jobs", &job).unwrap();
            client.post::<serde_json::Value>(&format!("/jobs/{first}/cancel"), &()).unwrap();
            first
        });
        let job = cancelled.await.unwrap();
        let said = tokio::time::timeout(Duration::from_secs(60), heard.recv()).await;
        let said = said.unwrap().unwrap();
        assert!(said.starts_with("POST /a?b=c HTTP/1.1\r\n"), "{said}");
        assert!(!said.to_lowercase().contains("hostler-signature"), "{said}");
        assert!(said.contains(&format!("\"job\":{job},")), "{said}");
        running.stop().await.unwrap();
    });
}
