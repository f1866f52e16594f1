//! Estimates of four workloads, worked out by hand.

use super::*;
use hostler_core::profile::Run;

const V100: ModelId = ModelId(0);
const K80: ModelId = ModelId(1);

/// Two gentle workloads and two rough ones. Beside a gentle one 0.9 is left, beside a rough one
/// 0.5; rough ones do not fit together on the K80. Workload n does n + 1 steps on the V100, half of
/// that on the K80. `hidden` are pairs that nobody measured.
fn profiles(hidden: &[(u32, u32, ModelId)]) -> BTreeMap<ProfileKey, Profile> {
    let is_hidden =
        |a, b, model| hidden.contains(&(a, b, model)) || hidden.contains(&(b, a, model));
    let alone =
        |key: u32, model| Pace(u64::from(key + 1) * Pace::ONE.0 / if model == K80 { 2 } else { 1 });
    let share = |beside: u32| if beside < 2 { 90 } else { 50 };
    let mut profiles = BTreeMap::new();
    for key in 0..4 {
        let mut profile = Profile::default();
        for model in [V100, K80] {
            profile.measured.set(Run(model, false, 1), alone(key, model));
            for other in (0..4).filter(|other| !is_hidden(key, *other, model)) {
                let unfit = model == K80 && key >= 2 && other >= 2;
                let part = |of, beside| match unfit {
                    true => Pace::ZERO,
                    false => Pace(alone(of, model).0 / 100 * share(beside)),
                };
                let run = PairRun(ProfileKey(other), model, 1);
                profile.measured.set_pair(run, PairPace(part(key, other), part(other, key)));
            }
        }
        profiles.insert(ProfileKey(key), profile);
    }
    profiles
}

fn pair(pairs: &EstimatedPairs, key: u32, other: u32, model: ModelId) -> Option<(f64, f64)> {
    pairs.profiles()[&ProfileKey(key)].pair_rates(ProfileKey(other), model, 1)
}

fn seen(key: u32, other: u32, rate: u32) -> Observed {
    let (key, partner) = (ProfileKey(key), Some(ProfileKey(other)));
    Observed { key, model: V100, gpus: 1, spread: false, partner, rate: Rate(rate) }
}

#[test]
fn a_pair_that_was_not_measured_is_taken_to_run_as_the_like_of_it_do() {
    let hidden = [(0, 2, V100), (2, 3, K80)];
    let pairs = EstimatedPairs::new(profiles(&hidden)).unwrap();
    assert_eq!(pairs.count(), 4);
    // Half of one step beside the rough one, 0.9 of three steps beside the gentle one.
    assert_eq!(pair(&pairs, 0, 2, V100), Some((0.5, 2.7)));
    assert_eq!(pair(&pairs, 2, 0, V100), Some((2.7, 0.5)));
    // The other rough one does not fit beside a rough one there.
    assert_eq!(pair(&pairs, 2, 3, K80), Some((0.0, 0.0)));
}

#[test]
fn what_was_measured_stays() {
    let hidden = [(0, 2, V100), (1, 3, V100)];
    let measured = profiles(&hidden);
    let pairs = EstimatedPairs::new(measured.clone()).unwrap();
    for (key, profile) in &measured {
        for (PairRun(other, model, gpus), pace) in profile.measured.pairs() {
            assert_eq!(pairs.profiles()[key].pair(*other, *model, *gpus), Some(*pace));
        }
    }
    let mut whole = EstimatedPairs::new(profiles(&[])).unwrap();
    assert_eq!((whole.count(), whole.profiles()), (0, &profiles(&[])));
    // Nor does what is seen of a measured pair change it: the table is the truth about it.
    assert_eq!(whole.observe(&seen(0, 2, 100_000)), []);
}

#[test]
fn a_workload_that_was_never_measured_in_a_pair_gets_no_estimates() {
    let of_three: Vec<(u32, u32, ModelId)> =
        (0..4).flat_map(|other| [(3, other, V100), (3, other, K80)]).collect();
    let pairs = EstimatedPairs::new(profiles(&of_three)).unwrap();
    assert_eq!(pairs.count(), 0);
    assert_eq!(pair(&pairs, 3, 0, V100), None);
}

#[test]
fn running_together_corrects_an_estimate_by_half() {
    let mut pairs = EstimatedPairs::new(profiles(&[(0, 2, V100)])).unwrap();
    // Believed 0.5 steps, seen 0.3.
    let told = pairs.observe(&seen(0, 2, 300_000));
    let keys: Vec<ProfileKey> = told.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [ProfileKey(0), ProfileKey(2)]);
    assert_eq!(told[0].1.pair_rates(ProfileKey(2), V100, 1), Some((0.4, 2.7)));
    assert_eq!(told[1].1.pair_rates(ProfileKey(0), V100, 1), Some((2.7, 0.4)));
    // Seen from the other side: believed 2.7 steps, seen 1.5.
    let told = pairs.observe(&seen(2, 0, 500_000));
    assert_eq!(told[0].1.pair_rates(ProfileKey(2), V100, 1), Some((0.4, 2.1)));
    // The same again is hardly news after some times, and not told.
    let news: Vec<usize> = (0..12).map(|_| pairs.observe(&seen(0, 2, 300_000)).len()).collect();
    assert_eq!((news[0], news[11]), (2, 0));
}

#[test]
fn a_pair_that_failed_to_start_is_ruled_out() {
    let mut pairs = EstimatedPairs::new(profiles(&[(0, 2, V100)])).unwrap();
    let told = pairs.observe(&seen(2, 0, 0));
    assert_eq!(told.len(), 2);
    assert_eq!(pair(&pairs, 0, 2, V100), Some((0.0, 0.0)));
    assert_eq!(pair(&pairs, 2, 0, V100), Some((0.0, 0.0)));
    assert!(told.iter().all(|(_, profile)| profile.is_sane()));
}

#[test]
fn more_pairs_than_can_be_estimated_are_refused() {
    let mut profiles = BTreeMap::new();
    for key in (0..500).map(ProfileKey) {
        let mut profile = Profile::default();
        profile.measured.set(Run(V100, false, 1), Pace::ONE);
        profile.measured.set_pair(PairRun(key, V100, 1), PairPace(Pace::ONE, Pace::ONE));
        profiles.insert(key, profile);
    }
    let refused = EstimatedPairs::new(profiles).unwrap_err();
    assert_eq!(refused, TooManyPairs { entries: 250_000 });
}
