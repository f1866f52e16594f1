//! Tests of throughput tables, with numbers worked out by hand.

use super::*;

const V100: ModelId = ModelId(0);
const K80: ModelId = ModelId(1);
const T4: ModelId = ModelId(2);
const SELF: ProfileKey = ProfileKey(0);
const OTHER: ProfileKey = ProfileKey(1);

fn pace(steps: f64) -> Pace {
    Pace::from_steps_per_sec(steps).unwrap()
}

/// Eight steps a second on one V100, two on a K80; fourteen on two V100 close together, seven
/// when they are spread; does not fit on two K80.
fn profile() -> Profile {
    let mut profile = Profile::default();
    let alone = [
        (Run(V100, false, 1), 8.0),
        (Run(K80, false, 1), 2.0),
        (Run(V100, false, 2), 14.0),
        (Run(V100, true, 2), 7.0),
        (Run(K80, false, 2), 0.0),
    ];
    alone.into_iter().for_each(|(run, steps)| profile.measured.set(run, pace(steps)));
    let pairs = [
        (PairRun(OTHER, V100, 1), 6.0, 3.0),
        (PairRun(OTHER, K80, 1), 0.0, 0.0),
        (PairRun(SELF, V100, 1), 5.0, 5.0),
    ];
    for (run, own, others) in pairs {
        profile.measured.set_pair(run, PairPace(pace(own), pace(others)));
    }
    profile
}

#[test]
fn measured_speeds_are_found_by_model_gang_and_reach() {
    let profile = profile();
    assert_eq!(profile.steps_per_sec(V100, 1, false), 8.0);
    assert_eq!(profile.steps_per_sec(K80, 1, false), 2.0);
    assert_eq!(profile.steps_per_sec(V100, 2, true), 7.0);
    assert_eq!(profile.steps_per_sec(K80, 2, false), 0.0);
    assert!(!profile.fits(K80, 2));
    assert!(profile.is_sane());
}

#[test]
fn gangs_that_were_not_measured_go_by_the_next_smaller_one_that_was() {
    let profile = profile();
    // Seven steps for each GPU of two.
    assert_eq!(profile.steps_per_sec(V100, 4, false), 28.0);
    assert_eq!(profile.steps_per_sec(V100, 4, true), 14.0);
    // Nothing smaller was measured when spread: the larger one.
    assert_eq!(profile.steps_per_sec(V100, 1, true), 3.5);
    // Spread K80 were never measured.
    assert_eq!(profile.steps_per_sec(K80, 1, true), 2.0);
    // Four do not fit where two do not.
    assert!(!profile.fits(K80, 4));
}

#[test]
fn rates_refer_to_the_fastest_model_of_the_gang_that_was_asked_for() {
    let profile = profile();
    assert_eq!(profile.reference(1), pace(8.0));
    assert_eq!(profile.reference(2), pace(14.0));
    assert_eq!(profile.on(K80, 1), Rate(250_000));
    assert_eq!(profile.rate(V100, 2, 2, Reach::Rack), Rate(500_000));
    assert_eq!(profile.rate(V100, 2, 2, Reach::Node), Rate::FULL);
    // Half of what it asked for: 8 of 14 steps.
    assert_eq!(profile.rate(V100, 1, 2, Reach::Island), Rate(571_429));
    assert_eq!(profile.on(K80, 2), Rate(0));
    // Nobody measured a T4.
    assert_eq!(profile.on(T4, 1), Rate::FULL);
}

#[test]
fn pairs_have_their_own_speeds_and_fit_only_where_they_were_measured() {
    let profile = profile();
    assert_eq!(profile.pair_rates(OTHER, V100, 1), Some((6.0, 3.0)));
    assert_eq!(profile.beside(Some(OTHER), V100, 1), Rate(750_000));
    assert_eq!(profile.beside(Some(OTHER), K80, 1), Rate(0));
    assert_eq!(profile.pair_rates(OTHER, V100, 2), Some((0.0, 0.0)));
    assert_eq!(profile.pair_rates(OTHER, T4, 1), None);
    assert_eq!(profile.beside(Some(OTHER), T4, 1), Rate::FULL);
    assert_eq!(profile.beside(None, V100, 1), Rate::FULL);
}

#[test]
fn factors_stand_in_where_nothing_was_measured() {
    let half = Rate(500_000);
    let profile = Profile {
        models: vec![(K80, half)],
        reach: vec![(Reach::Rack, half)],
        ..Profile::default()
    };
    assert_eq!(profile.on(K80, 3), half);
    assert_eq!(profile.steps_per_sec(K80, 3, false), 0.5);
    assert_eq!(profile.steps_per_sec(K80, 3, true), 0.25);
    assert_eq!(profile.reference(3), Pace::ONE);
}

#[test]
fn a_profile_is_sane_when_the_job_runs_somewhere() {
    let mut profile = Profile::default();
    profile.measured.set(Run(V100, false, 1), Pace::ZERO);
    assert!(!profile.is_sane());
    profile.measured.set(Run(K80, false, 1), Pace::ONE);
    assert!(profile.is_sane());
    profile.measured.set(Run(K80, false, 2), Pace(u64::MAX));
    assert!(!profile.is_sane());
}

#[test]
fn a_profile_of_factors_is_written_as_before_and_one_with_measurements_reads_back() {
    let factors = Profile { shared: Some(Rate(1)), ..Profile::default() };
    let text = toml::to_string(&factors).unwrap();
    assert_eq!(text, "models = []\nreach = []\npairs = []\nshared = 1\n");
    assert_eq!(toml::from_str::<Profile>(&text).unwrap(), factors);
    let measured = profile();
    let text = toml::to_string(&measured).unwrap();
    assert_eq!(toml::from_str::<Profile>(&text).unwrap(), measured);
}
