//! Any text as a scenario: applied to the lecture cluster, or an error.
#![no_main]

use hostler_sim::lower::Workload;
use hostler_sim::scenario::Scenario;
use hostler_sim::trace::{Cluster, PaiLike};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(scenario) = Scenario::parse(text) else { return };
    let trace = PaiLike { jobs: 2, ..PaiLike::default() }.generate().expect("two jobs");
    let mut workload = Workload::new(trace, &Cluster::lecture()).expect("a valid workload");
    if let Err(error) = scenario.apply(&mut workload) {
        assert!(!error.to_string().is_empty());
    }
});
