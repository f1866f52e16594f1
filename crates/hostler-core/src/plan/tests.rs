//! What a plan takes, what it refuses, and that it leaves what is free as it was.

use super::{Finished, Plan, PlanError};
use crate::ability::Abilities;
use crate::capacity::Refusal;
use crate::cluster::{Layout, Power};
use crate::decision::{StopHow, StopWhy};
use crate::event::{Event, Outcome};
use crate::id::{DeviceId, Features, JobId, LeaseId, NodeId};
use crate::reason::Reason;
use crate::stage::{Shortfall, place_job};
use crate::state::ClusterState;
use crate::suspend::SuspendCost;
use crate::testkit::*;
use crate::units::{Mib, Span, Time};

/// Job 0 runs on the first of two nodes with two GPUs, job 1 is being stopped on the second; jobs 2
/// to 4 wait.
fn state() -> ClusterState {
    let mut world = World::of("2 | 2 | 0");
    world.submit(0, 0, &["gpus 1", "gpus 1", "gpus 1", "gpus 1", "gpus 1 + tasks 2"]);
    world.run(1, 0, whole(0, &[0]));
    world.run(1, 1, whole(1, &[2]));
    world.step(2, vec![], vec![Act::Preempt(1)]);
    world.state().clone()
}

/// Plans on a state; what is free afterwards is what was free before.
fn plan(state: &ClusterState, deed: impl FnOnce(&mut Plan<'_>)) -> String {
    let before = state.capacity().clone();
    let mut plan = Plan::new(state, before.clone());
    deed(&mut plan);
    let Finished { decisions, free, .. } = plan.finish();
    assert!(free == before, "a plan changed what is free");
    decided(&decisions)
}

fn stop(plan: &mut Plan<'_>, lease: u32) -> Result<(), PlanError> {
    plan.stop(LeaseId(lease), StopHow::Kill)
}

fn with(change: impl FnOnce(&mut Abilities)) -> ClusterState {
    let mut state = state();
    let mut abilities = state.abilities();
    change(&mut abilities);
    state.apply_event(&Event::AbilitiesChanged { abilities }, &mut ());
    state
}

#[test]
fn starts_are_booked_and_numbered_in_order() {
    let text = plan(&state(), |plan| {
        assert_eq!(plan.start(JobId(2), whole(0, &[1])), Ok(LeaseId(2)));
        let taken = Err(PlanError::Taken(Refusal::Device(DeviceId(1))));
        assert_eq!(plan.start(JobId(3), whole(0, &[1])), taken);
        assert_eq!(plan.start(JobId(3), whole(1, &[3])), Ok(LeaseId(3)));
        assert!(plan.has_job(JobId(2)) && !plan.has_job(JobId(4)));
        assert_eq!(plan.decisions().len(), 2);
        assert_eq!(plan.free().node(NodeId(0)).whole, 0);
    });
    let expected = "start job2 as lease2 on node0[gpu1]\nstart job3 as lease3 on node1[gpu3]\n";
    assert_eq!(text, expected);
}

#[test]
fn only_waiting_jobs_are_started_and_once() {
    plan(&state(), |plan| {
        let refused = |id| Err(PlanError::Job(JobId(id)));
        assert_eq!(plan.start(JobId(0), whole(0, &[1])), refused(0));
        assert_eq!(plan.start(JobId(9), whole(0, &[1])), refused(9));
        plan.start(JobId(2), whole(0, &[1])).unwrap();
        assert_eq!(plan.start(JobId(2), whole(1, &[3])), refused(2));
        assert_eq!(plan.turn_away(JobId(2), Reason::NoSuchModel), Err(PlanError::Job(JobId(2))));
        plan.turn_away(JobId(3), Reason::NoSuchModel).unwrap();
        assert_eq!(plan.start(JobId(3), whole(1, &[3])), refused(3));
        assert_eq!(plan.turn_away(JobId(0), Reason::NoSuchModel), Err(PlanError::Job(JobId(0))));
    });
}

#[test]
fn a_refused_start_leaves_the_job_to_be_started_elsewhere() {
    plan(&state(), |plan| {
        let unknown = whole(7, &[9]);
        assert_eq!(plan.start(JobId(2), unknown), Err(PlanError::Unknown));
        // The first part would fit; the second does not, and gives the first back.
        let half = together([tasks(0, 1, &[1]), tasks(1, 1, &[2])]);
        let taken = Err(PlanError::Taken(Refusal::Device(DeviceId(2))));
        assert_eq!(plan.start(JobId(2), half), taken);
        assert_eq!(plan.start(JobId(2), whole(0, &[1])), Ok(LeaseId(2)));
    });
}

#[test]
fn parts_of_a_start_are_put_in_order_of_nodes() {
    let text = plan(&state(), |plan| {
        let backwards = together([tasks(1, 1, &[3]), as_role(1, cpu(0, 2))]);
        plan.start(JobId(4), backwards).unwrap();
    });
    assert_eq!(text, "start job4 as lease2 on 2 x node0[], node1[gpu3]\n");
}

#[test]
fn a_lease_is_stopped_once_and_not_while_it_stops() {
    let text = plan(&state(), |plan| {
        assert_eq!(stop(plan, 0), Ok(()));
        assert!(plan.has_lease(LeaseId(0)));
        let refused = |id| Err(PlanError::Lease(LeaseId(id)));
        assert_eq!(stop(plan, 0), refused(0));
        assert_eq!(stop(plan, 1), refused(1));
        assert_eq!(stop(plan, 9), refused(9));
        assert_eq!(plan.resize(LeaseId(0), whole(0, &[1])), refused(0));
        // Housekeeping may ask again.
        assert_eq!(plan.stop_again(LeaseId(1), StopHow::Kill, StopWhy::Preempted), Ok(()));
        assert_eq!(plan.stop_again(LeaseId(9), StopHow::Kill, StopWhy::Preempted), refused(9));
    });
    assert_eq!(text, "stop lease0: Kill, Preempted\nstop lease1: Kill, Preempted\n");
}

#[test]
fn a_move_frees_the_old_place_and_books_the_new_one() {
    plan(&state(), |plan| {
        assert_eq!(plan.resize(LeaseId(1), whole(1, &[3])), Err(PlanError::Lease(LeaseId(1))));
        plan.resize(LeaseId(0), whole(0, &[1])).unwrap();
        assert_eq!(plan.resize(LeaseId(0), whole(0, &[0])), Err(PlanError::Lease(LeaseId(0))));
        assert_eq!(plan.start(JobId(2), whole(0, &[0])), Ok(LeaseId(2)));
        assert_eq!(stop(plan, 0), Err(PlanError::Lease(LeaseId(0))));
    });
}

#[test]
fn a_move_that_is_refused_leaves_the_job_where_it_is() {
    let text = plan(&state(), |plan| {
        let taken = Err(PlanError::Taken(Refusal::Device(DeviceId(2))));
        assert_eq!(plan.resize(LeaseId(0), whole(1, &[2])), taken);
        assert_eq!(plan.resize(LeaseId(0), whole(8, &[2])), Err(PlanError::Unknown));
        let held = Err(PlanError::Taken(Refusal::Device(DeviceId(0))));
        assert_eq!(plan.start(JobId(2), whole(0, &[0])), held);
    });
    assert_eq!(text, "");
    let unable = with(|abilities| abilities.resize = false);
    plan(&unable, |plan| {
        assert_eq!(plan.resize(LeaseId(0), whole(0, &[1])), Err(PlanError::Unable));
    });
}

#[test]
fn who_is_turned_away_is_rejected_or_set_aside_as_the_executor_is() {
    let away = |plan: &mut Plan<'_>| plan.turn_away(JobId(2), Reason::NoSuchModel).unwrap();
    let words = "no node has a GPU model that it accepts";
    assert_eq!(plan(&state(), away), format!("reject job2: {words}\n"));
    let grows = with(|abilities| abilities.grows = true);
    assert_eq!(plan(&grows, away), format!("set job2 aside: {words}\n"));
}

#[test]
fn a_reason_that_is_known_is_not_said_again() {
    let text = plan(&state(), |plan| {
        plan.hold(JobId(2), Reason::New);
        plan.hold(JobId(9), Reason::NotThisRound);
        plan.hold(JobId(3), Reason::NotThisRound);
        plan.hold(JobId(3), Reason::Preempted);
    });
    assert_eq!(text, "hold job3: its turn is in a later round\n");
}

#[test]
fn a_node_that_is_switched_takes_no_start_and_one_with_a_start_is_not_switched() {
    plan(&state(), |plan| {
        let in_use = |id| Err(PlanError::InUse(NodeId(id)));
        assert_eq!(plan.set_power(NodeId(0), Power::Sleeping), in_use(0));
        assert_eq!(plan.set_power(NodeId(2), Power::Sleeping), Ok(()));
        assert_eq!(plan.set_power(NodeId(2), Power::Waking), in_use(2));
        let roles = together([whole(1, &[3]), as_role(1, cpu(2, 2))]);
        let asleep = Err(PlanError::Taken(Refusal::Unusable(NodeId(2))));
        assert_eq!(plan.start(JobId(4), roles), asleep);
    });
    plan(&state(), |plan| {
        let roles = together([whole(1, &[3]), as_role(1, cpu(2, 2))]);
        plan.start(JobId(4), roles).unwrap();
        assert_eq!(plan.set_power(NodeId(2), Power::Sleeping), Err(PlanError::InUse(NodeId(2))));
    });
}

#[test]
fn a_node_that_is_claimed_is_not_switched_whatever_the_order_of_the_parts() {
    plan(&state(), |plan| {
        plan.claim(together([cpu(2, 1), whole(0, &[1]), whole(1, &[3])])).unwrap();
        assert_eq!(plan.set_power(NodeId(2), Power::Sleeping), Err(PlanError::InUse(NodeId(2))));
    });
}

#[test]
fn nodes_are_switched_only_as_the_executor_can() {
    plan(&state(), |plan| {
        assert_eq!(plan.set_power(NodeId(2), Power::On), Err(PlanError::Unable));
        assert_eq!(plan.set_power(NodeId(3), Power::Sleeping), Err(PlanError::Unknown));
        assert_eq!(plan.repartition(DeviceId(4), Layout::Mig), Err(PlanError::Unknown));
    });
    let unable = with(|abilities| (abilities.power, abilities.repartition) = (false, false));
    plan(&unable, |plan| {
        assert_eq!(plan.set_power(NodeId(2), Power::Sleeping), Err(PlanError::Unable));
        assert_eq!(plan.repartition(DeviceId(3), Layout::Mig), Err(PlanError::Unable));
    });
}

#[test]
fn a_device_that_is_divided_and_its_node_take_no_start_in_that_step() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1"]);
    plan(world.state(), |plan| {
        plan.repartition(DeviceId(0), Layout::Mig).unwrap();
        let in_use = Err(PlanError::InUse(NodeId(0)));
        assert_eq!(plan.repartition(DeviceId(1), Layout::Mig), in_use);
        assert_eq!(plan.set_power(NodeId(0), Power::Sleeping), in_use);
        let asleep = Err(PlanError::Taken(Refusal::Unusable(NodeId(0))));
        assert_eq!(plan.start(JobId(0), whole(0, &[1])), asleep);
    });
    plan(world.state(), |plan| {
        plan.start(JobId(0), whole(0, &[1])).unwrap();
        let in_use = Err(PlanError::InUse(NodeId(0)));
        assert_eq!(plan.repartition(DeviceId(0), Layout::Mig), in_use);
    });
}

