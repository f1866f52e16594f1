//! Starts that fail, and what is known of stays that are over.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_job_whose_start_failed_waits_longer_each_time() {
    check(
        "
        0 join n1 1
        1 submit gpus=1
        2 n1 0 faulty
        3 tick
        4 tick
        5 n1 1 faulty
        8 tick
        9 tick
        9 jobs
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 faulty
                to n1: forget lease0
            3 tick
            4 tick
                to n1: start lease1 job1 restart 1 tasks 0[(0, 1000)] of 1 at n1.example:20001
            5 n1 1 faulty
                to n1: forget lease1
            8 tick
            9 tick
                to n1: start lease2 job1 restart 2 tasks 0[(0, 1000)] of 1 at n1.example:20002
            9 jobs
                1 starting, on n1
        "#]],
    );
}

#[test]
fn a_node_on_which_one_job_after_the_other_does_not_start_rests() {
    check(
        "
        0 join n1 4
        0 join n2 4
        1 submit gpus=1
        1 submit gpus=1
        1 submit gpus=1
        2 n1 0 faulty
        2 n1 1 faulty
        2 nodes
        2 n1 2 faulty
        2 nodes
        3 submit gpus=1
        4 tick
        4 jobs
        32 n1 beat
        32 n2 beat
        32 nodes
        ",
        expect![[r#"
            0 join n1 4
            0 join n2 4
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 submit gpus=1
                submitted [2]
                to n1: start lease1 job2 restart 0 tasks 0[(1, 1000)] of 1 at n1.example:20001
            1 submit gpus=1
                submitted [3]
                to n1: start lease2 job3 restart 0 tasks 0[(2, 1000)] of 1 at n1.example:20002
            2 n1 0 faulty
                to n1: forget lease0
            2 n1 1 faulty
                to n1: forget lease1
            2 nodes
                n1 up 1 used
                n2 up 0 used
            2 n1 2 faulty
                to n1: forget lease2
            2 nodes
                n1 resting 0 used
                n2 up 0 used
            3 submit gpus=1
                submitted [4]
                to n2: start lease3 job4 restart 0 tasks 0[(0, 1000)] of 1 at n2.example:20003
            4 tick
                to n2: start lease4 job1 restart 1 tasks 0[(1, 1000)] of 1 at n2.example:20004
                to n2: start lease5 job2 restart 1 tasks 0[(2, 1000)] of 1 at n2.example:20005
                to n2: start lease6 job3 restart 1 tasks 0[(3, 1000)] of 1 at n2.example:20006
            4 jobs
                1 starting, on n2
                2 starting, on n2
                3 starting, on n2
                4 starting, on n2
            32 n1 beat
            32 n2 beat
            32 nodes
                n1 up 0 used
                n2 up 4 used
        "#]],
    );
}

#[test]
fn a_node_on_which_others_start_is_not_to_blame() {
    check(
        "
        0 join n1 4
        1 submit gpus=1
        1 submit gpus=1
        1 submit gpus=1
        1 submit gpus=1
        2 n1 0 faulty
        2 n1 1 faulty
        2 n1 2 running
        2 n1 3 faulty
        2 nodes
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
            2 n1 0 faulty
                to n1: forget lease0
            2 n1 1 faulty
                to n1: forget lease1
            2 n1 2 running
            2 n1 3 faulty
                to n1: forget lease3
            2 nodes
                n1 up 1 used
        "#]],
    );
}

#[test]
fn a_task_is_looked_for_where_it_ran_after_the_end_of_its_job() {
    check(
        "
        0 join n1 1
        0 join n2 2
        1 submit gpus=1 tasks=3
        2 n1 0 running
        2 n2 0 running
        3 n1 0 ended 0
        3 n2 0 ended 0
        4 history
        4 output 1 0
        4 output 1 1
        4 output 1 2
        4 output 1 3
        ",
        expect![[r#"
            0 join n1 1
            0 join n2 2
            1 submit gpus=1 tasks=3
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 3 at n1.example:20000
                to n2: start lease0 job1 restart 0 tasks 1[(0, 1000)] 2[(1, 1000)] of 3 at n1.example:20000
            2 n1 0 running
            2 n2 0 running
            3 n1 0 ended 0
            3 n2 0 ended 0
                to n1: forget lease0
                to n2: forget lease0
            4 history
                1 finished, code 0, on n1 n2
            4 output 1 0
                to n1: read 1 of lease0
            4 output 1 1
                to n2: read 2 of lease0
            4 output 1 2
                to n2: read 3 of lease0
            4 output 1 3
                no output: it has no task 3
        "#]],
    );
}

#[test]
fn a_job_that_its_shim_ended_while_the_daemon_was_away_ran_into_its_limit() {
    check(
        "
        0 join n1 1
        1 submit gpus=1 max=10
        2 n1 0 running
        5 lose n1
        6 restart
        30 tick
        30 join n1 1 0 killed
        31 history
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1 max=10
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            5 lose n1
            6 restart
            30 tick
            30 join n1 1 0 killed
                to n1: forget lease0
            31 history
                1 timed-out, code 143, on n1
        "#]],
    );
}

#[test]
fn mistyped_folders_of_one_user_do_not_rest_a_node_and_those_of_two_do() {
    check(
        "
        0 join n1 4
        1 as eve submit gpus=1
        1 as eve submit gpus=1
        1 as eve submit gpus=1
        1 as eve submit gpus=1
        2 n1 0 impossible
        2 n1 1 impossible
        2 n1 2 impossible
        2 n1 3 impossible
        3 nodes
        4 as ada submit gpus=1
        5 n1 4 impossible
        6 nodes
        6 why
        ",
        expect![[r#"
            0 join n1 4
            1 as eve submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 as eve submit gpus=1
                submitted [2]
                to n1: start lease1 job2 restart 0 tasks 0[(1, 1000)] of 1 at n1.example:20001
            1 as eve submit gpus=1
                submitted [3]
                to n1: start lease2 job3 restart 0 tasks 0[(2, 1000)] of 1 at n1.example:20002
            1 as eve submit gpus=1
                submitted [4]
                to n1: start lease3 job4 restart 0 tasks 0[(3, 1000)] of 1 at n1.example:20003
            2 n1 0 impossible
                to n1: forget lease0
            2 n1 1 impossible
                to n1: forget lease1
            2 n1 2 impossible
                to n1: forget lease2
            2 n1 3 impossible
                to n1: forget lease3
            3 nodes
                n1 up 0 used
            4 as ada submit gpus=1
                submitted [5]
                to n1: start lease4 job5 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20004
            5 n1 4 impossible
                to n1: forget lease4
            6 nodes
                n1 resting 0 used
            6 why
                n1: 3 jobs in a row could not start there
        "#]],
    );
}

#[test]
fn what_was_heard_late_is_charged_until_it_ended() {
    check(
        "
        0 join n1 2
        1 submit gpus=2
        2 n1 0 running
        8 n1 0 ended 3 ago 4
        9 submit gpus=1
        10 n1 1 running
        12 n1 1 ended 0 ago 90
        13 stays
        ",
        expect![[r#"
            0 join n1 2
            1 submit gpus=2
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000), (1, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            8 n1 0 ended 3 ago 4
                to n1: forget lease0
            9 submit gpus=1
                submitted [2]
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
            10 n1 1 running
            12 n1 1 ended 0 ago 90
                to n1: forget lease1
            13 stays
                1 ended at 4
                    1..4: 6 GPU s
                2 ended at 10
                    9..10: 1 GPU s
        "#]],
    );
}
