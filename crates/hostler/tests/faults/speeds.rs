//! True speeds: by GPU model, by distance and beside others, with finish times worked out by hand.

use expect_test::expect;

use crate::check;

#[test]
fn a_slower_gpu_takes_longer() {
    // b: 100 / 0.4. c has no profile and runs at reference speed, after b.
    check(
        "kind = 'fifo'",
        "
        node n1 gpus 1 model V100
        node n2 gpus 1 model T4
        profile p V100=1 T4=0.4
        job a at 0 for 100 model V100 profile p
        job b at 0 for 100 model T4 profile p
        job c at 0 for 100 model T4
    ",
        expect![[r#"
            a  0..100
            b  0..250
            c  250..350
            avg jct 233.33  makespan 350  preemptions 0
        "#]],
    );
}

#[test]
fn a_faster_gpu_takes_less() {
    check(
        "kind = 'fifo'",
        "
        node n1 gpus 1 model H100
        profile p H100=2.5
        job a at 0 for 100 profile p
    ",
        expect![[r#"
            a  0..40
            avg jct 40.00  makespan 40  preemptions 0
        "#]],
    );
}

#[test]
fn a_gang_on_unequal_gpus_is_as_slow_as_the_slowest() {
    check(
        "kind = 'fifo'",
        "
        node n1 gpus 1 model V100
        node n2 gpus 1 model T4
        profile p V100=1 T4=0.5
        job a at 0 count 2 for 100 profile p
    ",
        expect![[r#"
            a  0..200
            avg jct 200.00  makespan 200  preemptions 0
        "#]],
    );
}

#[test]
fn distance_slows_a_gang() {
    // 100, 100 / 0.8 and 100 / 0.5 seconds.
    check(
        "kind = 'fifo'",
        "
        node n1 gpus 2 rack 1
        node n2 gpus 2 rack 1
        node n3 gpus 2 rack 2
        profile p rack=0.8 cluster=0.5
        job one-node at 0 count 2 for 100 profile p
        job one-rack at 1000 count 4 for 100 profile p
        job two-racks at 2000 count 6 for 100 profile p
    ",
        expect![[r#"
            one-node   0..100
            one-rack   1000..1125
            two-racks  2000..2200
            avg jct 141.67  makespan 2200  preemptions 0
        "#]],
    );
}

#[test]
fn islands_of_a_node_are_apart() {
    check(
        "kind = 'fifo'",
        "
        node n1 gpus 4 island 2
        profile p node=0.8
        job inside at 0 gpus 2 for 100 profile p
        job across at 1000 gpus 4 for 100 profile p
    ",
        expect![[r#"
            inside  0..100
            across  1000..1125
            avg jct 112.50  makespan 1125  preemptions 0
        "#]],
    );
}

#[test]
fn two_fractions_on_a_device_slow_each_other_until_one_leaves() {
    // a does 40 alone; then both run at half speed, b for 100 s to 140, in which a does 50.
    // The last 10 of a are done alone by 150.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        profile p shared=0.5
        job a at 0 gpus 0.5 for 100 profile p
        job b at 40 gpus 0.5 for 50 profile p
    ",
        expect![[r#"
            a  0..150
            b  40..140
            avg jct 125.00  makespan 150  preemptions 0
        "#]],
    );
}

#[test]
fn three_on_a_device_slow_each_other_more() {
    // Each runs at 0.5 x 0.5.
    check(
        "kind = 'fifo'",
        "
        cluster 1
        profile p shared=0.5
        job a at 0 gpus 0.3 for 100 profile p
        job b at 0 gpus 0.3 for 100 profile p
        job c at 0 gpus 0.3 for 100 profile p
    ",
        expect![[r#"
            a  0..400
            b  0..400
            c  0..400
            avg jct 400.00  makespan 400  preemptions 0
        "#]],
    );
}

#[test]
fn jobs_on_devices_of_their_own_do_not_slow_each_other() {
    check(
        "kind = 'fifo'",
        "
        cluster 2
        profile p shared=0.5
        job a at 0 gpus 1 for 100 profile p
        job b at 0 gpus 1 for 100 profile p
    ",
        expect![[r#"
            a  0..100
            b  0..100
            avg jct 100.00  makespan 100  preemptions 0
        "#]],
    );
}

#[test]
fn a_neighbour_that_dies_with_its_node_slows_nobody_afterwards() {
    // a cannot start again on one node; b has its device for itself.
    check(
        "kind = 'fifo-backfill'",
        "
        node n1 gpus 1
        node n2 gpus 1
        profile p shared=0.5
        job a at 0 gpus 0.5 count 4 for 100 profile p
        fault node-down n1 at 50
        fault node-down n2 at 50 for 10
        job b at 60 gpus 0.5 for 100 profile p
    ",
        expect![[r#"
            a  0..50
            b  60..160
            avg jct 100.00  makespan 160  preemptions 0
            not over: a
        "#]],
    );
}

#[test]
fn slow_work_survives_a_preemption_in_reference_time() {
    // 40 s at half speed are 20 of 100; the other 80 take 160 s from 50.
    check(
        "kind = 'priority'\npreempt = true",
        "
        cluster 1
        profile p gpu=0.5
        job a at 0 for 100 profile p
        job b at 40 for 10 priority 1
    ",
        expect![[r#"
            a  0..40 50..210
            b  40..50
            avg jct 110.00  makespan 210  preemptions 1
            restarts 1  lost work 0
        "#]],
    );
}

#[test]
fn saves_that_a_job_makes_by_itself_are_part_of_when_it_is_believed_to_end() {
    // a works 100 s and saves three times, 4 s each. It is believed to end at 100 x 34 / 30, so
    // that c, which ends at 107, does not delay b.
    check(
        "kind = 'fifo-backfill'",
        "
        cluster 2
        job a at 0 for 100 save 4 every 30
        job b at 1 gpus 2 for 50
        job c at 2 for 105
    ",
        expect![[r#"
            a  0..112
            b  112..162
            c  2..107
            avg jct 126.00  makespan 162  preemptions 0
        "#]],
    );
}
