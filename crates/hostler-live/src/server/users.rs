//! Users of the daemon's machine, who come by its socket; and who a caller is.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::App;
use super::access::{Caller, Look, Operate};
use super::fault::{ApiFault, Body, Named};
use super::people::{account, check_tenant};
use crate::api::{Me, NewUser, Problem};
use crate::host::{Answer, Command, DEFAULT_TENANT, Principal, TokenView};
use crate::person::OVERFLOW_UID;
use crate::store::TenantQuota;

/// Says who the caller is.
#[utoipa::path(
    get, path = "/me", tag = "people",
    responses((status = 200, description = "Who asks.", body = Me)),
)]
pub async fn me(State(app): State<App>, caller: Caller<Look>) -> Result<Json<Me>, ApiFault> {
    let Principal { user, role, tenant, person, .. } = caller.who;
    let in_place = match person.clone() {
        Some(person) => app.host.read(move |host| host.runs_as(&person)).await?,
        None => false,
    };
    Ok(Json(Me { user, role, tenant, person, in_place }))
}

/// Lists users of the daemon's machine who are let in by its socket.
#[utoipa::path(
    get, path = "/users", tag = "people",
    responses((status = 200, description = "Every user, also those who are removed.",
        body = Vec<TokenView>)),
)]
pub async fn users(
    State(app): State<App>,
    _: Caller<Operate>,
) -> Result<Json<Vec<TokenView>>, ApiFault> {
    let mut tokens = app.host.read(|host| host.tokens()).await?;
    tokens.retain(|token| token.local);
    Ok(Json(tokens))
}

/// Lets a user of the daemon's machine in by its socket, or says otherwise what one may do.
#[utoipa::path(
    post, path = "/users", tag = "people", request_body = NewUser,
    responses(
        (status = 201, description = "The number under which the user is listed.", body = u32),
        (status = 404, description = "There is no such account or tenant.", body = Problem),
    ),
)]
pub async fn add_user(
    State(app): State<App>,
    caller: Caller<Operate>,
    Body(new): Body<NewUser>,
) -> Result<(StatusCode, Json<u32>), ApiFault> {
    let NewUser { name, role, tenant, new_tenant } = new;
    let tenant = tenant.unwrap_or_else(|| DEFAULT_TENANT.to_owned());
    let Some(account) = account(&name).await? else {
        return Err(ApiFault::missing("user", &name)
            .hint("`getent passwd NAME` on the daemon's machine must know the account"));
    };
    if account.uid == OVERFLOW_UID {
        return Err(ApiFault::bad(format!("user `{name}` stands for all whom nobody knows"))
            .hint("jobs may run as that user: name the account of a person"));
    }
    if !new_tenant {
        check_tenant(&app, &tenant).await?;
    } else if check_tenant(&app, &tenant).await.is_err() {
        let quota = TenantQuota::default();
        app.host.command(&caller.who, Command::SetTenant { name: tenant.clone(), quota }).await?;
    }
    match app.host.command(&caller.who, Command::SetUser { name, role, tenant }).await? {
        Answer::Token(id) => Ok((StatusCode::CREATED, Json(id))),
        _ => Err(super::wrong_answer()),
    }
}

/// Lets a user of the daemon's machine in no more.
#[utoipa::path(
    delete, path = "/users/{name}", tag = "people",
    params(("name" = String, Path, description = "Name of the account.")),
    responses(
        (status = 204, description = "The user is removed."),
        (status = 404, description = "There is none.", body = Problem),
    ),
)]
pub async fn remove_user(
    State(app): State<App>,
    caller: Caller<Operate>,
    Named(name): Named<String>,
) -> Result<StatusCode, ApiFault> {
    app.host.command(&caller.who, Command::RemoveUser { name }).await?;
    Ok(StatusCode::NO_CONTENT)
}
