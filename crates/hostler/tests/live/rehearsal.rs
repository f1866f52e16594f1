//! The daemon against the simulator, with a few jobs.

use std::process::Command;

use serde_json::Value;

/// Rehearses a few jobs; the daemon's log must be what its policy says again.
fn rehearsed(options: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["rehearse", "--jobs", "12", "--nodes", "2", "--load", "1.5", "--json"])
        .args(options)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["jobs"], 12);
    assert_eq!(outcome["live"]["starts"], 12, "{outcome:#}");
    assert_eq!(outcome["replay_check"], "ok", "{outcome:#}");
    outcome
}

#[test]
fn live_and_simulated_runs_of_the_same_jobs_agree() {
    let outcome = rehearsed(&["--policy", "fifo", "--fake-gpus", "2xV100"]);
    assert_eq!(outcome["same_start_order"], true, "{outcome:#}");
    // Below 1 % on a machine of two cores with other work; `hostler rehearse` with its 200 jobs is
    // the measurement.
    let difference = outcome["avg_jct_difference_percent"].as_f64().unwrap();
    assert!(difference.abs() < 5.0, "{outcome:#}");
}

#[test]
fn jobs_that_are_packed_are_rehearsed_too() {
    let packed = ["--policy", "sjf", "--set", "estimate=median", "--set", "sharing=packed"];
    rehearsed(&[&packed[..], &["--fake-gpus", "1xV100"]].concat());
}
