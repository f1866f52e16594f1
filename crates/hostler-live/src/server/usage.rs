//! What jobs used, for those who account for it.

use axum::Json;
use axum::extract::State;

use super::App;
use super::access::{Caller, Look};
use super::fault::{ApiFault, Params};
use crate::api::Problem;
use crate::limits::PAGE_JOBS_MAX;
use crate::store::{HistoryFilter, Role};
use crate::usage::{Meter, Usage, UsageQuery};

/// The period that is meant when nobody says.
const PERIOD_SECS: f64 = 30.0 * 86_400.0;

/// The latest moment that can be asked for: beyond it seconds are no whole numbers any more.
const SECS_MAX: f64 = 1e12;

/// Sums up what jobs used in a period: of all tenants for admins, of their own for others.
///
/// Jobs that run are counted up to now, and everything is cut at the borders of the period.
#[utoipa::path(
    get, path = "/usage", tag = "jobs", params(UsageQuery),
    responses(
        (status = 200, description = "What was used.", body = Usage),
        (status = 404, description = "No such tenant for this caller.", body = Problem),
    ),
)]
pub async fn usage(
    State(app): State<App>,
    caller: Caller<Look>,
    Params(query): Params<UsageQuery>,
) -> Result<Json<Usage>, ApiFault> {
    let who = caller.who;
    if let Some(tenant) = query.tenant.as_deref().filter(|tenant| !who.sees(tenant)) {
        return Err(ApiFault::missing("tenant", tenant));
    }
    let until = query.until.map(|until| micros("until", until)).transpose()?;
    let since = query.since.map(|since| micros("since", since)).transpose()?;
    if let (Some(since), Some(until)) = (since, until)
        && since > until
    {
        return Err(ApiFault::bad("`since` is later than `until`").hint("exchange them"));
    }
    // Tenants that the caller does not see do not exist.
    let tenant = if who.role == Role::Admin { query.tenant } else { Some(who.tenant) };
    let (by, user) = (query.by, query.user);
    let mut filter = HistoryFilter {
        tenant: tenant.clone(),
        user: user.clone(),
        limit: PAGE_JOBS_MAX as usize,
        ..HistoryFilter::default()
    };
    // Who is not over comes first: one that ends meanwhile is known and passed over below.
    let live = app.host.read(move |host| {
        let now = host.now().0;
        let until = until.unwrap_or(now).min(now);
        let since = since.unwrap_or(until.saturating_sub((PERIOD_SECS * 1e6) as u64));
        let mut meter = Meter::new(by, since, until, now);
        let counted = host.measure(&mut meter, tenant.as_deref(), user.as_deref());
        (meter, counted, since)
    });
    let (mut meter, counted, since) = live.await?;
    filter.ended_from = Some(since);
    loop {
        let rows = app.host.history_rows(filter.clone()).await?;
        let last = rows.last().map(|row| row.id);
        for row in rows.iter().filter(|row| counted.binary_search(&row.id).is_err()) {
            meter.add(row);
        }
        match last.filter(|_| rows.len() >= filter.limit) {
            Some(last) => filter.before = Some(last),
            None => return Ok(Json(meter.report())),
        }
    }
}

fn micros(name: &str, seconds: f64) -> Result<u64, ApiFault> {
    if (0.0..=SECS_MAX).contains(&seconds) {
        return Ok((seconds * 1e6) as u64);
    }
    Err(ApiFault::bad(format!("invalid `{name}`: {seconds}")).hint("use seconds since the epoch"))
}
