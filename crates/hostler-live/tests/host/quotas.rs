//! What tenants may have at once, and what they are told about it.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_quota_lets_through_what_fits_in_order() {
    check(
        "
        0 join n1 4
        0 quota gpus=2 jobs=4 queued=3
        1 submit gpus=1
        1 submit gpus=2
        1 submit gpus=1
        1 submit gpus=4
        1 submit gpus=1
        1 submit gpus=1
        2 jobs
        3 n1 0 ended 0
        4 jobs
        5 n1 1 ended 0
        6 jobs
        7 quota
        7 submit gpus=4
        ",
        expect![[r#"
            0 join n1 4
            0 quota gpus=2 jobs=4 queued=3
                done
            1 submit gpus=1
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 submit gpus=2
                submitted [2]
            1 submit gpus=1
                submitted [3]
            1 submit gpus=4
                tenant `default` may have 2 GPUs in one job; ask for less
            1 submit gpus=1
                submitted [4]
            1 submit gpus=1
                tenant `default` may have 4 jobs; ask for less
            2 jobs
                1 starting, on n1
                2 held by quota: tenant `default` may have 2 GPUs at once: 1 runs; it asks for 2
                3 held by quota: tenant `default` may have 2 GPUs at once: 1 runs; an earlier job of that tenant waits for more
                4 held by quota: tenant `default` may have 2 GPUs at once: 1 runs; an earlier job of that tenant waits for more
            3 n1 0 ended 0
                to n1: forget lease0
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000), (1, 1000)] of 1 at n1.example:20001
            4 jobs
                2 starting, on n1
                3 held by quota: tenant `default` may have 2 GPUs at once: 2 run; it asks for 1
                4 held by quota: tenant `default` may have 2 GPUs at once: 2 run; it asks for 1
            5 n1 1 ended 0
                to n1: forget lease1
                to n1: start lease2 job3 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20002
                to n1: start lease3 job4 restart 0 tasks 0[(1, 1000)] of 1 at n1.example:20003
            6 jobs
                3 starting, on n1
                4 starting, on n1
            7 quota
                done
            7 submit gpus=4
                submitted [5]
        "#]],
    );
}

#[test]
fn a_quota_is_told_by_what_runs_and_by_what_waits_before() {
    check(
        "
        0 join n1 2
        0 quota gpus=4
        1 submit gpus=2
        1 submit gpus=1
        1 submit gpus=1
        1 submit gpus=1
        2 jobs
        2 tenants
        3 restart
        3 tenants
        4 join n1 2 0 ended 0
        5 jobs
        5 tenants
        ",
        expect![[r#"
            0 join n1 2
            0 quota gpus=4
                done
            1 submit gpus=2
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000), (1, 1000)] of 1 at n1.example:20000
            1 submit gpus=1
                submitted [2]
            1 submit gpus=1
                submitted [3]
            1 submit gpus=1
                submitted [4]
            2 jobs
                1 starting, on n1
                2 queued: needs 1 GPU; none is free
                3 queued: needs 1 GPU; none is free
                4 held by quota: tenant `default` may have 4 GPUs at once: 2 run, 2 are asked for by jobs that wait before it; it asks for 1
            2 tenants
                default: 2 GPUs run, 2 asked, 3 wait
            3 restart
            3 tenants
                default: 2 GPUs run, 2 asked, 3 wait
            4 join n1 2 0 ended 0
                to n1: forget lease0
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
                to n1: start lease2 job3 restart 0 tasks 0[(1, 1000)] of 1 at n1.example:20002
            5 jobs
                2 starting, on n1
                3 starting, on n1
                4 queued: needs 1 GPU; none is free
            5 tenants
                default: 2 GPUs run, 1 asked, 1 wait
        "#]],
    );
}
