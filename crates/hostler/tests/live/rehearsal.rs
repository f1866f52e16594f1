//! The daemon against the simulator, with a few jobs.

use std::process::Command;

use serde_json::Value;

#[test]
fn live_and_simulated_runs_of_the_same_jobs_agree() {
    let output = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["rehearse", "--jobs", "12", "--policy", "fifo", "--nodes", "2"])
        .args(["--fake-gpus", "2xV100", "--load", "1.5", "--json"])
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["jobs"], 12);
    assert_eq!(outcome["live"]["starts"], 12, "{outcome:#}");
    assert_eq!(outcome["same_start_order"], true, "{outcome:#}");
    // A machine that is busy with other tests starts processes slowly, so the bound is loose here;
    // `hostler rehearse` with its 200 jobs is the measurement.
    let difference = outcome["avg_jct_difference_percent"].as_f64().unwrap();
    assert!(difference.abs() < 25.0, "{outcome:#}");
}
