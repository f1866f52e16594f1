//! Nodes that are kept for a time, drained nodes with a deadline, and budgets.

use expect_test::expect;

use crate::story::check;

const COURSE: &str = "
    0 join n1 2
    0 join n2 2
    1 reserve course n1 600 300 hostler
    2 submit gpus=2 max=300
    3 submit gpus=2 max=7200
    4 submit gpus=2
    5 submit gpus=1 reservation=course
    6 jobs
    7 why
    8 n1 0 running
    8 n2 1 running
    9 restart
    10 join n1 2 0 running
    10 join n2 2 1 running
    300 n1 0 ended 0
    301 n1 beat
    301 n2 beat
    302 jobs
    599 n1 beat
    599 n2 beat
    601 tick
    602 n1 2 running
    603 why
    890 n1 beat
    890 n2 beat
    901 tick
    902 jobs
    903 why
";

#[test]
fn a_reservation_keeps_nodes_for_its_guests_and_what_came_before_ends_in_time() {
    check(
        COURSE,
        expect![[r#"
            0 join n1 2
            0 join n2 2
            1 reserve course n1 600 300 hostler
                done
            2 submit gpus=2 max=300
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000), (1, 1000)] of 1 at n1.example:20000
            3 submit gpus=2 max=7200
                submitted [2]
                to n2: start lease1 job2 restart 0 tasks 0[(0, 1000), (1, 1000)] of 1 at n2.example:20001
            4 submit gpus=2
                submitted [3]
            5 submit gpus=1 reservation=course
                submitted [4]
            6 jobs
                1 starting, on n1
                2 starting, on n2
                3 queued: needs 2 GPUs on one node; the most free on one is 0 (node `n2`); 1 node is kept for others; with `--max-time` it may start where it would end before
                4 held by reservation: its reservation `course` begins in 10 min
            7 why
                n1: kept for `course` in 10 min
                n2: nothing
            8 n1 0 running
            8 n2 1 running
            9 restart
            10 join n1 2 0 running
            10 join n2 2 1 running
            300 n1 0 ended 0
                to n1: forget lease0
            301 n1 beat
            301 n2 beat
            302 jobs
                2 running, on n2
                3 queued: needs 2 GPUs on one node; the most free on one is 0 (node `n2`); 1 node is kept for others; with `--max-time` it may start where it would end before
                4 held by reservation: its reservation `course` begins in 5 min
            599 n1 beat
            599 n2 beat
            601 tick
                to n1: start lease2 job4 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20002
            602 n1 2 running
            603 why
                n1: kept for `course`
                n2: nothing
            890 n1 beat
            890 n2 beat
            901 tick
            902 jobs
                2 running, on n2
                3 queued: needs 2 GPUs on one node; the most free on one is 1 (node `n1`)
                4 running, on n1
            903 why
                n1: nothing
                n2: nothing
        "#]],
    );
}

#[test]
fn jobs_on_a_drained_node_are_stopped_at_the_deadline_and_run_elsewhere() {
    check(
        "
        0 join n1 1
        1 submit gpus=1
        2 n1 0 running
        3 drain n1 60 new_disk
        4 why
        5 restart
        6 join n1 1 0 running
        62 n1 beat
        63 tick
        64 n1 0 killed
        65 jobs
        65 why
        66 undrain n1
        67 why
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            3 drain n1 60 new_disk
                n1 draining
            4 why
                n1: new disk; what still runs is stopped in 60 s
            5 restart
            6 join n1 1 0 running
            62 n1 beat
            63 tick
                to n1: stop lease0 checkpoint in 30000 ms
            64 n1 0 killed
                to n1: forget lease0
            65 jobs
                1 queued, code 143, on n1: its node was wanted for something else; it starts again
            65 why
                n1: new disk
            66 undrain n1
                n1 up
                to n1: start lease1 job1 restart 1 tasks 0[(0, 1000)] of 1 at n1.example:20001
            67 why
                n1: nothing
        "#]],
    );
}

