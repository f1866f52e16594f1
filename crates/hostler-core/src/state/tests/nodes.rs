//! Nodes that join, fail, drain, retire, sleep, and what that means for who is on them.

use std::cell::RefCell;

use crate::cluster::{Health, Node, Power};
use crate::decision::Decision;
use crate::event::{Event, Outcome};
use crate::id::{DeviceId, Features, JobId, LeaseId, NodeId};
use crate::job::Phase;
use crate::reason::Reason;
use crate::state::{Change, ClusterState};
use crate::testkit::*;
use crate::units::{Span, Time};
use crate::watch::Watch;

/// How each node was told to be, in order.
#[derive(Default)]
struct Told(RefCell<Vec<(u32, Health, Power)>>);

impl Watch for Told {
    fn node_changed(&mut self, _: Time, _: &ClusterState, node: &Node) {
        self.0.borrow_mut().push((node.id.0, node.health, node.power));
    }
}

fn drain(node: u32, draining: bool) -> Event {
    Event::NodeDrain { node: NodeId(node), draining }
}

fn power(node: u32, power: Power) -> Event {
    Event::PowerChanged { node: NodeId(node), power }
}

#[test]
fn watchers_are_told_of_each_change_of_a_node_once() {
    let mut world = World::new(Told::default(), &[1, 1]);
    world.watch().0.borrow_mut().clear();
    let events = vec![
        drain(0, true),
        drain(0, true),
        drain(0, false),
        drain(0, false),
        power(1, Power::Waking),
        node_down(1),
        node_down(1),
        drain(1, true),
        node_up(1, 1),
    ];
    world.step(1, events, vec![]);
    let (up, on) = (Health::Up, Power::On);
    let told = [
        (0, Health::Draining, on),
        (0, up, on),
        (1, up, Power::Waking),
        (1, Health::Down, Power::Waking),
        (1, up, on),
    ];
    assert_eq!(*world.watch().0.borrow(), told);
}

#[test]
fn a_node_is_free_only_while_it_takes_jobs() {
    let mut world = World::of("2");
    let usable = |world: &World| world.state().capacity().node(NodeId(0)).usable;
    for (at, (event, expected)) in (1..).zip([
        (drain(0, true), false),
        (drain(0, false), true),
        (power(0, Power::Sleeping), false),
        (power(0, Power::Waking), false),
        (power(0, Power::On), true),
        (node_down(0), false),
        // Who is down does not drain.
        (drain(0, false), false),
        (node_up(0, 2), true),
    ]) {
        world.step(at, vec![event.clone()], vec![]);
        assert_eq!(usable(&world), expected, "{event:?}");
        assert_eq!(world.state().node(NodeId(0)).usable(), expected, "{event:?}");
    }
}

#[test]
fn a_drained_node_keeps_what_runs_there() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1"]);
    let lease = world.run(1, 0, whole(0, &[0]));
    world.step(2, vec![drain(0, true)], vec![]);
    assert_eq!(world.job(0).phase, Phase::Running(LeaseId(lease)));
    world.step(3, vec![finished(lease, 1)], vec![]);
    assert_eq!(world.state().job_count(), 0);
}

#[test]
fn who_was_on_a_node_that_failed_waits_again_and_lost_what_was_not_safe() {
    let mut world = World::of("2 | 2");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    world.run(10, 0, whole(0, &[0]));
    world.run(10, 1, whole(1, &[2]));
    let done = Span::from_secs(30);
    world.step(40, vec![Event::Checkpointed { lease: LeaseId(0), done }], vec![]);
    world.step(60, vec![node_down(0)], vec![]);
    let job = world.job(0);
    assert_eq!((job.phase, job.reason), (Phase::Pending, Reason::NodeFailed));
    assert_eq!((job.ledger.done, job.ledger.lost_work), (done, Span::from_secs(20)));
    assert_eq!((job.ledger.ran, job.ledger.preemptions), (Span::from_secs(50), 0));
    assert_eq!(world.job(1).phase, Phase::Running(LeaseId(1)));
    assert_eq!(world.state().node(NodeId(0)).leases, []);
}

