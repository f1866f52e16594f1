//! Orders that depend on time: they are asked when a rank changes, and only then.

use expect_test::expect;

use super::orders::{Ageing, Count, TwoQueues};
use crate::pipeline::{Head, Pipeline, Preempt};
use crate::testkit::*;

fn ageing(count: &Count) -> Pipeline {
    let order = Ageing(count.clone());
    Pipeline { head: Head::Blocks, ..Pipeline::new(order, Box::new(FirstFit)) }
}

fn two_queues(count: &Count) -> Pipeline {
    let order = TwoQueues(count.clone());
    Pipeline { preempt: Preempt::ByRank, ..Pipeline::new(order, Box::new(FirstFit)) }
}

#[test]
fn who_waits_long_enough_comes_before_who_is_more_important() {
    let jobs = "
        0 gpus 1 lasts 25
        1 gpus 1 lasts 10
        20 gpus 1 lasts 10 priority 1
        22 gpus 1 lasts 10 priority 3
    ";
    // At 25 job 1 has aged by two and comes before job 2; job 3 is before both.
    let mut schedule = Schedule::new("1", ageing(&Count::default())).jobs(jobs);
    expect![[r#"
        job0 0..25
        job1 35..45
        job2 45..55
        job3 25..35
    "#]]
    .assert_eq(&schedule.run());
}

#[test]
fn an_ageing_order_is_asked_when_a_job_is_due_and_not_before() {
    let count = Count::default();
    let mut world = World::with_policy("1", ageing(&count));
    world.submit(0, 0, &["gpus 1"]);
    world.step(0, vec![started(0)], vec![]);
    // Nobody waits: no rank changes by time.
    world.step(10, vec![], vec![]);
    world.submit(12, 1, &["gpus 1"]);
    world.submit(15, 2, &["gpus 1"]);
    assert_eq!(world.engine.wake(), Some(secs(22)));
    count.take();
    world.step(20, vec![], vec![]);
    assert_eq!(count.take(), 0);
    world.step(22, vec![], vec![]);
    assert!((1..=2).contains(&count.take()), "one rank changed");
    assert_eq!(world.engine.wake(), Some(secs(25)));
    world.step(25, vec![], vec![]);
    assert_eq!(world.engine.wake(), Some(secs(32)));
}

#[test]
fn who_has_had_enough_gives_way_at_that_very_time() {
    let jobs = "
        0 gpus 1 lasts 30
        5 gpus 1 lasts 30
        6 gpus 1 lasts 4
    ";
    // At 20 job 0 has had its share and jobs 1 and 2 have had none. At 40 job 1 has had its, too.
    let mut schedule = Schedule::new("1", two_queues(&Count::default())).jobs(jobs);
    expect![[r#"
        job0 0..20 44..54
        job1 20..40 54..64
        job2 40..44
    "#]]
    .assert_eq(&schedule.run());
}

#[test]
fn gangs_reach_their_share_sooner() {
    let mut world = World::with_policy("4", two_queues(&Count::default()));
    world.submit(0, 0, &["gpus 4"]);
    world.step(0, vec![started(0)], vec![]);
    world.submit(1, 1, &["gpus 1"]);
    assert_eq!(world.engine.wake(), Some(secs(5)));
    assert_eq!(world.told(5, vec![]), "stop lease0: Checkpoint, Preempted\n");
}

#[test]
fn a_policy_that_remembers_nothing_wakes_at_the_same_times() {
    let jobs = "
        0 gpus 1 lasts 30
        5 gpus 1 lasts 30
        6 gpus 1 lasts 4
        7 gpus 2 lasts 40
        30 gpus 1 lasts 9
    ";
    for cluster in ["1", "2"] {
        let count = Count::default;
        let mut kept = Schedule::new(cluster, two_queues(&count())).jobs(jobs);
        let forgetful = Schedule::new(cluster, two_queues(&count()));
        let mut anew = forgetful.forgetful(move || Box::new(two_queues(&count()))).jobs(jobs);
        assert_eq!(kept.run(), anew.run());
        assert_eq!(kept.decisions, anew.decisions);
    }
}
