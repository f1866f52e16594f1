//! Finish-time fairness of published policies and of our own, against figures that were worked out
//! apart.
//!
//! They run when the folder that `HOSTLER_PARITY_DATA` names is there, and are reported as skipped
//! otherwise.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fmt::Write;
use std::path::Path;

use hostler_core::engine::Engine;
use hostler_core::executor;
use hostler_core::metrics::{Metrics, UNFAIR};
use hostler_parity::tiresias::{self, Options, Placement, read_shape};
use hostler_sim::fixture::{Fixture, published_data};
use hostler_sim::run::predictor;
use hostler_sim::world::{Listed, Truth, World};

const TRACE: &str = "ours/tiresias/gen480_job.csv";
const GOLDEN: &str = "ours/tiresias/rho_results_gen480.csv";

/// Mean completion time; the middle, the worst but one in twenty and the worst fairness; the share
/// above the limit.
type Figures = [f64; 5];

/// The golden row of a policy on so many GPUs.
fn golden(data: &Path, gpus: u32, policy: &str) -> Figures {
    let text = std::fs::read_to_string(data.join(GOLDEN)).unwrap();
    let wanted = format!("{gpus},{policy},");
    let row = text.lines().find_map(|line| line.strip_prefix(&wanted)).unwrap();
    let cells: Vec<f64> = row.split(',').map(|cell| cell.parse().unwrap()).collect();
    [cells[0], cells[3], cells[4], cells[5], cells[6]]
}

/// What two rows may differ by, as they are printed.
const TOLERANCES: Figures = [0.1, 0.001, 0.001, 0.01, 0.001];

fn compare(row: &str, ours: Figures, golden: Figures) -> Option<String> {
    let pairs = ours.iter().zip(golden).zip(TOLERANCES);
    let far = pairs.filter(|((ours, golden), most)| (**ours - golden).abs() > *most).count();
    (far > 0).then(|| format!("{row}: {ours:?}, golden {golden:?}"))
}

/// In the world of the simulator that was published with Tiresias.
fn published(data: &Path, gpus: u32, policy: &str) -> Figures {
    let options = Options {
        shape: read_shape(&format!("n{}g4", gpus / 4)).unwrap(),
        policy: policy.parse().unwrap(),
        placement: Placement::Count,
        samples: Vec::new(),
    };
    let jobs = tiresias::read(&data.join(TRACE)).unwrap();
    let outcome = tiresias::run(&jobs, &options).unwrap();
    let [p50, p95] = [outcome.fairness_p50, outcome.fairness_p95];
    [outcome.avg_jct_s, p50, p95, outcome.fairness_max, outcome.unfair_share]
}

/// Under a policy of ours, in the simulator of this project.
fn simulated(data: &Path, gpus: u32, policy: &str) -> Figures {
    let mut text = String::new();
    for node in 0..gpus / 4 {
        writeln!(text, "node n{node} gpus 4 cpu 4 mem 1").unwrap();
    }
    for job in tiresias::read(&data.join(TRACE)).unwrap() {
        let tiresias::TiresiasJob { id, gpus, submit, duration } = job;
        writeln!(text, "job j{id} at {submit} gpus 1 count {gpus} for {duration}").unwrap();
    }
    let Fixture { site, jobs, runs, .. } = Fixture::parse(&text).unwrap();
    let (truth, count) = (Truth::new(runs), jobs.len());
    let policy = hostler_policies::builtin().from_toml(policy).unwrap();
    let predict = predictor(policy.estimates(), &truth);
    let mut engine = Engine::new(policy, Metrics::default()).with_predictor(predict);
    executor::run(&mut World::new(site, Listed::new(jobs), truth), &mut engine).unwrap();
    let rows = engine.watch().rows();
    assert_eq!(rows.len(), count);
    let mut fairness: Vec<f64> = rows.iter().map(|row| f64::from(row.fairness)).collect();
    fairness.sort_unstable_by(f64::total_cmp);
    let unfair = fairness.iter().filter(|one| **one > UNFAIR).count() as f64 / count as f64;
    let mean = rows.iter().map(|row| row.jct.secs_f64()).sum::<f64>() / count as f64;
    [mean, fairness[count / 2], fairness[count * 95 / 100], fairness[count - 1], unfair]
}

#[test]
fn published_policies_are_as_fair_as_was_worked_out() {
    let name = "published policies are as fair as was worked out";
    let Some(data) = published_data(name) else { return };
    let mut wrong = Vec::new();
    for gpus in [60, 128, 256] {
        for policy in ["fifo", "fjf", "shortest-gpu", "dlas-gpu"] {
            let ours = published(&data, gpus, policy);
            wrong.extend(compare(&format!("{gpus} {policy}"), ours, golden(&data, gpus, policy)));
        }
        for (policy, own) in [("fifo", "kind = 'fifo'"), ("fjf", "kind = 'fifo'\nhead = 'skips'")] {
            let ours = simulated(&data, gpus, own);
            wrong.extend(compare(&format!("{gpus} {own}"), ours, golden(&data, gpus, policy)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn leases_without_more_give_the_published_rows() {
    let name = "leases without more give the published rows";
    let Some(data) = published_data(name) else { return };
    let mut wrong = Vec::new();
    for gpus in [60, 128, 256] {
        for lease in [300, 600, 1200] {
            let policy = format!("kind = 'themis'\nmode = 'plain'\nlease_secs = {lease}");
            let ours = simulated(&data, gpus, &policy);
            let row = format!("ftf-central lease={lease}");
            wrong.extend(compare(&format!("{gpus} {row}"), ours, golden(&data, gpus, &row)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_claim_to_places_of_others_leaves_nobody_far_behind() {
    let name = "a claim to places of others leaves nobody far behind";
    let Some(data) = published_data(name) else { return };
    let [attained, ..] = golden(&data, 128, "dlas-gpu");
    // Where all leases end together a short job may wait for the whole of a long one.
    for (mode, worst_max) in [("reserve", [1.5; 3]), ("aligned", [2.0, 2.0, 2.2])] {
        for (lease, worst_max) in [300, 600, 1200].into_iter().zip(worst_max) {
            let policy = format!("kind = 'themis'\nmode = '{mode}'\nlease_secs = {lease}");
            let [mean, _, _, worst, _] = simulated(&data, 128, &policy);
            assert!(worst < worst_max, "{mode}, {lease} s: {worst}");
            assert!(mean <= attained, "{mode}, {lease} s: {mean} s against {attained} s");
        }
    }
}
