//! Schedules of the policies that fill gaps.

use expect_test::expect;

use crate::{check, check_of, check_reasons, check_without_estimates};

#[test]
fn backfill_overtakes_without_delaying_head() {
    check(
        "kind = 'fifo-backfill'\ndepth = 100",
        "
        cluster 4
        job a  at 0  gpus 3  for 100
        job b  at 1  gpus 4  for 50
        job c  at 2  gpus 1  for 90
        job d  at 3  gpus 1  for 200
        ",
        expect![[r#"
            a  0..100
            b  100..150
            c  2..92
            d  150..350
            avg jct 171.50  makespan 350  preemptions 0
        "#]],
    );
}

#[test]
fn a_long_job_starts_beside_the_reserved_place() {
    check(
        "kind = 'fifo-backfill'",
        "
        cluster 4
        job a  at 0  gpus 3  for 100
        job b  at 1  gpus 3  for 50
        job c  at 2  gpus 1  for 900
        ",
        expect![[r#"
            a  0..100
            b  100..150
            c  2..902
            avg jct 383.00  makespan 902  preemptions 0
        "#]],
    );
}

#[test]
fn saves_count_until_the_end_and_not_beyond() {
    // a saves after 30 and 60 s of its work and is done at 98: c would delay b, d does not.
    check_of(
        &["fifo-backfill", "conservative-backfill"],
        "
        cluster 2
        job a  at 0  gpus 1  for 90  save 4  every 30
        job b  at 1  gpus 2  for 10
        job c  at 2  gpus 1  for 97
        job d  at 3  gpus 1  for 95
        job e  at 4  gpus 2  for 30  save 4  every 30
        ",
        expect![[r#"
            a  0..98
            b  98..108
            c  108..205
            d  3..98
            e  205..235
            avg jct 146.80  makespan 235  preemptions 0
        "#]],
    );
}

#[test]
fn a_long_job_starts_on_another_node_when_the_rule_wants_the_reserved_one() {
    check(
        "kind = 'fifo-backfill'",
        "
        node x  gpus 4
        node y  gpus 8
        job a  at 0  gpus 3  for 100
        job b  at 0  gpus 6  for 200
        job c  at 1  gpus 4  for 50
        job d  at 2  gpus 1  for 900
        ",
        expect![[r#"
            a  0..100
            b  0..200
            c  100..150
            d  2..902
            avg jct 337.25  makespan 902  preemptions 0
        "#]],
    );
}

#[test]
fn a_job_that_the_head_does_not_miss_starts_whatever_gpu_it_takes() {
    // At 5 one GPU is free; from 100 on the head needs four of five.
    check(
        "kind = 'fifo-backfill'",
        "
        cluster 6
        job x  at 0  gpus 1  for 5
        job a  at 0  gpus 5  for 100
        job h  at 1  gpus 4  for 50
        job c  at 2  gpus 1  for 1000
        ",
        expect![[r#"
            x  0..5
            a  0..100
            h  100..150
            c  5..1005
            avg jct 314.25  makespan 1005  preemptions 0
        "#]],
    );
}

/// `d` fits beside the reservation of `b`, but not beside that of `c`.
const THREE_WAIT: &str = "
    cluster 4
    job a  at 0  gpus 2  for 100
    job b  at 1  gpus 3  for 100
    job c  at 2  gpus 4  for 100
    job d  at 3  gpus 1  for 300
    job e  at 4  gpus 1  for 90
";

#[test]
fn easy_protects_the_first_and_conservative_all() {
    check(
        "kind = 'fifo-backfill'",
        THREE_WAIT,
        expect![[r#"
        a  0..100
        b  100..200
        c  303..403
        d  3..303
        e  4..94
        avg jct 218.00  makespan 403  preemptions 0
    "#]],
    );
    check(
        "kind = 'conservative-backfill'",
        THREE_WAIT,
        expect![[r#"
        a  0..100
        b  100..200
        c  200..300
        d  300..600
        e  4..94
        avg jct 256.80  makespan 600  preemptions 0
    "#]],
    );
}

#[test]
fn those_who_wait_are_told_whom_they_would_delay() {
    check_reasons(
        "kind = 'fifo-backfill'",
        THREE_WAIT,
        expect![[r#"
        1  job 1: 0 of its 1 tasks would fit now
        2  job 2: 0 of its 1 tasks would fit now
    "#]],
    );
    check_reasons(
        "kind = 'conservative-backfill'",
        THREE_WAIT,
        expect![[r#"
        1  job 1: 0 of its 1 tasks would fit now
        2  job 2: 0 of its 1 tasks would fit now
        3  job 3: it would delay job 1, which has a reservation
        200  job 3: 0 of its 1 tasks would fit now
    "#]],
    );
}

#[test]
fn jobs_beyond_the_depth_wait_behind_the_head() {
    let scenario = "
        cluster 4
        job a  at 0  gpus 3  for 100
        job b  at 1  gpus 4  for 50
        job c  at 2  gpus 2  for 10
        job d  at 3  gpus 1  for 10
    ";
    check_reasons(
        "kind = 'fifo-backfill'\ndepth = 1",
        scenario,
        expect![[r#"
            1  job 1: 0 of its 1 tasks would fit now
            2  job 2: 0 of its 1 tasks would fit now
            3  job 3: job 1 comes first
        "#]],
    );
    check(
        "kind = 'fifo-backfill'\ndepth = 1",
        scenario,
        expect![[r#"
        a  0..100
        b  100..150
        c  150..160
        d  150..160
        avg jct 141.00  makespan 160  preemptions 0
    "#]],
    );
    check(
        "kind = 'fifo-backfill'\ndepth = 2",
        scenario,
        expect![[r#"
        a  0..100
        b  100..150
        c  150..160
        d  3..13
        avg jct 104.25  makespan 160  preemptions 0
    "#]],
    );
}

#[test]
fn jobs_that_start_do_not_count_towards_the_depth() {
    let scenario = "
        cluster 4
        job a  at 0  gpus 1  for 100
        job b  at 1  gpus 4  for 50
        job c  at 2  gpus 1  for 10
        job d  at 2  gpus 1  for 10
        job e  at 2  gpus 1  for 10
    ";
    let expected = || {
        expect![[r#"
            a  0..100
            b  100..150
            c  2..12
            d  2..12
            e  2..12
            avg jct 55.80  makespan 150  preemptions 0
        "#]]
    };
    check("kind = 'fifo-backfill'\ndepth = 1", scenario, expected());
    check("kind = 'conservative-backfill'\ndepth = 1", scenario, expected());
}

#[test]
fn a_job_that_outlasts_its_estimate_is_waited_for_a_little_longer() {
    // `a` was to end at 10; at 20 it is believed to need 2 more, so `c` starts and `d` does not.
    check(
        "kind = 'fifo-backfill'\nestimate = 'user'",
        "
        cluster 4
        job a  at 0   gpus 3  for 100  estimate 10
        job b  at 1   gpus 4  for 50
        job c  at 20  gpus 1  for 2
        job d  at 30  gpus 1  for 4
        ",
        expect![[r#"
            a  0..100
            b  100..150
            c  20..22
            d  150..154
            avg jct 93.75  makespan 154  preemptions 0
        "#]],
    );
}

#[test]
fn a_time_limit_bounds_what_is_believed() {
    check_without_estimates(
        &["fifo-backfill"],
        "
        cluster 4
        job a  at 0  gpus 3  for 100  limit 120
        job b  at 1  gpus 4  for 50
        job c  at 2  gpus 1  for 90   limit 100
        job d  at 2  gpus 1  for 90
        ",
        expect![[r#"
            a  0..100
            b  100..150
            c  2..92
            d  150..240
            avg jct 144.25  makespan 240  preemptions 0
        "#]],
    );
}

#[test]
fn jobs_without_an_estimate_start_early_only_beside_the_reserved_place() {
    let scenario = "
        node x  gpus 2
        node y  gpus 2
        job a  at 0  gpus 1  for 100
        job b  at 1  gpus 2  for 100
        job c  at 2  gpus 2  for 100
        job d  at 3  gpus 1  for 10
    ";
    check_without_estimates(
        &["fifo-backfill", "conservative-backfill"],
        scenario,
        expect![[r#"
            a  0..100
            b  1..101
            c  100..200
            d  101..111
            avg jct 126.50  makespan 200  preemptions 0
        "#]],
    );
}

#[test]
fn nobody_waits_for_a_head_whose_nodes_are_down() {
    let scenario = "
        node x  gpus 8
        node y  gpus 2
        fault node-down x at 5 for 1000
        job a  at 0   gpus 1  for 100
        job b  at 10  gpus 8  for 50
        job c  at 11  gpus 1  for 500
    ";
    check_of(
        &["fifo-backfill", "conservative-backfill"],
        scenario,
        expect![[r#"
            a  0..100
            b  1005..1055
            c  11..511
            avg jct 548.33  makespan 1055  preemptions 0
        "#]],
    );
}

#[test]
fn every_end_counts_however_many_there_are() {
    let mut scenario = "cluster 64\n".to_owned();
    for job in 0..63 {
        scenario += &format!("job r{job} at 0 gpus 1 for {}\n", 10 + job);
    }
    scenario += "job head at 1 gpus 32 for 10\njob long at 2 gpus 1 for 500\n";
    scenario += "job wide at 3 gpus 64 for 10\njob late at 4 gpus 1 for 60\n";
    let build =
        || hostler_policies::builtin().from_toml("kind = 'conservative-backfill'").expect("valid");
    let text = hostler_sim::fixture::check(&build, &scenario).text;
    let tail: String = text.lines().skip(63).map(|line| format!("{line}\n")).collect();
    expect![[r#"
        head  40..50
        long  41..541
        wide  541..551
        late  42..102
        avg jct 56.97  makespan 551  preemptions 0
    "#]]
    .assert_eq(&tail);
}

/// The same schedule for both rules: red has used the GPU when its second job could start.
const TWO_TENANTS: &str = "
    cluster 1
    job a at 0 for 20 tenant red
    job b at 1 for 20 tenant red
    job c at 2 for 20 tenant blue
";

#[test]
fn who_used_less_before_comes_first_where_the_past_counts() {
    // Half of it counts after 640 s: it is weighed every 10 s.
    for kind in ["fifo-backfill", "conservative-backfill"] {
        check(
            &format!("kind = '{kind}'\nfair_share_days = 0.0074074"),
            TWO_TENANTS,
            expect![[r#"
                a  0..20
                b  40..60
                c  20..40
                avg jct 39.00  makespan 60  preemptions 0
            "#]],
        );
    }
}
