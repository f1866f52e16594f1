//! Nodes that are kept for a time: who may start there before, meanwhile and afterwards, and who
//! has to leave. Every step checks that saved facts give the same state.

use crate::decision::{Decision, StopHow, StopWhy};
use crate::event::{Event, Outcome};
use crate::id::{NodeId, WindowId};
use crate::job::{JobSpec, Phase};
use crate::reason::Reason;
use crate::testkit::*;
use crate::units::{Span, Time};
use crate::window::{StayBound, Window};

const HOUR: u64 = 3600;

fn window(nodes: &[u32], from: u64, until: u64, evicts: bool) -> Event {
    let nodes = nodes.iter().map(|node| NodeId(*node)).collect();
    let spec = Window { nodes, from: secs(from), until: secs(until), evicts };
    Event::WindowSet { window: WindowId(0), spec }
}

/// A job of one GPU with a time limit, for a window or not.
fn limited(limit: Option<u64>, window: Option<u32>) -> JobSpec {
    let mut spec = job("j", 1000);
    spec.time_limit = limit.map(Span::from_secs);
    spec.gangs[0].demand.stay = StayBound::of_limit(spec.time_limit);
    spec.gangs[0].demand.window = window.map(WindowId);
    spec
}

/// GPUs of a node that a job could have now.
fn slots(world: &World, node: u32, spec: &JobSpec) -> u32 {
    world.state().capacity().slots(NodeId(node), &spec.gangs[0].demand, 99)
}

#[test]
fn before_a_window_only_those_start_who_end_in_time() {
    let mut world = World::of("4 | 4");
    world.step(0, vec![window(&[0], 2 * HOUR, 3 * HOUR, false)], vec![]);
    let (short, long) = (limited(Some(HOUR), None), limited(Some(5 * HOUR), None));
    let (endless, invited) = (limited(None, None), limited(Some(HOUR), Some(0)));
    let on_first = |world: &World| [&short, &long, &endless, &invited].map(|s| slots(world, 0, s));
    assert_eq!(on_first(&world), [4, 0, 0, 0]);
    assert_eq!([&short, &long, &endless, &invited].map(|s| slots(&world, 1, s)), [4, 4, 4, 0]);
    // An hour counts as 64 minutes: 56 minutes from now is the last moment for it.
    world.step(56 * 60, vec![], vec![]);
    assert_eq!(on_first(&world), [4, 0, 0, 0]);
    let woken = world.engine.wake().expect("a stay of an hour is too long soon");
    assert_eq!(woken, Time(56 * 60 * 1_000_000 + 1));
    world.step_at(woken, vec![], vec![]);
    assert_eq!(on_first(&world), [0, 0, 0, 0]);
    world.step(2 * HOUR - 1, vec![], vec![]);
    assert_eq!(on_first(&world), [0, 0, 0, 0]);
    world.step(2 * HOUR, vec![], vec![]);
    assert_eq!(on_first(&world), [0, 0, 0, 4]);
    assert_eq!(world.engine.wake(), Some(secs(3 * HOUR)));
    world.step(3 * HOUR, vec![], vec![]);
    assert_eq!(on_first(&world), [4, 4, 4, 0]);
    assert_eq!(world.state().windows().count(), 0);
    world.check_log();
}

#[test]
fn who_is_there_when_a_window_begins_is_saved_and_waits_again_if_the_window_says_so() {
    for evicts in [false, true] {
        let mut world = World::of("4 | 4");
        let specs = [limited(None, None), limited(None, None)];
        let jobs = (0..).zip(specs).map(|(id, spec)| submit(id, spec)).collect();
        world.step(0, jobs, vec![]);
        let on_kept = world.run(1, 0, whole(0, &[0]));
        world.run(1, 1, whole(1, &[4]));
        world.step(2, vec![window(&[0], 10, 20, evicts)], vec![]);
        let decisions = world.step(10, vec![], vec![]);
        if !evicts {
            assert_eq!(decisions, []);
            continue;
        }
        let (lease, how) = (crate::id::LeaseId(on_kept), StopHow::Checkpoint);
        assert_eq!(decisions, [Decision::Stop { lease, how, why: StopWhy::Evicted }]);
        world.step(11, vec![stopped(on_kept, Outcome::Interrupted, 8, 0)], vec![]);
        assert_eq!(world.job(0).reason, Reason::Evicted);
        assert_eq!(world.job(0).ledger.preemptions, 0);
        world.check_log();
    }
}

