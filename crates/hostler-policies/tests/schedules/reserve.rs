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
        "kind = 'pai'",
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

/// Jobs that need many cores for each GPU crowd the machine with many GPUs under `pai`.
#[test]
fn tasks_with_many_cores_for_each_gpu_leave_crowded_machines_alone() {
    let jobs = "
        model MISC mem 16384 tier 0
        model T4 mem 16384 tier 1
        model V100 mem 16384 tier 2
        node many gpus 8 model MISC cpu 24
        node few gpus 2 model T4 cpu 24
        node fast gpus 8 model V100 cpu 24
        job a at 0 gpus 0.25 cpu 12 count 2 for 100
        job b at 1 gpus 8 cpu 16 for 100";
    check(
        "kind = 'pai'",
        jobs,
        expect![[r#"
        a  0..100
        b  100..200
        avg jct 149.50  makespan 200  preemptions 0
    "#]],
    );
    check(
        "kind = 'pai-cpu'",
        jobs,
        expect![[r#"
        a  0..100
        b  1..101
        avg jct 100.00  makespan 101  preemptions 0
    "#]],
    );
}

fn summary(policy: &str, seed: u64) -> Summary {
    let options = PaiLike { jobs: 3000, seed, scale: 20, ..PaiLike::default() };
    let cluster = options.cluster();
    let options = options.at_load(0.9, &cluster).expect("the load can be reached");
    let trace = options.generate().expect("the generator's own trace is valid");
    let workload = Workload::new(trace, &cluster).expect("the generator's own trace is valid");
    let finished = simulate(&workload, build(policy), Metrics::default(), None);
    finished.watch.summary(&finished.state)
}

#[test]
fn looking_at_cpu_beats_filling_model_after_model_on_the_synthesised_workload() {
    let sums = |policy: &str| {
        let all: Vec<Summary> = (1..=3).map(|seed| summary(policy, seed)).collect();
        let jct: f64 = all.iter().map(|summary| summary.avg_jct_s).sum();
        let wait: f64 = all.iter().map(|summary| summary.avg_wait_s).sum();
        (jct, wait)
    };
    let (pai, aware) = (sums("kind = 'pai'"), sums("kind = 'pai-cpu'"));
    assert!(aware.0 < pai.0, "completion: {aware:?} against {pai:?}");
    assert!(aware.1 < pai.1, "wait: {aware:?} against {pai:?}");
}
