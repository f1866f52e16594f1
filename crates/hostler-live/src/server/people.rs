//! Tenants and their quotas; tokens; agents that enrol.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::App;
use super::access::{Caller, Enrol, Look, Operate};
use super::fault::{ApiFault, Body, Named};
use crate::api::{Enrolled, Enrolment, MadeToken, NewToken, Problem};
use crate::host::{Answer, Command, DEFAULT_TENANT, Secret, TenantView, TokenView};
use crate::person::{Account, Person, is_account_name};
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
    let NewToken { role, name, tenant, new_tenant, unix_user } = new;
    let tenant = tenant.as_deref().unwrap_or(DEFAULT_TENANT);
    if !new_tenant {
        check_tenant(&app, tenant).await?;
    }
    let person = match unix_user {
        Some(_) if role == Role::Agent => {
            return Err(ApiFault::bad("invalid `unix_user`: an agent submits no jobs"));
        }
        Some(name) => Some(person(name).await?),
        None => None,
    };
    let (who, one_time) = (&caller.who, role == Role::Agent);
    let made = app.host.create_token(who, role, tenant, &name, one_time, person).await?;
    Ok((StatusCode::CREATED, Json(shown(made))))
}

/// Whether there is such a tenant.
pub(super) async fn check_tenant(app: &App, tenant: &str) -> Result<(), ApiFault> {
    let wanted = tenant.to_owned();
    let known = tenant == DEFAULT_TENANT
        || app.host.read(move |host| host.tenant(&wanted)).await?.is_some();
    let missing = || {
        ApiFault::missing("tenant", tenant)
            .hint("`hostler tenant list` shows those there are; `--new-tenant` adds it")
    };
    if known { Ok(()) } else { Err(missing()) }
}

/// Somebody by name, with the number that the account has on this machine, if it is there: nodes on
/// which it has another refuse.
async fn person(name: String) -> Result<Person, ApiFault> {
    if !is_account_name(&name) {
        let name = name.escape_debug();
        return Err(ApiFault::bad(format!("invalid `unix_user`: `{name}` is no account's name")));
    }
    let uid = account(&name).await?.map(|account| account.uid);
    if uid == Some(0) {
        return Err(ApiFault::bad("invalid `unix_user`: no job runs as root").hint("name a person"));
    }
    Ok(Person { name, uid })
}

/// The account of a name on this machine.
pub(super) async fn account(name: &str) -> Result<Option<Account>, ApiFault> {
    let wanted = name.to_owned();
    let found = tokio::task::spawn_blocking(move || Account::named(&wanted)).await;
    let found = found.map_err(std::io::Error::other).and_then(|found| found);
    found.map_err(|fault| ApiFault::unavailable(format!("cannot look up `{name}`: {fault}")))
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
