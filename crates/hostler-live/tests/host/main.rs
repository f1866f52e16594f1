//! The daemon's state machine, in stories.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod copies;
mod demand;
mod found;
mod many;
mod nodes;
mod quotas;
mod reservations;
mod speeds;
mod starts;
mod story;
mod uses;
mod violations;

use expect_test::expect;
use story::check;

#[test]
fn jobs_start_in_order_and_end_with_their_exit_code() {
    check(
        "
        0 join n1 2
        1 submit gpus=2
        1 submit gpus=1 estimate=10
        2 n1 0 running
        3 jobs
        9 n1 0 ended 3
        9 n1 0 ended 3
        10 n1 1 running
        12 n1 1 ended 0
        13 history
        ",
        expect![[r#"
            0 join n1 2
            1 submit gpus=2
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000), (1, 1000)] of 1 at n1.example:20000
            1 submit gpus=1 estimate=10
                submitted [2]
            2 n1 0 running
            3 jobs
                1 running, on n1
                2 queued: needs 1 GPU; none is free
            9 n1 0 ended 3
                to n1: forget lease0
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
            9 n1 0 ended 3
                to n1: forget lease0
            10 n1 1 running
            12 n1 1 ended 0
                to n1: forget lease1
            13 history
                1 failed, code 3, on n1
                2 finished, code 0, on n1
        "#]],
    );
}

