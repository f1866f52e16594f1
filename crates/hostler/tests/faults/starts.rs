//! Starts that fail, and reports of starts that go astray.

use expect_test::expect;

use crate::check;

#[test]
fn a_start_that_fails_is_tried_again() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 10
        fault start-fails a times 2
    ",
        expect![[r#"
            a  0..0 0..0 0..10
            avg jct 10.00  makespan 10  preemptions 0
            restarts 2  lost work 0
        "#]],
    );
}

#[test]
fn a_job_whose_starts_fail_five_times_still_runs() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 10
        job b at 0 for 10
        fault start-fails a times 5
    ",
        expect![[r#"
            a  0..0 0..0 0..0 0..0 0..0 0..10
            b  10..20
            avg jct 15.00  makespan 20  preemptions 0
            restarts 5  lost work 0
        "#]],
    );
}

#[test]
fn a_job_whose_starts_fail_six_times_is_given_up() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 10
        job b at 0 for 10
        fault start-fails a times 6
    ",
        expect![[r#"
            a  0..0 0..0 0..0 0..0 0..0 0..0 failed
            b  0..10
            avg jct 10.00  makespan 10  preemptions 0
            restarts 5  lost work 0
        "#]],
    );
}

#[test]
fn faults_of_one_kind_add_up() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 10
        fault start-fails a times 3
        fault start-fails a times 3
    ",
        expect![[r#"
            a  0..0 0..0 0..0 0..0 0..0 0..0 failed
            avg jct -  makespan 0  preemptions 0
            restarts 5  lost work 0
        "#]],
    );
}

#[test]
fn a_late_start_report_changes_nothing() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 100
        fault start a late 50
    ",
        expect![[r#"
            a  0..100
            avg jct 100.00  makespan 100  preemptions 0
        "#]],
    );
}

#[test]
fn a_start_report_after_the_end_is_stale() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 100
        fault start a late 200
    ",
        expect![[r#"
            a  0..100
            avg jct 100.00  makespan 100  preemptions 0
            stale facts 1
        "#]],
    );
}

#[test]
fn a_start_report_that_comes_twice_is_stale_the_second_time() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 100
        fault start a twice 50
    ",
        expect![[r#"
            a  0..100
            avg jct 100.00  makespan 100  preemptions 0
            stale facts 1
        "#]],
    );
}

#[test]
fn a_short_job_is_over_before_its_missing_start_report_is_missed() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 100
        fault start a never
    ",
        expect![[r#"
            a  0..100
            avg jct 100.00  makespan 100  preemptions 0
        "#]],
    );
}

#[test]
fn a_start_that_is_never_reported_is_stopped_after_half_an_hour_and_made_again() {
    // The 1800 s that it did work were for nothing.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 2000
        job b at 0 for 10
        fault start a never
    ",
        expect![[r#"
            a  0..1800 1800..3800
            b  3800..3810
            avg jct 3805.00  makespan 3810  preemptions 0
            restarts 1  lost work 1800
        "#]],
    );
}

#[test]
fn a_failed_start_that_is_never_reported_is_found_after_half_an_hour() {
    check(
        "kind = 'fifo'",
        "
        cluster 1
        job a at 0 for 100
        fault start-fails a times 1
        fault start a never
    ",
        expect![[r#"
            a  0..1800 1800..1900
            avg jct 1900.00  makespan 1900  preemptions 0
            restarts 1  lost work 0
        "#]],
    );
}
