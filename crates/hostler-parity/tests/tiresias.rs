//! Golden rows of the simulator that was published with Tiresias.
//!
//! They run when the folder that `HOSTLER_PARITY_DATA` names is there, and are reported as skipped
//! otherwise.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::Path;

use hostler_parity::tiresias::{
    self, Options, Placement, TiresiasJob, TiresiasOutcome, read_samples, read_shape,
};
use hostler_sim::fixture::published_data;

/// The one row in which the original ends a job that it had stopped: its mean, and the right one.
const GLUED: (&str, &str) = ("9190.9667", "9191.1000");

fn outcome(
    jobs: &[TiresiasJob],
    samples: &[u64],
    cluster: &str,
    policy: &str,
    placement: &str,
) -> TiresiasOutcome {
    let options = Options {
        shape: read_shape(cluster).unwrap(),
        policy: policy.parse().unwrap(),
        placement: match placement {
            "count" => Placement::Count,
            "yarn" => Placement::Yarn,
            other => panic!("no placement {other}"),
        },
        samples: samples.to_vec(),
    };
    tiresias::run(jobs, &options).unwrap()
}

/// The columns of a row, as the golden files print them.
fn columns(outcome: &TiresiasOutcome) -> Vec<String> {
    vec![
        format!("{:.4}", outcome.avg_jct_s),
        format!("{:.1}", outcome.median_jct_s),
        format!("{:.1}", outcome.p95_jct_s),
        format!("{:.1}", outcome.p99_jct_s),
        outcome.max_jct_s.to_string(),
        outcome.makespan_s.to_string(),
        format!("{:.4}", outcome.avg_pending_s),
        outcome.preemptions.to_string(),
        outcome.promotions.to_string(),
    ]
}

/// Compares every row of a golden file; the answer is how many there are.
fn check(data: &Path, golden: &str, trace: &str) -> usize {
    let jobs = tiresias::read(&data.join(trace)).unwrap();
    let samples = read_samples(&data.join("theirs/tiresias/yarn-gput1000.csv")).unwrap();
    let golden = std::fs::read_to_string(data.join(golden)).unwrap();
    let mut wrong = Vec::new();
    for row in golden.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let [cluster, _, policy, placement, expected @ ..] = &*cells else { panic!("{row}") };
        let ours = columns(&outcome(&jobs, &samples, cluster, policy, placement));
        let glued = expected[0] == GLUED.0;
        let right = if glued { ours[0] == GLUED.1 } else { ours == expected };
        if !right {
            wrong.push(format!("{cluster} {policy} {placement}: {ours:?}, golden {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    golden.lines().count() - 1
}

#[test]
fn the_generated_trace_gives_every_golden_row() {
    let Some(data) = published_data("the generated trace gives every golden row") else { return };
    let rows = check(&data, "ours/tiresias/golden_gen480.csv", "ours/tiresias/gen480_job.csv");
    assert_eq!(rows, 28);
}

#[test]
fn the_published_trace_gives_every_golden_row() {
    let Some(data) = published_data("the published trace gives every golden row") else { return };
    let rows = check(&data, "theirs/tiresias/golden_60job.csv", "theirs/tiresias/60_job.csv");
    assert_eq!(rows, 22);
}

#[test]
fn policies_and_clusters_that_there_are_not_are_refused() {
    assert!("dlas-gpu-x".parse::<tiresias::TiresiasPolicy>().is_err());
    assert!("lpjf".parse::<tiresias::TiresiasPolicy>().is_err());
    assert!(read_shape("n15").is_err());
    let knob = "dlas-gpu-05".parse::<tiresias::TiresiasPolicy>().unwrap();
    assert_eq!(knob, tiresias::TiresiasPolicy::DlasGpu(0.5));
}

#[test]
fn a_job_that_never_fits_is_an_error() {
    let job = |gpus| TiresiasJob { id: "0".into(), gpus, submit: 0, duration: 10 };
    for policy in ["fifo", "shortest", "dlas-gpu"] {
        let options = Options {
            shape: read_shape("n2g4").unwrap(),
            policy: policy.parse().unwrap(),
            placement: Placement::Count,
            samples: Vec::new(),
        };
        assert!(tiresias::run(&[job(8)], &options).is_ok(), "{policy}");
        assert!(tiresias::run(&[job(9)], &options).is_err(), "{policy}");
    }
}