#[test]
fn a_reservation_is_refused_that_makes_no_sense() {
    check(
        "
        0 join n1 2
        1 reserve a n1 100 50 ada
        2 reserve a n1 200 50 ada
        3 reserve b n1 120 50 ada
        4 reserve c 3 200 50 ada
        5 reserve d 2 200 50 ada
        6 reserve e n9 200 50 ada
        7 submit gpus=1 reservation=a
        8 submit gpus=1 reservation=z
        9 unreserve z
        10 unreserve a
        ",
        expect![[r#"
            0 join n1 2
            1 reserve a n1 100 50 ada
                done
            2 reserve a n1 200 50 ada
                invalid `name`: there is `a` already; end it first
            3 reserve b n1 120 50 ada
                invalid `nodes`: `n1` is kept for `a` then
            4 reserve c 3 200 50 ada
                invalid `gpus`: 3; 2 can be kept then
            5 reserve d 2 200 50 ada
                done
            6 reserve e n9 200 50 ada
                no node `n9`
            7 submit gpus=1 reservation=a
                reservation `a` is not for you; `hostler reservation list` says for whom
            8 submit gpus=1 reservation=z
                no reservation `z`
            9 unreserve z
                no reservation `z`
            10 unreserve a
                done
        "#]],
    );
}

#[test]
fn a_budget_that_is_used_up_is_told_with_what_comes_next() {
    check(
        "
        0 join n1 2
        0 quota budget=1 days=2
        1 submit gpus=2
        2 n1 0 running
        3 submit gpus=1
        800 n1 beat
        1600 n1 beat
        1800 jobs
        1802 tick
        1803 jobs
        1804 restart
        1805 join n1 2 0 running
        1806 n1 0 ended 0
        1807 jobs
        172800 join n1 2
        172801 tick
        ",
        expect![[r#"
            0 join n1 2
            0 quota budget=1 days=2
                done
            1 submit gpus=2
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000), (1, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            3 submit gpus=1
                submitted [2]
            800 n1 beat
            1600 n1 beat
            1800 jobs
                1 running, on n1
                2 queued: needs 1 GPU; none is free
            1802 tick
            1803 jobs
                1 running, on n1: node `n1` has said nothing for 202 s
                2 held by budget: tenant `default` has used 1.0 of the 1 GPU hours of its budget; there are more in 47.5 h, or when an admin says so (`hostler tenant set`)
            1804 restart
            1805 join n1 2 0 running
            1806 n1 0 ended 0
                to n1: forget lease0
            1807 jobs
                2 held by budget: tenant `default` has used 1.0 of the 1 GPU hours of its budget; there are more in 47.5 h, or when an admin says so (`hostler tenant set`)
            172800 join n1 2
                close (old)
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
            172801 tick
        "#]],
    );
}

#[test]
fn gpus_are_kept_on_nodes_that_take_jobs_and_in_time_to_come() {
    check(
        "
        0 join n1 4
        0 join n2 4
        1 drain n1
        2 reserve course 8 600 300 -
        3 reserve course 4 600 300 -
        4 why
        500 reserve late n2 10 300 -
        501 reserve soon n1 480 300 -
        ",
        expect![[r#"
            0 join n1 4
            0 join n2 4
            1 drain n1
                n1 draining
            2 reserve course 8 600 300 -
                invalid `gpus`: 8; 4 can be kept then
            3 reserve course 4 600 300 -
                done
            4 why
                n1: nothing
                n2: kept for `course` in 10 min
            500 reserve late n2 10 300 -
                invalid `from`: that time is over; name one to come, or leave it out for now
            501 reserve soon n1 480 300 -
                done
        "#]],
    );
}

#[test]
fn budgets_have_limits() {
    check(
        "
        0 quota budget=0
        0 quota budget=1000000001
        0 quota budget=10 days=0
        0 quota budget=10 days=1000000
        0 quota budget=10 days=30
        ",
        expect![[r#"
            0 quota budget=0
                invalid `budget_gpu_hours`: use 1 to 1000000000 hours
            0 quota budget=1000000001
                invalid `budget_gpu_hours`: use 1 to 1000000000 hours
            0 quota budget=10 days=0
                invalid `budget_days`: use 1 to 3660
            0 quota budget=10 days=1000000
                invalid `budget_days`: use 1 to 3660
            0 quota budget=10 days=30
                done
        "#]],
    );
}

#[test]
fn who_runs_on_a_drained_node_is_told_why_and_until_when() {
    check(
        "
        0 join n1 2
        1 submit gpus=1
        2 n1 0 running
        3 drain n1
        3 jobs
        4 drain n1 600 new_disk
        4 jobs
        5 undrain n1
        5 jobs
        ",
        expect![[r#"
            0 join n1 2
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            3 drain n1
                n1 draining
            3 jobs
                1 running, on n1: node `n1` is drained; what runs there goes on
            4 drain n1 600 new_disk
                n1 draining
            4 jobs
                1 running, on n1: node `n1` is drained: new disk; what still runs is stopped in 10 min
            5 undrain n1
                n1 up
            5 jobs
                1 running, on n1
        "#]],
    );
}