#[test]
fn trial_moves_are_undone_to_a_mark_in_reverse() {
    plan(&state(), |plan| {
        plan.claim(whole(1, &[3])).unwrap();
        let mark = plan.mark();
        let before = plan.free().clone();
        plan.lift(LeaseId(0)).unwrap();
        plan.claim(whole(0, &[0, 1])).unwrap();
        plan.lift(LeaseId(1)).unwrap();
        assert_eq!(plan.lift(LeaseId(7)), Err(PlanError::Lease(LeaseId(7))));
        plan.set_power(NodeId(2), Power::Sleeping).unwrap();
        assert!(!plan.free().node(NodeId(2)).usable);
        plan.undo_to(mark);
        assert!(*plan.free() == before);
        assert!(!plan.has_room(&whole(1, &[3])));
        plan.undo_to(0);
        assert!(plan.has_room(&whole(1, &[3])));
    });
}

#[test]
fn a_lease_on_a_draining_node_is_lifted_and_put_back() {
    let mut state = state();
    let drain = Event::NodeDrain { node: NodeId(0), draining: true };
    state.apply_event(&drain, &mut ());
    plan(&state, |plan| {
        plan.lift(LeaseId(0)).unwrap();
        assert!(!plan.has_room(&whole(0, &[0])));
    });
}

