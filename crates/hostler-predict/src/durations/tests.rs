//! Estimates worked out by hand: jobs finish, then somebody asks.

use expect_test::{Expect, expect};
use hostler_core::id::{GroupId, ModelSet, TenantId};
use hostler_core::job::{Checkpoint, Gang, JobKind, Sharing};

use super::*;
use crate::limits::RECENT_MAX;

/// A job of a tenant; group `0` is none.
pub(crate) fn spec(tenant: u32, group: u32, user_estimate: Option<u64>) -> JobSpec {
    JobSpec {
        name: "".into(),
        tenant: TenantId(tenant),
        group: (group > 0).then_some(GroupId(group)),
        kind: JobKind::Training,
        gangs: Box::<[Gang]>::default(),
        priority: 0,
        deadline: None,
        time_limit: None,
        user_estimate: user_estimate.map(Span::from_secs),
        elastic: None,
        checkpoint: Checkpoint::default(),
        sharing: Sharing::Never,
        profile: None,
        work: None,
        ..JobSpec::default()
    }
}

/// Lines are `done TENANT GROUP SECONDS..` and `ask TENANT GROUP [USER ESTIMATE]`; each question
/// gives a line `MEDIAN ± SPREAD`.
fn answers(mut predict: MedianRun, script: &str) -> String {
    let mut text = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (verb, numbers) = line.split_once(' ').unwrap();
        let numbers: Vec<u64> = numbers.split(' ').map(|word| word.parse().unwrap()).collect();
        let [tenant, group, rest @ ..] = &*numbers else { panic!("{line}") };
        let spec = spec(*tenant as u32, *group as u32, rest.first().copied());
        match verb {
            "done" => {
                for run in rest {
                    predict.observe(JobId(0), &spec, Span::from_secs(*run));
                }
            }
            "ask" => match predict.estimate(JobId(0), &spec) {
                Some(Estimate { run, spread }) => {
                    text += &format!("{} ± {}\n", run.secs_f64(), spread.secs_f64());
                }
                None => text += "nobody knows\n",
            },
            _ => panic!("{line}"),
        }
    }
    text
}

fn check(predict: MedianRun, script: &str, expected: Expect) {
    expected.assert_eq(&answers(predict, script));
}

#[test]
fn the_estimate_is_the_middle_run_time_or_the_mean_of_the_two_in_the_middle() {
    // Three runs: 10 20 90, quartiles 10 and 90. Four: 10 20 40 90, quartiles 10 and 40.
    check(
        MedianRun::new(1),
        "
        done 1 1 90 10 20
        ask 1 1
        done 1 1 40
        ask 1 1
        ",
        expect![[r#"
            20 ± 40
            30 ± 15
        "#]],
    );
}

#[test]
fn with_too_few_of_its_own_a_job_is_judged_by_its_group_its_tenant_and_by_all() {
    // All seven runs in order: 1 2 3 4 100 200 300.
    check(
        MedianRun::new(2),
        "
        done 1 1 1 2
        done 2 1 3 4
        done 2 9 100
        done 3 0 200 300
        ask 1 1
        ask 5 1
        ask 3 7
        ask 6 8
        ask 6 0
        ",
        expect![[r#"
            1.5 ± 0.5
            2.5 ± 1
            250 ± 50
            4 ± 99
            4 ± 99
        "#]],
    );
}

#[test]
fn a_lone_run_of_its_own_does_not_outvote_its_group() {
    check(
        MedianRun::new(2),
        "
        done 1 1 1000
        done 2 1 10 20
        ask 1 1
        ",
        expect![[r#"
            20 ± 495
        "#]],
    );
}

#[test]
fn before_anybody_has_finished_the_user_is_believed_and_without_a_word_nobody() {
    check(
        MedianRun::default(),
        "
        ask 1 1 60
        ask 1 1
        done 1 1 5 5
        ask 1 1 60
        done 1 1 5
        ask 1 1 60
        ",
        expect![[r#"
            60 ± 0
            nobody knows
            5 ± 0
            5 ± 0
        "#]],
    );
}

#[test]
fn only_the_latest_runs_count() {
    let old = "1 ".repeat(RECENT_MAX);
    let new = "9 ".repeat(RECENT_MAX / 2);
    let script = format!(
        "done 1 1 {}\nask 1 1\ndone 1 1 {}\nask 1 1\ndone 1 1 9\nask 1 1",
        old.trim(),
        new.trim()
    );
    // Half of the fifty are 9, then one more than half.
    check(
        MedianRun::default(),
        &script,
        expect![[r#"
            1 ± 0
            5 ± 4
            9 ± 4
        "#]],
    );
}

#[test]
fn the_key_that_was_taught_longest_ago_is_forgotten_first() {
    // Four keys fit: tenant 1 and all, then tenants 2 and 3, then tenant 4 for tenant 1.
    let mut predict = MedianRun::new(1);
    predict.medians.keys_max = 4;
    check(
        predict,
        "
        done 1 0 10
        done 2 0 20
        done 3 0 30
        done 4 0 40
        ask 1 0
        ask 2 0
        ask 4 0
        ",
        expect![[r#"
            25 ± 10
            20 ± 0
            40 ± 0
        "#]],
    );
}

#[test]
fn jobs_that_ask_for_the_same_gpus_are_closest_and_a_coarser_set_does_not_look() {
    let asks = |models| Features { models: ModelSet(models), ..Features::of(&spec(1, 1, None)) };
    let belief = |set| {
        let mut median = MedianRun::new(2).going_by(set);
        for (models, run) in [(1, 10), (1, 20), (2, 1000), (2, 3000), (4, 7000)] {
            median.learn(&asks(models), Span::from_secs(run));
        }
        [1, 2, 4].map(|models| median.belief(&asks(models)).unwrap().run.secs_f64())
    };
    // The third model ran once, too seldom to be believed: the group counts, 10 20 1000 3000 7000.
    assert_eq!(belief(FeatureSet::UserGroupGpu), [15.0, 2000.0, 1000.0]);
    assert_eq!(belief(FeatureSet::UserGroup), [1000.0; 3]);
    assert_eq!(belief(FeatureSet::User), [1000.0; 3]);
}
