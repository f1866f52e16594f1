//! One change of many jobs.

use expect_test::expect;

use crate::story::check;

#[test]
fn the_number_of_an_array_means_all_of_it() {
    check(
        "
        0 join n1 1
        1 submit gpus=1 array=4
        1 submit gpus=1
        2 n1 0 ended 0
        3 hold-all 1
        4 release-all 1_2
        5 jobs
        6 cancel-all 1_0-3
        7 n1 1 killed
        8 cancel-all 1
        9 history
        9 jobs
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1 array=4
                submitted [1, 2, 3, 4]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000 index 0
            1 submit gpus=1
                submitted [5]
            2 n1 0 ended 0
                to n1: forget lease0
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001 index 1
            3 hold-all 1
                3 held
                4 held
                refused 2: job 2 runs and cannot be held; cancel it instead
            4 release-all 1_2
                3 queued
            5 jobs
                2 starting, on n1
                3 queued: needs 1 GPU; none is free
                4 held by person: held by a person
                5 queued: needs 1 GPU; none is free
            6 cancel-all 1_0-3
                to n1: stop lease1 kill in 30000 ms
                2 stopping
                3 cancelled
                4 cancelled
            7 n1 1 killed
                to n1: forget lease1
                to n1: start lease2 job5 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20002
            8 cancel-all 1
            9 history
                1 finished, code 0, on n1
                2 cancelled, code 143, on n1
                3 cancelled
                4 cancelled
            9 jobs
                5 starting, on n1
        "#]],
    );
}

#[test]
fn ranges_pass_over_what_is_over_and_lists_tell_of_every_refusal() {
    check(
        "
        0 join n1 1
        1 submit gpus=1
        1 submit gpus=1
        1 submit gpus=1
        1 submit gpus=1
        2 cancel-all 2
        3 hold-all 1-4 9
        4 cancel-all 2 3-4 3 77 4-3
        5 cancel-all 2 3-4
        6 hold-all 2
        7 cancel-all 3_0 1_0 4294967296
        8 jobs
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 submit gpus=1
                submitted [2]
            1 submit gpus=1
                submitted [3]
            1 submit gpus=1
                submitted [4]
            2 cancel-all 2
                2 cancelled
            3 hold-all 1-4 9
                3 held
                4 held
                refused 9: no job `9`
                refused 1: job 1 runs and cannot be held; cancel it instead
            4 cancel-all 2 3-4 3 77 4-3
                2 cancelled
                3 cancelled
                4 cancelled
                refused 77: no job `77`
                refused 4-3: no job `4-3`
            5 cancel-all 2 3-4
                2 cancelled
            6 hold-all 2
                refused 2: job 2 is over
            7 cancel-all 3_0 1_0 4294967296
                refused 3_0: no array with `3_0`
                refused 1_0: no array with `1_0`
                refused 4294967296: no job `4294967296`
            8 jobs
                1 starting, on n1
        "#]],
    );
}

#[test]
fn more_jobs_than_one_request_may_change_are_not_changed_at_all() {
    check(
        "
        0 submit gpus=1 array=10000
        1 submit gpus=1
        2 cancel-all 1-10001
        3 cancel-all 10001
        ",
        expect![[r#"
            0 submit gpus=1 array=10000
                submitted 10000 jobs
            1 submit gpus=1
                submitted [10001]
            2 cancel-all 1-10001
                invalid `jobs`: more than 10000 jobs; name fewer at a time
            3 cancel-all 10001
                10001 cancelled
        "#]],
    );
}

#[test]
fn what_is_cancelled_with_another_of_the_jobs_is_done() {
    check(
        "
        0 submit gpus=1
        0 submit gpus=1 after=1
        0 submit gpus=1 after=2
        0 submit gpus=1 after=3
        1 cancel-all 1-3 4
        2 cancel-all 1 2 3
        3 history
        ",
        expect![[r#"
            0 submit gpus=1
                submitted [1]
            0 submit gpus=1 after=1
                submitted [2]
            0 submit gpus=1 after=2
                submitted [3]
            0 submit gpus=1 after=3
                submitted [4]
            1 cancel-all 1-3 4
                1 cancelled
                2 cancelled
                3 cancelled
                4 cancelled
            2 cancel-all 1 2 3
                1 cancelled
                2 cancelled
                3 cancelled
            3 history
                1 cancelled
                2 cancelled: job 1, which it needs, did not finish well
                3 cancelled: job 2, which it needs, did not finish well
                4 cancelled: job 3, which it needs, did not finish well
        "#]],
    );
}
