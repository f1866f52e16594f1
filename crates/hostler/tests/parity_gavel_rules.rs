//! Rules of the published Gavel simulator that its golden rows do not touch, through the program.
//!
//! Small cases: what is expected follows from the rules by hand, or is what an event-driven
//! restatement of the original gives.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// A job: what it is, its steps, its GPUs, its weight and when it arrives.
type Job = (&'static str, u64, u32, f64, f64);

/// Writes a file for one test.
fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the folder for tests can be written to");
    path
}

/// Runs jobs under a policy; `name` tells the files of tests apart.
fn run(name: &str, speeds: &Value, jobs: &[Job], cluster: &str, policy: &str) -> Output {
    let line = |(kind, steps, gpus, weight, at): &Job| {
        format!("{kind}\trun\tjob\t--steps\t0\t{steps}\t{gpus}\t{weight}\t-1\t{at}\n")
    };
    let lines: String = jobs.iter().map(line).collect();
    Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["parity", "gavel", "--json", "--policy", policy, "--cluster", cluster])
        .arg("--trace")
        .arg(written(&format!("{name}.trace"), &lines))
        .arg("--throughputs")
        .arg(written(&format!("{name}.json"), &speeds.to_string()))
        .output()
        .expect("the program runs")
}

fn result(name: &str, speeds: &Value, jobs: &[Job], cluster: &str, policy: &str) -> Value {
    let output = run(name, speeds, jobs, cluster, policy);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{policy}: {told}");
    serde_json::from_slice(&output.stdout).expect("the program prints JSON")
}

/// Checks the seconds from arrival to completion of every job.
fn assert_times(policy: &str, result: &Value, expected: &[f64]) {
    let times = result["jcts_s"].as_array().expect("a list of times");
    let times: Vec<f64> = times.iter().map(|time| time.as_f64().expect("a number")).collect();
    let close = |(got, expected): (&f64, &f64)| (got - expected).abs() < 0.01;
    let met = times.len() == expected.len() && times.iter().zip(expected).all(close);
    assert!(met, "{policy}: {times:?}, expected {expected:?}");
}

/// Speeds on the first two types.
fn two_types(kinds: &[(&str, f64, f64)]) -> Value {
    let mut speeds = json!({"v100": {}, "p100": {}});
    for (kind, fast, slow) in kinds {
        speeds["v100"][*kind]["null"] = json!(fast);
        speeds["p100"][*kind]["null"] = json!(slow);
    }
    speeds
}

/// The second job holds a GPU on which it does nothing, and the third runs behind it.
#[test]
fn a_job_in_the_queue_holds_gpus_that_are_of_no_use_to_it() {
    let speeds = two_types(&[("('pick', 1)", 10.0, 0.0), ("('any', 1)", 10.0, 5.0)]);
    let jobs: [Job; 3] =
        [("pick", 7200, 1, 1.0, 0.0), ("pick", 7200, 1, 1.0, 0.0), ("any", 7200, 1, 1.0, 0.0)];
    for policy in ["fifo_perf", "fifo_packed"] {
        let result = result(policy, &speeds, &jobs, "1:2:0", policy);
        assert_times(policy, &result, &[720.0, 1440.0, 1440.0]);
    }
}

/// The first type has one GPU: too few for the job with two, whose share of it is not less for
/// that.
#[test]
fn a_type_that_is_too_small_for_a_gang_is_shared_out_all_the_same() {
    let speeds = two_types(&[("('two', 2)", 10.0, 6.0), ("('one', 1)", 10.0, 5.0)]);
    let jobs: [Job; 3] =
        [("two", 14400, 2, 1.0, 0.0), ("one", 14400, 1, 1.0, 0.0), ("one", 14400, 1, 1.0, 0.0)];
    let policy = "max_min_fairness_perf";
    let result = result("small-type", &speeds, &jobs, "1:2:0", policy);
    assert_times(policy, &result, &[3480.0, 2160.0, 2340.0]);
}

/// Speeds on the first type alone.
fn one_type(kind: &str, speed: f64) -> Value {
    json!({"v100": {kind: {"null": speed}}})
}

/// The second job arrives in the first one's only round. When that ends nobody runs and nobody
/// will arrive, so the least time between solutions does not count.
#[test]
fn the_last_job_does_not_wait_for_the_next_solution() {
    let jobs: [Job; 2] = [("lone", 527, 1, 1.0, 10.0), ("lone", 120, 1, 1.0, 12.0)];
    for policy in ["fifo_perf", "max_min_fairness_perf"] {
        let name = format!("tail-{policy}");
        let result = result(&name, &one_type("('lone', 1)", 10.0), &jobs, "1:0:0", policy);
        assert_times(policy, &result, &[52.7, 62.7]);
    }
}

/// The first job ends 3000 s after the solution, which counts as one for no job. The second one
/// arrives 490 s later, too early for another, and waits until the third one arrives.
#[test]
fn a_cluster_that_falls_idle_solves_for_nobody() {
    let jobs: [Job; 3] = [
        ("lone", 30000, 1, 1.0, 10.0),
        ("lone", 1000, 1, 1.0, 3500.0),
        ("lone", 1000, 1, 1.0, 6000.0),
    ];
    let result = result("idle", &one_type("('lone', 1)", 10.0), &jobs, "1:0:0", "fifo_perf");
    assert_times("fifo_perf", &result, &[3000.0, 2600.0, 200.0]);
    assert_eq!(result["solves"], 3);
}

