//! Sharing time out on a whole trace: what rounds that waste nothing gain, and what pairs do.

use std::path::Path;

use hostler_core::engine::Engine;
use hostler_core::executor;
use hostler_core::job::{Ending, Job, Phase};
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_core::watch::Watch;
use hostler_parity::gavel::{self, Options};
use hostler_policies::builtin;
use hostler_sim::trace::throughputs::read_gavel_throughputs;
use hostler_sim::trace::{Faults, Throughputs};
use hostler_sim::world::{Listed, World};

#[derive(Default)]
struct Times {
    sum: f64,
    done: u32,
}

impl Watch for Times {
    fn retired(&mut self, at: Time, _: &ClusterState, job: &Job) {
        assert_eq!(job.phase, Phase::Done(Ending::Finished));
        self.sum += at.since(job.submitted).secs_f64();
        self.done += 1;
    }
}

struct Input {
    rows: Vec<gavel::GavelJob>,
    speeds: Throughputs,
    options: Options,
}

fn input() -> Input {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
        .join("../../testdata/gavel");
    Input {
        rows: gavel::read(&folder.join("own_cont_single_80.trace")).expect("a trace"),
        speeds: gavel::read_speeds(&folder.join("own_throughputs.json")).expect("a table"),
        options: Options { gpus: [4, 4, 4], prices: [1.0; 3], seed: 0 },
    }
}

/// Mean completion time in the simulator of this project, and solutions that were fallbacks.
fn simulated(input: &Input, policy: &str) -> (f64, u64) {
    let workload = gavel::workload(&input.rows, &input.speeds, &input.options);
    let workload = workload.expect("all jobs are known");
    let arrivals = Listed::new(workload.jobs);
    let mut world = World::new(workload.site, arrivals, workload.truth);
    let mut engine = Engine::new(builtin().from_toml(policy).expect("settings"), Times::default());
    executor::run(&mut world, &mut engine).expect("policies keep the rules");
    let (state, times) = engine.into_parts();
    assert_eq!(times.done as usize, input.rows.len());
    (times.sum / f64::from(times.done), state.solves().1)
}

#[test]
fn rounds_that_waste_nothing_beat_those_of_the_published_simulator() {
    let input = input();
    for (kind, theirs) in [
        ("max-min-fairness", "max_min_fairness_perf"),
        ("finish-time-fairness", "finish_time_fairness_perf"),
    ] {
        let published = gavel::find(theirs).unwrap();
        let published = gavel::run(&input.rows, &input.speeds, &input.options, published).unwrap();
        let (own, fallbacks) = simulated(&input, &format!("kind = '{kind}'"));
        assert!(own < published.avg_jct_s, "{kind}: {own} against {}", published.avg_jct_s);
        assert_eq!(fallbacks, 0, "{kind}");
    }
}

#[test]
fn pairs_on_one_gpu_shorten_the_mean_completion_time() {
    let input = input();
    let (alone, _) = simulated(&input, "kind = 'max-min-fairness'");
    let (packed, _) = simulated(&input, "kind = 'max-min-fairness'\npacked = true");
    assert!(packed < 0.9 * alone, "{packed} s packed, {alone} s alone");
}

fn table(json: &str) -> Throughputs {
    let (mut tables, mut faults) = (Throughputs::default(), Faults::default());
    read_gavel_throughputs(&mut json.as_bytes(), "speeds", &mut tables, &mut faults);
    faults.or(tables).expect("a table")
}

/// Jobs of one kind that are all there from the beginning, on one GPU of each of these speeds.
fn batch(steps: &[u64], speeds: &[f64]) -> Input {
    let row = |steps: &u64| gavel::GavelJob {
        kind: "lone".to_owned(),
        steps: *steps,
        gpus: 1,
        weight: 1.0,
        arrival: 0.0,
        slo: None,
    };
    let types = gavel::TYPES.iter().zip(speeds);
    let types =
        types.map(|(name, speed)| format!(r#""{name}": {{"('lone', 1)": {{"null": {speed}}}}}"#));
    let json = format!("{{{}}}", types.collect::<Vec<_>>().join(", "));
    let gpus = [0, 1, 2].map(|model| u32::from(model < speeds.len()));
    let options = Options { gpus, prices: [1.0; 3], seed: 0 };
    Input { rows: steps.iter().map(row).collect(), speeds: table(&json), options }
}

/// 300 s, then 1000 s, then 3000 s, one after the other.
#[test]
fn the_job_that_can_end_first_runs_first() {
    let input = batch(&[30_000, 3_000, 10_000], &[10.0]);
    let (mean, _) = simulated(&input, "kind = 'first-finish'");
    assert!((mean - (300.0 + 1300.0 + 4300.0) / 3.0).abs() < 0.01, "{mean}");
}

/// Two jobs change places at the end of every round: 5400 steps in two of them.
#[test]
fn time_on_each_model_is_in_proportion_to_its_gpus() {
    let input = batch(&[27_000, 27_000], &[10.0, 5.0]);
    let (mean, _) = simulated(&input, "kind = 'proportional'");
    assert!((mean - 3600.0).abs() < 0.01, "{mean}");
}

/// Each job has a weight of its own, and there are more of them than can be put in pairs at once.
/// Alone, a third of them runs at a time and takes 300 s; two on a GPU take 333 s.
#[test]
fn more_jobs_than_can_be_paired_at_once_are_paired_in_parts() {
    let mut input = batch(&[3_000; 300], &[10.0]);
    for (row, weight) in input.rows.iter_mut().zip(1..) {
        row.weight = f64::from(weight);
    }
    input.options.gpus = [100, 0, 0];
    let json = r#"{"v100": {"('lone', 1)": {"null": 10, "('lone', 1)": [9, 9]}}}"#;
    input.speeds = table(json);
    let policy = "kind = 'max-min-fairness'\npacked = true\nweighted = true";
    let (mean, fallbacks) = simulated(&input, policy);
    assert!(fallbacks > 0);
    assert!(mean < 550.0, "{mean} s; 600 s alone");
}
