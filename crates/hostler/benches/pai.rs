//! What the policies of the PAI family gain on the synthesised workload, and how fast the published
//! simulator is repeated: prints tables, asserts nothing. `docs/pai.md` quotes them.
//!
//! Run with `cargo bench -p hostler --bench pai`, or with one of the words `reserve`, `predict`,
//! `speed` and `parity` after `--`, and further words as the function of that name takes them.

mod stopwatch;

use std::path::{Path, PathBuf};

use hostler_core::id::{ModelId, ModelSet};
use hostler_core::job::{Ending, Job, Models, Phase};
use hostler_core::policy::Policy;
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_core::watch::Watch;
use hostler_parity::pai2020::{self, Options};
use hostler_sim::analyze::{Rank, SimulatedCluster};
use hostler_sim::lower::Workload;
use hostler_sim::run::simulate;
use hostler_sim::trace::PaiLike;
use stopwatch::Stopwatch;

/// Machines are a tenth of the published cluster: 191 of them.
const SCALE: u32 = 10;
const JOBS: u32 = 20_000;
const SHORT: u32 = 4000;
/// From where hardly anybody waits to where the backlog is all there is.
const LOADS: [f64; 9] = [0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0];
/// Not those that `cores_per_gpu` of `pai-cpu` was chosen on (1 to 3).
const SEEDS: [u64; 3] = [11, 12, 13];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => {
            reserve();
            predict(SHORT, &LOADS);
            predict(JOBS, &LOADS);
            speed();
            parity();
        }
        ["reserve"] => reserve(),
        ["reserve", jobs, load, policies @ ..] => {
            let jobs = jobs.parse().expect("the first word is a number of jobs");
            let load = load.parse().expect("the second word is a load");
            queueing(jobs, load, policies);
        }
        ["predict"] => {
            predict(SHORT, &LOADS);
            predict(JOBS, &LOADS);
        }
        ["predict", jobs, loads @ ..] => {
            let jobs = jobs.parse().expect("the first word is a number of jobs");
            let load = |word: &&str| word.parse().expect("the further words are loads");
            predict(jobs, &loads.iter().map(load).collect::<Vec<f64>>());
        }
        ["speed"] => speed(),
        ["parity"] => parity(),
        _ => panic!("give nothing, or one of: reserve [POLICY ..], predict, speed, parity"),
    }
}

/// Sums over jobs that finished: all, and those that name the top class.
#[derive(Default)]
struct Waits {
    all: Sum,
    top: Sum,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    jobs: u64,
    wait_secs: f64,
    jct_secs: f64,
}

impl Sum {
    fn add(&mut self, job: &Job, at: Time) {
        self.jobs += 1;
        self.wait_secs += job.ledger.waited.secs_f64();
        self.jct_secs += at.since(job.submitted).secs_f64();
    }

    fn join(&mut self, other: Sum) {
        self.jobs += other.jobs;
        self.wait_secs += other.wait_secs;
        self.jct_secs += other.jct_secs;
    }

    fn wait(self) -> f64 {
        self.wait_secs / self.jobs.max(1) as f64
    }

    fn jct(self) -> f64 {
        self.jct_secs / self.jobs.max(1) as f64
    }
}

impl Watch for Waits {
    fn retired(&mut self, at: Time, state: &ClusterState, job: &Job) {
        if job.phase != Phase::Done(Ending::Finished) {
            return;
        }
        self.all.add(job, at);
        if names_top(state, job) {
            self.top.add(job, at);
        }
    }
}

fn names_top(state: &ClusterState, job: &Job) -> bool {
    let highest = state.models().iter().map(|model| model.tier).max();
    let models = state.models().iter().enumerate();
    let top = models.filter(|(_, model)| Some(model.tier) == highest);
    let top = top.fold(ModelSet::NONE, |set, (at, _)| set.with(ModelSet::one(ModelId(at as u32))));
    let named = |models: &Models| *models != Models::Any && models.set().0 & !top.0 == 0;
    job.spec.gangs.iter().any(|gang| named(&gang.demand.models))
}

fn workload(jobs: u32, scale: u32, seed: u64, load: f64) -> Workload {
    let options = PaiLike { jobs, seed, scale, ..PaiLike::default() };
    let cluster = options.cluster();
    let options = options.at_load(load, &cluster).expect("the load can be reached");
    let trace = options.generate().expect("the generator's own trace is valid");
    Workload::new(trace, &cluster).expect("the generator's own trace is valid")
}

