//! Tenants and their quotas; tokens; agents that enrol.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::App;
use super::access::{Caller, Enrol, Look, Operate};
use super::fault::{ApiFault, Body, Named};
use crate::api::{Enrolled, Enrolment, MadeToken, NewToken, Problem};
use crate::host::{Answer, Command, DEFAULT_TENANT, Secret, TenantView, TokenView};
use crate::store::{Role, TenantQuota};

/// Lists tenants: all of them for admins, their own for others.
#[utoipa::path(
    get, path = "/tenants", tag = "people",
    responses((status = 200, description = "Tenants and what they use.", body = Vec<TenantView>)),
)]
pub async fn tenants(
    State(app): State<App>,
    caller: Caller<Look>,
) -> Result<Json<Vec<TenantView>>, ApiFault> {
    let mut tenants = app.host.read(|host| host.tenants()).await?;
    tenants.retain(|tenant| caller.who.sees(&tenant.name));
    Ok(Json(tenants))
}

/// Adds a tenant, or sets what it may use.
#[utoipa::path(
    put, path = "/tenants/{name}", tag = "people",
    params(("name" = String, Path, description = "Its name.",
        min_length = 1, max_length = 128, pattern = "^[^/\\u0000-\\u001f\\u007f-\\u009f]+$")),
    request_body = TenantQuota,
    responses(
        (status = 200, description = "The tenant as it is now.", body = TenantView),
        (status = 201, description = "The tenant, which was added.", body = TenantView),
    ),
)]
pub async fn set_tenant(
    State(app): State<App>,
    caller: Caller<Operate>,
    Named(name): Named<String>,
    Body(quota): Body<TenantQuota>,
) -> Result<(StatusCode, Json<TenantView>), ApiFault> {
    match app.host.command(&caller.who, Command::SetTenant { name, quota }).await? {
        Answer::Tenant { tenant, is_new: true } => Ok((StatusCode::CREATED, Json(*tenant))),
        Answer::Tenant { tenant, is_new: false } => Ok((StatusCode::OK, Json(*tenant))),
        _ => Err(super::wrong_answer()),
    }
}

/// Lists tokens, without their secrets.
#[utoipa::path(
    get, path = "/tokens", tag = "people",
    responses((status = 200, description = "Every token.", body = Vec<TokenView>)),
)]
pub async fn tokens(
    State(app): State<App>,
    _: Caller<Operate>,
) -> Result<Json<Vec<TokenView>>, ApiFault> {
    Ok(Json(app.host.read(|host| host.tokens()).await?))
}

/// Makes a token; the secret is shown this once.
#[utoipa::path(
    post, path = "/tokens", tag = "people", request_body = NewToken,
    responses(
        (status = 201, description = "The token.", body = MadeToken),
        (status = 404, description = "There is no such tenant.", body = Problem),
    ),
)]
pub async fn create_token(
    State(app): State<App>,
    caller: Caller<Operate>,
    Body(new): Body<NewToken>,
) -> Result<(StatusCode, Json<MadeToken>), ApiFault> {
    let NewToken { role, name, tenant, new_tenant } = new;
    let tenant = tenant.as_deref().unwrap_or(DEFAULT_TENANT);
    if !new_tenant && tenant != DEFAULT_TENANT {
        let wanted = tenant.to_owned();
        if app.host.read(move |host| host.tenant(&wanted)).await?.is_none() {
            return Err(ApiFault::missing("tenant", tenant)
                .hint("`hostler tenant list` shows those there are; `--new-tenant` adds it"));
        }
    }
    let one_time = role == Role::Agent;
    let made = app.host.create_token(&caller.who, role, tenant, &name, one_time).await?;
    Ok((StatusCode::CREATED, Json(shown(made))))
}

fn shown((id, secret): (u32, Secret)) -> MadeToken {
    MadeToken { id, token: secret.reveal().to_owned() }
}

/// Lets nobody in with a token any more.
#[utoipa::path(
    delete, path = "/tokens/{id}", tag = "people",
    params(("id" = u32, Path, description = "Its number.")),
    responses(
        (status = 204, description = "It is revoked."),
        (status = 404, description = "There is none.", body = Problem),
        (status = 409, description = "It is the last one of an admin.", body = Problem),
    ),
)]
pub async fn revoke_token(
    State(app): State<App>,
    caller: Caller<Operate>,
    Named(token): Named<u32>,
) -> Result<StatusCode, ApiFault> {
    app.host.command(&caller.who, Command::RevokeToken { token }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Spends a one-time token and lets a secret of the agent speak for the node that it names.
///
/// The agent writes its secret down before it asks, so no answer that gets lost loses the node.
/// While another token speaks for the node, it is refused: revoke that one first.
#[utoipa::path(
    post, path = "/agents/enrol", tag = "agents", request_body = Enrolment,
    responses(
        (status = 201, description = "The agent's secret speaks for the node.", body = Enrolled),
        (status = 409, description = "It is for another node, or another token speaks for it.",
            body = Problem),
    ),
)]
pub async fn enrol(
    State(app): State<App>,
    caller: Caller<Enrol>,
    Body(enrolment): Body<Enrolment>,
) -> Result<(StatusCode, Json<Enrolled>), ApiFault> {
    let Enrolment { node, hash } = enrolment;
    let id = app.host.enrol(&caller.who, &node, &hash).await?;
    Ok((StatusCode::CREATED, Json(Enrolled { id })))
}
