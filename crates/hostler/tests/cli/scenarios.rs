//! The scenarios of the examples run, and do what they say.

use crate::program::{Folder, repository};

#[test]
fn every_example_scenario_runs_on_the_lecture_trace() {
    let folder = Folder::new();
    let trace = repository("testdata/traces/lecture");
    let scenarios = std::fs::read_dir(repository("examples/scenarios")).expect("they are there");
    let mut count = 0;
    for scenario in scenarios {
        let path = scenario.expect("the folder can be read").path();
        let path = path.to_str().expect("the path is text");
        // Speeds of GPU models that the lecture's machines do not have.
        let cluster = match path.contains("published-speeds") {
            true => format!("--cluster {}", repository("examples/clusters/pai.toml")),
            false => String::new(),
        };
        for policy in ["fifo", "srtf"] {
            let line = format!(
                "simulate --trace {trace} {cluster} --policy {policy} --json --scenario {path}"
            );
            let run = folder.json(&line);
            assert_eq!(run["jobs_done"], 4, "{path} under {policy}");
        }
        count += 1;
    }
    assert!(count >= 4, "only {count} scenarios");
}

/// Numbers of the lecture example under a policy and an example scenario.
fn lecture(policy: &str, scenario: &str) -> serde_json::Value {
    let trace = repository("testdata/traces/lecture");
    let scenario = repository(&format!("examples/scenarios/{scenario}.toml"));
    let line = format!("simulate --trace {trace} --json --policy {policy} --scenario {scenario}");
    Folder::new().json(&line)
}

#[test]
fn a_failed_node_costs_the_work_since_the_last_save() {
    let run = lecture("fifo", "node-failures");
    // Down from 20 to 50. Job 0 has worked 20 s and saved 20, job 2 has worked 10 and saved 10;
    // job 1 was done at 10. From 50: job 0 for 10 s, job 2 for 15, then job 3 from 60 to 100.
    assert_eq!(run["makespan_s"], 100.0);
    assert_eq!(run["avg_jct_s"], (60.0 + 10.0 + 64.0 + 96.0) / 4.0);
}