#[test]
fn a_cancelled_job_on_a_node_that_fails_is_over() {
    let mut world = World::of("2 | 2");
    world.submit(0, 0, &["gpus 1"]);
    world.run(1, 0, whole(0, &[0]));
    world.step(2, vec![cancel(0), node_down(0)], vec![]);
    assert_eq!(world.state().job_count(), 0);
}

#[test]
fn a_gang_is_over_when_the_last_of_its_nodes_failed() {
    let mut world = World::of("1 | 1");
    world.submit(0, 0, &["gpus 1 tasks 2"]);
    world.run(1, 0, together([tasks(0, 1, &[0]), tasks(1, 1, &[1])]));
    world.step(2, vec![node_down(1)], vec![]);
    assert_eq!(world.job(0).phase, Phase::Stopping(LeaseId(0)));
    assert_eq!(world.state().lease_count(), 1);
    world.step(3, vec![node_down(0)], vec![]);
    assert_eq!((world.job(0).phase, world.state().lease_count()), (Phase::Pending, 0));
    assert_eq!(world.job(0).reason, Reason::NodeFailed);
}

#[test]
fn a_retired_node_ends_what_is_there_and_has_those_who_wait_looked_at_again() {
    let mut world = World::of("2 | 1");
    world.submit(0, 0, &["gpus 1", "gpus 2"]);
    world.run(1, 0, whole(1, &[2]));
    let hold = Act::new(|_, plan| plan.hold(JobId(1), Reason::NotThisRound));
    world.step(2, vec![], vec![hold]);
    world.engine.begin(secs(3));
    world.engine.take_fact(Event::NodeRetired { node: NodeId(1) });
    let told = world.state().journal().since(world.state().journal().end() - 3).unwrap();
    let one = JobId(1);
    assert_eq!(told[1..], [Change::Unqueued(one), Change::Queued(one)]);
    world.engine.end_input();
    assert_eq!(world.job(0).phase, Phase::Pending);
    assert_eq!((world.job(1).reason, world.state().retired()), (Reason::New, 1));
    assert!(world.state().node(NodeId(1)).retired);
    world.check();
}

#[test]
fn a_node_comes_back_as_the_machine_that_it_was_and_not_when_it_retired() {
    let other = panic_of(|| drop(World::of("2").step(1, vec![node_up(0, 3)], vec![])));
    assert!(other.contains("node0 came back as another machine"), "{other}");
    let mut world = World::of("2");
    world.step(1, vec![Event::NodeRetired { node: NodeId(0) }], vec![]);
    let back = panic_of(|| drop(world.step(2, vec![node_up(0, 2)], vec![])));
    assert_eq!(back, "node0 came back although it never would");
}

#[test]
fn a_node_that_can_do_more_keeps_its_jobs_and_has_those_who_wait_looked_at_again() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1", "gpus 1 needs 1"]);
    world.run(1, 0, whole(0, &[0]));
    let demand = world.job(1).spec.gangs[0].demand.clone();
    let slots = |world: &World| world.state().capacity().slots(NodeId(0), &demand, 9);
    assert_eq!(slots(&world), 0);
    let changed = || Event::FeaturesChanged { node: NodeId(0), features: Features(1) };
    world.engine.begin(secs(2));
    world.engine.take_fact(changed());
    let told = world.state().journal().since(world.state().journal().end() - 3).unwrap();
    let one = JobId(1);
    let freed = Change::Freed(NodeId(0));
    assert_eq!(told, [Change::Unqueued(one), Change::Queued(one), freed]);
    world.engine.end_input();
    assert_eq!((slots(&world), world.state().refitted()), (1, 1));
    assert_eq!(world.job(0).phase, Phase::Running(LeaseId(0)));
    let stale = world.state().stale_events();
    world.step(3, vec![changed()], vec![]);
    assert_eq!((world.state().stale_events(), world.state().refitted()), (stale + 1, 1));
    world.check();
}

