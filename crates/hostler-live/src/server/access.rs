//! Who asks, and whether they may: every handler names the roles that it serves by the type of its
//! caller.
//!
//! A token is looked up by its SHA-256, so no comparison depends on the secret itself.

use std::marker::PhantomData;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;

use super::App;
use super::fault::ApiFault;
use crate::host::Principal;
use crate::store::Role;

/// A set of roles.
pub trait Access: Send + Sync + 'static {
    /// Those who may.
    const ROLES: &'static [Role];
    /// Whether this is what one-time tokens are for; they are good for nothing else.
    const ENROLS: bool = false;
}

/// Those who look at jobs.
pub struct Look;
/// Those who submit and change jobs.
pub struct Work;
/// Those who run the cluster.
pub struct Operate;
/// Agents of enrolled nodes.
pub struct Run;
/// Agents that enrol.
pub struct Enrol;

impl Access for Look {
    const ROLES: &'static [Role] = &[Role::Admin, Role::User, Role::Viewer];
}

impl Access for Work {
    const ROLES: &'static [Role] = &[Role::Admin, Role::User];
}

impl Access for Operate {
    const ROLES: &'static [Role] = &[Role::Admin];
}

impl Access for Run {
    const ROLES: &'static [Role] = &[Role::Agent];
}

impl Access for Enrol {
    const ROLES: &'static [Role] = &[Role::Agent];
    const ENROLS: bool = true;
}

/// Somebody whose token is good for `A`.
pub struct Caller<A> {
    /// Who.
    pub who: Principal,
    access: PhantomData<A>,
}

impl<A: Access> FromRequestParts<App> for Caller<A> {
    type Rejection = ApiFault;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Caller<A>, ApiFault> {
        let now = Instant::now();
        let Some(known) = identify(parts, app).await? else {
            // All who guess share one bucket, whatever they guess.
            return Err(match app.guesses.take(0, now) {
                true => ApiFault::unknown_caller(),
                false => ApiFault::too_many("too many requests without a valid token"),
            });
        };
        let (who, one_time) = known;
        if !app.buckets.take(u64::from(who.token), now) {
            return Err(ApiFault::too_many("too many requests with this token"));
        }
        if !A::ROLES.contains(&who.role) || A::ENROLS != one_time {
            let role = if one_time { "agent (one-time)".to_owned() } else { who.role.to_string() };
            let needed: Vec<String> = A::ROLES.iter().map(Role::to_string).collect();
            let fault = ApiFault::forbidden(format!("the role `{role}` may not do this"));
            return Err(fault.hint(format!("use a token with the role {}", needed.join(" or "))));
        }
        Ok(Caller { who, access: PhantomData })
    }
}

async fn identify(parts: &Parts, app: &App) -> Result<Option<(Principal, bool)>, ApiFault> {
    let shown = parts.headers.get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| value.to_str().ok());
    let secret = shown.and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
    });
    match secret {
        Some(secret) => Ok(app.host.authenticate(secret)),
        None => Ok(None),
    }
}
