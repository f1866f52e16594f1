//! What jobs used of their GPUs enters the log before the end of their stay.

use expect_test::expect;

use crate::story::check;

#[test]
fn use_is_a_fact_of_jobs_that_finish() {
    check(
        "
        0 join n1 1
        0 join n2 1
        1 submit gpus=1 tasks=2
        2 n1 0 running
        2 n2 0 running
        3 n1 0 ended 0 300
        3 n1 0 ended 0 900
        4 n2 0 ended 0 5000
        5 submit gpus=1
        6 n1 1 running
        7 n1 1 ended 3 300
        8 submit gpus=1
        9 n1 2 running
        10 n1 2 ended 0
        11 ends
        ",
        expect![[r#"
            0 join n1 1
            0 join n2 1
            1 submit gpus=1 tasks=2
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 2 at n1.example:20000
                to n2: start lease0 job1 restart 0 tasks 1[(0, 1000)] of 2 at n1.example:20000
            2 n1 0 running
            2 n2 0 running
            3 n1 0 ended 0 300
            3 n1 0 ended 0 900
            4 n2 0 ended 0 5000
                to n1: forget lease0
                to n2: forget lease0
            5 submit gpus=1
                submitted [2]
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
            6 n1 1 running
            7 n1 1 ended 3 300
                to n1: forget lease1
            8 submit gpus=1
                submitted [3]
                to n1: start lease2 job3 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20002
            9 n1 2 running
            10 n1 2 ended 0
                to n1: forget lease2
            11 ends
                lease0 used 650
                lease0 Finished
                lease1 Failed
                lease2 Finished
        "#]],
    );
}
