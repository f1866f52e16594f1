//! How long the cells of published simulators take: prints a table, asserts nothing.
//!
//! Run with `cargo bench -p hostler --bench published`. It repeats every cell that was recorded of
//! the simulators of Tiresias and Blox, and Gavel's Gandiva on the published trace of 300 jobs.
//! Needs the folder that `HOSTLER_PARITY_DATA` names.

mod stopwatch;

use std::path::{Path, PathBuf};

use hostler_parity::blox::{self, BloxPolicy};
use hostler_parity::gavel;
use hostler_parity::tiresias::{self, Placement, TiresiasPolicy};
use stopwatch::Stopwatch;

fn main() {
    let Some(data) = std::env::var_os("HOSTLER_PARITY_DATA").map(PathBuf::from) else {
        println!("skipped: HOSTLER_PARITY_DATA is not set");
        return;
    };
    println!(
        "{:10} {:22} {:18} {:>14} {:>8}",
        "simulator", "cluster", "policy", "mean JCT s", "ms"
    );
    tiresias_cells(&data, "ours/tiresias/golden_gen480.csv", "ours/tiresias/gen480_job.csv");
    tiresias_cells(&data, "theirs/tiresias/golden_60job.csv", "theirs/tiresias/60_job.csv");
    blox_cells(&data.join("ours/blox"));
    gandiva(&data.join("theirs/gavel"));
}

fn tiresias_cells(data: &Path, golden: &str, trace: &str) {
    let jobs = tiresias::read(&data.join(trace)).expect("the trace is readable");
    let samples = data.join("theirs/tiresias/yarn-gput1000.csv");
    let samples = tiresias::read_samples(&samples).expect("the samples are readable");
    for cells in rows(&data.join(golden)) {
        let (cluster, policy, placement) = (&cells[0], &cells[2], &cells[3]);
        let options = tiresias::Options {
            shape: tiresias::read_shape(cluster).expect("a cluster"),
            policy: policy.parse::<TiresiasPolicy>().expect("a policy"),
            placement: if placement == "yarn" { Placement::Yarn } else { Placement::Count },
            samples: samples.clone(),
        };
        let run = || tiresias::run(&jobs, &options).expect("every job fits").avg_jct_s;
        print("tiresias", &format!("{cluster}, {placement}"), policy, run);
    }
}

fn blox_cells(folder: &Path) {
    for cells in rows(&folder.join("golden.csv")) {
        let jobs = blox::read(&folder.join(format!("{}.csv", cells[0])));
        let jobs = jobs.expect("the trace is readable");
        let (first, last) = cells[2].split_once('-').expect("a range");
        let number = |word: &str| word.parse().expect("a number");
        let policy = match cells[1].as_str() {
            "Fifo" => BloxPolicy::Fifo,
            "Las" => BloxPolicy::Las,
            _ => BloxPolicy::Srtf,
        };
        let tracked = Some(number(first)..=number(last));
        let options = blox::Options { gpus: 32, policy, tracked };
        let run = || blox::run(&jobs, &options).expect("every job fits").avg_jct_s;
        print("blox", &format!("{}, 32 GPUs", cells[0]), &cells[1], run);
    }
}

/// Gandiva as Gavel has it, on 36 GPUs of three types.
fn gandiva(folder: &Path) {
    let rows = gavel::read(&folder.join("traces/gen_cont_single_300.trace.gz")).expect("a trace");
    let speeds = gavel::read_speeds(&folder.join("simulation_throughputs.json.gz"));
    let speeds = speeds.expect("a table of throughputs");
    let options = gavel::Options { gpus: [12; 3], prices: [0.74, 0.43, 0.135], seed: 0 };
    let run = || {
        let policy = gavel::find("gandiva").expect("a policy of the original");
        gavel::run(&rows, &speeds, &options, policy).expect("all jobs end").avg_jct_s
    };
    print("gavel", "12:12:12, 300 jobs", "gandiva", run);
}

/// The cells of a table, without its head.
fn rows(file: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(file).expect("the recorded cells are there");
    text.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect()).collect()
}

/// Prints the least processor time of three runs.
fn print(simulator: &str, cluster: &str, policy: &str, run: impl Fn() -> f64) {
    let timed = |_| {
        let stopwatch = Stopwatch::start();
        let mean = run();
        (stopwatch.took().cpu * 1e3, mean)
    };
    let best = (0..3).map(timed).min_by(|one, other| one.0.total_cmp(&other.0));
    let (ms, mean) = best.expect("three runs");
    println!("{simulator:10} {cluster:22} {policy:18} {mean:>14.4} {ms:>8.2}");
}