#[test]
fn looking_for_room_leaves_what_is_free_as_it_was() {
    plan(&state(), |plan| {
        let before = plan.free().clone();
        assert!(plan.has_room(&whole(0, &[1])) && !plan.has_room(&whole(0, &[0])));
        assert!(!plan.has_room(&together([whole(0, &[1]), whole(1, &[2])])));
        let place = |plan: &mut Plan<'_>, text| place_job(&FirstFit, plan, &asks(text));
        assert_eq!(place(plan, "gpus 1 tasks 2").unwrap().gpus(), 2);
        assert_eq!(place(plan, "gpus 1 tasks 3"), Err(Shortfall { fit: 2 }));
        // Roles do not take each other's room.
        assert_eq!(place(plan, "gpus 1 + gpus 1").unwrap().gpus(), 2);
        assert_eq!(place(plan, "gpus 1 tasks 2 + gpus 1 tasks 2"), Err(Shortfall { fit: 2 }));
        assert!(*plan.free() == before);
    });
}

#[test]
fn a_policy_is_woken_at_the_earliest_time_that_lies_ahead() {
    let mut state = state();
    let text = plan(&state, |plan| {
        plan.wake_at(secs(9));
        plan.wake_at(Time::ZERO);
    });
    assert_eq!(text, "wake at 9\nwake at 2.000001\n");
    state.apply_decision(&crate::decision::Decision::WakeAt { at: secs(9) }, &mut ());
    let text = plan(&state, |plan| {
        plan.wake_at(secs(9));
        plan.wake_at(secs(10));
        plan.wake_at(secs(9) + Span(0));
        plan.wake_at(secs(8));
    });
    assert_eq!(text, "wake at 8\n");
}

