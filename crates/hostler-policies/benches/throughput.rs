//! How fast the simulator is: prints events per CPU second and memory, asserts nothing.
//!
//! Run with `cargo bench -p hostler-policies --bench throughput`, or with arguments after `--`: a
//! number of jobs, a load and policies, with settings if need be (`.. -- 100000 0.9 fifo
//! sjf:estimate=median`); or `scale`, the CPU seconds that a row may take, and policies, for one
//! table of these, or of all, at 10,000, 100,000 and 1,000,000 jobs and loads of 0.9 and 1.3 (`..
//! -- scale 300`). Those that solve do so every six minutes, by the published speeds of three
//! sorts of work.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a benchmark is a program: it reads clocks, starts processes and prints"
)]

#[path = "../../hostler/benches/stopwatch/mod.rs"]
mod stopwatch;

use std::process::{Command, Stdio};
use std::str::FromStr;

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
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use stopwatch::Stopwatch;

/// First word of the call that measures one row.
const ROW: &str = "row";
/// First word of the call that measures all policies.
const SCALE: &str = "scale";
/// Numbers of jobs and loads of that table.
const SIZES: [u32; 3] = [10_000, 100_000, 1_000_000];
const LOADS: [f64; 2] = [0.9, 1.3];
/// How fast the sorts of work are on which GPU.
const SPEEDS: &str = include_str!("../../../examples/scenarios/published-speeds.toml");
/// Least seconds between two solutions.
const SOLVE_GAP_S: i64 = 360;
/// Sorts of work in `SPEEDS`.
const WORK: [&str; 3] = ["single-precision", "half-precision", "memory-bound"];

/// What one simulation took.
struct Row {
    events: u64,
    wall_s: f64,
    cpu_s: f64,
    longest_queue: usize,
    avg_jct_s: f64,
    peak_mib: f64,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [word, jobs, load, kind, most] = words.as_slice()
        && word == ROW
    {
        println!("{}", row(parse(jobs), parse(load), kind, parse(most)).to_words());
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
        [word, secs, policies @ ..] if word == SCALE => scale(parse(secs), policies),
        [jobs, load, policies @ ..] => {
            for kind in policies {
                case(parse(jobs), parse(load), kind, u64::MAX);
            }
        }
        [_] => panic!("give jobs, load and policies"),
    }
}

/// The table of the manual: cost per event does not grow with the number of jobs.
fn standard() {
    let cases = SIZES.map(|jobs| (jobs, 0.9)).into_iter().chain([(1_000_000, 1.3)]);
    for (jobs, load) in cases {
        for kind in ["fifo", "sjf"] {
            case(jobs, load, kind, u64::MAX);
        }
    }
}

fn parse<Number: FromStr>(word: &str) -> Number {
    word.parse().unwrap_or_else(|_| panic!("give jobs, load and policies; no number: `{word}`"))
}

/// Some policies, or all: row by row, and at the end in one table. One that takes too long is not
/// tried with more jobs; nor with a higher load, at as many.
fn scale(most_s: u64, policies: &[String]) {
    let all = hostler_policies::builtin();
    let all = all.all().map(|def| def.kind.to_string());
    let policies = if policies.is_empty() { all.collect() } else { policies.to_vec() };
    let mut table = String::from("| policy |");
    for (load, jobs) in LOADS.iter().flat_map(|load| SIZES.map(|jobs| (load, jobs))) {
        table += &format!(" {jobs} at {load} |");
    }
    table += &format!("\n|---|{}\n", "---|".repeat(LOADS.len() * SIZES.len()));
    for kind in policies {
        table += &format!("| `{kind}` |");
        let mut sizes = SIZES.len();
        for load in LOADS {
            for (at, jobs) in SIZES.into_iter().enumerate() {
                let row = (at < sizes).then(|| case(jobs, load, &kind, most_s)).flatten();
                table += &match &row {
                    Some(row) => format!(" {:.2} s, {:.0} MiB |", row.cpu_s, row.peak_mib),
                    None => format!(" over {most_s} s |"),
                };
                if row.is_none() {
                    sizes = sizes.min(at);
                }
            }
        }
        table.push('\n');
    }
    println!("\nCPU seconds and peak memory:\n\n{table}");
}

