//! Policies that keep high-end GPUs for jobs that gain from them.

use expect_test::expect;
use hostler_core::metrics::{Metrics, Summary};
use hostler_sim::lower::Workload;
use hostler_sim::run::simulate;
use hostler_sim::trace::PaiLike;

use super::{build, check, check_reasons};

const MIXED: &str = "
    model T4 mem 16384 tier 1
    model V100 mem 16384 tier 2
    node weak gpus 2 model T4 cpu 16
    node fast gpus 2 model V100 cpu 16
";

#[test]
fn the_fast_node_is_kept_until_the_wait_is_over() {
    check(
        "kind = 'pai'\nreserve_secs = 60",
        &format!(
            "{MIXED}
            job a at 0 gpus 2 for 1000
            job b at 0 gpus 2 for 100
            job c at 10 gpus 1 model V100 for 20"
        ),
        expect![[r#"
            a  0..1000
            b  60..160
            c  10..30
            avg jct 393.33  makespan 1000  preemptions 0
        "#]],
    );
}

#[test]
fn who_waits_for_kept_gpus_is_told_until_when() {
    check_reasons(
        "kind = 'pai'\nreserve_part = 1.0",
        &format!(
            "{MIXED}
            job a at 0 gpus 2 for 100
            job b at 10 gpus 1 for 100"
        ),
        expect![[r#"
            10  job 1: what is free is kept for jobs that gain more from it, until 3610 s
        "#]],
    );
}

#[test]
fn a_table_of_speeds_decides_who_gains() {
    let jobs = "
        profile flat T4=0.6 V100=1
        profile steep T4=0.4 V100=1
        job a at 0 gpus 1 profile flat for 60
        job b at 0 gpus 1 profile steep for 60";
    check(
        "kind = 'pai'",
        &format!("{MIXED}{jobs}"),
        expect![[r#"
        a  0..100
        b  0..60
        avg jct 80.00  makespan 100  preemptions 0
    "#]],
    );
    // With a lower threshold both are worth a fast GPU.
    check(
        "kind = 'pai'\ntheta = 1.5",
        &format!("{MIXED}{jobs}"),
        expect![[r#"
        a  0..60
        b  0..60
        avg jct 60.00  makespan 60  preemptions 0
    "#]],
    );
}

#[test]
fn nobody_waits_for_the_top_class_where_there_is_no_other() {
    check(
        "kind = 'pai'",
        "
        node n0 gpus 2 model V100 cpu 16
        job a at 0 gpus 1 for 10
        job b at 0 gpus 1 for 20",
        expect![[r#"
            a  0..10
            b  0..20
            avg jct 15.00  makespan 20  preemptions 0
        "#]],
    );
}

#[test]
fn a_job_too_large_for_the_low_end_does_not_wait_for_it() {
    check(
        "kind = 'pai'",
        &format!(
            "{MIXED}
            job a at 0 gpus 1 count 3 for 10"
        ),
        expect![[r#"
            a  0..10
            avg jct 10.00  makespan 10  preemptions 0
        "#]],
    );
}

#[test]
fn a_part_of_the_high_end_is_given_away() {
    check(
        "kind = 'pai'\nreserve_part = 0.5",
        &format!(
            "{MIXED}
            job a at 0 gpus 2 for 100
            job b at 10 gpus 1 for 100
            job c at 10 gpus 1 for 100"
        ),
        expect![[r#"
            a  0..100
            b  10..110
            c  100..200
            avg jct 130.00  makespan 200  preemptions 0
        "#]],
    );
}

/// By the mean of GPUs and cores the model with many GPUs is booked less; by cores it is not.
#[test]
fn tasks_with_many_cores_for_each_gpu_go_where_cores_are_free() {
    let jobs = "
        model MISC mem 16384 tier 0
        model T4 mem 16384 tier 1
        model V100 mem 16384 tier 2
        node many gpus 8 model MISC cpu 24
        node few gpus 2 model T4 cpu 24
        node fast gpus 8 model V100 cpu 24
        job y at 0 gpus 1 cpu 12 model MISC for 1000
        job z at 0 gpus 1 cpu 4 model T4 for 1000
        job a at 1 gpus 0.25 cpu 12 for 100
        job b at 2 gpus 4 cpu 12 model MISC for 100";
    check(
        "kind = 'pai'",
        jobs,
        expect![[r#"
        y  0..1000
        z  0..1000
        a  1..101
        b  101..201
        avg jct 574.75  makespan 1000  preemptions 0
    "#]],
    );
    check(
        "kind = 'pai-cpu'",
        jobs,
        expect![[r#"
        y  0..1000
        z  0..1000
        a  1..101
        b  2..102
        avg jct 550.00  makespan 1000  preemptions 0
    "#]],
    );
}

fn summary(policy: &str, seed: u64) -> Summary {
    let options = PaiLike { jobs: 20_000, seed, scale: 10, ..PaiLike::default() };
    let cluster = options.cluster();
    let options = options.at_load(0.8, &cluster).expect("the load can be reached");
    let trace = options.generate().expect("the generator's own trace is valid");
    let workload = Workload::new(trace, &cluster).expect("the generator's own trace is valid");
    let finished = simulate(&workload, build(policy), Metrics::default(), None);
    let finished = finished.expect("policies keep the rules");
    finished.watch.summary(&finished.state)
}

#[test]
fn reserving_beats_balancing_and_looking_at_cpu_beats_both_on_the_synthesised_workload() {
    let waits =
        |policy: &str| -> f64 { (11..=13).map(|seed| summary(policy, seed).avg_wait_s).sum() };
    let balance = waits("kind = 'load-balance'");
    let (pai, aware) = (waits("kind = 'pai'"), waits("kind = 'pai-cpu'"));
    assert!(pai < balance, "wait: {pai} against {balance}");
    assert!(aware < pai, "wait: {aware} against {pai}");
}
