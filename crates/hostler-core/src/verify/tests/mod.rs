//! Each rule with the least decisions that break it, and neighbours that keep it.

mod placements;
mod suspensions;
mod together;

use std::sync::Arc;

use super::{Violation, verify};
use crate::cluster::{Layout, Power};
use crate::decision::{Decision, StopHow, StopWhy};
use crate::id::{DeviceId, JobId, LeaseId, ModelId, NodeId};
use crate::limits::DECISIONS_PER_JOB_MAX;
use crate::placement::Placement;
use crate::reason::Reason;
use crate::target::{Team, Turn};
use crate::testkit::*;
use crate::units::Time;

pub(super) fn start(lease: u32, job: u32, placement: Placement) -> Decision {
    let placement = Arc::new(placement);
    Decision::Start { lease: LeaseId(lease), job: JobId(job), placement, until: None }
}

pub(super) fn resize(lease: u32, placement: Placement) -> Decision {
    Decision::Resize { lease: LeaseId(lease), placement: Arc::new(placement) }
}

pub(super) fn stop(lease: u32) -> Decision {
    let (how, why) = (StopHow::Kill, StopWhy::Preempted);
    Decision::Stop { lease: LeaseId(lease), how, why }
}

pub(super) fn power(node: u32, power: Power) -> Decision {
    Decision::SetPower { node: NodeId(node), power }
}

pub(super) fn repartition(device: u32) -> Decision {
    Decision::Repartition { device: DeviceId(device), layout: Layout::Mig }
}

fn hold(job: u32) -> Decision {
    Decision::Hold { job: JobId(job), reason: Reason::NotThisRound }
}

fn turn(team: Team, model: u32) -> Decision {
    Decision::Turns { turns: vec![Turn { team, model: ModelId(model) }] }
}

/// The world says of the decisions what it should, and did not change by that.
pub(super) fn says(world: &World, decisions: &[Decision], expected: Result<(), Violation>) {
    assert_eq!(verify(world.state(), decisions), expected, "{}", decided(decisions));
    world.check();
}

pub(super) fn fine(world: &World, decisions: &[Decision]) {
    says(world, decisions, Ok(()));
}

pub(super) fn refused(world: &World, decisions: &[Decision], violation: Violation) {
    says(world, decisions, Err(violation));
}

/// Two nodes of four GPUs; job 0 runs on the first of them, jobs 1 and 2 wait for one GPU each.
fn small() -> World {
    let mut world = World::of("4 | 4");
    world.submit(0, 0, &["gpus 1", "gpus 1", "gpus 1"]);
    world.run(1, 0, whole(0, &[0]));
    world
}

#[test]
fn too_many_decisions_are_more_than_jobs_and_nodes_give_reason_for() {
    let world = small();
    let most = DECISIONS_PER_JOB_MAX * (3 + 2 + 1);
    let wake = Decision::WakeAt { at: secs(9) };
    fine(&world, &vec![wake.clone(); most]);
    refused(&world, &vec![wake; most + 1], Violation::TooMany(most + 1));
}

#[test]
fn only_waiting_jobs_are_started_held_or_turned_away() {
    let mut world = small();
    fine(&world, &[start(1, 1, whole(0, &[1])), hold(2)]);
    refused(&world, &[start(1, 0, whole(0, &[1]))], Violation::NotWaiting(JobId(0)));
    refused(&world, &[start(1, 9, whole(0, &[1]))], Violation::NotWaiting(JobId(9)));
    refused(&world, &[hold(0)], Violation::NotWaiting(JobId(0)));
    let away = |job| Decision::Reject { job: JobId(job), reason: Reason::NoSuchModel };
    fine(&world, &[away(1)]);
    refused(&world, &[away(0)], Violation::NotWaiting(JobId(0)));
    world.step(2, vec![held(1, true)], vec![]);
    refused(&world, &[start(1, 1, whole(0, &[1]))], Violation::NotWaiting(JobId(1)));
}

#[test]
fn only_leases_that_have_not_ended_are_stopped_or_moved() {
    let mut world = small();
    fine(&world, &[stop(0)]);
    refused(&world, &[stop(1)], Violation::NoLease(LeaseId(1)));
    fine(&world, &[resize(0, whole(1, &[4]))]);
    refused(&world, &[resize(1, whole(1, &[4]))], Violation::NoLease(LeaseId(1)));
    world.step(2, vec![finished(0, 1)], vec![]);
    refused(&world, &[stop(0)], Violation::NoLease(LeaseId(0)));
}

#[test]
fn leases_are_numbered_in_order() {
    let world = small();
    let (one, two) = (whole(0, &[1]), whole(0, &[2]));
    fine(&world, &[start(1, 1, one.clone()), start(2, 2, two.clone())]);
    refused(&world, &[start(2, 1, one.clone())], Violation::LeaseOrder(LeaseId(2)));
    refused(&world, &[start(0, 1, one.clone())], Violation::LeaseOrder(LeaseId(0)));
    let twice = [start(1, 1, one), start(1, 2, two)];
    refused(&world, &twice, Violation::LeaseOrder(LeaseId(1)));
}

