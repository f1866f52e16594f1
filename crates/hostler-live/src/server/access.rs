//! Who asks, and whether they may: every handler names the roles that it serves by the type of its
//! caller.
//!
//! A token is looked up by its SHA-256, so no comparison depends on the secret itself. Whoever
//! comes by the daemon's socket without one is who the kernel says; no header says it, on any way.

use std::marker::PhantomData;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};

use super::App;
use super::fault::ApiFault;
use super::local::Peer;
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
        let (who, one_time) = match identify(parts, app) {
            Ok(known) => known,
            // All who guess share one bucket, whatever they guess.
            Err(unknown) => {
                return Err(match app.guesses.take(0, now) {
                    true => unknown,
                    false => ApiFault::too_many("too many requests without a valid token"),
                });
            }
        };
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

/// Who asks, and whether the token only enrols an agent; or why nobody is known by what was shown.
fn identify(parts: &Parts, app: &App) -> Result<(Principal, bool), ApiFault> {
    let shown = parts.headers.get(header::AUTHORIZATION);
    let Some(shown) = shown else {
        let peer = parts.extensions.get::<Peer>().ok_or_else(ApiFault::unknown_caller)?;
        let who = peer.principal(&app.host, app.local_tenant.as_deref());
        return who.map(|who| (who, false)).ok_or_else(|| {
            let (error, hint) = peer.unknown();
            ApiFault::new(StatusCode::UNAUTHORIZED, error).hint(hint)
        });
    };
    let secret = shown.to_str().ok().and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
    });
    let known = secret.and_then(|secret| app.host.authenticate(secret));
    known.ok_or_else(ApiFault::unknown_caller)
}