/// Measures and prints one row. Peak memory is that of a process, so that each row has one of its
/// own. None when it took longer than it may.
fn case(jobs: u32, load: f64, kind: &str, most_s: u64) -> Option<Row> {
    let program = std::env::current_exe().expect("the benchmark knows its own file");
    let words = [ROW, &jobs.to_string(), &load.to_string(), kind, &most_s.to_string()];
    let child = Command::new(&program).args(words).stdout(Stdio::piped()).spawn();
    let child = child.expect("the benchmark can be started");
    let output = child.wait_with_output().expect("the row can be waited for");
    print!("{jobs:>9} {load:>5.2}  {kind:22} ");
    // A row that fails by itself has a number; only what the system ends has none.
    if output.status.code().is_none() {
        println!("took more than {most_s} s");
        return None;
    }
    assert!(output.status.success(), "a row failed");
    let row = Row::from_words(&String::from_utf8_lossy(&output.stdout));
    println!(
        "{:>9} {:>8.2} {:>8.2} {:>11.0} {:>10} {:>9.0} {:>8.0}",
        row.events,
        row.wall_s,
        row.cpu_s,
        row.events as f64 / row.cpu_s,
        row.longest_queue,
        row.avg_jct_s,
        row.peak_mib,
    );
    Some(row)
}

impl Row {
    /// From one process to the other.
    fn to_words(&self) -> String {
        let Row { events, wall_s, cpu_s, longest_queue, avg_jct_s, peak_mib } = self;
        format!("{events} {wall_s} {cpu_s} {longest_queue} {avg_jct_s} {peak_mib}")
    }

    fn from_words(text: &str) -> Row {
        let mut words = text.split_whitespace();
        let mut next = || words.next().expect("a row has six numbers");
        Row {
            events: parse(next()),
            wall_s: parse(next()),
            cpu_s: parse(next()),
            longest_queue: parse(next()),
            avg_jct_s: parse(next()),
            peak_mib: parse(next()),
        }
    }
}

fn row(jobs: u32, load: f64, named: &str, most_s: u64) -> Row {
    let policies = hostler_policies::builtin();
    let (kind, set) = named.split_once(':').unwrap_or((named, ""));
    let def = policies.find(kind).unwrap_or_else(|error| panic!("{error}"));
    let workload = workload(jobs, load, &Cluster::pai(), def.solve_gap.is_some());
    let gap = def.solve_gap.iter().map(|gap| (gap.to_string(), SOLVE_GAP_S.into()));
    let set = set.split(':').filter_map(|word| word.split_once('='));
    let set = set.map(|(key, value)| (key.to_owned(), value.into()));
    let settings = gap.chain(set).collect();
    let policy = policies.build(kind, &settings).unwrap_or_else(|error| panic!("{error}"));
    limit_cpu(most_s);
    let started = Stopwatch::start();
    let watch = (Metrics::default(), Queue::default());
    let finished = simulate(&workload, policy, watch, None).expect("policies keep the rules");
    let took = started.took();
    let (metrics, queue) = finished.watch;
    Row {
        events: finished.events,
        wall_s: took.wall,
        cpu_s: took.cpu,
        longest_queue: queue.longest,
        avg_jct_s: metrics.summary(&finished.state).avg_jct_s,
        peak_mib: peak_mib(),
    }
}

/// Has the system end this process when it has computed for so much longer.
fn limit_cpu(more_s: u64) {
    if more_s == u64::MAX {
        return;
    }
    let so_far = clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs() + 1;
    if let Some(most) = so_far.checked_add(more_s) {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(Resource::Cpu, limit).expect("a process may limit itself");
    }
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
