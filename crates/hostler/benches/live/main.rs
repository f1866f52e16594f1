//! How fast the live scheduler is: prints jobs a second, waits for durable answers, times of
//! decisions and memory of the daemon. Asserts nothing but that every job ended well.
//!
//! Run with `cargo xtask bench-live`, or with the measurements to take: `cargo xtask bench-live
//! jobs submits decisions`. Daemon and agent are processes of their own, built in release; what
//! speaks to them lives here and takes its part of the machine.

mod daemon;
mod decisions;
mod http;
mod jobs;
mod submits;

use std::time::Duration;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("threads can be started");
    println!("load of the machine {} (processors {})", load(), processors());
    if wanted("jobs") {
        runtime.block_on(jobs::measure());
    }
    if wanted("submits") {
        runtime.block_on(submits::measure());
    }
    if wanted("decisions") {
        runtime.block_on(decisions::measure());
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
