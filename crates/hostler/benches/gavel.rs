//! How long the allocation policies take: prints tables, asserts nothing.
//!
//! Run with `cargo bench -p hostler --bench gavel`, or with one of the words `solve` and `rounds`
//! after `--`. `rounds` runs the published trace of 300 jobs twice for each policy: with rounds as
//! published, and with ours, which solve at every change and leave nothing idle. Instances
//! over the published table of rates need the folder that `HOSTLER_PARITY_DATA` names; without it
//! the rates are drawn from a seed.

mod stopwatch;

use std::path::{Path, PathBuf};
use std::time::Instant;

use hostler_core::engine::Engine;
use hostler_core::executor;
use hostler_core::metrics::{Metrics, Which};
use hostler_core::random::Random;
use hostler_parity::gavel::{self, Options};
use hostler_policies::allocate::{
    Allocate, FinishTime, Grouped, Instance, JobRow, Makespan, MaxMin, PairRow, RateKnowledge,
    StrategyProof, SumThroughput, WaterFilling,
};
use hostler_policies::lp::Solver;
use hostler_sim::world::{Listed, World};
use serde_json::Value;
use stopwatch::Stopwatch;

const TYPES: [&str; 3] = ["v100", "p100", "k80"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            solve();
            rounds();
        }
        ["solve"] => solve(),
        ["rounds"] => rounds(),
        _ => panic!("give nothing, or one of: solve, rounds"),
    }
}

/// Times of one solve, the best of several.
fn solve() {
    println!(
        "{:28} {:>7} {:24} {:>12} {:>12}",
        "instance", "jobs", "policy", "objective", "best ms"
    );
    for instance in published() {
        policies(&instance, &[MAX_MIN, PACKED, PACKED_CONIC, PACKED_CORNER]);
    }
    for jobs in [20, 60, 300, 2048] {
        let instance = Named { name: "distinct".into(), instance: distinct(jobs) };
        policies(&instance, &[MAX_MIN, CONIC, CORNER, FINISH, MAKESPAN, SUM]);
        if jobs <= 60 {
            policies(&instance, &[WATER, NASH]);
        }
    }
    let instance = Named { name: "100 classes".into(), instance: in_classes(100_000, 100) };
    policies(&instance, &[MAX_MIN, AGNOSTIC, WATER]);
}

struct Named {
    name: String,
    instance: Instance,
}

