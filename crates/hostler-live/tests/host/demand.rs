//! What a job must take up at least, so that no submission can bury a node.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_job_that_asks_for_nothing_takes_a_core_and_none_takes_up_less() {
    check(
        "
        0 join n1 1
        1 submit tasks=20000
        1 submit cpus=0
        1 submit cpus=0.05
        1 submit gpus=0.001
        1 submit array=12
        1 submit gpus=1 cpus=0
        ",
        expect![[r#"
            0 join n1 1
            1 submit tasks=20000
                invalid `tasks`: 20000; use 1 to 4096
            1 submit cpus=0
                invalid `cpus`: 0; a task without a GPU needs 0.1 or more
            1 submit cpus=0.05
                invalid `cpus`: 0.05; a task without a GPU needs 0.1 or more
            1 submit gpus=0.001
                invalid `gpus`: 0.001; use 0, a part of one GPU from 0.01 to 1, or whole ones up to 64000
            1 submit array=12
                submitted [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
                to n1: start lease0 job1 restart 0 tasks 0[] of 1 at n1.example:20000 index 0
                to n1: start lease1 job2 restart 0 tasks 0[] of 1 at n1.example:20001 index 1
                to n1: start lease2 job3 restart 0 tasks 0[] of 1 at n1.example:20002 index 2
                to n1: start lease3 job4 restart 0 tasks 0[] of 1 at n1.example:20003 index 3
                to n1: start lease4 job5 restart 0 tasks 0[] of 1 at n1.example:20004 index 4
                to n1: start lease5 job6 restart 0 tasks 0[] of 1 at n1.example:20005 index 5
                to n1: start lease6 job7 restart 0 tasks 0[] of 1 at n1.example:20006 index 6
                to n1: start lease7 job8 restart 0 tasks 0[] of 1 at n1.example:20007 index 7
            1 submit gpus=1 cpus=0
                submitted [13]
                to n1: start lease8 job13 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20008
        "#]],
    );
}

#[test]
fn what_no_node_has_is_told_with_the_need_and_the_largest_node() {
    check(
        "
        0 join n1 2
        0 join n2 4
        1 submit gpus=8
        1 submit gpus=0 cpus=17
        1 submit gpus=4 cpus=17
        1 submit gpus=0 cpus=1 mem=1048576
        2 jobs
        ",
        expect![[r#"
            0 join n1 2
            0 join n2 4
            1 submit gpus=8
                submitted [1]
            1 submit gpus=0 cpus=17
                submitted [2]
            1 submit gpus=4 cpus=17
                submitted [3]
            1 submit gpus=0 cpus=1 mem=1048576
                submitted [4]
            2 jobs
                1 held by nodes: needs 8 GPUs on one node; the largest, `n2`, has 4; it waits for other nodes to join
                2 held by nodes: needs 17 cores on one node; the largest, `n2`, has 8; it waits for other nodes to join
                3 held by nodes: needs 17 cores beside its GPUs on one node; the largest, `n2`, has 8; it waits for other nodes to join
                4 held by nodes: needs 1024.0 GiB of memory on one node; the largest, `n2`, has 1.0 GiB; it waits for other nodes to join
        "#]],
    );
}
