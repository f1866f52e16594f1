//! How long a caller waits until a job is safe: 500 submissions a second, one job each, while the
//! only node is full.

use std::time::{Duration, Instant};

use hostler_live::api::Accepted;

use crate::daemon::Daemon;
use crate::http::Http;
use crate::{Size, load, millis, quantile, until};

const PER_SECOND: u32 = 500;

/// Callers at a time: each sends at its own fixed times, however long answers take.
const CALLERS: u32 = 50;

pub async fn measure(size: &Size) {
    let mut daemon = Daemon::start("submits", "kind = \"fifo-backfill\"\nestimate = \"user\"\n");
    daemon.start_agent("8xV100").await;
    let mut client = daemon.client().await;
    let job = r#"{"command":["sleep","1000"],"gpus":8}"#;
    let first: Accepted = client.post("/jobs", job).await;
    let load = load();
    let begun = Instant::now() + Duration::from_millis(100);
    let before = daemon.processor_secs();
    let turns = PER_SECOND * size.submit_secs / CALLERS;
    let mut callers = Vec::new();
    for number in 0..CALLERS {
        let client = daemon.client().await;
        callers.push(tokio::spawn(call(client, begun, number, turns)));
    }
    let mut waits = Vec::new();
    for caller in callers {
        waits.extend(caller.await.expect("a caller does not fail"));
    }
    let spent = daemon.processor_secs().0 - before.0;
    waits.sort();
    println!(
        "submits: {} at {PER_SECOND} a second, durable: p50 {}, p99 {} (goal 20 ms), worst {}",
        waits.len(),
        millis(quantile(&waits, 0.5)),
        millis(quantile(&waits, 0.99)),
        millis(quantile(&waits, 1.0)),
    );
    println!(
        "  processor time: daemon {:.2} ms for each; load before {load}",
        spent * 1e3 / waits.len() as f64
    );
    // The first connection was idle for too long to be there still.
    let mut client = daemon.client().await;
    client.text("POST", &format!("/api/v1/jobs/{}/cancel", first.first), "").await;
    until(&mut client, "jobs_ended_total", 1.0).await;
}

/// Waits of one caller, counted from when the request was due.
async fn call(mut client: Http, begun: Instant, number: u32, turns: u32) -> Vec<Duration> {
    let mut waits = Vec::new();
    for turn in 0..turns {
        let due = begun + Duration::from_secs(1) * (turn * CALLERS + number) / PER_SECOND;
        tokio::time::sleep_until(due.into()).await;
        let job = r#"{"command":["python","train.py"],"gpus":1,"estimate_secs":600}"#;
        let _: Accepted = client.post("/jobs", job).await;
        waits.push(due.elapsed());
    }
    waits
}