type Maker = (&'static str, fn() -> Box<dyn Allocate>);

const MAX_MIN: Maker = ("max-min", || Box::new(MaxMin::new(RateKnowledge::Aware)));
const AGNOSTIC: Maker = ("max-min agnostic", || Box::new(MaxMin::new(RateKnowledge::Agnostic)));
const PACKED: Maker = ("max-min packed", || Box::new(MaxMin::new(RateKnowledge::Packed)));
const CORNER: Maker = ("max-min, simplex", || by(RateKnowledge::Aware, Solver::Simplex));
const CONIC: Maker = ("max-min, clarabel", || by(RateKnowledge::Aware, Solver::Clarabel));
const PACKED_CORNER: Maker =
    ("max-min packed, simplex", || by(RateKnowledge::Packed, Solver::Simplex));
const PACKED_CONIC: Maker =
    ("max-min packed, clarabel", || by(RateKnowledge::Packed, Solver::Clarabel));
const WATER: Maker =
    ("water filling", || Box::new(WaterFilling { rate_knowledge: RateKnowledge::Aware }));
const FINISH: Maker = ("finish-time fairness", || {
    Box::new(FinishTime { rate_knowledge: RateKnowledge::Aware, weighted: true })
});
const MAKESPAN: Maker =
    ("makespan", || Box::new(Makespan { rate_knowledge: RateKnowledge::Aware }));
const SUM: Maker = ("sum", || Box::new(SumThroughput::default()));
const NASH: Maker = ("strategy-proof", || Box::new(StrategyProof));

fn by(rate_knowledge: RateKnowledge, solver: Solver) -> Box<dyn Allocate> {
    Box::new(MaxMin { rate_knowledge, programmes: Grouped { solver } })
}

fn policies(named: &Named, makers: &[Maker]) {
    for (policy, make) in makers {
        let mut best = f64::INFINITY;
        let mut objective = 0.0;
        let begin = Instant::now();
        // The best of up to twenty within a second: others use the machine as well.
        for _ in 0..20 {
            let start = Instant::now();
            let allocation = make().allocate(&named.instance).expect("the instance is sound");
            best = best.min(start.elapsed().as_secs_f64());
            objective = allocation.objective;
            assert_eq!(allocation.fallback, None, "{policy} on {}", named.name);
            if begin.elapsed().as_secs_f64() > 1.0 {
                break;
            }
        }
        let jobs = named.instance.jobs.len();
        let (name, ms) = (&named.name, best * 1e3);
        println!("{name:28} {jobs:>7} {policy:24} {objective:>12.6} {ms:>12.3}");
    }
}

/// Our policies, and what the original calls the same.
const ROUND_POLICIES: &[(&str, &str)] = &[
    ("kind = 'max-min-fairness'", "max_min_fairness_perf"),
    ("kind = 'max-min-fairness'\npacked = true", "max_min_fairness_packed"),
    ("kind = 'water-filling'", "max_min_fairness_water_filling_perf"),
    ("kind = 'finish-time-fairness'", "finish_time_fairness_perf"),
    ("kind = 'makespan'", "min_total_duration_perf"),
    ("kind = 'max-throughput'", "max_sum_throughput_perf"),
    ("kind = 'fifo-fastest'", "fifo_perf"),
    ("kind = 'allox'", "allox"),
    ("kind = 'isolated'", "isolated"),
];

/// The published trace under every policy, with rounds as published and with ours.
fn rounds() {
    let Some(data) = std::env::var_os("HOSTLER_PARITY_DATA").map(PathBuf::from) else {
        println!("skipped: HOSTLER_PARITY_DATA is not set");
        return;
    };
    let folder = data.join("theirs/gavel");
    let rows = gavel::read(&folder.join("traces/gen_cont_single_300.trace.gz")).expect("a trace");
    let speeds = gavel::read_speeds(&folder.join("simulation_throughputs.json.gz"));
    let speeds = speeds.expect("a table of throughputs");
    let options = Options { gpus: [12; 3], prices: [0.74, 0.43, 0.135], seed: 0 };
    println!(
        "{:44} {:>12} {:>8} {:>12} {:>8} {:>8}",
        "policy", "JCT h, publ.", "cpu s", "JCT h, ours", "cpu s", "solves"
    );
    for (policy, theirs) in ROUND_POLICIES {
        let name = policy.replace('\n', ", ");
        let build =
            |text: &str| hostler_policies::builtin().from_toml(text).expect("settings of a bench");
        let (published, published_secs) = best(|| {
            let published = gavel::find(theirs).expect("a policy of the original");
            gavel::run(&rows, &speeds, &options, published).expect("all jobs end")
        });
        let (engine, secs) = best(|| {
            let workload = gavel::workload(&rows, &speeds, &options).expect("all jobs are known");
            let mut world = World::new(workload.site, Listed::new(workload.jobs), workload.truth);
            let mut engine = Engine::new(build(policy), Metrics::default());
            executor::run(&mut world, &mut engine).expect("policies keep the rules");
            engine
        });
        let jcts = engine.watch().distribution(Which::Jct);
        let own = jcts.iter().sum::<f64>() / jcts.len() as f64 / 3600.0;
        let (published, solves) = (published.avg_jct_s / 3600.0, engine.state().solves().0);
        println!(
            "{name:44} {published:>12.3} {published_secs:>8.3} {own:>12.3} {secs:>8.3} {solves:>8}"
        );
    }
}

/// The answer and the least processor seconds of three runs.
fn best<Found>(run: impl Fn() -> Found) -> (Found, f64) {
    let timed = || {
        let stopwatch = Stopwatch::start();
        let answer = run();
        (answer, stopwatch.took().cpu)
    };
    let mut least = timed();
    for _ in 1..3 {
        let next = timed();
        if next.1 < least.1 {
            least = next;
        }
    }
    least
}

/// Jobs of which no two are alike.
fn distinct(jobs: usize) -> Instance {
    let mut random = Random::new(jobs as u64);
    let rows = (0..jobs).map(|_| drawn(&mut random)).collect();
    let workers = vec![(jobs as f64 / 4.0).ceil(); 3];
    Instance { workers, jobs: rows, ..Instance::default() }
}

/// Many jobs of few kinds.
fn in_classes(jobs: usize, classes: usize) -> Instance {
    let mut random = Random::new(7);
    let rows: Vec<JobRow> = (0..classes).map(|_| drawn(&mut random)).collect();
    let pick = |_| rows[(random.uniform() * classes as f64) as usize].clone();
    let jobs: Vec<JobRow> = (0..jobs).map(pick).collect();
    let workers = vec![jobs.len() as f64 / 4.0; 3];
    Instance { workers, jobs, ..Instance::default() }
}

fn drawn(random: &mut Random) -> JobRow {
    let slow = 0.5 + random.uniform();
    let middle = slow * (1.0 + 2.0 * random.uniform());
    JobRow {
        rates: vec![middle * (1.0 + 2.0 * random.uniform()), middle, slow],
        gang: random.pick(&[(1, 0.7), (2, 0.1), (4, 0.15), (8, 0.05)]),
        weight: random.pick(&[(1.0, 0.8), (5.0, 0.2)]),
        steps_left: 1e5 * (0.1 + random.uniform()),
        age_secs: 1e5 * random.uniform(),
        finish_credit: 3e4 * random.uniform(),
        ..JobRow::default()
    }
}

/// The instances of `solve_instances.json`, where the table of rates is at hand.
fn published() -> Vec<Named> {
    let Some(data) = std::env::var_os("HOSTLER_PARITY_DATA").map(PathBuf::from) else {
        println!("skipped: HOSTLER_PARITY_DATA is not set");
        return Vec::new();
    };
    let table = data.join("theirs/gavel/simulation_throughputs.json.gz");
    let table = std::fs::File::open(table).expect("the table of rates is there");
    let table: Value = serde_json::from_reader(flate2::read::GzDecoder::new(table))
        .expect("the table of rates is JSON");
    let cases = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
        .join("../../testdata/gavel/solve_instances.json");
    let cases = std::fs::read_to_string(cases).expect("the instances are there");
    let cases: Value = serde_json::from_str(&cases).expect("the instances are JSON");
    let cases = cases["instances"].as_array().expect("a list of instances");
    cases.iter().map(|case| over_table(&table, case)).collect()
}

fn over_table(table: &Value, case: &Value) -> Named {
    let classes = case["classes"].as_array().expect("a list of classes");
    let key = |class: &Value| {
        format!("('{}', {})", class["job_type"].as_str().expect("a name"), class["scale_factor"])
    };
    let mut instance = Instance::default();
    for (kind, class) in classes.iter().enumerate() {
        let rate = |gpu: &&str| table[gpu][key(class)]["null"].as_f64().expect("a rate");
        let row = JobRow {
            rates: TYPES.iter().map(rate).collect(),
            kind: kind as u32,
            gang: class["scale_factor"].as_u64().expect("a gang") as u32,
            ..JobRow::default()
        };
        let count = class["count"].as_u64().expect("a count") as usize;
        instance.jobs.extend(std::iter::repeat_n(row, count));
        for (other_kind, other) in classes.iter().enumerate().skip(kind) {
            let entry = |gpu: &&str| {
                let pair = &table[gpu][key(class)][key(other)];
                (pair[0].as_f64().unwrap_or(0.0), pair[1].as_f64().unwrap_or(0.0))
            };
            let rates = TYPES.iter().map(entry).collect();
            instance.pairs.push(PairRow {
                first: kind as u32,
                second: other_kind as u32,
                rates,
                seen: true,
            });
        }
    }
    let gangs = if case["multi"] == true { ", gangs" } else { "" };
    instance.workers = vec![(instance.jobs.len() / 4) as f64; TYPES.len()];
    Named { name: format!("published rates{gangs}"), instance }
}
