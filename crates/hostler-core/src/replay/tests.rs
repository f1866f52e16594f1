//! Logs that are read again: what folds, what is compared, and what is refused.

use std::sync::Arc;

use super::{Replay, ReplayError};
use crate::border::Refused;
use crate::capacity::Refusal;
use crate::cluster::{Layout, Share};
use crate::decision::Decision;
use crate::engine::Engine;
use crate::event::Event;
use crate::id::{DeviceId, JobId, LeaseId, NodeId};
use crate::placement::Placement;
use crate::plan::Plan;
use crate::policy::{Policy, Wake};
use crate::record::Record;
use crate::testkit::*;
use crate::units::Mib;
use crate::verify::Violation;
use crate::view::View;

/// Starts the first job that waits on a device of its own; `shift` moves it to another.
#[derive(Clone, Copy)]
struct OneByOne {
    shift: u32,
}

impl Policy for OneByOne {
    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        if let Some(id) = view.pending().first() {
            let _ = plan.start(*id, whole(0, &[(id.0 + self.shift) % 4]));
        }
    }
}

fn world() -> World {
    let mut world = World::with_policy("4", OneByOne { shift: 0 });
    world.submit(1, 0, &["gpus 1 limit 50", "gpus 1"]);
    world.step(2, vec![started(0), submit(2, asks("gpus 1"))], vec![]);
    world.step(3, vec![finished(0, 1), held(2, true)], vec![]);
    world.step(9, vec![held(2, false), cancel(1)], vec![]);
    world
}

fn replay(log: &[Record], shift: u32, ask_again: bool) -> Result<Replay<()>, ReplayError> {
    let mut replay = Replay::new(Engine::new(Box::new(OneByOne { shift }), ()), ask_again);
    log.iter().try_for_each(|record| replay.feed(record))?;
    Ok(replay)
}

fn fault(log: &[Record]) -> ReplayError {
    replay(log, 0, false).err().expect("the log makes no sense")
}

/// The log with one more record.
fn and(world: &World, record: Record) -> Vec<Record> {
    world.log().into_iter().chain([record]).collect()
}

fn output(world: &World, decisions: Vec<Decision>) -> Record {
    Record::Output { at: world.state().now(), asked: true, decisions }
}

fn start(job: u32, placement: Placement) -> Decision {
    let placement = Arc::new(placement);
    Decision::Start { lease: LeaseId(1), job: JobId(job), placement, until: None }
}

#[test]
fn a_log_folds_to_its_state_with_and_without_the_policy() {
    let world = world();
    for ask_again in [false, true] {
        let replay = replay(&world.log(), 0, ask_again).unwrap();
        assert_eq!(replay.records, world.log().len() as u64);
        let log = world.log();
        let decisions = log.iter().map(|record| match record {
            Record::Output { decisions, .. } => decisions.len() as u64,
            Record::Input { .. } => 0,
        });
        let expected: u64 = if ask_again { decisions.sum() } else { 0 };
        assert_eq!(replay.compared, expected);
        assert!(replay.into_engine().state() == world.state());
    }
}

#[test]
fn a_policy_that_decides_otherwise_is_found_at_the_first_difference() {
    let world = world();
    let Err(ReplayError::Mismatch { record, logged, again }) = replay(&world.log(), 1, true) else {
        panic!("another policy decided");
    };
    assert_eq!(record, 4);
    assert_eq!(decided(&logged), "start job0 as lease0 on node0[gpu0]\n");
    assert_eq!(decided(&again), "start job0 as lease0 on node0[gpu1]\n");
    assert!(replay(&world.log(), 1, false).is_ok(), "nobody was asked");
}

#[test]
fn decisions_without_a_question_are_a_difference_too() {
    let mut log = world().log();
    let Record::Output { asked, .. } = &mut log[3] else { panic!("decisions come second") };
    *asked = false;
    let found = replay(&log, 0, true).err();
    assert!(matches!(found, Some(ReplayError::Mismatch { record: 4, .. })));
}

