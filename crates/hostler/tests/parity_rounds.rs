//! Golden cells of the simulators of Tiresias and Blox, through the program.
//!
//! Run when the folder that `HOSTLER_PARITY_DATA` names is there, and reported as skipped
//! otherwise. That every cell is met is tested where the simulators are repeated.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::Path;
use std::process::Command;

use hostler_sim::fixture::published_data;
use serde_json::Value;

fn outcome(simulator: &str, trace: &Path, arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["parity", simulator, "--json", "--trace"])
        .arg(trace)
        .args(arguments)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_cell_of_tiresias_comes_out_of_the_program_as_published() {
    let name = "a cell of tiresias comes out of the program as published";
    let Some(data) = published_data(name) else { return };
    let trace = data.join("ours/tiresias/gen480_job.csv");
    // It finds the published GPU times by itself.
    for (policy, placement, mean) in [
        ("fifo", "count", "36083.1813"),
        ("dlas-gpu", "count", "9617.9646"),
        ("dlas-gpu-gittins", "count", "9045.4854"),
    ] {
        let settings = ["--cluster", "n15g4", "--policy", policy, "--placement", placement];
        let outcome = outcome("tiresias", &trace, &settings);
        assert_eq!(format!("{:.4}", outcome["avg_jct_s"].as_f64().unwrap()), mean, "{policy}");
        assert_eq!(outcome["policy"], policy);
    }
}

#[test]
fn a_cell_of_blox_comes_out_of_the_program_as_published() {
    let name = "a cell of blox comes out of the program as published";
    let Some(data) = published_data(name) else { return };
    let trace = data.join("ours/blox/blox_multi_l0.9.csv");
    for (policy, mean, suspensions) in [("fifo", "859129.53234", 0), ("las", "207339.98010", 17640)]
    {
        let settings = ["--gpus", "32", "--policy", policy, "--tracked", "200-400"];
        let outcome = outcome("blox", &trace, &settings);
        assert_eq!(format!("{:.5}", outcome["avg_jct_s"].as_f64().unwrap()), mean, "{policy}");
        assert_eq!(outcome["suspensions"], suspensions, "{policy}");
    }
}
