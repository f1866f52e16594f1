//! Speeds that jobs show by their steps, and what the scheduler makes of them.

use expect_test::expect;

use crate::story::check;

#[test]
fn steps_tell_the_speed_of_a_group_and_a_restart_remembers_it() {
    check(
        "
        0 join n1 1
        1 submit gpus=1 group=resnet
        2 n1 0 running
        10 n1 step 0 100 100000
        40 n1 step 0 500 100000
        40 speeds
        70 n1 step 0 700 100000
        70 speeds
        130 n1 step 0 1900 100000
        130 speeds
        190 n1 step 0 2820 100000
        190 speeds
        191 restart
        192 join n1 1 0 running
        192 speeds
        192 jobs
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=1 group=resnet
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            10 n1 step 0 100 100000
            40 n1 step 0 500 100000
            40 speeds
            70 n1 step 0 700 100000
            70 speeds
                profile1 1 V100: 10.00 steps/s
            130 n1 step 0 1900 100000
            130 speeds
                profile1 1 V100: 15.00 steps/s
            190 n1 step 0 2820 100000
            190 speeds
                profile1 1 V100: 15.00 steps/s
            191 restart
            192 join n1 1 0 running
            192 speeds
                profile1 1 V100: 15.00 steps/s
            192 jobs
                1 running, on n1, step 2820, expected end Some(6668.666667)
        "#]],
    );
}

/// All GPUs are free for both: where nothing is known the K80 is as good as the V100.
#[test]
#[expect(clippy::too_many_lines, reason = "most of it is recorded text")]
fn a_policy_goes_by_the_speeds_that_jobs_have_shown() {
    check(
        "
        0 join n1 1
        0 join slow1 1
        0 policy fifo-fastest
        1 submit gpus=1 group=known model=V100
        1 solved
        1 submit gpus=1 group=known model=K80
        1 solved
        2 n1 0 running
        2 slow1 1 running
        10 n1 step 0 0 -
        10 slow1 step 1 0 -
        30 n1 beat
        30 slow1 beat
        50 n1 beat
        50 slow1 beat
        70 n1 step 0 240 -
        70 slow1 step 1 60 -
        70 n1 beat
        70 slow1 beat
        70 speeds
        71 n1 0 ended 0
        71 slow1 1 ended 0
        72 submit gpus=1 group=new
        72 solved
        73 slow1 2 running
        74 slow1 2 ended 0
        75 submit gpus=1 group=known
        75 solved
        ",
        expect![[r#"
            0 join n1 1
            0 join slow1 1
            0 policy fifo-fastest
                done
            1 submit gpus=1 group=known model=V100
                submitted [1]
                solve 1
            1 solved
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 submit gpus=1 group=known model=K80
                submitted [2]
                solve 2
            1 solved
                to slow1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at slow1.example:20001
            2 n1 0 running
            2 slow1 1 running
            10 n1 step 0 0 -
            10 slow1 step 1 0 -
            30 n1 beat
            30 slow1 beat
            50 n1 beat
            50 slow1 beat
            70 n1 step 0 240 -
            70 slow1 step 1 60 -
            70 n1 beat
            70 slow1 beat
            70 speeds
                profile1 1 V100: 4.00 steps/s
                profile1 1 K80: 1.00 steps/s
            71 n1 0 ended 0
                to n1: forget lease0
            71 slow1 1 ended 0
                to slow1: forget lease1
            72 submit gpus=1 group=new
                submitted [3]
                solve 3
            72 solved
                to slow1: start lease2 job3 restart 0 tasks 0[(0, 1000)] of 1 at slow1.example:20002
            73 slow1 2 running
            74 slow1 2 ended 0
                to slow1: forget lease2
            75 submit gpus=1 group=known
                submitted [4]
                solve 4
            75 solved
                to n1: start lease3 job4 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20003
        "#]],
    );
}

#[test]
fn work_done_on_slow_gpus_counts_for_less_when_others_prove_faster() {
    check(
        "
        0 join slow1 1
        1 submit gpus=1 group=resnet
        2 slow1 0 running
        10 slow1 step 0 0 10000
        70 slow1 step 0 600 10000
        71 jobs
        72 join n1 1
        73 submit gpus=1 group=resnet model=V100
        74 n1 1 running
        80 n1 step 1 0 10000
        140 n1 step 1 2400 10000
        140 speeds
        141 jobs
        ",
        expect![[r#"
            0 join slow1 1
            1 submit gpus=1 group=resnet
                submitted [1]
                to slow1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at slow1.example:20000
            2 slow1 0 running
            10 slow1 step 0 0 10000
            70 slow1 step 0 600 10000
            71 jobs
                1 running, on slow1, step 600, expected end Some(1010.0): node `slow1` has said nothing for 70 s
            72 join n1 1
            73 submit gpus=1 group=resnet model=V100
                submitted [2]
                to n1: start lease1 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20001
            74 n1 1 running
            80 n1 step 1 0 10000
            140 n1 step 1 2400 10000
            140 speeds
                profile1 1 K80: 10.00 steps/s
                profile1 1 V100: 40.00 steps/s
            141 jobs
                1 running, on slow1, step 600, expected end Some(1010.0): node `slow1` has said nothing for 140 s
                2 running, on n1, step 2400, expected end Some(330.0): node `n1` has said nothing for 68 s
        "#]],
    );
}

#[test]
fn a_tenant_says_nothing_about_the_jobs_of_another() {
    check(
        "
        0 tenant other
        0 join n1 2
        1 submit gpus=1 group=resnet
        1 submit gpus=1 group=resnet tenant=other
        2 n1 0 running
        2 n1 1 running
        10 n1 step 0 0 -
        10 n1 step 1 0 -
        70 n1 step 0 600 -
        70 n1 step 1 6 -
        70 speeds
        ",
        expect![[r#"
            0 tenant other
                done
            0 join n1 2
            1 submit gpus=1 group=resnet
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            1 submit gpus=1 group=resnet tenant=other
                submitted [2]
                to n1: start lease1 job2 restart 0 tasks 0[(1, 1000)] of 1 at n1.example:20001
            2 n1 0 running
            2 n1 1 running
            10 n1 step 0 0 -
            10 n1 step 1 0 -
            70 n1 step 0 600 -
            70 n1 step 1 6 -
            70 speeds
                profile1 1 V100: 10.00 steps/s
                profile2 1 V100: 0.10 steps/s
        "#]],
    );
}

#[test]
fn who_shares_a_gpu_tells_no_speed() {
    check(
        "
        0 join n1 1
        1 submit gpus=0.5 group=resnet
        2 n1 0 running
        10 n1 step 0 0 -
        70 n1 step 0 600 -
        70 speeds
        ",
        expect![[r#"
            0 join n1 1
            1 submit gpus=0.5 group=resnet
                submitted [1]
                to n1: start lease0 job1 restart 0 tasks 0[(0, 500)] of 1 at n1.example:20000
            2 n1 0 running
            10 n1 step 0 0 -
            70 n1 step 0 600 -
            70 speeds
        "#]],
    );
}
