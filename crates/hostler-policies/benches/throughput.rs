//! How fast the simulator is: prints events per CPU second and memory, asserts nothing.
//!
//! Run with `cargo bench -p hostler-policies --bench throughput`, or with arguments after `--`: a
//! number of jobs, a load and policies, with settings if need be (`.. -- 100000 0.9 fifo
//! sjf:estimate=median`); or `scale` and the seconds that a row may take, for all policies at
//! 10,000, 100,000 and 1,000,000 jobs and loads of 0.9 and 1.3 (`.. -- scale 300`). Those that
//! solve do so every six minutes, by the published speeds of three sorts of work.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a benchmark is a program: it reads clocks, starts processes and prints"
)]

#[path = "../../hostler/benches/stopwatch/mod.rs"]
mod stopwatch;

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use hostler_core::job::Job;
use hostler_core::metrics::Metrics;
use hostler_core::placement::Lease;
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_core::watch::Watch;
use hostler_sim::lower::Workload;
use hostler_sim::run::simulate;
use hostler_sim::scenario::Scenario;
use hostler_sim::trace::{Cluster, PaiLike};
use stopwatch::Stopwatch;

/// First word of the call that measures one row.
const ROW: &str = "row";
/// First word of the call that measures all policies.
const SCALE: &str = "scale";
/// How fast the sorts of work are on which GPU.
const SPEEDS: &str = include_str!("../../../examples/scenarios/published-speeds.toml");
/// Least seconds between two solutions.
const SOLVE_GAP_S: i64 = 360;
/// Sorts of work in `SPEEDS`.
const WORK: [&str; 3] = ["single-precision", "half-precision", "memory-bound"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [word, jobs, load, kind] = words.as_slice()
        && word == ROW
    {
        row(parse(jobs), parse(load), kind);
        return;
    }
    println!(
        "{:>9} {:>5}  {:22} {:>9} {:>8} {:>8} {:>11} {:>10} {:>9} {:>8}",
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
        [word, secs] if word == SCALE => scale(Duration::from_secs(parse(secs))),
        [jobs, load, policies @ ..] => {
            let policies: Vec<&str> = policies.iter().map(String::as_str).collect();
            case(parse(jobs), parse(load), &policies, Duration::MAX);
        }
        [_] => panic!("give jobs, load and policies"),
    }
}

/// The table of the manual: cost per event does not grow with the number of jobs.
fn standard() {
    for jobs in [10_000, 100_000, 1_000_000] {
        case(jobs, 0.9, &["fifo", "sjf"], Duration::MAX);
    }
    case(1_000_000, 1.3, &["fifo", "sjf"], Duration::MAX);
}

fn parse<Number: std::str::FromStr>(word: &str) -> Number {
    word.parse().unwrap_or_else(|_| panic!("give jobs, load and policies; no number: `{word}`"))
}

/// All policies. One that takes too long is not tried with more jobs or a higher load.
fn scale(most: Duration) {
    for def in hostler_policies::builtin().all() {
        for load in [0.9, 1.3] {
            let in_time = |jobs: &u32| case(*jobs, load, &[&def.kind], most);
            if ![10_000, 100_000, 1_000_000].iter().all(in_time) && load < 1.0 {
                break;
            }
        }
    }
}

/// Peak memory is that of a process, so that each row has one of its own. Tells whether none took
/// longer than it may.
fn case(jobs: u32, load: f64, policies: &[&str], most: Duration) -> bool {
    let program = std::env::current_exe().expect("the benchmark knows its own file");
    policies.iter().all(|kind| {
        let words = [ROW, &jobs.to_string(), &load.to_string(), kind];
        let child = Command::new(&program).args(words).spawn();
        let in_time = ends_in(child.expect("the benchmark can be started"), most);
        if !in_time {
            println!("{jobs:>9} {load:>5.2}  {kind:22} took more than {} s", most.as_secs());
        }
        in_time
    })
}

/// Waits for a row; ends it if it takes too long.
fn ends_in(mut row: Child, most: Duration) -> bool {
    let started = Instant::now();
    loop {
        if let Some(status) = row.try_wait().expect("the row can be waited for") {
            assert!(status.success(), "a row failed");
            return true;
        }
        if started.elapsed() > most {
            row.kill().and_then(|()| row.wait()).expect("the row can be ended");
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn row(jobs: u32, load: f64, named: &str) {
    let policies = hostler_policies::builtin();
    let (kind, set) = named.split_once(':').unwrap_or((named, ""));
    let def = policies.find(kind).unwrap_or_else(|error| panic!("{error}"));
    let workload = workload(jobs, load, &Cluster::pai(), def.solve_gap.is_some());
    let gap = def.solve_gap.iter().map(|gap| (gap.to_string(), SOLVE_GAP_S.into()));
    let set = set.split(':').filter_map(|word| word.split_once('='));
    let set = set.map(|(key, value)| (key.to_owned(), value.into()));
    let settings = gap.chain(set).collect();
    let policy = policies.build(kind, &settings).unwrap_or_else(|error| panic!("{error}"));
    let started = Stopwatch::start();
    let watch = (Metrics::default(), Queue::default());
    let finished = simulate(&workload, policy, watch, None).expect("policies keep the rules");
    let took = started.took();
    let (metrics, queue) = finished.watch;
    let summary = metrics.summary(&finished.state);
    println!(
        "{jobs:>9} {load:>5.2}  {named:22} {:>9} {:>8.2} {:>8.2} {:>11.0} {:>10} {:>9.0} {:>8.0}",
        finished.events,
        took.wall,
        took.cpu,
        finished.events as f64 / took.cpu,
        queue.longest,
        summary.avg_jct_s,
        peak_mib(),
    );
}

fn workload(jobs: u32, load: f64, cluster: &Cluster, by_speeds: bool) -> Workload {
    let options = PaiLike { jobs, seed: 1, ..PaiLike::default() };
    let options = options.at_load(load, cluster).expect("the load can be reached");
    let mut trace = options.generate().expect("the generator's own trace is valid");
    if !by_speeds {
        return Workload::new(trace, cluster).expect("the generator's own trace is valid");
    }
    for at in 0..trace.jobs.len() {
        let tasks = trace.jobs[at].tasks();
        // Jobs of a group do the same thing again.
        let work = WORK[trace.jobs[at].group_tag.index() % WORK.len()];
        let work = trace.text.intern(work).expect("three names fit");
        trace.tasks[tasks].iter_mut().for_each(|task| task.model = work);
    }
    let mut workload = Workload::new(trace, cluster).expect("the generator's own trace is valid");
    let speeds = Scenario::parse(SPEEDS).expect("the published speeds are valid");
    speeds.apply(&mut workload).expect("the speeds are of the generator's GPUs");
    workload
}

/// The longest that the queue was, as far as jobs started from it.
#[derive(Default)]
struct Queue {
    longest: usize,
}

impl Watch for Queue {
    fn began(&mut self, _: Time, state: &ClusterState, _: &Job, _: &Lease) {
        self.longest = self.longest.max(state.pending().len());
    }
}

/// Peak memory of the process so far, in MiB; zero where the system does not tell.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
