//! Golden rows of the simulator that was published with Blox.
//!
//! They run when the folder that `HOSTLER_PARITY_DATA` names is there, and are reported as skipped
//! otherwise.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::ops::RangeInclusive;
use std::path::Path;

use hostler_parity::blox::{self, BloxJob, BloxOutcome, BloxPolicy, Options};
use hostler_sim::fixture::published_data;

fn policy(name: &str) -> BloxPolicy {
    match name {
        "Fifo" => BloxPolicy::Fifo,
        "Las" => BloxPolicy::Las,
        "Srtf" => BloxPolicy::Srtf,
        other => panic!("no policy {other}"),
    }
}

fn outcome(trace: &Path, gpus: u32, named: &str, tracked: RangeInclusive<usize>) -> BloxOutcome {
    let jobs = blox::read(trace).unwrap();
    blox::run(&jobs, &Options { gpus, policy: policy(named), tracked: Some(tracked) }).unwrap()
}

/// The columns of a row, as the golden file prints them.
fn columns(outcome: &BloxOutcome) -> Vec<String> {
    let mut columns = vec![format!("{:.5}", outcome.avg_jct_s)];
    let numbers = [outcome.median_jct_s, outcome.p95_jct_s, outcome.max_jct_s];
    let counts = [outcome.rounds, outcome.suspensions];
    columns.extend(numbers.into_iter().chain(counts).map(|number| number.to_string()));
    columns
}

#[test]
fn the_generated_traces_give_every_golden_row() {
    let Some(data) = published_data("the generated traces give every golden row") else { return };
    let folder = data.join("ours/blox");
    let golden = std::fs::read_to_string(folder.join("golden.csv")).unwrap();
    let mut wrong = Vec::new();
    for row in golden.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let [trace, named, tracked, expected @ .., _] = &*cells else { panic!("{row}") };
        let (first, last) = tracked.split_once('-').unwrap();
        let tracked = first.parse().unwrap()..=last.parse().unwrap();
        let trace_file = folder.join(format!("{trace}.csv"));
        let ours = columns(&outcome(&trace_file, 32, named, tracked));
        if ours != expected {
            wrong.push(format!("{trace} {named}: {ours:?}, golden {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(golden.lines().count(), 12);
}

#[test]
fn the_setting_of_the_paper_gives_its_numbers() {
    let Some(data) = published_data("the setting of the paper gives its numbers") else { return };
    let trace = data.join("ours/blox/blox_full_l8.csv");
    let rows = [
        ("Fifo", "76746.96503", 36326, 616_372, 7934, 0),
        ("Las", "93627.58442", 15696, 2_947_866, 14742, 82529),
        ("Srtf", "61690.62138", 15696, 1_039_372, 8745, 2478),
    ];
    for (named, mean, median, max, rounds, suspensions) in rows {
        let ours = outcome(&trace, 128, named, 3000..=4000);
        assert_eq!(format!("{:.5}", ours.avg_jct_s), mean, "{named}");
        assert_eq!((ours.median_jct_s, ours.max_jct_s), (median, max), "{named}");
        assert_eq!((ours.rounds, ours.suspensions), (rounds, suspensions), "{named}");
    }
}

#[test]
fn a_job_that_no_nodes_give_just_as_many_gpus_is_an_error() {
    // Each node gives four: four are enough, eight too, but never six.
    let job = |gpus| BloxJob { arrival: 0, duration: 10, gpus };
    let options = Options { gpus: 8, policy: BloxPolicy::Fifo, tracked: None };
    assert_eq!(blox::run(&[job(8)], &options).unwrap().max_jct_s, 300);
    assert!(blox::run(&[job(6)], &options).is_err());
}