/// `pai:reserve_secs=600` is a policy with a setting.
fn build(words: &str) -> Box<dyn Policy> {
    let (kind, pairs) = words.split_once(':').unwrap_or((words, ""));
    let pairs = pairs.split(',').filter(|pair| !pair.is_empty());
    let settings = hostler_core::registry::settings_from_pairs(pairs).expect("settings are pairs");
    hostler_policies::builtin().build(kind, &settings).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a policy on the workloads of all seeds.
fn run_all(workloads: &[Workload], policy: &str) -> Waits {
    let mut waits = Waits::default();
    for workload in workloads {
        let one = simulate(workload, build(policy), Waits::default(), None);
        let one = one.expect("policies keep the rules").watch;
        waits.all.join(one.all);
        waits.top.join(one.top);
    }
    waits
}

/// Percentage by which `value` is below `base`.
fn cut(base: f64, value: f64) -> f64 {
    if base > 0.0 { 100.0 * (1.0 - value / base) } else { 0.0 }
}

fn seeded(jobs: u32, load: f64) -> Vec<Workload> {
    SEEDS.iter().map(|seed| workload(jobs, SCALE, *seed, load)).collect()
}

/// Queueing by policy and load; `cut` is against the first, load balancing alone.
fn reserve() {
    println!("reserving and packing: {JOBS} jobs, {} seeds, 1/{SCALE} of the cluster", SEEDS.len());
    println!(
        "{:>5}  {:24} {:>10} {:>6} {:>10} {:>6} {:>11} {:>6} {:>7}",
        "load", "policy", "avg JCT s", "cut", "avg wait s", "cut", "V100 wait s", "cut", "CPU s"
    );
    for load in [0.6, 0.7, 0.8, 0.9, 1.0, 1.2] {
        queueing(JOBS, load, &["load-balance", "progressive-filling", "pai", "pai-cpu"]);
    }
    println!();
}

fn queueing(jobs: u32, load: f64, policies: &[&str]) {
    let workloads = seeded(jobs, load);
    let mut first: Option<Waits> = None;
    for policy in policies {
        let started = Stopwatch::start();
        let Waits { all, top } = run_all(&workloads, policy);
        let cpu = started.took().cpu / SEEDS.len() as f64;
        let base = first.get_or_insert(Waits { all, top });
        println!(
            "{load:>5.2}  {policy:24} {:>10.0} {:>5.1}% {:>10.0} {:>5.1}% {:>11.0} {:>5.1}% \
             {cpu:>7.2}",
            all.jct(),
            cut(base.all.jct(), all.jct()),
            all.wait(),
            cut(base.all.wait(), all.wait()),
            top.wait(),
            cut(base.top.wait(), top.wait()),
        );
    }
}

/// Completion time of shortest job first against first in, first out: one that passes over jobs
/// that do not fit, as the published simulator does, and a strict one.
fn predict(jobs: u32, loads: &[f64]) {
    let policies = ["fifo:head=skips", "sjf:estimate=median", "sjf:estimate=oracle"];
    println!("predictions: {jobs} jobs, {} seeds, 1/{SCALE} of the cluster", SEEDS.len());
    println!(
        "{:>5} {:>10} {:>10} {:>6} {:>10} {:>6}   {:>10} {:>6} {:>6}",
        "load", "fifo s", "median s", "cut", "oracle s", "cut", "strict s", "median", "oracle"
    );
    for load in loads.iter().copied() {
        let workloads = seeded(jobs, load);
        let [fifo, median, oracle] = policies.map(|policy| run_all(&workloads, policy).all.jct());
        let strict = run_all(&workloads, "fifo").all.jct();
        println!(
            "{load:>5.2} {fifo:>10.0} {median:>10.0} {:>5.1}% {oracle:>10.0} {:>5.1}%   \
             {strict:>10.0} {:>5.1}% {:>5.1}%",
            cut(fifo, median),
            cut(fifo, oracle),
            cut(strict, median),
            cut(strict, oracle),
        );
    }
    println!();
}

/// CPU seconds of the family's policies on the small and on the full cluster.
fn speed() {
    println!("{:>7} {:>6} {:>5}  {:24} {:>8}", "jobs", "nodes", "load", "policy", "CPU s");
    for (jobs, scale, load) in [(4000, 10, 1.2), (100_000, 1, 0.9), (100_000, 1, 1.3)] {
        let workload = workload(jobs, scale, 1, load);
        let nodes = workload.site.nodes.len();
        for policy in ["load-balance", "progressive-filling", "pai", "pai-cpu"] {
            let started = Stopwatch::start();
            simulate(&workload, build(policy), (), None).expect("policies keep the rules");
            let cpu = started.took().cpu;
            println!("{jobs:>7} {nodes:>6} {load:>5.2}  {policy:24} {cpu:>8.2}");
        }
    }
    println!();
}

const RANKS: [(Rank, &str); 5] = [
    (Rank::Duration, "sjf"),
    (Rank::User, "sju"),
    (Rank::Group, "sjg"),
    (Rank::GroupGpu, "sjgg"),
    (Rank::Submit, "fifo"),
];

/// CPU seconds to repeat the published simulator.
fn parity() {
    let own = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
        .join("../../testdata/pai2020");
    let mut files: Vec<(PathBuf, u32, u32)> = vec![
        (own.join("mix_est_1k.csv.gz"), 150, 100),
        (own.join("synth_est_20k.csv.gz"), 6500, 1000),
    ];
    match std::env::var_os("HOSTLER_PARITY_DATA") {
        Some(folder) => {
            let folder = PathBuf::from(folder);
            files.push((folder.join("theirs/pai/sim/pai_real_1990.csv.gz"), 100, 1000));
            files.push((folder.join("ours/pai/sim/synth_est_100k.csv.gz"), 6500, 1000));
        }
        None => println!("skipped: 1,990 and 100,000 jobs; HOSTLER_PARITY_DATA is not set"),
    }
    print!("{:>24} {:>7}", "file", "jobs");
    RANKS.iter().for_each(|(_, name)| print!(" {name:>7}"));
    println!(" {:>7}", "all s");
    for (file, gpus, per_minute) in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match pai2020::read(&file, usize::MAX) {
            Ok(rows) => parity_of(&name, &rows, gpus, per_minute),
            Err(error) => println!("skipped: {name}: {error}"),
        }
    }
}

fn parity_of(name: &str, rows: &[pai2020::Pai2020Job], gpus: u32, per_minute: u32) {
    print!("{name:>24} {:>7}", rows.len());
    let mut all = 0.0;
    for (rank, _) in RANKS {
        let (cluster, per_minute) = (SimulatedCluster::Single(gpus), Some(per_minute));
        let options = Options { rank, cluster, pack: true, per_minute, sample: None };
        let started = Stopwatch::start();
        pai2020::run(rows, &options).expect("the table is valid");
        let cpu = started.took().cpu;
        all += cpu;
        print!(" {cpu:>7.3}");
    }
    println!(" {all:>7.3}");
}
