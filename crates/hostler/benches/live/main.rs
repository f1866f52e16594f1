//! How fast the live scheduler is: prints jobs a second, waits for durable answers, times of
//! decisions and memory of the daemon. Asserts nothing but that every job ended well.
//!
//! Run with `cargo xtask bench-live`, or with the measurements to take: `cargo xtask bench-live
//! jobs submits decisions`. Daemon and agent are processes of their own, built in release; what
//! speaks to them lives here and takes its part of the machine. The word `short` takes the same
//! measurements over so little that their figures say nothing: `cargo xtask test` asks in this way
//! whether they still run.

mod daemon;
mod decisions;
mod http;
mod jobs;
#[allow(dead_code, reason = "tests use what is not used here")]
#[path = "../../tests/harness/processes.rs"]
mod processes;
mod submits;

use std::time::{Duration, Instant};

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// How much is measured.
struct Size {
    /// Short jobs that run end to end.
    jobs: usize,
    /// How long jobs are submitted at a fixed rate.
    submit_secs: u32,
    /// Nodes of the large cluster.
    nodes: u32,
    /// Jobs that wait for them, in thousands.
    waiting_thousands: u32,
    /// How long decisions are watched.
    decision_secs: u64,
}

const FULL: Size =
    Size { jobs: 2_000, submit_secs: 20, nodes: 5_000, waiting_thousands: 50, decision_secs: 30 };

const SHORT: Size =
    Size { jobs: 64, submit_secs: 1, nodes: 8, waiting_thousands: 1, decision_secs: 1 };

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let (sizes, words): (Vec<String>, Vec<String>) =
        words.into_iter().partition(|word| word == "short");
    let size = if sizes.is_empty() { &FULL } else { &SHORT };
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("threads can be started");
    println!("load of the machine {} (processors {})", load(), processors());
    if wanted("jobs") {
        runtime.block_on(jobs::measure(size));
    }
    if wanted("submits") {
        runtime.block_on(submits::measure(size));
    }
    if wanted("decisions") {
        runtime.block_on(decisions::measure(size));
    }
}

/// Waits until a figure of the daemon's is so high.
///
/// # Panics
///
/// When that takes longer than anything here should: a benchmark must not hang.
async fn until(client: &mut http::Http, figure: &str, goal: f64) {
    let begun = Instant::now();
    loop {
        let now = client.figure(figure).await;
        if now >= goal {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "`{figure}` is {now} of {goal} after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The load averages as they are now.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The value below which a share of sorted values lies.
fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
