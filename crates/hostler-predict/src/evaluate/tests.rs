//! Figures worked out by hand, and what a predictor must not know.

use expect_test::expect;
use hostler_core::id::{GroupId, ModelSet, TenantId};
use hostler_core::random::Random;

use super::*;
use crate::cart::{CartRun, CartSettings};
use crate::durations::MedianRun;

fn past(number: u64, submitted: u64, ended: u64, run: u64) -> Past {
    let features = Features {
        tenant: TenantId((number % 3) as u32),
        group: Some(GroupId((number % 7) as u32)),
        models: ModelSet::ALL,
        gpu_milli: 1000 * (1 + number % 4),
        cpu_milli: 1000,
        mem_mib: 1024,
        tasks: 1,
        ..Features::default()
    };
    let (submitted, ended) = (Time::from_secs(submitted), Time::from_secs(ended));
    Past { features, submitted, ended, run: Span::from_secs(run) }
}

#[test]
fn a_score_counts_errors_as_shares_of_the_truth() {
    // Errors: 0, 0.2, 0.25 and 3; off by 0, 20, 25 and 30 seconds, with a spread of 20.
    let said = [(100, 100), (120, 100), (75, 100), (40, 10)];
    let said = said.map(|(run, truth)| {
        let (run, spread) = (Span::from_secs(run), Span::from_secs(20));
        (Some(Estimate { run, spread }), Span::from_secs(truth))
    });
    let score = score(said.into_iter().chain([(None, Span::from_secs(5))]));
    let (cdf, rest) = (score.cdf.clone(), Score { cdf: Vec::new(), ..score });
    expect![[r#"
        Score {
            jobs: 4,
            unknown: 1,
            share_under_25: 0.4,
            median_error: 0.2,
            mae_s: 18.75,
            within_spread: 0.5,
            rank_correlation: -0.22360679774997896,
            cdf: [],
        }"#]]
    .assert_eq(&format!("{rest:#?}"));
    let at = |error: f64| cdf.iter().find(|(known, _)| *known == error).unwrap().1;
    assert_eq!([0.1, 0.25, 2.0, 5.0].map(at), [0.2, 0.6, 0.6, 0.8]);
}

#[test]
fn what_was_not_over_when_the_judged_were_submitted_is_not_learnt() {
    // Five jobs, four fifths of them first: the last is submitted at 40. The second ends at 40 and
    // the fourth later; neither was over before.
    let past = [(0, 30), (10, 40), (20, 25), (30, 99), (40, 50)]
        .map(|(submitted, ended)| past(0, submitted, ended, 5));
    let parted = part(&past, 80);
    let ends: Vec<u64> = parted.learnt.iter().map(|job| job.ended.0 / 1_000_000).collect();
    assert_eq!(ends, [25, 30]);
    assert_eq!(parted.judged.len(), 1);
}

#[test]
fn what_is_said_of_a_job_does_not_depend_on_runs_that_were_not_over() {
    let mut random = Random::new(11);
    let mut draw = |most: f64| (random.uniform() * most) as u64;
    let jobs: Vec<Past> = (0..800)
        .map(|number| {
            let run = 1 + draw(5000.0);
            past(draw(84.0), number * 30, number * 30 + run, run)
        })
        .collect();
    let learners: [fn() -> Box<dyn Learner>; 2] = [
        || Box::new(MedianRun::new(1)),
        || Box::new(CartRun::new(CartSettings { samples_min: 1, ..CartSettings::default() })),
    ];
    for learner in learners {
        let said = online(&mut *learner(), &jobs);
        for changed in [0, 50, 333, 600] {
            let mut other = jobs.clone();
            other[changed].run = Span::from_secs(1_000_000);
            let again = online(&mut *learner(), &other);
            let known = jobs[changed].ended;
            let open = jobs.iter().take_while(|job| job.submitted <= known).count();
            assert!(open > changed, "it ends after it was submitted");
            assert_eq!(said[..open], again[..open], "the future of job {changed} was known");
            assert_ne!(said, again, "nothing was learnt from job {changed}");
        }
    }
}

#[test]
fn a_rank_correlation_is_that_of_the_textbook() {
    let score_of = |said: &[(Option<u64>, u64)]| {
        let estimate = |run| Estimate { run: Span::from_secs(run), spread: Span::ZERO };
        let said = said.iter().map(|(run, truth)| (run.map(estimate), Span::from_secs(*truth)));
        score(said).rank_correlation
    };
    // Ranks 1, 2, 4, 5, 3 and 2, 1, 3, 5, 4: 1 - 6 * (1 + 1 + 1 + 0 + 1) / (5 * 24).
    let said = [(Some(10), 2), (Some(20), 1), (Some(30), 3), (Some(40), 6), (Some(25), 5)];
    let five = [said[0], said[1], said[4], said[2], said[3]];
    assert!((score_of(&said) - 0.8).abs() < 1e-9, "{}", score_of(&said));
    // The order of the jobs themselves does not matter.
    assert_eq!(score_of(&said), score_of(&five));
    assert_eq!(score_of(&[(Some(1), 1), (Some(2), 2), (None, 3)]), 1.0);
    assert_eq!(score_of(&[(Some(3), 1), (Some(2), 2), (Some(1), 3)]), -1.0);
    // Estimates that are all the same are no order; two that are equal share a rank.
    assert_eq!(score_of(&[(Some(7), 1), (Some(7), 2)]), 0.0);
    let shared = score_of(&[(Some(1), 1), (Some(1), 2), (Some(2), 3)]);
    assert!((shared - 0.866_025_4).abs() < 1e-6, "{shared}");
    assert_eq!(score_of(&[]), 0.0);
}
