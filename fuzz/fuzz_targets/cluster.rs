//! Any text as a cluster file: machines within the limits that can be scaled, or an error.
#![no_main]

use hostler_sim::trace::{Cluster, scaled};

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Cluster::parse(text, "cluster.toml") {
        Ok(cluster) => {
            let small = scaled(&cluster, 10);
            assert!(!small.nodes.is_empty());
            assert!(small.nodes.len() <= cluster.nodes.len());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
