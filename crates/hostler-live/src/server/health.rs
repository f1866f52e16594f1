//! Whether the daemon lives and works; for those who watch over it, without a token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::State;
use tokio::time::{sleep, timeout};

use super::App;
use super::fault::ApiFault;
use crate::host::{HostError, HostHandle};

/// Time between two questions to the host.
const EVERY: Duration = Duration::from_secs(1);

/// Time that the host has for an answer: longer than any batch takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether the host answered when it was last asked. Those who want to know come without a token
/// and as often as they like, so they do not ask the host themselves.
#[derive(Clone)]
pub struct Pulse(Arc<AtomicBool>);

impl Pulse {
    /// Of a host that has answered just now.
    pub fn new() -> Pulse {
        Pulse(Arc::new(AtomicBool::new(true)))
    }

    /// Asks now and then until the host is over.
    pub async fn feel(self, host: HostHandle) {
        loop {
            sleep(EVERY).await;
            let answered = timeout(PATIENCE, host.read(|_| ())).await;
            self.0.store(matches!(answered, Ok(Ok(()))), Ordering::Relaxed);
            if matches!(answered, Ok(Err(HostError::Stopped { .. } | HostError::Store(_)))) {
                return;
            }
        }
    }

    fn beats(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Says that the process answers.
#[utoipa::path(
    get, path = "/healthz", tag = "about", security(()),
    responses(
        (status = 200, description = "It lives.", body = String, content_type = "text/plain"),
    ),
)]
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// Says that the daemon takes commands.
#[utoipa::path(
    get, path = "/readyz", tag = "about", security(()),
    responses(
        (status = 200, description = "It works.", body = String, content_type = "text/plain"),
    ),
)]
pub async fn readyz(State(app): State<App>) -> Result<&'static str, ApiFault> {
    let has_failed = app.host.fault().borrow().is_some();
    if has_failed || !app.pulse.beats() {
        return Err(ApiFault::unavailable("the daemon takes no commands now"));
    }
    Ok("ok\n")
}
