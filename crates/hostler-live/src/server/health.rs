//! Whether the daemon lives and works; for those who watch over it, without a token.

use axum::extract::State;

use super::App;
use super::fault::Fault;

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
pub async fn readyz(State(app): State<App>) -> Result<&'static str, Fault> {
    app.host.read(|_| ()).await?;
    Ok("ok\n")
}