#[test]
fn facts_that_make_no_sense_are_refused() {
    let world = world();
    let facts = |events| Record::Input { at: secs(10), events };
    let again = facts(vec![submit(1, asks("gpus 1"))]);
    let order = Refused::Order { what: "job", id: 1, next: 3 };
    let record = world.log().len() as u64 + 1;
    assert_eq!(fault(&and(&world, again)), ReplayError::Fact { record, fault: order });
    // The second builds on the first of the same record.
    let pair = vec![node_up(1, 2), node_down(1)];
    assert!(replay(&and(&world, facts(pair)), 0, false).is_ok());
    let unknown = facts(vec![Event::NodeDown { node: NodeId(7) }]);
    let fact = Refused::Unknown { what: "node", id: 7 };
    assert_eq!(fault(&and(&world, unknown)), ReplayError::Fact { record, fault: fact });
}

#[test]
fn decisions_that_break_a_rule_or_book_what_is_taken_are_refused() {
    let mut world = World::with_policy("4", OneByOne { shift: 0 });
    world.submit(1, 0, &["gpus 1", "gpu 500"]);
    let record = world.log().len() as u64 + 1;
    let taken = output(&world, vec![start(1, whole(0, &[0]))]);
    let full = Violation::DeviceFull(DeviceId(0));
    assert_eq!(fault(&and(&world, taken)), ReplayError::Decision { record, fault: full });
    // No device is cut in slices: the rules do not see it, the book does.
    let slice = Share::Mig { start: 0, slices: 2, mem: Mib(500) };
    let cut = output(&world, vec![start(1, shared(0, 1, [(1, slice)]))]);
    let refusal = Refusal::Device(DeviceId(1));
    assert_eq!(fault(&and(&world, cut)), ReplayError::Taken { record, fault: refusal });
}

#[test]
fn a_move_after_the_start_that_needs_its_room_is_refused() {
    let mut world = World::of("1 | 1");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    world.run(0, 0, whole(0, &[0]));
    let decisions = |lease| {
        let resize = Decision::Resize { lease: LeaseId(0), placement: Arc::new(whole(1, &[1])) };
        let placement = Arc::new(whole(0, &[0]));
        let start = Decision::Start { lease, job: JobId(1), placement, until: None };
        [resize, start]
    };
    let [resize, start] = decisions(LeaseId(1));
    let right = output(&world, vec![resize.clone(), start.clone()]);
    assert!(replay(&and(&world, right), 0, false).is_ok());
    let record = world.log().len() as u64 + 1;
    let wrong = output(&world, vec![start, resize]);
    let fault_of = ReplayError::Taken { record, fault: Refusal::Device(DeviceId(0)) };
    assert_eq!(fault(&and(&world, wrong)), fault_of);
}

#[test]
fn facts_and_decisions_take_turns_and_agree_on_the_time() {
    let world = world();
    let record = world.log().len() as u64 + 1;
    let late = Record::Output { at: secs(99), asked: false, decisions: vec![] };
    assert_eq!(fault(&and(&world, late)), ReplayError::Order { record });
    let twice = Record::Output { at: world.state().now(), asked: false, decisions: vec![] };
    let found = replay(&and(&world, twice), 0, true).err();
    assert_eq!(found, Some(ReplayError::Order { record }));
    let facts = |at| Record::Input { at: secs(at), events: vec![] };
    let log: Vec<Record> = world.log().into_iter().chain([facts(20), facts(21)]).collect();
    assert_eq!(replay(&log, 0, true).err(), Some(ReplayError::Order { record: record + 1 }));
}

#[test]
fn a_refused_record_changes_nothing_of_what_is_free() {
    let mut world = World::of("2");
    let cut = Act::new(|_, plan| plan.repartition(DeviceId(1), Layout::Mig).unwrap());
    world.step(1, vec![submit(0, asks("gpus 1"))], vec![cut]);
    let mut replay = Replay::new(Engine::new(Box::new(OneByOne { shift: 0 }), ()), false);
    world.log().iter().for_each(|record| replay.feed(record).unwrap());
    let placement = Arc::new(whole(0, &[1]));
    let lease = LeaseId(0);
    let divided = Decision::Start { lease, job: JobId(0), placement, until: None };
    assert!(replay.feed(&output(&world, vec![divided])).is_err());
    let engine = replay.into_engine();
    engine.state().audit();
    assert!(engine.state() == world.state());
}
