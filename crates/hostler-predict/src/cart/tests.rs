//! What a tree learns that medians do not.

use hostler_core::id::{GroupId, ModelSet, TenantId};

use super::*;
use crate::durations::MedianRun;

/// A job of a tenant that asks for this many GPUs.
fn features(tenant: u32, gpus: u64) -> Features {
    Features {
        tenant: TenantId(tenant),
        models: ModelSet::ALL,
        gpu_milli: gpus * 1000,
        cpu_milli: 4000,
        mem_mib: 1024,
        tasks: 1,
        ..Features::default()
    }
}

/// Whole seconds: logarithms are kept to a millionth.
fn secs(belief: Option<Estimate>) -> f64 {
    libm::round(belief.expect("something is known").run.secs_f64())
}

/// Jobs on one GPU take 10 s, those on eight 1000 s, by turns.
fn teach(learner: &mut dyn Learner, tenant: u32, jobs: usize) {
    for number in 0..jobs {
        let (gpus, run) = if number % 2 == 0 { (1, 10) } else { (8, 1000) };
        learner.learn(&features(tenant, gpus), Span::from_secs(run));
    }
}

#[test]
fn a_tree_tells_apart_what_a_median_does_not() {
    let (mut cart, mut median) = (CartRun::default(), MedianRun::default());
    teach(&mut cart, 1, REFIT_FIRST);
    teach(&mut median, 1, REFIT_FIRST);
    assert_eq!([1, 8].map(|gpus| secs(cart.belief(&features(1, gpus)))), [10.0, 1000.0]);
    assert_eq!([1, 8].map(|gpus| secs(median.belief(&features(1, gpus)))), [505.0, 505.0]);
    // A tenant that nobody has seen stands where all do.
    assert_eq!([1, 8].map(|gpus| secs(cart.belief(&features(2, gpus)))), [10.0, 1000.0]);
}

#[test]
fn until_the_first_tree_the_median_counts_and_before_that_nobody_knows() {
    let mut cart = CartRun::default();
    assert_eq!(cart.belief(&features(1, 1)), None);
    teach(&mut cart, 1, REFIT_FIRST - 2);
    assert!(cart.tree().is_none());
    assert_eq!(secs(cart.belief(&features(1, 1))), 505.0);
}

#[test]
fn names_are_ordered_by_the_median_of_those_before() {
    // Two groups of one tenant that ask for the same: only their own past tells them apart.
    let of_group = |group| Features { group: Some(GroupId(group)), ..features(1, 1) };
    let mut cart = CartRun::default();
    for _ in 0..REFIT_FIRST {
        cart.learn(&of_group(1), Span::from_secs(10));
        cart.learn(&of_group(2), Span::from_secs(1000));
    }
    assert_eq!([1, 2].map(|group| secs(cart.belief(&of_group(group)))), [10.0, 1000.0]);
    // A third group is told by its first runs, without a tree of its own.
    (0..SAMPLES_MIN).for_each(|_| {
        cart.medians
            .teach(Key::UserGroupGpu(TenantId(1), GroupId(3), ModelSet::ALL), Span::from_secs(900))
    });
    assert_eq!(secs(cart.belief(&of_group(3))), 900.0);
}

#[test]
fn trees_grow_after_a_quarter_more_jobs_from_the_latest_only() {
    let settings = CartSettings { window_max: 60, ..CartSettings::default() };
    let mut cart = CartRun::new(settings);
    let mut grown_at = Vec::new();
    for number in 1..=300 {
        let before = cart.grow_at;
        // What ran before the last hundred is forgotten.
        let run = if number <= 200 { 10 } else { 77 };
        cart.learn(&features(1, 1), Span::from_secs(run));
        if cart.grow_at != before {
            grown_at.push(number);
        }
    }
    assert_eq!(grown_at, [100, 125, 156, 195, 243]);
    assert_eq!(cart.window.len(), 60);
    assert_eq!(secs(cart.belief(&features(1, 1))), 77.0);
}

#[test]
fn a_spread_is_that_of_the_factors_by_which_medians_were_off() {
    // Runs of 100 s, but for three in eight of 50 s and as many of 200 s: the quartiles are a
    // factor of two either way, so the middle half is from 50 s to 200 s.
    let mut cart = CartRun::default();
    for number in 0..400 {
        let run = [100, 50, 200, 50, 200, 50, 200, 100][number % 8];
        cart.learn(&features(1, 1), Span::from_secs(run));
    }
    let Estimate { run, spread } = cart.belief(&features(1, 1)).unwrap();
    assert_eq!([run, spread].map(|span| libm::round(span.secs_f64())), [100.0, 75.0]);
}
