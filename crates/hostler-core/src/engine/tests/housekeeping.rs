//! What ends whatever the policy says: starts and stops without an answer, time limits, leases with
//! an end, and nodes that keep silent.

use crate::event::{Event, Outcome};
use crate::id::{JobId, NodeId};
use crate::job::Phase;
use crate::limits::{START_TIMEOUT, STOP_TIMEOUT};
use crate::reason::Reason;
use crate::record::Record;
use crate::testkit::*;
use crate::units::{Span, Time};

/// Goes to the next time that the engine asks for, without facts.
fn sleep(world: &mut World) -> String {
    let at = world.engine.wake().expect("something is due");
    let decisions = world.step_at(at, vec![], vec![]);
    format!("{at}: {}", decided(&decisions))
}

/// Job 0 was started on the first of two nodes at second 10.
fn starting(job: &str) -> World {
    let mut world = World::of("2 | 2");
    world.submit(0, 0, &[job]);
    world.step(10, vec![], vec![Act::Start(0, whole(0, &[0]))]);
    world
}

#[test]
fn a_start_without_an_answer_is_stopped_and_tried_again() {
    let mut world = starting("gpus 1");
    assert_eq!(world.engine.wake(), Some(secs(10) + START_TIMEOUT));
    world.step(1809, vec![], vec![]);
    assert_eq!(sleep(&mut world), "1810: stop lease0: Kill, NoAnswer\n");
    assert_eq!(world.told(1811, vec![stopped(0, Outcome::Interrupted, 0, 0)]), "");
    assert_eq!((world.job(0).phase, world.job(0).reason), (Phase::Pending, Reason::StartFailed));
    assert_eq!(world.job(0).ledger.start_failures, 1);
    assert_eq!(world.engine.wake(), None);
    world.check_log();
}

#[test]
fn a_confirmed_start_is_never_asked_about_again() {
    let mut world = starting("gpus 1");
    world.step(1809, vec![started(0)], vec![]);
    assert_eq!(world.engine.wake(), None);
    assert_eq!(world.told(5000, vec![]), "");
}

#[test]
fn a_stop_without_an_answer_is_asked_for_three_times_and_then_the_node_is_taken_out() {
    let mut world = starting("gpus 1 saves 7");
    world.step(20, vec![started(0)], vec![]);
    let checkpoint = Act::new(|_, plan| {
        let (how, why) =
            (crate::decision::StopHow::Checkpoint, crate::decision::StopWhy::Preempted);
        plan.stop_because(crate::id::LeaseId(0), how, why).unwrap();
    });
    world.step(30, vec![], vec![checkpoint]);
    // A checkpoint has its own time on top; what follows is a kill, for the first reason.
    assert_eq!(world.engine.wake(), Some(secs(30 + 7) + STOP_TIMEOUT));
    let said: Vec<String> = (0..3).map(|_| sleep(&mut world)).collect();
    let again = |at: u64| format!("{at}: stop lease0: Kill, Preempted\n");
    assert_eq!(said, [again(337), again(637), "937: ".to_owned()]);
    let Some(Record::Input { events, .. }) = world.log().into_iter().rev().nth(1) else {
        panic!("facts come before decisions");
    };
    assert_eq!(events, [node_down(0)]);
    assert_eq!(world.job(0).reason, Reason::Preempted);
    assert_eq!(world.job(0).ledger.preemptions, 1);
    assert_eq!(world.engine.wake(), None);
    world.check_log();
}

#[test]
fn an_executor_that_tells_of_nodes_is_not_contradicted_and_not_woken_for_them() {
    let mut world = starting("gpus 1");
    world.set_abilities(11, |abilities| abilities.tells_nodes = true);
    world.step(20, vec![started(0)], vec![Act::Preempt(0)]);
    sleep(&mut world);
    sleep(&mut world);
    // All stops have been asked for: there is nothing left to wake up for.
    assert_eq!(world.engine.wake(), None);
    assert_eq!(world.told(9000, vec![]), "");
    assert!(world.state().nodes().iter().all(|node| node.usable()));
    assert_eq!(world.job(0).lease(), Some(crate::id::LeaseId(0)));
    world.step(9001, vec![stopped(0, Outcome::Interrupted, 0, 0)], vec![]);
    assert_eq!(world.job(0).phase, Phase::Pending);
}

#[test]
fn a_job_beyond_its_time_limit_is_stopped_and_over() {
    let mut world = starting("gpus 1 limit 100");
    world.step(15, vec![started(0)], vec![]);
    assert_eq!(world.engine.wake(), Some(secs(115)));
    assert_eq!(sleep(&mut world), "115: stop lease0: Kill, TimeLimit\n");
    world.step(116, vec![stopped(0, Outcome::Interrupted, 0, 0)], vec![]);
    assert_eq!(world.state().job_count(), 0);
}

