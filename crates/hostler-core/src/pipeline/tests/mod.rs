//! Schedules of pipelines, worked out by hand.

mod ageing;
mod caches;
mod fair_share;
mod orders;

use expect_test::{Expect, expect};

use super::{Head, Pipeline, Preempt, ShareRule};
use crate::event::Event;
use crate::id::NodeId;
use crate::policy::Cadence;
use crate::testkit::*;
use crate::units::Span;
use orders::ByPriority;

fn pipeline(head: Head, preempt: Preempt) -> Pipeline {
    Pipeline { head, preempt, ..Pipeline::new(ByPriority::default(), Box::new(FirstFit)) }
}

fn check(cluster: &str, policy: Pipeline, jobs: &str, expected: Expect) {
    expected.assert_eq(&Schedule::new(cluster, policy).jobs(jobs).run());
}

const MIXED: &str = "
    0 gpus 3 lasts 10
    1 gpus 4 lasts 10
    2 gpus 1 lasts 5
    3 gpus 1 lasts 20 priority 1
";

#[test]
fn a_job_that_does_not_fit_blocks_those_behind_it() {
    // Job 3 ranks first and starts at once; job 1 needs all and keeps job 2 waiting.
    check(
        "4",
        pipeline(Head::Blocks, Preempt::Never),
        MIXED,
        expect![[r#"
        job0 0..10
        job1 23..33
        job2 33..38
        job3 3..23
    "#]],
    );
}

#[test]
fn a_job_that_does_not_fit_is_passed_over() {
    check(
        "4",
        pipeline(Head::Skips, Preempt::Never),
        MIXED,
        expect![[r#"
        job0 0..10
        job1 27..37
        job2 2..7
        job3 7..27
    "#]],
    );
}

#[test]
fn a_job_that_ranks_before_others_takes_their_place() {
    let jobs = "
        0 gpus 2 lasts 10
        1 gpus 2 lasts 10 priority 1
        2 gpus 2 lasts 5 priority 2
        3 gpus 4 lasts 4 priority 3
    ";
    // At 2 the least important gives way, at 3 all do; they go on where they were.
    check(
        "4",
        pipeline(Head::Skips, Preempt::ByRank),
        jobs,
        expect![[r#"
        job0 0..2 11..19
        job1 1..3 7..15
        job2 2..3 7..11
        job3 3..7
    "#]],
    );
}

#[test]
fn equals_do_not_take_each_others_place_and_victims_are_as_few_as_do() {
    let jobs = "
        0 gpus 1 lasts 50
        1 gpus 2 lasts 50
        2 gpus 1 lasts 50
        3 gpus 1 lasts 10
        4 gpus 2 lasts 10 priority 1
    ";
    // From the last in rank: job 2 alone makes no room for two, and stays when job 1 does.
    check(
        "4",
        pipeline(Head::Skips, Preempt::ByRank),
        jobs,
        expect![[r#"
        job0 0..50
        job1 1..4 14..61
        job2 2..52
        job3 50..60
        job4 4..14
    "#]],
    );
}

#[test]
fn a_strict_order_with_preemption_stops_behind_the_first_that_gets_no_room() {
    let jobs = "
        0 gpus 4 lasts 10 priority 5
        1 gpus 3 lasts 10 priority 1
        2 gpus 1 lasts 3
    ";
    check(
        "4 | 0",
        pipeline(Head::Blocks, Preempt::ByRank),
        jobs,
        expect![[r#"
        job0 0..10
        job1 10..20
        job2 10..13
    "#]],
    );
}

#[test]
fn rounds_take_places_only_when_they_begin() {
    let policy = Pipeline {
        cadence: Cadence::Rounds(Span::from_secs(10)),
        ..pipeline(Head::Skips, Preempt::ByRank)
    };
    let jobs = "
        0 gpus 1 lasts 30
        3 gpus 1 lasts 5 priority 1
        4 gpus 1 lasts 2
    ";
    // Job 1 waits for the round at 10. When it is done, job 0 and then job 2 use what is free.
    check(
        "1",
        policy,
        jobs,
        expect![[r#"
        job0 0..10 15..35
        job1 10..15
        job2 35..37
    "#]],
    );
}

#[test]
fn a_pipeline_with_rounds_is_woken_each_round_while_there_is_somebody_to_change_with() {
    let policy = Pipeline {
        cadence: Cadence::Rounds(Span::from_secs(10)),
        ..pipeline(Head::Skips, Preempt::ByRank)
    };
    let mut world = World::with_policy("1", policy);
    world.submit(0, 0, &["gpus 1"]);
    world.step(0, vec![started(0)], vec![]);
    assert_eq!(world.engine.wake(), None);
    world.submit(4, 1, &["gpus 1"]);
    assert_eq!(world.engine.wake(), Some(secs(10)));
    assert_eq!(world.told(10, vec![]), "BeginRound\n");
    assert_eq!(world.engine.wake(), Some(secs(20)));
    world.step(12, vec![cancel(1)], vec![]);
    assert_eq!(world.engine.wake(), None);
}

#[test]
fn whoever_can_never_run_is_turned_away_at_once_and_the_others_are_told_why_they_wait() {
    let mut world = World::with_policy("2 | 2", pipeline(Head::Skips, Preempt::Never));
    let jobs = [
        "gpus 2 tasks 2",
        "gpus 3",
        "gpus 1 on 1",
        "gpus 1 tasks 5",
        "gpus 2 + gpus 2 + gpus 1",
        "gpus 1 tasks 3",
    ];
    let events = (0..).zip(jobs).map(|(id, text)| submit(id, asks(text))).collect();
    expect![[r#"
        reject job1: no node that it accepts has 3 GPUs and the CPU and memory it asks
        reject job2: no node has a GPU model that it accepts
        reject job3: 4 of its 5 tasks would fit the empty cluster
        reject job4: 2 of its 3 tasks would fit the empty cluster
        start job0 as lease0 on node0[gpu0 gpu1], node1[gpu2 gpu3]
        hold job5: 0 of its 3 tasks would fit now
    "#]]
    .assert_eq(&world.told(1, events));
    // What was said is not said again.
    assert_eq!(world.told(2, vec![node_down(0)]), "stop lease0: Kill, NodeFailed\n");
}

#[test]
fn a_strict_pipeline_says_behind_whom_jobs_wait() {
    let mut world = World::with_policy("2", pipeline(Head::Blocks, Preempt::Never));
    world.submit(0, 0, &["gpus 1"]);
    let events = vec![submit(1, asks("gpus 2")), submit(2, asks("gpus 1"))];
    expect![[r#"
        hold job1: 0 of its 1 tasks would fit now
        hold job2: job 1 comes first
    "#]]
    .assert_eq(&world.told(1, events));
    expect![[r#"
        start job1 as lease1 on node0[gpu0 gpu1]
    "#]]
    .assert_eq(&world.told(2, vec![finished(0, 2)]));
}

#[test]
fn a_job_that_was_first_and_held_back_gets_what_was_freed_meanwhile() {
    let mut world = World::with_policy("2", pipeline(Head::Blocks, Preempt::Never));
    world.submit(0, 0, &["gpus 1", "gpus 2"]);
    let job = crate::id::JobId(1);
    world.told(1, vec![Event::HoldChanged { job, held: true }]);
    world.told(2, vec![finished(0, 2)]);
    expect![[r#"
        start job1 as lease1 on node0[gpu0 gpu1]
    "#]]
    .assert_eq(&world.told(3, vec![Event::HoldChanged { job, held: false }]));
}

#[test]
fn who_waited_for_a_node_that_never_comes_back_is_turned_away_then() {
    let mut world = World::with_policy("2 | 2", pipeline(Head::Blocks, Preempt::Never));
    world.submit(0, 0, &["gpus 1", "gpus 2 tasks 2", "gpus 1"]);
    let retired = Event::NodeRetired { node: NodeId(1) };
    expect![[r#"
        reject job1: 1 of its 2 tasks would fit the empty cluster
        start job2 as lease1 on node0[gpu1]
    "#]]
    .assert_eq(&world.told(1, vec![retired]));
}

#[test]
fn who_comes_after_a_job_that_is_turned_away_is_asked_for_at_once() {
    let mut world = World::with_policy("2", pipeline(Head::Skips, Preempt::Never));
    // One at a time: the second is let through when the first is no more.
    world.submit(0, 0, &["gpus 3 array 0:1", "gpus 1 array 0:1"]);
    assert_eq!(world.engine.wake(), Some(crate::units::Time::ZERO));
    expect![[r#"
        start job1 as lease0 on node0[gpu0]
    "#]]
    .assert_eq(&world.told(0, vec![]));
}

#[test]
fn victims_are_stopped_with_a_checkpoint_and_the_room_is_kept_for_whom_they_stop() {
    let mut world = World::with_policy("2", pipeline(Head::Skips, Preempt::ByRank));
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    world.step(0, vec![started(0), started(1)], vec![]);
    let events = vec![submit(2, asks("gpus 2 priority 1"))];
    expect![[r#"
        stop lease0: Checkpoint, Preempted
        stop lease1: Checkpoint, Preempted
        hold job2: 2 jobs are being stopped in its favour
    "#]]
    .assert_eq(&world.told(5, events));
    // One of them is gone: another job that would fit now may not have its place.
    let interrupted = stopped(0, crate::event::Outcome::Interrupted, 5, 0);
    let late = submit(3, asks("gpus 1"));
    expect![[r#"
        hold job3: 0 of its 1 tasks would fit now
    "#]]
    .assert_eq(&world.told(6, vec![interrupted, late]));
}

#[test]
fn a_part_of_a_gpu_is_booked_by_the_rule_of_sharing() {
    let placed = |sharing, job: &str| {
        let policy = Pipeline { sharing, ..pipeline(Head::Skips, Preempt::Never) };
        let mut world = World::with_policy("1", policy);
        for (at, used) in (1..4).zip([100, 200, 150]) {
            let id = world.state().next_job().0;
            world.submit(at, id, &["gpu 500 group 1"]);
            let gpu = crate::units::Milli(used);
            let lease = crate::id::LeaseId(id);
            let used = Event::Used { lease, gpu };
            world.step(at, vec![started(id), used, finished(id, 1)], vec![]);
        }
        let text = world.told(9, vec![submit(3, asks(job))]);
        text.split_once(" on ").unwrap().1.trim().to_owned()
    };
    let willing = "gpu 500 group 1 willing";
    assert_eq!(placed(ShareRule::Off, willing), "node0[gpu0]");
    let half = "node0[gpu0 Fraction { compute: Milli(500), mem: Mib(500) }]";
    assert_eq!(placed(ShareRule::Requests, willing), half);
    assert_eq!(placed(ShareRule::Packed, "gpu 500 group 1"), half);
    assert_eq!(placed(ShareRule::Packed, "gpu 500 willing"), half);
    let packed = "node0[gpu0 Packed { compute: Milli(200), mem: Mib(500) }]";
    assert_eq!(placed(ShareRule::Packed, willing), packed);
    // Never more than was asked for.
    let less = "node0[gpu0 Fraction { compute: Milli(180), mem: Mib(180) }]";
    assert_eq!(placed(ShareRule::Packed, "gpu 180 group 1 willing"), less);
}