#[test]
fn a_gang_runs_when_all_of_it_runs_and_ends_together() {
    check(
        "
        0 join n1 1
        0 join n2 1
        1 submit gpus=1 tasks=2 grace=5
        2 n1 0 running
        2 jobs
        3 n2 0 running
        3 jobs
        4 n2 0 ended 7
        5 n1 0 killed
        6 history
        ",
        expect![[r#"
            0 join n1 1
            0 join n2 1
            1 submit gpus=1 tasks=2 grace=5
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 2 at n1.example:20000
                to n2: start lease0 job1 restart 0 tasks 1[(0, 1000)] of 2 at n1.example:20000
            2 n1 0 running
            2 jobs
                1 starting, on n1 n2
            3 n2 0 running
            3 jobs
                1 running, on n1 n2
            4 n2 0 ended 7
                to n1: stop lease0 kill in 5000 ms
            5 n1 0 killed
                to n1: forget lease0
                to n2: forget lease0
            6 history
                1 failed, code 7, on n1 n2
        "#]],
    );
}

#[test]
fn a_part_that_does_not_start_ends_the_others_and_the_job_is_tried_again() {
    check(
        "
        0 join n1 1
        0 join n2 1
        1 submit gpus=1 tasks=2
        2 n1 0 running
        3 n2 0 faulty
        4 n1 0 killed
        5 jobs
        ",
        expect![[r#"
            0 join n1 1
            0 join n2 1
            1 submit gpus=1 tasks=2
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 2 at n1.example:20000
                to n2: start lease0 job1 restart 0 tasks 1[(0, 1000)] of 2 at n1.example:20000
            2 n1 0 running
            3 n2 0 faulty
                to n1: stop lease0 kill in 30000 ms
            4 n1 0 killed
                to n1: forget lease0
                to n2: forget lease0
            5 jobs
                1 held by start, on n1 n2: its start failed: no such program; it is tried again soon
        "#]],
    );
}

#[test]
fn a_machine_that_can_start_nothing_rests_and_the_job_goes_elsewhere() {
    check(
        "
        0 join n1 1
        1 submit gpus=1
        2 n1 0 unable
        3 join n2 1
        4 jobs
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 unable
                to n1: forget lease0
            3 join n2 1
                to n2: start lease1 job1 restart 1 tasks 0[(0, 1000)] of 1 at n2.example:20001
            4 jobs
                1 starting, on n2
        "#]],
    );
}

#[test]
fn jobs_wait_for_others_and_go_with_them() {
    check(
        "
        0 join n1 2
        1 submit gpus=1
        1 submit gpus=1 after=1
        1 submit gpus=1 after=1+2
        1 submit gpus=1 after=3
        1 submit gpus=1 after=9
        2 jobs
        3 n1 0 ended 0
        4 n1 1 ended 1
        5 history
        6 submit gpus=1 after=1
        7 submit gpus=1 after=2
        ",
        expect![[r#"
            0 join n1 2
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 submit gpus=1 after=1
                submitted [2]
            1 submit gpus=1 after=1+2
                submitted [3]
            1 submit gpus=1 after=3
                submitted [4]
            1 submit gpus=1 after=9
                no job `9`
            2 jobs
                1 starting, on n1
                2 held by jobs: waits until jobs are finished: 1
                3 held by jobs: waits until jobs are finished: 1, 2
                4 held by jobs: waits until jobs are finished: 3
            3 n1 0 ended 0
                to n1: forget lease0
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
            4 n1 1 ended 1
                to n1: forget lease1
            5 history
                1 finished, code 0, on n1
                2 failed, code 1, on n1
                3 cancelled: job 2, which it needs, did not finish well
                4 cancelled: job 3, which it needs, did not finish well
            6 submit gpus=1 after=1
                submitted [5]
                to n1: start lease2 job5 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20002
            7 submit gpus=1 after=2
                job 2 did not finish well; nothing can wait for it
        "#]],
    );
}

#[test]
fn the_same_key_submits_once() {
    check(
        "
        0 join n1 1
        1 submit gpus=1 key=a
        2 submit gpus=1 key=a
        3 submit gpus=2 key=a
        4 restart
        5 submit gpus=1 key=a
        5 submit gpus=1 array=3 key=b
        6 submit gpus=1 array=3 key=b
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1 key=a
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 submit gpus=1 key=a
                submitted [1], as before
            3 submit gpus=2 key=a
                idempotency key `a` was used for another request; use a fresh one
            4 restart
            5 submit gpus=1 key=a
                submitted [1], as before
            5 submit gpus=1 array=3 key=b
                submitted [2, 3, 4]
            6 submit gpus=1 array=3 key=b
                submitted [2, 3, 4], as before
        "#]],
    );
}

#[test]
fn of_too_many_keys_the_oldest_is_forgotten() {
    check(
        "
        0 submit gpus=1 key=a
        1 submit gpus=1 key=b
        2 submit gpus=1 key=c
        3 submit gpus=1 key=a
        4 submit gpus=1 key=d
        5 restart
        6 submit gpus=1 key=b
        7 submit gpus=1 key=a
        ",
        expect![[r#"
            0 submit gpus=1 key=a
                submitted [1]
            1 submit gpus=1 key=b
                submitted [2]
            2 submit gpus=1 key=c
                submitted [3]
            3 submit gpus=1 key=a
                submitted [1], as before
            4 submit gpus=1 key=d
                submitted [4]
            5 restart
            6 submit gpus=1 key=b
                submitted [2], as before
            7 submit gpus=1 key=a
                submitted [5]
        "#]],
    );
}

#[test]
fn people_hold_release_cancel_and_drain() {
    check(
        "
        0 join n1 1
        1 submit gpus=1
        1 submit gpus=1
        2 hold 1
        2 hold 2
        3 jobs
        4 drain n1
        5 release 2
        6 cancel 1 5
        6 cancel 1
        7 n1 0 killed
        8 jobs
        9 undrain n1
        10 cancel 2
        11 n1 1 unknown
        12 cancel 2
        13 cancel 77
        14 history
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 submit gpus=1
                submitted [2]
            2 hold 1
                job 1 runs and cannot be held; cancel it instead
            2 hold 2
                2 held by person: held by a person
            3 jobs
                1 starting, on n1
                2 held by person: held by a person
            4 drain n1
                n1 draining
            5 release 2
                2 queued: none of 1 nodes takes jobs; see `hostler nodes`
            6 cancel 1 5
                job 1 has version 6291456, not 5; look at it again
            6 cancel 1
                to n1: stop lease0 kill in 30000 ms
                1 stopping, on n1: cancelled; it is being stopped
            7 n1 0 killed
                to n1: forget lease0
            8 jobs
                2 queued: none of 1 nodes takes jobs; see `hostler nodes`
            9 undrain n1
                n1 up
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
            10 cancel 2
                to n1: stop lease1 kill in 30000 ms
                2 stopping, on n1: cancelled; it is being stopped
            11 n1 1 unknown
                to n1: forget lease1
            12 cancel 2
                job 2 is over
            13 cancel 77
                no job `77`
            14 history
                1 cancelled, code 143, on n1
                2 cancelled, on n1
        "#]],
    );
}

#[test]
fn a_daemon_that_comes_back_adopts_what_runs() {
    check(
        "
        0 join n1 4
        1 submit gpus=1
        1 submit gpus=1
        1 submit gpus=1
        1 submit gpus=1
        2 n1 0 running
        2 n1 1 running
        2 n1 2 running
        3 cancel 3
        4 restart
        5 jobs
        6 join n1 4 0 running, 1 ended 5, 2 running
        7 n1 2 killed
        8 jobs
        9 history
        ",
        expect![[r#"
            0 join n1 4
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 submit gpus=1
                submitted [2]
                to n1: start lease1 job2 restart 0 tasks 0[(1, 1000)] of 1 at n1.example:20001
            1 submit gpus=1
                submitted [3]
                to n1: start lease2 job3 restart 0 tasks 0[(2, 1000)] of 1 at n1.example:20002
            1 submit gpus=1
                submitted [4]
                to n1: start lease3 job4 restart 0 tasks 0[(3, 1000)] of 1 at n1.example:20003
            2 n1 0 running
            2 n1 1 running
            2 n1 2 running
            3 cancel 3
                to n1: stop lease2 kill in 30000 ms
                3 stopping, on n1: cancelled; it is being stopped
            4 restart
            5 jobs
                1 running, on n1
                2 running, on n1
                3 stopping, on n1: cancelled; it is being stopped
                4 starting, on n1
            6 join n1 4 0 running, 1 ended 5, 2 running
                to n1: forget lease1
                to n1: stop lease2 kill in 30000 ms
                to n1: start lease3 job4 restart 0 tasks 0[(3, 1000)] of 1 at n1.example:20003
            7 n1 2 killed
                to n1: forget lease2
            8 jobs
                1 running, on n1
                4 starting, on n1
            9 history
                2 failed, code 5, on n1
                3 cancelled, code 143, on n1
        "#]],
    );
}

#[test]
fn a_node_is_given_up_only_after_the_fence_and_its_jobs_start_elsewhere() {
    check(
        "
        0 join n1 1
        0 join n2 1
        1 submit gpus=1
        2 n1 0 running
        2 n2 beat
        3 lose n1
        40 n2 beat
        40 nodes
        900 n2 beat
        900 jobs
        970 n2 beat
        970 jobs
        975 n2 1 running
        980 join n1 1 0 killed
        980 nodes
        981 n2 1 ended 0
        982 history
        ",
        expect![[r#"
            0 join n1 1
            0 join n2 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            2 n2 beat
            3 lose n1
            40 n2 beat
            40 nodes
                n1 silent 1 used
                n2 up 0 used
            900 n2 beat
            900 jobs
                1 running, on n1: node `n1` has said nothing for 900 s; its agent is not connected
            970 n2 beat
                to n2: start lease1 job1 restart 1 tasks 0[(0, 1000)] of 1 at n2.example:20001
            970 jobs
                1 starting, on n2
            975 n2 1 running
            980 join n1 1 0 killed
                to n1: forget lease0
            980 nodes
                n1 up 0 used
                n2 up 1 used
            981 n2 1 ended 0
                to n2: forget lease1
            982 history
                1 finished, code 0, on n2
        "#]],
    );
}

#[test]
fn a_gang_that_loses_a_node_starts_anew() {
    check(
        "
        0 join n1 1
        0 join n2 1
        0 join n3 1
        1 submit gpus=1 tasks=2
        2 n1 0 running
        2 n2 0 running
        3 lose n2
        500 n1 beat
        500 n3 beat
        965 n1 beat
        965 n3 beat
        966 n1 0 killed
        967 jobs
        ",
        expect![[r#"
            0 join n1 1
            0 join n2 1
            0 join n3 1
            1 submit gpus=1 tasks=2
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 2 at n1.example:20000
                to n2: start lease0 job1 restart 0 tasks 1[(0, 1000)] of 2 at n1.example:20000
            2 n1 0 running
            2 n2 0 running
            3 lose n2
            500 n1 beat
            500 n3 beat
            965 n1 beat
                to n1: stop lease0 kill in 30000 ms
            965 n3 beat
            966 n1 0 killed
                to n1: forget lease0
                to n1: start lease1 job1 restart 1 tasks 0[(0, 1000)] of 2 at n1.example:20001
                to n3: start lease1 job1 restart 1 tasks 1[(0, 1000)] of 2 at n1.example:20001
            967 jobs
                1 starting, on n1 n3
        "#]],
    );
}

#[test]
fn a_time_limit_ends_a_job() {
    check(
        "
        0 join n1 1
        1 submit gpus=1 max=10 grace=1
        2 n1 0 running
        13 n1 beat
        14 n1 0 killed
        15 history
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1 max=10 grace=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            13 n1 beat
                to n1: stop lease0 kill in 1000 ms
            14 n1 0 killed
                to n1: forget lease0
            15 history
                1 timed-out, code 143, on n1
        "#]],
    );
}

#[test]
fn what_fits_no_node_waits_for_one_that_joins() {
    check(
        "
        1 submit gpus=2
        2 join n1 1
        3 jobs
        4 submit gpus=1 model=H100
        5 join n2 2
        ",
        expect![[r#"
            1 submit gpus=2
                submitted [1]
            2 join n1 1
            3 jobs
                1 held by nodes: needs 2 GPUs on one node; the largest, `n1`, has 1; it waits for other nodes to join
            4 submit gpus=1 model=H100
                invalid `gpu_models`: no node has `H100`; known: V100
            5 join n2 2
                to n2: start lease0 job1 restart 0 tasks 0[(0, 1000), (1, 1000)] of 1 at n2.example:20000
        "#]],
    );
}

#[test]
fn a_solver_is_asked_and_everything_goes_on_until_it_answers() {
    check(
        "
        0 join n1 2
        0 policy max-min-fairness
        1 submit gpus=1
        2 submit gpus=2
        3 jobs
        4 solved
        5 n1 0 running
        6 submit gpus=1
        7 restart
        8 join n1 2 0 running
        9 solved
        10 policy fifo
        11 n1 0 ended 0
        12 jobs
        ",
        expect![[r#"
            0 join n1 2
            0 policy max-min-fairness
                done
            1 submit gpus=1
                submitted [1]
                solve 1
            2 submit gpus=2
                submitted [2]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            3 jobs
                1 starting, on n1
                2 queued: its turn is in a later round
            4 solved
                solve 2
            5 n1 0 running
            6 submit gpus=1
                submitted [3]
                to n1: start lease1 job3 restart 0 tasks 0[(1, 1000)] of 1 at n1.example:20001
            7 restart
            8 join n1 2 0 running
                to n1: start lease1 job3 restart 0 tasks 0[(1, 1000)] of 1 at n1.example:20001
                solve 1
            9 solved
                solve 2
            10 policy fifo
                done
            11 n1 0 ended 0
                to n1: forget lease0
            12 jobs
                2 queued: its turn is in a later round
                3 starting, on n1
        "#]],
    );
}

#[test]
fn another_weight_of_a_tenant_is_solved_for_and_survives_a_restart() {
    check(
        "
        0 join n1 1
        0 policy water-filling tenants='fair'
        1 submit gpus=1
        1 submit gpus=1
        2 solved
        3 solved
        4 quota weight=1
        5 quota weight=5
        6 solved
        7 quota gpus=2
        8 restart
        9 quota weight=0
        ",
        expect![[r#"
            0 join n1 1
            0 policy water-filling tenants='fair'
                done
            1 submit gpus=1
                submitted [1]
                solve 1
            1 submit gpus=1
                submitted [2]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 solved
                solve 2
            3 solved
            4 quota weight=1
                done
            5 quota weight=5
                done
                solve 3
            6 solved
            7 quota gpus=2
                done
                solve 4
            8 restart
            9 quota weight=0
                invalid `weight`: 0; use at least 1
                solve 1
        "#]],
    );
}

#[test]
fn progress_gives_an_expected_end() {
    check(
        "
        0 join n1 1
        1 submit gpus=1
        1 submit gpus=1
        2 n1 0 running
        12 n1 step 0 10 100
        13 jobs
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 submit gpus=1
                submitted [2]
            2 n1 0 running
            12 n1 step 0 10 100
            13 jobs
                1 running, on n1, step 10, expected end Some(102.0)
                2 queued: needs 1 GPU; none is free
        "#]],
    );
}

#[test]
fn another_policy_decides_at_once_and_after_a_restart() {
    check(
        "
        0 join n1 1
        1 submit gpus=1
        1 submit gpus=1 priority=1
        1 submit gpus=1 priority=5
        2 policy nonsense
        3 policy priority
        4 restart
        5 join n1 1 0 ended 0
        6 jobs
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 submit gpus=1 priority=1
                submitted [2]
            1 submit gpus=1 priority=5
                submitted [3]
            2 policy nonsense
                unknown policy `nonsense`; known: allox, bounded-sjf, conservative-backfill, fifo, fifo-backfill, fifo-fastest, finish-time-fairness, first-finish, gandiva, gittins, isolated, las, load-balance, makespan, max-min-fairness, max-throughput, pai, pai-cpu, priority, progressive-filling, proportional, rogue-away, rogue-made, rogue-panic, rogue-solve, rogue-start, sjf, srtf, strategy-proof, themis, tiresias, water-filling
            3 policy priority
                done
            4 restart
            5 join n1 1 0 ended 0
                to n1: forget lease0
                to n1: start lease1 job3 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
            6 jobs
                2 queued: needs 1 GPU; none is free
                3 starting, on n1
        "#]],
    );
}
