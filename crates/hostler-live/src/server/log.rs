//! The log of facts and decisions, for those who want to read it elsewhere.

use axum::Json;
use axum::extract::State;

use super::App;
use super::access::{Caller, Operate};
use super::fault::{ApiFault, Params};
use crate::api::{LogPage, LogQuery};
use crate::limits::{LOG_BYTES_MAX, LOG_RECORDS_AT_ONCE, PAGE_RECORDS_MAX};

/// Lists records of the log, oldest first.
///
/// All of them, one to a line, are a log that `hostler replay` reads.
#[utoipa::path(
    get, path = "/log", tag = "cluster", params(LogQuery),
    responses((status = 200, description = "Some of them.", body = LogPage)),
)]
pub async fn log(
    State(app): State<App>,
    _: Caller<Operate>,
    Params(query): Params<LogQuery>,
) -> Result<Json<LogPage>, ApiFault> {
    let most = query.limit.unwrap_or(PAGE_RECORDS_MAX);
    if !(1..=PAGE_RECORDS_MAX).contains(&most) {
        return Err(ApiFault::bad(format!("invalid `limit`: {most}"))
            .hint(format!("use 1 to {PAGE_RECORDS_MAX}")));
    }
    let mut last = query.after.unwrap_or(0);
    let (mut records, mut bytes) = (Vec::new(), 0);
    while records.len() < most as usize && bytes < LOG_BYTES_MAX {
        let left = (most as usize - records.len()).min(LOG_RECORDS_AT_ONCE);
        let some = app.host.records(last, left).await?;
        if some.is_empty() {
            return Ok(Json(LogPage { records, next: None }));
        }
        for (number, record) in some {
            last = number;
            bytes += record.len();
            records.push(record);
        }
    }
    Ok(Json(LogPage { records, next: Some(last) }))
}