/// Jobs by themselves, with nothing to do in between. Types are dealt out in a new order whenever
/// time goes on, also when the last job is done.
#[test]
fn orders_are_drawn_while_the_cluster_is_idle() {
    let speeds = two_types(&[("('lone', 1)", 10.0, 5.0)]);
    let job = |at: u32| ("lone", 1000 * u64::from(at), 1, 1.0, 3000.0 * f64::from(at));
    let jobs: Vec<Job> = (1..=6).map(job).collect();
    let result = result("orders", &speeds, &jobs, "1:1:0", "isolated");
    assert_times("isolated", &result, &[100.0, 380.0, 600.0, 400.0, 640.0, 960.0]);
}

/// Checks that the jobs are refused with these words.
fn assert_refused(name: &str, speeds: &Value, jobs: &[Job], cluster: &str, words: &str) {
    let output = run(name, speeds, jobs, cluster, "max_min_fairness_perf");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains(words), "{told}");
}

/// Four GPUs in all, but no four of a type, and those of the larger type are of no use.
#[test]
fn a_gang_that_no_type_can_hold_is_refused_by_name() {
    let speeds = two_types(&[("('one', 1)", 10.0, 5.0), ("('wide', 2)", 10.0, 0.0)]);
    let jobs: [Job; 2] = [("one", 100, 1, 1.0, 0.0), ("wide", 100, 2, 1.0, 0.0)];
    let words = "job 1: `wide` asks for 2 GPUs of one type; no type it runs on has as many";
    assert_refused("wide", &speeds, &jobs, "1:3:0", words);
}

#[test]
fn a_speed_that_the_table_lacks_is_not_made_up() {
    let speeds = two_types(&[("('one', 1)", 10.0, 5.0)]);
    let jobs: [Job; 1] = [("one", 100, 1, 1.0, 0.0)];
    let words = "job 0: no throughput of `one` at scale 1 on k80; add it to the table";
    assert_refused("no-type", &speeds, &jobs, "2:2:1", words);
    let jobs: [Job; 1] = [("one", 100, 2, 1.0, 0.0)];
    let words = "job 0: no throughput of `one` at scale 2 on v100; add it to the table";
    assert_refused("no-scale", &speeds, &jobs, "2:2:0", words);
}

#[test]
fn weights_need_not_be_whole() {
    let job = |weight: f64| ("lone", 36000, 1, weight, 0.0);
    let jobs: [Job; 3] = [job(1.0), job(1.4), job(2.6)];
    let policy = "max_min_fairness_perf";
    let result = result("weights", &one_type("('lone', 1)", 10.0), &jobs, "1:0:0", policy);
    assert_times(policy, &result, &[10800.0, 9720.0, 6840.0]);
}

#[test]
fn a_weight_that_is_no_number_above_zero_is_refused() {
    for (name, weight) in [("zero", 0.0), ("negative", -1.0), ("nan", f64::NAN)] {
        let jobs: [Job; 1] = [("lone", 100, 1, weight, 0.0)];
        let words = format!(":1: invalid `priority_weight`: `{weight}`");
        let name = format!("weight-{name}");
        assert_refused(&name, &one_type("('lone', 1)", 10.0), &jobs, "1:0:0", &words);
    }
}

/// At 9 steps a second the first job would be done after 100 s and the second one after 200 s.
#[test]
fn two_that_share_end_together_and_pay_each() {
    let pair = json!({"null": 10.0, "('lone', 1)": [9.0, 9.0]});
    let speeds = json!({"v100": {"('lone', 1)": pair}});
    let jobs: [Job; 2] = [("lone", 900, 1, 1.0, 0.0), ("lone", 1800, 1, 1.0, 0.0)];
    let result = result("pair", &speeds, &jobs, "1:0:0", "fifo_packed");
    assert_times("fifo_packed", &result, &[200.0, 200.0]);
    let cost = result["cost"].as_f64().expect("a number");
    assert!((cost - 2.0 * 0.74 * 200.0 / 3600.0).abs() < 1e-9, "{cost}");
    assert_eq!(result["util"], 1.0);
}

/// Shares of pairs have many optimal answers; with another one a job ends up to 429 s off.
#[test]
fn jobs_of_different_weight_are_paired_as_by_the_published_solver() {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
        .join("../../testdata/gavel");
    let speeds = std::fs::read_to_string(folder.join("own_throughputs.json")).expect("a table");
    let speeds: Value = serde_json::from_str(&speeds).expect("JSON");
    let jobs: [Job; 5] = [
        ("embed-s", 108_000, 1, 1.0, 0.0),
        ("seq-s", 37_800, 1, 5.0, 0.0),
        ("conv-l", 34_560, 1, 1.0, 0.0),
        ("embed-s", 108_000, 1, 5.0, 0.0),
        ("seq-s", 226_800, 1, 1.0, 0.0),
    ];
    let policy = "max_min_fairness_packed";
    let result = result("weighted-pairs", &speeds, &jobs, "1:1:0", policy);
    assert_times(policy, &result, &[6188.2941, 2025.0, 15695.625, 3356.4706, 15358.0625]);
}

/// The first job is charged from 0 on and the second one from 300 s on, when the first one ended.
#[test]
fn an_idle_phase_is_charged_to_the_round_after_it() {
    let jobs: [Job; 2] = [("lone", 2000, 1, 1.0, 100.0), ("lone", 1000, 1, 1.0, 5000.0)];
    let result = result("gap", &one_type("('lone', 1)", 10.0), &jobs, "1:0:0", "fifo_perf");
    assert_times("fifo_perf", &result, &[200.0, 100.0]);
    let cost = result["cost"].as_f64().expect("a number");
    assert!((cost - 0.74 * 5100.0 / 3600.0).abs() < 1e-9, "{cost}");
    assert_eq!(result["util"], 1.0);
}