#[test]
fn a_time_limit_counts_from_the_confirmed_start_of_each_stay() {
    let mut world = starting("gpus 1 limit 100");
    world.step(15, vec![started(0)], vec![]);
    world.step(50, vec![stopped(0, Outcome::Interrupted, 10, 0)], vec![]);
    assert_eq!(world.engine.wake(), None);
    world.run(60, 0, whole(1, &[2]));
    assert_eq!(world.engine.wake(), Some(secs(160)));
}

fn until(at: u64) -> Act {
    Act::new(move |_, plan| {
        plan.start_until(JobId(0), whole(0, &[0]), Some(secs(at))).unwrap();
    })
}

#[test]
fn a_lease_with_an_end_is_stopped_then_and_its_job_waits_again() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1 limit 500 saves 3"]);
    world.step(10, vec![], vec![until(60)]);
    world.step(12, vec![started(0)], vec![]);
    assert_eq!(world.lease(0).until, Some(secs(60)));
    assert_eq!(sleep(&mut world), "60: stop lease0: Checkpoint, LeaseEnded\n");
    world.step(64, vec![stopped(0, Outcome::Interrupted, 40, 0)], vec![]);
    assert_eq!((world.job(0).phase, world.job(0).reason), (Phase::Pending, Reason::Preempted));
    assert_eq!(world.job(0).ledger.done, Span::from_secs(40));
    world.check_log();
}

#[test]
fn a_time_limit_before_the_end_of_the_lease_counts_first() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1 limit 20"]);
    world.step(10, vec![], vec![until(60)]);
    world.step(12, vec![started(0)], vec![]);
    assert_eq!(sleep(&mut world), "32: stop lease0: Kill, TimeLimit\n");
}

#[test]
fn a_lease_that_ends_before_its_start_was_confirmed_is_no_failed_start() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1"]);
    world.step(10, vec![], vec![until(60)]);
    assert_eq!(sleep(&mut world), "60: stop lease0: Kill, LeaseEnded\n");
    world.step(61, vec![stopped(0, Outcome::Interrupted, 0, 0)], vec![]);
    assert_eq!(world.job(0).reason, Reason::Preempted);
    assert_eq!(world.job(0).ledger.start_failures, 0);
}

#[test]
fn a_cancelled_job_is_stopped_at_once_and_over_when_that_is_confirmed() {
    let mut world = starting("gpus 1");
    assert_eq!(world.told(20, vec![cancel(0)]), "stop lease0: Kill, Cancelled\n");
    assert_eq!(world.told(21, vec![cancel(0)]), "");
    world.step(22, vec![stopped(0, Outcome::Interrupted, 0, 0)], vec![]);
    assert_eq!(world.state().job_count(), 0);
}

#[test]
fn the_rest_of_a_gang_is_stopped_when_one_of_its_nodes_fails() {
    let mut world = World::of("2 | 2");
    world.submit(0, 0, &["gpus 1 tasks 2"]);
    world.run(10, 0, together([tasks(0, 1, &[0]), tasks(1, 1, &[2])]));
    assert_eq!(world.told(20, vec![node_down(0)]), "stop lease0: Kill, NodeFailed\n");
    assert_eq!(world.job(0).phase, Phase::Stopping(crate::id::LeaseId(0)));
    world.step(21, vec![stopped(0, Outcome::Interrupted, 5, 6)], vec![]);
    assert_eq!(world.job(0).reason, Reason::NodeFailed);
    assert_eq!(world.job(0).ledger.lost_work, Span::from_secs(6));
}

#[test]
fn the_policy_is_not_asked_for_what_housekeeping_does() {
    let mut world = starting("gpus 1 limit 100");
    world.step(15, vec![started(0)], vec![]);
    world.engine.begin(secs(115));
    world.engine.end_input();
    let proposal = world.engine.propose();
    assert!(!proposal.asked, "nothing happened that concerns the policy");
    assert_eq!(decided(&proposal.decisions), "stop lease0: Kill, TimeLimit\n");
    let quiet = |world: &mut World, at: Time| {
        world.engine.begin(at);
        world.engine.end_input();
        world.engine.propose()
    };
    world.engine.commit(proposal);
    let proposal = quiet(&mut world, secs(116));
    assert_eq!((proposal.asked, proposal.decisions.len()), (false, 0));
}

#[test]
fn nodes_that_keep_silent_are_taken_out_once() {
    let mut world = World::of("2 | 2");
    world.submit(0, 0, &["gpus 1 tasks 2", "gpus 1"]);
    world.run(0, 0, together([tasks(0, 1, &[0]), tasks(1, 1, &[2])]));
    world.run(0, 1, whole(0, &[1]));
    world.step(1, vec![], vec![Act::Preempt(0), Act::Preempt(1)]);
    (0..3).for_each(|_| drop(sleep(&mut world)));
    let down = |id: u32| Event::NodeDown { node: NodeId(id) };
    let inputs = world.log().into_iter().filter_map(|record| match record {
        Record::Input { events, .. } => Some(events),
        Record::Output { .. } => None,
    });
    assert_eq!(inputs.last(), Some(vec![down(0), down(1)]));
    assert_eq!(world.state().lease_count(), 0);
}