#[test]
fn nodes_devices_and_models_exist() {
    let world = small();
    refused(&world, &[start(1, 1, whole(2, &[8]))], Violation::NoNode(NodeId(2)));
    refused(&world, &[power(2, Power::Sleeping)], Violation::NoNode(NodeId(2)));
    fine(&world, &[power(1, Power::Sleeping)]);
    refused(&world, &[repartition(8)], Violation::NoDevice(DeviceId(8)));
    fine(&world, &[repartition(7)]);
    let alone = Team::alone(JobId(1));
    fine(&world, &[Decision::BeginRound, turn(alone, 1)]);
    let beyond = [Decision::BeginRound, turn(alone, 2)];
    refused(&world, &beyond, Violation::NoModel(ModelId(2)));
}

#[test]
fn a_job_is_decided_on_once() {
    let world = small();
    refused(&world, &[start(1, 1, whole(0, &[1])), hold(1)], Violation::Twice(JobId(1)));
    refused(&world, &[hold(1), hold(1)], Violation::Twice(JobId(1)));
    refused(&world, &[stop(0), stop(0)], Violation::Twice(JobId(0)));
    let moved_and_stopped = [resize(0, whole(1, &[4])), stop(0)];
    refused(&world, &moved_and_stopped, Violation::Twice(JobId(0)));
    fine(&world, &[stop(0), hold(1), hold(2)]);
}

#[test]
fn nobody_starts_for_a_time_that_is_over() {
    let world = small();
    let until = |at: Time| {
        let placement = Arc::new(whole(0, &[1]));
        Decision::Start { lease: LeaseId(1), job: JobId(1), placement, until: Some(at) }
    };
    let now = world.state().now();
    refused(&world, &[until(now)], Violation::EndsBefore(JobId(1)));
    refused(&world, &[until(Time::ZERO)], Violation::EndsBefore(JobId(1)));
    fine(&world, &[until(Time(now.0 + 1))]);
}

#[test]
fn turns_are_given_in_a_round_to_jobs_that_are_not_over() {
    let mut world = small();
    let alone = Team::alone(JobId(1));
    refused(&world, &[turn(alone, 0)], Violation::NoRound);
    refused(&world, &[turn(alone, 0), Decision::BeginRound], Violation::NoRound);
    let pair = Team::pair(JobId(0), JobId(9));
    let gone = [Decision::BeginRound, turn(pair, 0)];
    refused(&world, &gone, Violation::NotWaiting(JobId(9)));
    world.step(2, vec![], vec![Act::new(|_, plan| plan.begin_round())]);
    fine(&world, &[turn(Team::pair(JobId(0), JobId(1)), 0)]);
}

#[test]
fn nobody_is_turned_away_for_what_may_pass() {
    let mut world = small();
    let reject = |reason| Decision::Reject { job: JobId(1), reason };
    let aside = |reason| Decision::SetAside { job: JobId(1), reason };
    let full = Reason::NoCapacity { tasks: 1, fit: 0 };
    let large = Reason::TooLarge { tasks: 9, fit: 1 };
    refused(&world, &[reject(full)], Violation::Passing(JobId(1)));
    refused(&world, &[aside(full)], Violation::Passing(JobId(1)));
    fine(&world, &[reject(large)]);
    refused(&world, &[aside(large)], Violation::Unable("take other nodes in"));
    world.set_abilities(2, |abilities| abilities.grows = true);
    fine(&world, &[aside(large)]);
    refused(&world, &[reject(large)], Violation::Unable("reject"));
}

#[test]
fn nothing_is_asked_that_the_executor_cannot_do() {
    let mut world = small();
    let (moved, asleep, cut) =
        (resize(0, whole(1, &[4])), power(1, Power::Sleeping), repartition(4));
    for decision in [&moved, &asleep, &cut] {
        fine(&world, std::slice::from_ref(decision));
    }
    world.set_abilities(2, |abilities| abilities.resize = false);
    refused(&world, &[moved], Violation::Unable("move or resize a job"));
    world.set_abilities(3, |abilities| abilities.power = false);
    refused(&world, &[asleep], Violation::Unable("switch a node"));
    world.set_abilities(4, |abilities| abilities.repartition = false);
    refused(&world, &[cut], Violation::Unable("divide a device"));
}

#[test]
fn only_the_executor_says_that_a_node_is_on() {
    let world = small();
    refused(&world, &[power(1, Power::On)], Violation::SwitchedOn(NodeId(1)));
    fine(&world, &[power(1, Power::Waking)]);
}

#[test]
fn a_node_in_use_is_neither_switched_nor_divided() {
    let world = small();
    refused(&world, &[power(0, Power::Sleeping)], Violation::InUse(NodeId(0)));
    // Another device of the node is free, but the node is not.
    refused(&world, &[repartition(3)], Violation::InUse(NodeId(0)));
    let twice = [power(1, Power::Sleeping), repartition(4)];
    refused(&world, &twice, Violation::InUse(NodeId(1)));
}
