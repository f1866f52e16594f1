//! Policies that share time out, in rounds.

use expect_test::expect;

use super::{check, check_of, check_reasons};

#[test]
fn two_jobs_take_turns_on_one_gpu() {
    check_of(
        &["isolated", "max-min-fairness", "water-filling", "finish-time-fairness"],
        "cluster 1
        job a at 0 gpus 1 for 700
        job b at 0 gpus 1 for 700",
        expect![[r#"
            a  0..360 720..1060
            b  360..720 1060..1400
            avg jct 1230.00  makespan 1400  preemptions 2
        "#]],
    );
}

#[test]
fn who_has_gpus_keeps_them_as_long_as_nobody_is_behind() {
    check(
        "kind = 'max-min-fairness'\nround_secs = 60",
        "cluster 2
        job a at 0 gpus 1 for 300
        job b at 10 gpus 1 for 300",
        expect![[r#"
            a  0..300
            b  10..310
            avg jct 300.00  makespan 310  preemptions 0
        "#]],
    );
}

#[test]
fn gpus_that_become_free_inside_a_round_are_used_at_once() {
    check(
        "kind = 'max-min-fairness'",
        "cluster 1
        job a at 0 gpus 1 for 100
        job b at 10 gpus 1 for 50",
        expect![[r#"
            a  0..100
            b  100..150
            avg jct 120.00  makespan 150  preemptions 0
        "#]],
    );
}

#[test]
fn without_reuse_they_wait_for_the_next_round() {
    check(
        "kind = 'max-min-fairness'\nreuse = false",
        "cluster 2
        job a at 0 gpus 1 for 100
        job b at 0 gpus 1 for 1000
        job c at 10 gpus 1 for 50",
        expect![[r#"
            a  0..100
            b  0..1000
            c  360..410
            avg jct 500.00  makespan 1000  preemptions 0
        "#]],
    );
}

#[test]
fn saving_and_loading_are_paid_at_every_change() {
    check(
        "kind = 'max-min-fairness'\nround_secs = 100",
        "cluster 1
        job a at 0 gpus 1 for 150 save 10 load 5
        job b at 0 gpus 1 for 150 save 10 load 5",
        expect![[r#"
            a  0..110 260..315
            b  110..260
            avg jct 287.50  makespan 315  preemptions 1
        "#]],
    );
}

const MIXED: &str = "
    model T4 mem 16384 tier 1
    model V100 mem 16384 tier 2
    node weak gpus 1 model T4
    node fast gpus 1 model V100
    profile gains V100=1 T4=0.2
    profile equal V100=1 T4=0.9
";

#[test]
fn fast_gpus_go_to_those_who_gain_most_from_them() {
    check_of(
        &["makespan", "max-throughput", "allox"],
        &format!(
            "{MIXED}
            job a at 0 gpus 1 for 900 profile equal
            job b at 0 gpus 1 for 900 profile gains"
        ),
        expect![[r#"
            a  0..1000
            b  0..900
            avg jct 950.00  makespan 1000  preemptions 0
        "#]],
    );
}

/// Half of the time on each model, both are exactly as fast as on an average GPU. Shares that are
/// equal on paper differ in the last digits that the solver gives, and those decide late rounds.
#[test]
fn fairness_lets_both_have_fast_gpus_in_turn() {
    check(
        "kind = 'max-min-fairness'",
        &format!(
            "{MIXED}
            job a at 0 gpus 1 for 900 profile equal
            job b at 0 gpus 1 for 900 profile gains"
        ),
        expect![[r#"
            a  0..360 360..720 720..960
            b  0..360 360..720 720..1188
            avg jct 1074.00  makespan 1188  preemptions 4
        "#]],
    );
}

#[test]
fn in_order_of_submission_the_first_has_the_fastest() {
    check(
        "kind = 'fifo-fastest'",
        &format!(
            "{MIXED}
            job a at 0 gpus 1 for 900 profile equal
            job b at 0 gpus 1 for 900 profile gains
            job c at 0 gpus 1 for 100 profile gains"
        ),
        expect![[r#"
            a  0..900
            b  0..1080 1080..1764
            c  1080..1580
            avg jct 1414.67  makespan 1764  preemptions 1
        "#]],
    );
}

#[test]
fn jobs_without_gpus_and_with_several_roles_run_beside() {
    check(
        "kind = 'max-min-fairness'",
        "cluster 2
        job a at 0 gpus 2 for 500
        job b at 5 gpus 0 cpu 4 for 30
        job c at 10 gpus 1 for 30
        role gpus 1 count 1",
        expect![[r#"
            a  0..360 390..530
            b  5..35
            c  360..390
            avg jct 313.33  makespan 530  preemptions 1
        "#]],
    );
}

#[test]
fn a_gang_gets_gpus_of_one_model() {
    check(
        "kind = 'max-min-fairness'",
        &format!(
            "{MIXED}
            node fast2 gpus 1 model V100
            job a at 0 gpus 1 count 2 for 400
            job b at 0 gpus 1 for 100"
        ),
        expect![[r#"
            a  0..400
            b  0..100
            avg jct 250.00  makespan 400  preemptions 0
        "#]],
    );
}

#[test]
fn who_waits_is_told_that_its_turn_comes_later() {
    check_reasons(
        "kind = 'max-min-fairness'",
        "cluster 1
        job a at 0 gpus 1 for 100
        job b at 0 gpus 1 for 100
        job c at 0 gpus 2 for 100",
        expect![[r#"
            0  job 2: no node that it accepts has 2 GPUs and the CPU and memory it asks
            0  job 1: its turn is in a later round
        "#]],
    );
}