#[test]
fn devices_are_numbered_over_all_nodes() {
    let world = World::of("0 | 2 | 0 | 3 | 0");
    let state = world.state();
    assert_eq!(state.device_count(), 5);
    let owners: Vec<u32> = (0..5).map(|device| state.node_of(DeviceId(device)).0).collect();
    assert_eq!(owners, [1, 1, 3, 3, 3]);
}

#[test]
fn a_node_that_is_put_to_sleep_is_of_no_use_until_it_is_on() {
    let mut world = World::new(Told::default(), &[1]);
    world.watch().0.borrow_mut().clear();
    world.step(1, vec![], vec![Act::Sleep(0)]);
    assert!(!world.state().capacity().node(NodeId(0)).usable);
    assert_eq!(*world.watch().0.borrow(), [(0, Health::Up, Power::Sleeping)]);
    world.step(2, vec![power(0, Power::On)], vec![]);
    assert!(world.state().capacity().node(NodeId(0)).usable);
    world.check_log();
}

#[test]
fn only_an_empty_node_is_switched_and_only_to_sleep_or_wake() {
    let mut world = World::of("2 | 2");
    world.submit(0, 0, &["gpus 1"]);
    world.run(1, 0, whole(0, &[0]));
    let switch = |node, power| {
        let mut state = world.state().clone();
        let decision = Decision::SetPower { node: NodeId(node), power };
        panic_of(|| state.apply_decision(&decision, &mut ()))
    };
    assert_eq!(switch(0, Power::Sleeping), "node0 is switched while in use");
    let on = switch(1, Power::On);
    assert!(on.contains("only the executor can say that a node is on"), "{on}");
}

#[test]
fn what_is_given_back_is_told_once_for_each_node() {
    let mut world = World::of("2 | 2");
    world.submit(0, 0, &["gpus 1 tasks 2 + tasks 1"]);
    let placement = together([tasks(0, 1, &[0]), as_role(1, cpu(0, 1)), tasks(1, 1, &[2])]);
    let lease = world.run(1, 0, placement);
    let seen = world.state().journal().end();
    world.engine.begin(secs(2));
    world.engine.take_fact(stopped(lease, Outcome::Interrupted, 0, 0));
    let changes = world.state().journal().since(seen).unwrap();
    let freed = [0, 1].map(|node| Change::Vacated(NodeId(node), LeaseId(lease)));
    let ended = [Change::Ended(JobId(0)), Change::Queued(JobId(0))];
    assert_eq!(changes, [freed, ended].concat());
}

#[test]
fn whoever_counts_on_a_node_is_told_that_it_is_free_or_closed() {
    let mut world = World::of("2");
    let mut told = |events: Vec<Event>| {
        let seen = world.state().journal().end();
        world.engine.begin(secs(1));
        events.into_iter().for_each(|event| world.engine.take_fact(event));
        let changes = world.state().journal().since(seen).unwrap().to_vec();
        world.engine.end_input();
        changes
    };
    let (node, closed) = (Change::Freed(NodeId(0)), Change::Closed(NodeId(0)));
    assert_eq!(told(vec![drain(0, true)]), [closed]);
    assert_eq!(told(vec![drain(0, false)]), [node]);
    assert_eq!(told(vec![power(0, Power::On)]), [node]);
    assert_eq!(told(vec![node_down(0)]), [closed]);
    assert_eq!(told(vec![node_up(0, 2)]), [node]);
    let divide = Decision::Repartition { device: DeviceId(0), layout: crate::cluster::Layout::Mig };
    let mut state = world.state().clone();
    let seen = state.journal().end();
    state.apply_decision(&divide, &mut ());
    assert_eq!(state.journal().since(seen), Some(&[node][..]));
}
