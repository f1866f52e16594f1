//! Connections: accepted up to a limit, with TLS unless told otherwise, and ended in order.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::local::Peer;
use crate::limits::{CONNECTIONS_MAX, HEAD_SECS_MAX};

/// Time that open requests have after the server was told to stop.
pub(super) const GOODBYE: Duration = Duration::from_secs(5);

/// Time until the next attempt when the system has no room for a connection.
pub(super) const BREATHER: Duration = Duration::from_millis(100);

/// Serves until `stop` turns true, then lets open requests end.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let place = places.clone().acquire_owned().await;
        let place = place.expect("the semaphore is never closed");
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = told(&mut stop) => break,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let (tls, router, stop) = (tls.clone(), router.clone(), stop.clone());
                connections.spawn(connection(stream, tls, router, stop, place));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(BREATHER).await;
            }
        }
    }
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(GOODBYE, all).await.is_err() {
        tracing::info!("connections that are still open are closed");
    }
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    stop: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return requests(stream, router, None, stop).await };
    match timeout(Duration::from_secs(HEAD_SECS_MAX), tls.accept(stream)).await {
        Ok(Ok(stream)) => requests(stream, router, None, stop).await,
        Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
        Err(_) => tracing::debug!("no TLS in time"),
    }
}

/// Answers the requests of one connection. A peer that the kernel knows goes with each of them.
pub(super) async fn requests<S>(
    stream: S,
    router: Router,
    peer: Option<Peer>,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        if let Some(peer) = &peer {
            request.extensions_mut().insert(peer.clone());
        }
        service.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(HEAD_SECS_MAX))
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Waits for the word to stop; whoever could say it being gone is as good.
pub(super) async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
