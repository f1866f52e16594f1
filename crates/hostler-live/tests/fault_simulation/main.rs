//! The daemon, its store and agents in one thread, under a seeded network that delays, drops,
//! repeats and reorders, while daemon, agents, shims and machines die and come back.
//!
//! Whatever happens: an acknowledged submission survives, no job runs twice at once, no GPU is
//! held by two jobs, every job ends once with its true exit code, what is in memory is what is in
//! the store, and everything comes to an end once the faults do.
//!
//! `HOSTLER_FAULT_SEEDS=10000` runs more seeds, `HOSTLER_FAULT_SEED=17` one of them with its
//! story.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod machine;
mod network;
mod people;
mod truth;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use world::World;

/// Seeds that every run of the tests takes.
const SEEDS: u64 = 2_000;

#[test]
fn nothing_is_lost_or_doubled_whatever_dies() {
    if let Some(seed) = number("HOSTLER_FAULT_SEED") {
        return World::new(seed, true).run();
    }
    let seeds = number("HOSTLER_FAULT_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let failed = AtomicU64::new(u64::MAX);
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds || failed.load(Ordering::Relaxed) != u64::MAX {
                        break;
                    }
                    if catch_unwind(AssertUnwindSafe(|| World::new(seed, false).run())).is_err() {
                        failed.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    assert!(
        failed == u64::MAX,
        "seed {failed} fails; for its story run \
         `HOSTLER_FAULT_SEED={failed} cargo test -p hostler-live --test fault_simulation`"
    );
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("seeds are numbers"))
}
