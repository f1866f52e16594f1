//! Hostler beside and on top of a real Slurm: prints what it costs to start a job, and what became
//! of the same jobs under either. Asserts nothing but that every job ended well.
//!
//! Run with `cargo xtask bench-slurm`, or with the measurements to take: `cargo xtask bench-slurm
//! starts latency decisions policies`. Needs root and Slurm's programs, as the tests of the driver
//! do, whose cluster this is: 28 nodes with 112 made-up GPUs on one machine. The word `short` takes
//! so little that the figures say nothing: `cargo xtask test` asks in this way whether they still
//! run.

#![allow(clippy::unwrap_used, reason = "measures what works; helpers stop with the fault")]

#[path = "../../tests/harness/mod.rs"]
mod harness;
#[allow(dead_code, reason = "tests use what is not used here")]
#[path = "../../tests/slurm/lab.rs"]
mod lab;

mod day;
mod policies;
mod starts;

use lab::Kind;

/// Nodes in the proportions of a cluster that was published: many kinds, few of the best.
const PAI: &[Kind] = &[
    Kind { prefix: "v", count: 4, model: "v100", gpus: 8 },
    Kind { prefix: "m", count: 6, model: "misc", gpus: 8 },
    Kind { prefix: "p", count: 8, model: "p100", gpus: 2 },
    Kind { prefix: "t", count: 8, model: "t4", gpus: 2 },
    Kind { prefix: "c", count: 2, model: "", gpus: 0 },
];

/// How much is measured.
struct Size {
    /// Jobs that are started at once, as many as the cluster has room for.
    starts: usize,
    /// Starts of which each is waited for.
    latencies: usize,
    /// Jobs that wait while others are started.
    waiting: usize,
    /// Jobs of the comparison.
    jobs: usize,
    /// How long the least, the middle and the longest of them run.
    secs: (f64, f64, f64),
}

const FULL: Size =
    Size { starts: 800, latencies: 15, waiting: 1000, jobs: 200, secs: (4.0, 25.0, 150.0) };

const SHORT: Size = Size { starts: 20, latencies: 1, waiting: 20, jobs: 4, secs: (1.0, 1.0, 2.0) };

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let (sizes, words): (Vec<String>, Vec<String>) =
        words.into_iter().partition(|word| word == "short");
    let size = if sizes.is_empty() { &FULL } else { &SHORT };
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    if !lab::is_possible() {
        return;
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    println!("load of the machine before {}", load.trim());
    if wanted("starts") {
        starts::measure(size);
    }
    if wanted("latency") {
        starts::latency(size);
    }
    if wanted("decisions") {
        starts::decisions(size);
    }
    if wanted("policies") {
        policies::measure(size);
    }
}
