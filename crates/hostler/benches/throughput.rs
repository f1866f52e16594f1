//! How fast the simulator is: prints events per CPU second and memory, asserts nothing.
//!
//! Run with `cargo bench --bench throughput`, or with arguments after `--`: a number of jobs, a
//! load and policies (`cargo bench --bench throughput -- 100000 0.9 fifo sjf`).

mod stopwatch;

use std::process::Command;

use hostler_core::job::Job;
use hostler_core::metrics::Metrics;
use hostler_core::placement::Lease;
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_core::watch::Watch;
use hostler_sim::lower::Workload;
use hostler_sim::run::simulate;
use hostler_sim::trace::{Cluster, PaiLike};
use stopwatch::Stopwatch;

/// First word of the call that measures one row.
const ROW: &str = "row";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [word, jobs, load, kind] = words.as_slice()
        && word == ROW
    {
        row(parse(jobs), parse(load), kind);
        return;
    }
    println!(
        "{:>9} {:>5}  {:14} {:>9} {:>8} {:>8} {:>11} {:>10} {:>9} {:>8}",
        "jobs",
        "load",
        "policy",
        "events",
        "wall s",
        "CPU s",
        "events/s",
        "max queue",
        "avg jct s",
        "peak MiB"
    );
    match words.as_slice() {
        [] => standard(),
        [jobs, load, policies @ ..] => {
            let policies: Vec<&str> = policies.iter().map(String::as_str).collect();
            case(parse(jobs), parse(load), &policies);
        }
        [_] => panic!("give jobs, load and policies"),
    }
}

/// The table of the manual: cost per event does not grow with the number of jobs.
fn standard() {
    for jobs in [10_000, 100_000, 1_000_000] {
        case(jobs, 0.9, &["fifo", "sjf"]);
    }
    case(1_000_000, 1.3, &["fifo", "sjf"]);
}

fn parse<Number: std::str::FromStr>(word: &str) -> Number {
    word.parse().unwrap_or_else(|_| panic!("give jobs, load and policies; no number: `{word}`"))
}

/// Peak memory is that of a process, so that each row has one of its own.
fn case(jobs: u32, load: f64, policies: &[&str]) {
    let program = std::env::current_exe().expect("the benchmark knows its own file");
    for kind in policies {
        let (jobs, load) = (jobs.to_string(), load.to_string());
        let status = Command::new(&program).args([ROW, &jobs, &load, kind]).status();
        assert!(status.expect("the benchmark can be started").success(), "{kind} failed");
    }
}

fn row(jobs: u32, load: f64, kind: &str) {
    let cluster = Cluster::pai();
    let options = PaiLike { jobs, seed: 1, ..PaiLike::default() };
    let options = options.at_load(load, &cluster).expect("the load can be reached");
    let trace = options.generate().expect("the generator's own trace is valid");
    let workload = Workload::new(trace, &cluster).expect("the generator's own trace is valid");
    let policy =
        hostler_policies::builtin().build(kind, &toml::Table::new()).expect("the policy exists");
    let started = Stopwatch::start();
    let watch = (Metrics::default(), Queue::default());
    let finished = simulate(&workload, policy, watch, None).expect("policies keep the rules");
    let took = started.took();
    let (metrics, queue) = finished.watch;
    let summary = metrics.summary(&finished.state);
    println!(
        "{jobs:>9} {load:>5.2}  {kind:14} {:>9} {:>8.2} {:>8.2} {:>11.0} {:>10} {:>9.0} {:>8.0}",
        finished.events,
        took.wall,
        took.cpu,
        finished.events as f64 / took.cpu,
        queue.longest,
        summary.avg_jct_s,
        peak_mib(),
    );
}

/// The longest that the queue was. Counts jobs that are never stopped.
#[derive(Default)]
struct Queue {
    waiting: u64,
    longest: u64,
}

impl Watch for Queue {
    fn submitted(&mut self, _: Time, _: &Job) {
        self.waiting += 1;
        self.longest = self.longest.max(self.waiting);
    }

    fn began(&mut self, _: Time, _: &ClusterState, _: &Job, _: &Lease) {
        self.waiting -= 1;
    }
}

/// Peak memory of the process so far, in MiB; zero where the system does not tell.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
