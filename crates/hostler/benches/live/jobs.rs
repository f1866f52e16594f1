//! Short jobs from submission to end: 2,000 times `true` on one agent with 64 GPUs.

use std::time::Instant;

use hostler_live::api::Accepted;

use crate::daemon::Daemon;
use crate::{Size, load, until};

/// Callers at a time.
const CALLERS: usize = 16;

pub async fn measure(size: &Size) {
    let wanted = size.jobs;
    let mut daemon = Daemon::start("jobs", "kind = \"fifo-backfill\"\nestimate = \"user\"\n");
    daemon.start_agent("64xV100").await;
    let mut client = daemon.client().await;
    let (load, before, begun) = (load(), daemon.processor_secs(), Instant::now());
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        let mut client = daemon.client().await;
        callers.push(tokio::spawn(async move {
            for _ in 0..wanted / CALLERS {
                let job = r#"{"command":["true"],"gpus":1}"#;
                let _: Accepted = client.post("/jobs", job).await;
            }
        }));
    }
    for caller in callers {
        caller.await.expect("a caller does not fail");
    }
    let submitted = begun.elapsed();
    until(&mut client, "jobs_ended_total", wanted as f64).await;
    let (wall, after) = (begun.elapsed(), daemon.processor_secs());
    let page = client.text("GET", "/api/v1/history?state=finished&limit=1000", "").await;
    assert!(page.contains("\"exit_code\":0"), "jobs finished with code 0");
    let finished = client.text("GET", "/metrics", "").await;
    let all = format!("hostler_jobs_ended_total{{state=\"finished\"}} {wanted}");
    assert!(finished.contains(&all), "every job finished");
    println!(
        "jobs: {wanted} of `true`, one agent, 64 GPUs: {:.0} jobs/s (goal 300) in {:.2} s; \
         submitted after {:.2} s",
        wanted as f64 / wall.as_secs_f64(),
        wall.as_secs_f64(),
        submitted.as_secs_f64(),
    );
    println!(
        "  processor time: daemon {:.2} ms, agent and jobs {:.2} ms for each job; load before {load}",
        (after.0 - before.0) * 1e3 / wanted as f64,
        (after.1 - before.1) * 1e3 / wanted as f64,
    );
}
