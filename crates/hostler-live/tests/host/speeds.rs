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

/// Each runs for a slice, then both beside each other; each tells its own speed.
#[test]
#[expect(clippy::too_many_lines, reason = "most of it is recorded text")]
fn two_that_share_gpus_tell_how_fast_they_are_beside_each_other() {
    check(
        "
        0 join n1 1
        0 policy gandiva
        1 submit gpus=1 group=one share=yes checkpoints=yes grace=1
        1 solved
        2 n1 0 running
        3 n1 step 0 0 -
        20 submit gpus=1 group=two share=yes checkpoints=yes grace=1
        40 n1 beat
        62 n1 beat
        64 n1 step 0 610 -
        64 n1 beat
        65 solved
        66 n1 0 killed
        67 n1 1 running
        68 n1 step 1 0 -
        80 n1 beat
        100 n1 beat
        120 n1 beat
        128 n1 step 1 1200 -
        130 n1 beat
        131 tick
        132 solved
        133 n1 1 killed
        134 tick
        135 n1 2 running
        135 n1 step 2 0 -
        155 n1 beat
        175 n1 beat
        194 n1 beat
        195 solved
        195 n1 step 2 600 -
        196 n1 2 killed
        197 n1 3 running
        197 n1 4 running
        198 n1 step 3 0 -
        198 n1 step 4 0 -
        215 n1 beat
        235 n1 beat
        258 n1 step 3 360 -
        258 n1 step 4 300 -
        258 speeds
        ",
        expect![[r#"
            0 join n1 1
            0 policy gandiva
                done
            1 submit gpus=1 group=one share=yes checkpoints=yes grace=1
                submitted [1]
                solve 1
            1 solved
                to n1: start lease0 job1 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20000
            2 n1 0 running
            3 n1 step 0 0 -
            20 submit gpus=1 group=two share=yes checkpoints=yes grace=1
                submitted [2]
            40 n1 beat
            62 n1 beat
                solve 2
            64 n1 step 0 610 -
            64 n1 beat
            65 solved
            66 n1 0 killed
                to n1: forget lease0
                to n1: start lease1 job1 restart 1 tasks 0[(0, 1000)] of 1 at n1.example:20001
            67 n1 1 running
            68 n1 step 1 0 -
            80 n1 beat
            100 n1 beat
            120 n1 beat
            128 n1 step 1 1200 -
                solve 3
            130 n1 beat
            131 tick
            132 solved
                to n1: stop lease1 checkpoint in 1000 ms
            133 n1 1 killed
                to n1: forget lease1
                to n1: start lease2 job2 restart 0 tasks 0[(0, 1000)] of 1 at n1.example:20002
            134 tick
            135 n1 2 running
            135 n1 step 2 0 -
            155 n1 beat
            175 n1 beat
            194 n1 beat
                solve 4
            195 solved
                to n1: stop lease2 checkpoint in 1000 ms
            195 n1 step 2 600 -
            196 n1 2 killed
                to n1: forget lease2
                to n1: start lease3 job1 restart 2 tasks 0[(0, 500)] of 1 at n1.example:20003
                to n1: start lease4 job2 restart 1 tasks 0[(0, 500)] of 1 at n1.example:20004
            197 n1 3 running
            197 n1 4 running
            198 n1 step 3 0 -
            198 n1 step 4 0 -
            215 n1 beat
            235 n1 beat
            258 n1 step 3 360 -
                solve 5
            258 n1 step 4 300 -
            258 speeds
                profile1 1 V100: 15.00 steps/s
                profile1 beside profile3 1 V100: 6.00 and 5.00 steps/s
                profile3 1 V100: 10.00 steps/s
                profile3 beside profile1 1 V100: 5.00 and 6.00 steps/s
        "#]],
    );
}
