//! Pairs that nobody measured: packed by estimate, and corrected by what then happens.

use hostler_core::engine::Engine;
use hostler_core::executor;
use hostler_core::id::ModelId;
use hostler_core::job::{Ending, Job, Phase};
use hostler_core::predict::EstimateSource;
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_core::watch::Watch;
use hostler_parity::gavel::{self, Options};
use hostler_policies::builtin;
use hostler_predict::{EstimatedPairs, ObservedSpeeds, Speeds};
use hostler_sim::run::Estimates;
use hostler_sim::trace::throughputs::read_gavel_throughputs;
use hostler_sim::trace::{Faults, Throughputs};
use hostler_sim::world::{Listed, World};

const V100: ModelId = ModelId(0);

/// Ten steps a second alone and nine in any pair, but for `a` and `d`: as said, or not at all.
fn table(of_a_and_d: Option<f64>) -> Throughputs {
    let names = ["a", "b", "c", "d"];
    let apart = |one: &str, other: &str| [one, other] == ["a", "d"] || [one, other] == ["d", "a"];
    let row = |name: &&str| {
        let mut row = format!("\"('{name}', 1)\": {{\"null\": 10");
        for other in names {
            let speed = if apart(name, other) { of_a_and_d } else { Some(9.0) };
            if let Some(speed) = speed {
                row += &format!(", \"('{other}', 1)\": [{speed}, {speed}]");
            }
        }
        row + "}"
    };
    let rows: Vec<String> = names.iter().map(row).collect();
    let json = format!("{{\"v100\": {{{}}}}}", rows.join(", "));
    let (mut tables, mut faults) = (Throughputs::default(), Faults::default());
    read_gavel_throughputs(&mut json.as_bytes(), "speeds", &mut tables, &mut faults);
    faults.or(tables).expect("a table")
}

#[derive(Default)]
struct Ends {
    last: Time,
    failures: [u32; 2],
}

impl Watch for Ends {
    fn retired(&mut self, at: Time, _: &ClusterState, job: &Job) {
        assert_eq!(job.phase, Phase::Done(Ending::Finished));
        self.last = at;
        self.failures[0] += job.ledger.start_failures;
        self.failures[1] += job.ledger.packed_failures;
    }
}

/// One job of `a` and one of `d` for 2000 s each, on one GPU. They run as `truth` says, and the
/// policy begins with what follows from `known`.
fn run(
    truth: &Throughputs,
    known: &Throughputs,
    believe: impl Fn(EstimatedPairs) -> Speeds,
) -> (ClusterState, Ends) {
    let row = |kind: &str| gavel::GavelJob {
        kind: kind.to_owned(),
        steps: 20_000,
        gpus: 1,
        weight: 1.0,
        arrival: 0.0,
        slo: None,
    };
    let (rows, options) =
        ([row("a"), row("d")], Options { gpus: [1, 0, 0], prices: [1.0; 3], seed: 0 });
    let workload = |table| gavel::workload(&rows, table, &options).expect("all jobs are known");
    let known = workload(known).site.physics.profiles;
    let speeds = believe(EstimatedPairs::new(known).expect("a small table"));
    let mut workload = workload(truth);
    workload.site.told_speeds = Some(match &speeds {
        Speeds::Observed(speeds) => speeds.profiles(),
        Speeds::Estimated(pairs) => pairs.profiles().clone(),
    });
    let estimates = Estimates { speeds: Some(speeds), ..Estimates::default() };
    let predict = estimates.predictor(EstimateSource::User, &workload.truth);
    let mut world = World::new(workload.site, Listed::new(workload.jobs), workload.truth);
    let policy = builtin().from_toml("kind = 'max-min-fairness'\npacked = true").expect("settings");
    let mut engine = Engine::new(policy, Ends::default()).with_predictor(predict);
    executor::run(&mut world, &mut engine).expect("policies keep the rules");
    engine.into_parts()
}

/// What is believed at the end of `a` beside `d`, and of `d` beside `a`.
fn believed(state: &ClusterState, table: &Throughputs) -> (f64, f64) {
    let key = |name| table.key(name).expect("it is in the table");
    let profile = state.profile(key("a")).expect("it was told");
    profile.pair_rates(key("d"), V100, 1).expect("a pair")
}

#[test]
fn a_pair_that_nobody_measured_runs_together_by_estimate() {
    let truth = table(Some(9.0));
    let (_, ends) = run(&truth, &table(None), Speeds::Estimated);
    // 20000 steps at nine a second, both at once.
    assert!((ends.last.secs_f64() - 2222.2).abs() < 1.0, "{}", ends.last.secs_f64());
    let shares =
        |pairs: EstimatedPairs| Speeds::Observed(ObservedSpeeds::from_shares(pairs.profiles()));
    let (_, ends) = run(&truth, &table(None), shares);
    assert!((ends.last.secs_f64() - 2222.2).abs() < 1.0, "{}", ends.last.secs_f64());
}

#[test]
fn a_pair_that_proves_slower_than_estimated_is_believed_to_be() {
    let truth = table(Some(7.0));
    let (state, _) = run(&truth, &table(None), Speeds::Estimated);
    let (a, d) = believed(&state, &truth);
    // Seen when the stay of each is over: half way from nine to seven, at least.
    assert!((6.9..=8.01).contains(&a) && (6.9..=8.01).contains(&d), "{a}, {d}");
}

#[test]
fn a_pair_that_does_not_fit_after_all_is_tried_once() {
    let (truth, known) = (table(Some(0.0)), table(None));
    let (state, ends) = run(&truth, &known, Speeds::Estimated);
    assert_eq!(ends.failures, [0, 1]);
    assert_eq!(believed(&state, &truth), (0.0, 0.0));
    assert!((ends.last.secs_f64() - 4000.0).abs() < 1.0, "{}", ends.last.secs_f64());
    let shares =
        |pairs: EstimatedPairs| Speeds::Observed(ObservedSpeeds::from_shares(pairs.profiles()));
    let (state, ends) = run(&truth, &known, shares);
    assert_eq!(ends.failures, [0, 1]);
    assert_eq!(believed(&state, &truth), (0.0, 0.0));
}

#[test]
fn a_pair_that_was_measured_not_to_fit_is_never_tried() {
    let truth = table(Some(0.0));
    let (state, ends) = run(&truth, &truth, Speeds::Estimated);
    assert_eq!(ends.failures, [0, 0]);
    assert_eq!(believed(&state, &truth), (0.0, 0.0));
}