#[test]
fn jobs_of_a_window_stay_in_it_and_the_first_window_of_a_node_counts() {
    let mut world = World::of("4");
    let later =
        Window { nodes: Box::new([NodeId(0)]), from: secs(50), until: secs(90), evicts: true };
    let later = Event::WindowSet { window: WindowId(7), spec: later };
    world.step(0, vec![later, window(&[0], 10, 20, true)], vec![]);
    world.step(10, vec![submit(0, limited(None, Some(0)))], vec![]);
    world.run(11, 0, whole(0, &[0]));
    assert_eq!(world.step(12, vec![], vec![]), []);
    // Another window begins: the job was not asked to that one.
    world.step(20, vec![], vec![]);
    assert_eq!(world.state().node(NodeId(0)).kept.map(|kept| kept.window), Some(WindowId(7)));
    assert_eq!(world.step(50, vec![], vec![]).len(), 1);
    world.check_log();
}

#[test]
fn jobs_for_a_window_are_held_until_it_begins_and_once_it_is_over() {
    let mut world = World::of("4");
    let phase = |world: &World, job| (world.job(job).phase, world.job(job).reason);
    let held = (Phase::Held, Reason::OutsideWindow);
    world.step(0, vec![window(&[0], 10, 20, true)], vec![]);
    let specs = [limited(None, Some(0)), limited(None, Some(0)), limited(None, Some(9))];
    let jobs = (0..).zip(specs).map(|(id, spec)| submit(id, spec)).collect();
    world.step(1, jobs, vec![]);
    assert_eq!([0, 1, 2].map(|job| phase(&world, job)), [held; 3]);
    world.step(10, vec![], vec![]);
    assert_eq!([0, 1].map(|job| phase(&world, job).0), [Phase::Pending; 2]);
    assert_eq!(phase(&world, 2), held);
    let lease = world.run(11, 0, whole(0, &[0]));
    world.step(20, vec![], vec![]);
    assert_eq!(phase(&world, 1), held);
    // Who lost its machine after the end waits for what does not come.
    world.step(21, vec![stopped(lease, Outcome::Interrupted, 0, 0)], vec![]);
    assert_eq!(phase(&world, 0), held);
    world.step(22, vec![cancel(0), window(&[0], 30, 40, true)], vec![]);
    assert_eq!(phase(&world, 1), held);
    world.step(30, vec![], vec![]);
    assert_eq!(phase(&world, 1).0, Phase::Pending);
    world.check_log();
}

#[test]
fn a_deadline_counts_while_another_window_goes_on() {
    let mut world = World::of("4");
    let nodes = Box::new([NodeId(0)]);
    let deadline = Window { nodes, from: secs(15), until: Time::NEVER, evicts: true };
    world.step(0, vec![window(&[0], 10, 90, true)], vec![]);
    world.step(10, vec![submit(0, limited(None, Some(0)))], vec![]);
    world.run(11, 0, whole(0, &[0]));
    world.step(12, vec![Event::WindowSet { window: WindowId(1), spec: deadline }], vec![]);
    assert_eq!(world.step(15, vec![], vec![]).len(), 1);
    world.check_log();
}

#[test]
fn the_policy_is_asked_when_a_window_begins_and_when_it_is_over() {
    let mut world = World::of("4");
    world.step(0, vec![window(&[0], 10, 20, false)], vec![]);
    for at in [10, 20] {
        assert!(!world.engine.is_policy_due(), "before {at}");
        world.engine.begin(secs(at));
        assert!(world.engine.is_policy_due(), "at {at}");
        world.engine.end_input();
        let proposal = world.engine.propose();
        world.engine.commit(proposal);
    }
}

#[test]
fn a_window_can_be_moved_and_given_up() {
    let mut world = World::of("4");
    let endless = limited(None, None);
    world.step(0, vec![window(&[0], 10, 20, false)], vec![]);
    world.step(1, vec![window(&[0], 30, 40, false)], vec![]);
    world.step(15, vec![], vec![]);
    assert_eq!(slots(&world, 0, &limited(Some(10), None)), 0, "a minute is the least");
    assert_eq!(world.engine.wake(), Some(secs(30)));
    world.step(16, vec![Event::WindowEnded { window: WindowId(0) }], vec![]);
    assert_eq!((slots(&world, 0, &endless), world.engine.wake()), (4, None));
    assert_eq!(world.state().stale_events(), 0);
    world.step(17, vec![Event::WindowEnded { window: WindowId(0) }], vec![]);
    assert_eq!(world.state().stale_events(), 1);
    world.check_log();
}
