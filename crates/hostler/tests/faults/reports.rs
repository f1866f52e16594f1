//! Reports of stops and ends that are late, repeated or lost.

use expect_test::expect;

use crate::check;

#[test]
fn a_preempted_job_saves_before_the_other_starts() {
    check(
        "kind = 'priority'\npreempt = true",
        "
        cluster 1
        job a at 0 for 100 save 5 load 5
        job b at 40 for 10 priority 1
    ",
        expect![[r#"
            a  0..45 55..120
            b  45..55
            avg jct 67.50  makespan 120  preemptions 1
            restarts 1  lost work 0
        "#]],
    );
}

#[test]
fn a_late_stop_report_delays_the_preemptor() {
    check(
        "kind = 'priority'\npreempt = true",
        "
        cluster 1
        job a at 0 for 100 save 5 load 5
        job b at 40 for 10 priority 1
        fault stop a late 20
    ",
        expect![[r#"
            a  0..65 75..140
            b  65..75
            avg jct 87.50  makespan 140  preemptions 1
            restarts 1  lost work 0
        "#]],
    );
}

#[test]
fn a_stop_report_that_comes_twice_is_stale_the_second_time() {
    check(
        "kind = 'priority'\npreempt = true",
        "
        cluster 1
        job a at 0 for 100 save 5 load 5
        job b at 40 for 10 priority 1
        fault stop a twice 20
    ",
        expect![[r#"
            a  0..45 55..120
            b  45..55
            avg jct 67.50  makespan 120  preemptions 1
            restarts 1  lost work 0
            stale facts 1
        "#]],
    );
}

#[test]
fn a_stop_that_is_never_reported_is_asked_for_again() {
    // Stopped and saved by 45; asked again at 40 + 5 + 300.
    check(
        "kind = 'priority'\npreempt = true",
        "
        cluster 1
        job a at 0 for 100 save 5 load 5
        job b at 40 for 10 priority 1
        fault stop a never
    ",
        expect![[r#"
            a  0..345 355..420
            b  345..355
            avg jct 367.50  makespan 420  preemptions 1
            restarts 1  lost work 0
        "#]],
    );
}

#[test]
fn a_stop_that_crosses_with_the_end_is_an_end() {
    // a is done at 40 but not said to be; the stop at 45 brings it to light.
    check(
        "kind = 'priority'\npreempt = true",
        "
        cluster 1
        job a at 0 for 40
        job b at 45 for 10 priority 1
        fault finish a late 10
    ",
        expect![[r#"
            a  0..45
            b  45..55
            avg jct 27.50  makespan 55  preemptions 0
            stale facts 1
        "#]],
    );
}

#[test]
fn a_late_end_holds_the_place() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 40
        job b at 0 for 10
        fault finish a late 30
    ",
        expect![[r#"
            a  0..70
            b  70..80
            avg jct 75.00  makespan 80  preemptions 0
        "#]],
    );
}

#[test]
fn an_end_that_comes_twice_is_stale_the_second_time() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 40
        job b at 0 for 10
        fault finish a twice 30
    ",
        expect![[r#"
            a  0..40
            b  40..50
            avg jct 45.00  makespan 50  preemptions 0
            stale facts 1
        "#]],
    );
}

#[test]
fn an_end_that_is_never_reported_is_found_at_the_time_limit() {
    // It did its work before the limit: done, not timed out.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 40 limit 60
        job b at 0 for 10
        fault finish a never
    ",
        expect![[r#"
            a  0..60
            b  60..70
            avg jct 65.00  makespan 70  preemptions 0
        "#]],
    );
}

#[test]
fn an_end_that_was_not_heard_is_said_again_after_an_hour() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 40
        job b at 0 for 10
        fault finish a never
    ",
        expect![[r#"
            a  0..3640
            b  3640..3650
            avg jct 3645.00  makespan 3650  preemptions 0
        "#]],
    );
}

#[test]
fn a_job_that_runs_into_its_limit_times_out() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 100 limit 60
        job b at 0 for 10
    ",
        expect![[r#"
            a  0..60 timed out
            b  60..70
            avg jct 70.00  makespan 70  preemptions 0
        "#]],
    );
}

#[test]
fn a_node_that_dies_before_a_late_end_takes_the_result_along() {
    // Done at 40, lost at 50 before anybody knew; the word of 70 is stale.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 40
        fault finish a late 30
        fault node-down node at 50 for 10
    ",
        expect![[r#"
            a  0..50 60..100
            avg jct 100.00  makespan 100  preemptions 0
            restarts 1  lost work 50
            stale facts 1
        "#]],
    );
}

#[test]
fn several_faults_of_one_report_are_used_up_in_their_order() {
    // The first stop is said 5 s late, the second 20 s.
    check(
        "kind = 'priority'\npreempt = true",
        "
        cluster 1
        job a at 0 for 100
        job b at 10 for 10 priority 1
        job c at 40 for 10 priority 1
        fault stop a late 5
        fault stop a late 20
    ",
        expect![[r#"
            a  0..15 25..60 70..145
            b  15..25
            c  60..70
            avg jct 63.33  makespan 145  preemptions 2
            restarts 2  lost work 0
        "#]],
    );
}

#[test]
fn a_node_that_answers_no_stop_is_taken_out_and_comes_back() {
    // Asked at 40, 345 and 645, the last word lost each time: taken out at 945, and restarted 600 s
    // after the last question. The work that a saved at 45 is not lost.
    check(
        "kind = 'priority'\npreempt = true",
        "
        cluster 1
        job a at 0 for 100 save 5 load 5
        job b at 40 for 10 priority 1
        fault stop a never
        fault stop a never
        fault stop a never
    ",
        expect![[r#"
            a  0..945 1255..1320
            b  1245..1255
            avg jct 1267.50  makespan 1320  preemptions 1
            restarts 1  lost work 945
            stale facts 1
        "#]],
    );
}

#[test]
fn jobs_beside_a_silent_one_start_again_elsewhere() {
    // c answers no stop. n1 is taken out at 940 with a on it, which goes to n2 and begins again;
    // what it left on n1 ends without a word. n1 is back at 1240.
    check(
        "kind = 'priority'\npreempt = true",
        "
        node n1 gpus 2 model A
        node n2 gpus 1 model B
        job a at 0 for 2000
        job c at 0 model A for 100
        job b at 40 model A for 10 priority 1
        fault stop c never
        fault stop c never
        fault stop c never
    ",
        expect![[r#"
            a  0..940 940..2940
            c  0..940 1240..1300
            b  1240..1250
            avg jct 1816.67  makespan 2940  preemptions 1
            restarts 2  lost work 1880
            stale facts 1
        "#]],
    );
}

#[test]
fn an_end_that_no_stop_brings_to_light_ends_with_the_node() {
    // Done at 40, and nobody is told: not by itself, not when asked at 60, 360 and 660.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 40 limit 60
        job b at 0 for 10
        fault finish a never
        fault finish a never
        fault finish a never
        fault finish a never
    ",
        expect![[r#"
            a  0..960 timed out
            b  1260..1270
            avg jct 1270.00  makespan 1270  preemptions 0
            stale facts 2
        "#]],
    );
}