/// Jobs 0 and 1 run on a node whose memory holds what one of them has on its GPU.
fn suspendable() -> ClusterState {
    let mut world = World::of("2 mem 1500");
    let features = Features::SUSPENDS;
    world.step(0, vec![Event::FeaturesChanged { node: NodeId(0), features }], vec![]);
    world.set_abilities(0, |abilities| abilities.suspend = Some(SuspendCost::default()));
    world.submit(0, 0, &["gpus 1 saves never", "gpus 1 saves 900", "gpus 1"]);
    world.run(1, 0, whole(0, &[0]));
    world.run(1, 1, whole(0, &[1]));
    world.state().clone()
}

#[test]
fn the_best_way_to_preempt_is_taken_as_far_as_there_is_memory() {
    let text = plan(&suspendable(), |plan| {
        assert_eq!(plan.preempt(LeaseId(1)), Ok(StopHow::Suspend));
        assert_eq!(plan.free().node(NodeId(0)).mem, Mib(500));
        // It cannot be saved, and there is no memory left for it.
        assert_eq!(plan.preempt(LeaseId(0)), Err(PlanError::Kept(LeaseId(0))));
        assert_eq!(plan.preempt(LeaseId(1)), Err(PlanError::Lease(LeaseId(1))));
        assert_eq!(plan.preempt(LeaseId(9)), Err(PlanError::Lease(LeaseId(9))));
    });
    assert_eq!(text, "stop lease1: Suspend, Preempted\n");
    let text = plan(&suspendable(), |plan| {
        assert_eq!(plan.preempt(LeaseId(0)), Ok(StopHow::Suspend));
        assert_eq!(plan.preempt(LeaseId(1)), Ok(StopHow::Checkpoint));
    });
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn whether_all_can_be_stopped_is_told_beforehand() {
    let state = suspendable();
    let lease = |id: u32| state.lease(LeaseId(id)).unwrap();
    plan(&state, |plan| {
        assert!(plan.can_stop([(lease(0), StopHow::Suspend)].into_iter()));
        let both = [(lease(0), StopHow::Suspend), (lease(1), StopHow::Suspend)];
        assert!(!plan.can_stop(both.into_iter()));
        assert!(plan.can_stop([(lease(1), StopHow::Checkpoint)].into_iter()));
        assert_eq!(plan.free().node(NodeId(0)).mem, Mib(1500));
    });
}

#[test]
fn a_suspended_job_that_goes_on_frees_memory_for_the_next_plan() {
    let mut world = World::of("2 mem 1500");
    let features = Features::SUSPENDS;
    world.step(0, vec![Event::FeaturesChanged { node: NodeId(0), features }], vec![]);
    world.set_abilities(0, |abilities| abilities.suspend = Some(SuspendCost::default()));
    world.submit(0, 0, &["gpus 1 mem 300 saves never", "cores 1 mem 600"]);
    let mut own = whole(0, &[0]);
    own.parts[0].mem = Mib(300);
    world.run(1, 0, own);
    world.step(
        2,
        vec![],
        vec![Act::new(|_, plan| {
            plan.preempt(LeaseId(0)).unwrap();
        })],
    );
    world.step(3, vec![stopped(0, Outcome::Suspended, 1, 0)], vec![]);
    let mut large = cpu(0, 1);
    large.parts[0].mem = Mib(600);
    let taken = Err(PlanError::Taken(Refusal::Mem(NodeId(0))));
    plan(world.state(), |plan| {
        // What is free only becomes less while a policy thinks.
        assert_eq!(plan.start(JobId(1), large.clone()), taken);
        assert_eq!(plan.start(JobId(0), whole(0, &[0])), Ok(LeaseId(1)));
        assert_eq!(plan.free().node(NodeId(0)).mem, Mib(200));
        assert_eq!(plan.start(JobId(1), large.clone()), taken);
    });
    world.step(4, vec![], vec![Act::Start(0, whole(0, &[0]))]);
    plan(world.state(), |plan| {
        assert_eq!(plan.start(JobId(1), large), Ok(LeaseId(2)));
    });
}
