//! Schedules of the policies that put jobs in an order.

use expect_test::expect;
use hostler_core::decision::Decision;
use hostler_core::engine::Engine;
use hostler_core::event::Event;
use hostler_core::id::{JobId, LeaseId, ModelId, NodeId};
use hostler_core::units::Time;
use hostler_sim::fixture::Fixture;

use crate::{build, check, check_reasons, check_reasons_of};

/// Four jobs on two GPUs, worked out by hand in many lectures.
const LECTURE: &str = "
    cluster 2
    job a  at 0  gpus 1  for 30  priority 3
    job b  at 0  gpus 1  for 10  priority 1
    job c  at 1  gpus 1  for 25  priority 2
    job d  at 4  gpus 1  for 40  priority 4
";

#[test]
fn fifo_runs_jobs_as_they_come() {
    check(
        "kind = 'fifo'",
        LECTURE,
        expect![[r#"
        a  0..30
        b  0..10
        c  10..35
        d  30..70
        avg jct 35.00  makespan 70  preemptions 0
    "#]],
    );
}

#[test]
fn preempting_sjf_ranks_by_total_run_time() {
    check(
        "kind = 'sjf'\npreempt = true",
        LECTURE,
        expect![[r#"
        a  0..1 10..39
        b  0..10
        c  1..26
        d  26..66
        avg jct 34.00  makespan 66  preemptions 1
    "#]],
    );
}

#[test]
fn preempting_priority_takes_the_place_of_lower_ones() {
    check(
        "kind = 'priority'\npreempt = true",
        LECTURE,
        expect![[r#"
        a  0..30
        b  0..1 44..53
        c  1..4 30..52
        d  4..44
        avg jct 43.50  makespan 53  preemptions 2
    "#]],
    );
}

#[test]
fn sjf_and_priority_leave_running_jobs_alone_unless_told() {
    check(
        "kind = 'sjf'",
        LECTURE,
        expect![[r#"
        a  0..30
        b  0..10
        c  10..35
        d  30..70
        avg jct 35.00  makespan 70  preemptions 0
    "#]],
    );
    check(
        "kind = 'priority'",
        LECTURE,
        expect![[r#"
        a  0..30
        b  0..10
        c  30..55
        d  10..50
        avg jct 35.00  makespan 55  preemptions 0
    "#]],
    );
}

/// `a` has 15 left when `b` comes.
const NEARLY_DONE: &str = "
    cluster 1
    job a  at 0   gpus 1  for 40
    job b  at 25  gpus 1  for 20
";

#[test]
fn srtf_counts_what_a_job_has_done_and_sjf_does_not() {
    check(
        "kind = 'srtf'",
        NEARLY_DONE,
        expect![[r#"
        a  0..40
        b  40..60
        avg jct 37.50  makespan 60  preemptions 0
    "#]],
    );
    check(
        "kind = 'sjf'\npreempt = true",
        NEARLY_DONE,
        expect![[r#"
        a  0..25 45..60
        b  25..45
        avg jct 40.00  makespan 60  preemptions 1
    "#]],
    );
}

#[test]
fn srtf_goes_on_with_what_is_left_after_a_preemption() {
    check(
        "kind = 'srtf'",
        "
        cluster 1
        job a  at 0   gpus 1  for 40  load 2
        job b  at 5   gpus 1  for 20
        job c  at 6   gpus 1  for 36
        ",
        expect![[r#"
            a  0..5 25..62
            b  5..25
            c  62..98
            avg jct 58.00  makespan 98  preemptions 1
        "#]],
    );
}

#[test]
fn jobs_that_save_before_they_stop_hold_their_place_for_that_long() {
    check(
        "kind = 'priority'\npreempt = true",
        "
        cluster 2
        job a  at 0   gpus 2  for 50  save 3  load 4
        job b  at 10  gpus 1  for 20  priority 1
        ",
        expect![[r#"
            a  0..13 33..77
            b  13..33
            avg jct 50.00  makespan 77  preemptions 1
        "#]],
    );
}

/// A large job between small ones.
const LARGE_WAITS: &str = "
    cluster 4
    job a  at 0   gpus 3  for 10
    job b  at 1   gpus 4  for 10
    job c  at 2   gpus 1  for 10
    job d  at 9   gpus 2  for 10
    job e  at 18  gpus 3  for 10
";

#[test]
fn a_strict_head_idles_gpus_and_a_lenient_one_lets_the_large_job_starve() {
    check(
        "kind = 'fifo'",
        LARGE_WAITS,
        expect![[r#"
        a  0..10
        b  10..20
        c  20..30
        d  20..30
        e  30..40
        avg jct 20.00  makespan 40  preemptions 0
    "#]],
    );
    check(
        "kind = 'fifo'\nhead = 'skips'",
        LARGE_WAITS,
        expect![[r#"
        a  0..10
        b  20..30
        c  2..12
        d  10..20
        e  30..40
        avg jct 16.40  makespan 40  preemptions 0
    "#]],
    );
}

#[test]
fn those_who_wait_are_told_why() {
    check_reasons(
        "kind = 'fifo'",
        LARGE_WAITS,
        expect![[r#"
        1  job 1: 0 of its 1 tasks would fit now
        2  job 2: job 1 comes first
        9  job 3: job 1 comes first
        18  job 4: job 2 comes first
    "#]],
    );
    check_reasons(
        "kind = 'fifo'\nhead = 'skips'",
        LARGE_WAITS,
        expect![[r#"
        1  job 1: 0 of its 1 tasks would fit now
        9  job 3: 0 of its 1 tasks would fit now
        18  job 4: 0 of its 1 tasks would fit now
    "#]],
    );
}

#[test]
fn gangs_start_whole_over_several_nodes() {
    check(
        "kind = 'fifo'",
        "
        node x  gpus 4
        node y  gpus 4
        job a  at 0  gpus 1  count 6  for 10
        job b  at 1  gpus 2  count 2  for 10
        job c  at 2  gpus 1  count 2  for 10
        ",
        expect![[r#"
            a  0..10
            b  10..20
            c  10..20
            avg jct 15.67  makespan 20  preemptions 0
        "#]],
    );
}

#[test]
fn four_quarters_share_one_gpu_and_the_fifth_waits() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a  at 0  gpus 0.25  for 10
        job b  at 0  gpus 0.25  for 20
        job c  at 0  gpus 0.25  for 30
        job d  at 0  gpus 0.25  for 40
        job e  at 0  gpus 0.25  for 10
        job f  at 0  gpus 1     for 10
        ",
        expect![[r#"
            a  0..10
            b  0..20
            c  0..30
            d  0..40
            e  10..20
            f  40..50
            avg jct 28.33  makespan 50  preemptions 0
        "#]],
    );
}

#[test]
fn a_job_that_can_never_run_is_rejected_with_the_reason() {
    check_reasons_of(
        &["fifo", "sjf", "srtf", "fifo-backfill", "conservative-backfill"],
        "
            node x  gpus 4  model A
            node y  gpus 4  model A
            job a  at 0  gpus 8           for 10
            job b  at 0  gpus 4  count 3  for 10
            job c  at 0  gpus 1  model B  for 10
            ",
        expect![[r#"
                0  job 0: no node that it accepts has 8 GPUs and the CPU and memory it asks
                0  job 1: 2 of its 3 tasks would fit the empty cluster
                0  job 2: no node has a GPU model that it accepts
            "#]],
    );
}

#[test]
fn a_job_waits_for_a_gpu_with_the_memory_it_needs() {
    check(
        "kind = 'fifo'",
        "
        model small  mem 16000
        model large  mem 40000  tier 1
        node x  gpus 1  model small
        node y  gpus 1  model large
        job a  at 0  gpus 1  gpu_mem 30000  for 10
        job b  at 0  gpus 1  gpu_mem 30000  for 10
        ",
        expect![[r#"
            a  0..10
            b  10..20
            avg jct 15.00  makespan 20  preemptions 0
        "#]],
    );
}

#[test]
fn a_gang_that_lost_a_node_is_stopped_once() {
    // At 4 the gang `a` loses a node, and in the same instant `b` wants its place.
    check(
        "kind = 'sjf'\npreempt = true",
        "
        node x  gpus 1
        node y  gpus 1
        job a  at 0  gpus 1  count 2  for 50
        fault node-down y at 4 for 10
        job b  at 4  gpus 1  for 20
        ",
        expect![[r#"
            a  0..4 24..74
            b  4..24
            avg jct 47.00  makespan 74  preemptions 0
        "#]],
    );
}

#[test]
fn a_job_starts_beside_the_room_that_is_kept_for_another() {
    // `c` takes the place of `a` on the first node, which saves until 20. The rule wants `d` on
    // that node too, but the other has room at once.
    check(
        "kind = 'priority'\npreempt = true\nplace = 'first-fit'",
        "
        node x  gpus 2
        node y  gpus 2
        job a  at 0   gpus 1  for 50  save 10
        job f  at 1   gpus 1  for 5
        job e  at 2   gpus 1  for 50  priority 3
        job c  at 10  gpus 2  for 20  priority 2
        job d  at 10  gpus 1  for 20  priority 1
        ",
        expect![[r#"
            a  0..20 30..70
            f  1..6
            e  2..52
            c  20..40
            d  10..30
            avg jct 35.00  makespan 70  preemptions 1
        "#]],
    );
}

#[test]
fn a_job_whose_last_word_was_lost_with_its_node_runs_again() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a  at 0  gpus 1  for 10
        fault finish a late 50
        fault node-down node at 20 for 5
        ",
        expect![[r#"
            a  0..20 25..35
            avg jct 35.00  makespan 35  preemptions 0
        "#]],
    );
}

#[test]
fn bounded_sjf_lets_those_that_overtake_have_a_part_of_the_gpus() {
    // Four GPUs, two of them for those that overtake `long`: `s3` and `s1`, then `s2`. The two that
    // are free at 40 are for `long`, although `s4` is shorter.
    check(
        "kind = 'bounded-sjf'\nstretch = 2.0",
        "
        cluster 4
        job a     at 0  gpus 2  for 20
        job b     at 0  gpus 2  for 40
        job long  at 1  gpus 2  for 90
        job s1    at 2  gpus 1  for 30
        job s2    at 3  gpus 1  for 30
        job s3    at 4  gpus 1  for 5
        job s4    at 5  gpus 1  for 40
        ",
        expect![[r#"
            a     0..20
            b     0..40
            long  40..130
            s1    20..50
            s2    25..55
            s3    20..25
            s4    50..90
            avg jct 56.43  makespan 130  preemptions 0
        "#]],
    );
}

#[test]
fn bounded_sjf_keeps_room_for_a_gang_that_nobody_else_delays() {
    // When `a` is over, no job before `wide` runs: nothing starts until it fits.
    check(
        "kind = 'bounded-sjf'\nstretch = 2.0",
        "
        cluster 4
        job a     at 0   gpus 2  for 20
        job b     at 0   gpus 2  for 10
        job wide  at 1   gpus 4  for 20
        job s1    at 2   gpus 2  for 30
        job s2    at 3   gpus 2  for 31
        ",
        expect![[r#"
            a     0..20
            b     0..10
            wide  40..60
            s1    10..40
            s2    60..91
            avg jct 43.00  makespan 91  preemptions 0
        "#]],
    );
}

#[test]
fn bounded_sjf_counts_those_alone_that_are_in_the_way_of_the_oldest() {
    // The job on A was there before b, but b gets no room by its end: when the first two on B are
    // over, b is next, and short jobs for B wait. Those for A do not.
    check(
        "kind = 'bounded-sjf'",
        "
        node x  gpus 2  model A
        node y  gpus 2  model B
        job long  at 0  gpus 1  model A  for 1000
        job s0    at 1  gpus 1  model B  for 10
        job s1    at 2  gpus 1  model B  for 14
        job b     at 3  gpus 2  model B  for 20
        job s2    at 4  gpus 1  model B  for 10
        job s3    at 5  gpus 1  model B  for 10
        job s4    at 6  gpus 1  model B  for 10
        job s5    at 7  gpus 1  model B  for 10
        job other at 8  gpus 1  model A  for 10
        ",
        expect![[r#"
            long   0..1000
            s0     1..11
            s1     2..16
            b      21..41
            s2     11..21
            s3     41..51
            s4     41..51
            s5     51..61
            other  8..18
            avg jct 137.11  makespan 1000  preemptions 0
        "#]],
    );
}

#[test]
fn bounded_sjf_takes_a_job_of_which_little_is_known_for_a_longer_one() {
    // Medians: 10 s for `a`, but it was 100 s once, 20 s for `b`.
    let scenario = "
        cluster 2
        job a1      at 0    tenant a  for 10
        job a2      at 0    tenant a  for 10
        job a3      at 0    tenant a  for 100
        job b1      at 0    tenant b  for 20
        job b2      at 0    tenant b  for 20
        job b3      at 0    tenant b  for 20
        job other   at 290  tenant c  for 500
        job shaky   at 300  tenant a  for 10
        job steady  at 300  tenant b  for 20
    ";
    let ends_with = |settings: &str, lines: &[&str]| {
        let policy = format!("kind = 'bounded-sjf'\nestimate = 'median'\n{settings}");
        let text = hostler_sim::fixture::check(&|| build(&policy), scenario).text;
        lines.iter().for_each(|line| assert!(text.contains(line), "{text}"));
    };
    ends_with("caution = 0.0", &["shaky   300..310", "steady  310..330"]);
    ends_with("caution = 1.0", &["shaky   320..330", "steady  300..320"]);
}

#[test]
fn a_job_on_a_draining_node_is_not_stopped_in_vain() {
    // `low` ranks last, but its node takes nothing new: only `mid` makes room for `high`.
    let scenario = "
        node x  gpus 1
        node y  gpus 1
        job mid   gpus 1  for 100  priority 1
        job low   gpus 1  for 100
        job high  gpus 1  for 100  priority 2
    ";
    let fixture = Fixture::parse(scenario).expect("it is well formed");
    let mut engine = Engine::new(build("kind = 'priority'\npreempt = true"), ());
    let model = fixture.site.models[0].clone();
    let mut events = vec![Event::ModelAdded { model: ModelId(0), spec: model }];
    let nodes = fixture.site.nodes.iter().cloned().zip(0..);
    events.extend(nodes.map(|(spec, node)| Event::NodeUp { node: NodeId(node), spec }));
    let mut jobs = fixture
        .jobs
        .iter()
        .zip(0..)
        .map(|((_, spec), job)| Event::Submitted { job: JobId(job), spec: spec.clone() });
    events.extend(jobs.by_ref().take(2));
    engine.step(Time::ZERO, events).expect("policies keep the rules");
    engine
        .step(Time::from_secs(1), vec![Event::NodeDrain { node: NodeId(1), draining: true }])
        .unwrap();
    let decisions =
        engine.step(Time::from_secs(2), jobs.collect()).expect("policies keep the rules");
    let stops = decisions.iter().filter_map(|decision| match decision {
        Decision::Stop { lease, .. } => Some(*lease),
        _ => None,
    });
    assert_eq!(stops.collect::<Vec<LeaseId>>(), [LeaseId(0)]);
}

#[test]
fn many_jobs_whose_node_is_down_hold_nobody_back_under_bounded_sjf() {
    let stuck: String = (0..17).map(|job| format!("job j{job}  at 0  gpus 4  for 5\n")).collect();
    check(
        "kind = 'bounded-sjf'",
        &format!(
            "
            node x gpus 4
            node y gpus 1
            fault node-down x at 0 for 1000
            {stuck}
            job s  at 1  gpus 1  for 5
            "
        ),
        expect![[r#"
            j0   1000..1005
            j1   1005..1010
            j2   1010..1015
            j3   1015..1020
            j4   1020..1025
            j5   1025..1030
            j6   1030..1035
            j7   1035..1040
            j8   1040..1045
            j9   1045..1050
            j10  1050..1055
            j11  1055..1060
            j12  1060..1065
            j13  1065..1070
            j14  1070..1075
            j15  1075..1080
            j16  1080..1085
            s    1..6
            avg jct 987.22  makespan 1085  preemptions 0
        "#]],
    );
}

#[test]
fn what_a_time_limit_frees_in_the_same_step_needs_no_victim() {
    // a is cut off at 10, when h comes: b runs on.
    check(
        "kind = 'priority'\npreempt = true",
        "
        node x gpus 4
        node y gpus 4
        job a  at 0  gpus 4  for 100  limit 10  priority 1
        job b  at 0  gpus 4  for 100  priority 1  save 5  load 5
        job h  at 10  gpus 4  for 5  priority 9
        ",
        expect![[r#"
            a  0..10 timed out
            b  0..100
            h  10..15
            avg jct 52.50  makespan 100  preemptions 0
        "#]],
    );
}
