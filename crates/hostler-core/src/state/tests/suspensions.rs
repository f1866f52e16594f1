//! Suspended jobs: what is booked for them, how they come back, and how they are lost.

use std::sync::Arc;

use crate::decision::{Decision, StopHow, StopWhy};
use crate::event::{Event, Outcome};
use crate::id::{Features, JobId, LeaseId, NodeId, WindowId};
use crate::job::{Estimate, Phase};
use crate::placement::Placement;
use crate::reason::Reason;
use crate::suspend::SuspendCost;
use crate::testkit::*;
use crate::units::{Mib, Span, Time};
use crate::window::Window;

/// Two nodes with two GPUs of 1000 MiB and 4000 MiB of memory, which can suspend: 1 s and 1024 s
/// for each GiB out, half of that back. Job 0 runs on both GPUs of the first since second 1.
pub(super) fn world(asks: &str) -> World {
    let mut world = World::of("2 mem 4000 | 2 mem 4000");
    let able =
        |node: u32| Event::FeaturesChanged { node: NodeId(node), features: Features::SUSPENDS };
    world.step(0, vec![able(0), able(1)], vec![]);
    world.set_abilities(0, |abilities| {
        abilities.suspend = Some(SuspendCost {
            fixed: Span::from_secs(1),
            out_per_gib: Span::from_secs(1024),
            back_per_gib: Span::from_secs(512),
        });
    });
    world.submit(0, 0, &[asks, "gpus 2 lasts 50"]);
    world.run(1, 0, with_mem(whole(0, &[0, 1]), 500));
    world
}

pub(super) fn with_mem(mut placement: Placement, mem: u32) -> Placement {
    placement.parts[0].mem = Mib(mem);
    placement
}

pub(super) fn suspend(lease: u32) -> Act {
    Act::new(move |_, plan| plan.stop(LeaseId(lease), StopHow::Suspend).unwrap())
}

pub(super) fn suspended(lease: u32, done: u64) -> Event {
    stopped(lease, Outcome::Suspended, done, 0)
}

pub(super) fn free(world: &World) -> [u32; 2] {
    let free = world.state().capacity().node(NodeId(0));
    [u32::from(free.whole), free.mem.0]
}

pub(super) const NEVER: &str = "gpus 2 mem 500 saves never lasts 100";

#[test]
fn memory_is_booked_from_the_decision_until_the_job_is_back() {
    let mut world = world(NEVER);
    let estimate = Estimate { run: Span::from_secs(100), spread: Span::ZERO };
    world.step(2, vec![Event::Estimated { job: JobId(0), estimate }], vec![]);
    assert_eq!(free(&world), [0, 3500]);
    world.step(11, vec![], vec![suspend(0)]);
    // Its own 500 and what two GPUs hold; the GPUs are free when it has left them.
    assert_eq!(free(&world), [0, 1500]);
    assert_eq!(world.state().node(NodeId(0)).parked, [JobId(0)]);
    world.step(20, vec![suspended(0, 10)], vec![]);
    assert_eq!(free(&world), [2, 1500]);
    let job = world.job(0);
    assert_eq!((job.phase, job.reason), (Phase::Pending, Reason::Suspended));
    assert_eq!((job.done(), job.ledger.done), (Span::from_secs(10), Span::ZERO));
    assert_eq!(job.remaining(), Some(Span::from_secs(90)));
    assert_eq!(job.ledger.preemptions, 1);
    world.step(30, vec![], vec![Act::Start(0, whole(0, &[0, 1]))]);
    assert_eq!(free(&world), [0, 3500]);
    let (job, lease) = (world.job(0), world.lease(1));
    assert!(job.parked.is_none() && world.state().node(NodeId(0)).parked.is_empty());
    assert_eq!(lease.placement.parts[0].mem, Mib(500), "it holds its own memory again");
    assert_eq!((lease.base, lease.resumes), (Span::from_secs(10), Some(LeaseId(0))));
    assert_eq!(job.ledger.restarts, 0);
    // 2000 of 1024 MiB at 512 s, and one.
    assert_eq!(lease.load, Span::from_secs(1001));
    assert_eq!(lease.expected_end, Time::from_secs(30 + 1001 + 90));
    world.check_log();
}

#[test]
fn only_whole_gpus_on_nodes_that_can_are_suspended_and_nobody_who_minds() {
    let world = world(NEVER);
    let parking = |world: &World, lease: u32| world.state().parking(world.lease(lease)).is_some();
    assert!(parking(&world, 0));
    let mut cannot = self::world(NEVER);
    let none = Event::FeaturesChanged { node: NodeId(0), features: Features::default() };
    cannot.step(2, vec![none], vec![]);
    assert!(!parking(&cannot, 0));
    let mut unable = self::world(NEVER);
    unable.set_abilities(2, |abilities| abilities.suspend = None);
    assert!(!parking(&unable, 0));
    let mut others = self::world(NEVER);
    others.submit(2, 2, &["gpu 500", "gpus 1 + cores 1", "gpus 1 saves unsuspended"]);
    others.run(2, 2, fraction(1, 2, 500));
    assert!(!parking(&others, 1), "a part of a GPU");
    others.run(2, 4, whole(1, &[3]));
    assert!(!parking(&others, 2), "its owner minds");
}

#[test]
fn who_has_not_begun_is_not_suspended() {
    let mut world = World::of("2 mem 4000");
    let features = Features::SUSPENDS;
    world.step(0, vec![Event::FeaturesChanged { node: NodeId(0), features }], vec![]);
    world.set_abilities(0, |abilities| abilities.suspend = Some(SuspendCost::default()));
    world.submit(0, 0, &["gpus 1 saves never"]);
    world.step(1, vec![], vec![Act::Start(0, whole(0, &[0]))]);
    assert!(world.state().parking(world.lease(0)).is_none());
    world.step(1, vec![started(0)], vec![]);
    assert!(world.state().parking(world.lease(0)).is_some());
}

#[test]
fn the_cheaper_way_to_stop_is_preferred() {
    let best = |asks: &str| {
        let world = world(asks);
        world.state().best_stop(world.lease(0))
    };
    // Out and back take 2001 + 1001 s.
    assert_eq!(best("gpus 2 mem 500 saves 3000 loads 1"), Some(StopHow::Checkpoint));
    assert_eq!(best("gpus 2 mem 500 saves 3000 loads 2"), Some(StopHow::Checkpoint));
    assert_eq!(best("gpus 2 mem 500 saves 3000 loads 3"), Some(StopHow::Suspend));
    assert_eq!(best(NEVER), Some(StopHow::Suspend));
    // Less memory moves.
    let small = "gpus 2 gpu-mem 1 mem 500 saves 4 loads 3";
    assert_eq!(best(small), Some(StopHow::Suspend));
    let mut alone = world(NEVER);
    alone.set_abilities(2, |abilities| abilities.suspend = None);
    assert_eq!(alone.state().best_stop(alone.lease(0)), None);
}

#[test]
fn a_job_whose_suspension_is_refused_goes_on_as_it_was() {
    let mut world = world(NEVER);
    world.step(11, vec![], vec![suspend(0)]);
    let deadline = world.lease(0).stop.unwrap().deadline;
    world.step(12, vec![Event::SuspendRefused { lease: LeaseId(0) }], vec![]);
    assert_eq!(free(&world), [0, 3500]);
    assert_eq!(world.job(0).phase, Phase::Running(LeaseId(0)));
    assert!(world.lease(0).stop.is_none() && world.job(0).parked.is_none());
    assert_eq!(world.lease(0).placement.parts[0].mem, Mib(500));
    assert_eq!(world.step_at(deadline, vec![], vec![]), [], "nothing is asked for again");
    let before = world.state().stale_events();
    world.step_at(deadline, vec![Event::SuspendRefused { lease: LeaseId(0) }], vec![]);
    assert_eq!(world.state().stale_events(), before + 1);
    world.check_log();
}

#[test]
fn a_stay_that_refused_once_is_not_asked_to_be_suspended_again() {
    for asks in [NEVER, "gpus 2 mem 500 saves 3000 loads 3"] {
        let mut world = world(asks);
        world.step(11, vec![], vec![suspend(0)]);
        world.step(12, vec![Event::SuspendRefused { lease: LeaseId(0) }], vec![]);
        let (state, lease) = (world.state(), world.lease(0));
        assert!(state.parking(lease).is_none(), "{asks}");
        let saved = (asks != NEVER).then_some(StopHow::Checkpoint);
        assert_eq!(state.best_stop(lease), saved, "{asks}");
        // The next stay may be another matter.
        world.step(13, vec![stopped(0, Outcome::Interrupted, 0, 0)], vec![]);
        let next = world.run(14, 0, with_mem(whole(1, &[2, 3]), 500));
        assert!(world.state().parking(world.lease(next)).is_some(), "{asks}");
        world.check_log();
    }
}

/// What housekeeping says at the instant at which job 0 refuses to be suspended, after a fact.
fn refused_after(fact: Event) -> Vec<Decision> {
    let mut world = world(NEVER);
    world.submit(2, 2, &["gpus 1 tasks 2 near apart saves never"]);
    world.step(2, vec![stopped(0, Outcome::Finished, 1, 0)], vec![]);
    let lease = world.run(2, 2, both(whole(0, &[0]), whole(1, &[2])));
    world.step(11, vec![], vec![suspend(lease)]);
    assert_eq!(world.step(12, vec![fact], vec![]), [], "it is on its way out");
    let decisions = world.step(13, vec![Event::SuspendRefused { lease: LeaseId(lease) }], vec![]);
    world.check_log();
    decisions
}

#[test]
fn a_job_that_had_to_end_meanwhile_ends_although_it_refused_to_be_suspended() {
    let stop = |how, why| [Decision::Stop { lease: LeaseId(1), how, why }];
    assert_eq!(refused_after(cancel(2)), stop(StopHow::Kill, StopWhy::Cancelled));
    assert_eq!(refused_after(node_down(1)), stop(StopHow::Kill, StopWhy::NodeFailed));
    let nodes = [NodeId(1)].into();
    let spec = Window { nodes, from: secs(12), until: secs(100), evicts: true };
    let window = Event::WindowSet { window: WindowId(0), spec };
    assert_eq!(refused_after(window), stop(StopHow::Checkpoint, StopWhy::Evicted));
}

#[test]
fn who_is_about_to_go_on_from_memory_is_not_stopped_in_favour_of_others() {
    for asks in [NEVER, "gpus 2 mem 500 saves 3000 loads 3"] {
        let mut world = world(asks);
        world.set_abilities(2, |abilities| abilities.lost_work_max = Some(Span::from_secs(9000)));
        world.step(11, vec![], vec![suspend(0)]);
        world.step(20, vec![suspended(0, 10)], vec![]);
        world.step(30, vec![], vec![Act::Start(0, whole(0, &[0, 1]))]);
        let may = |world: &World| world.state().may_preempt(world.lease(1));
        assert!(!may(&world) && world.state().best_stop(world.lease(1)).is_none(), "{asks}");
        world.step(31, vec![started(1)], vec![]);
        assert!(may(&world), "{asks}");
    }
}

#[test]
fn a_slow_suspension_is_asked_for_again_and_ended_before_its_node_is_given_up() {
    let mut world = world(NEVER);
    world.step(11, vec![], vec![suspend(0)]);
    let deadline = |world: &World| world.lease(0).stop.unwrap().deadline;
    // Twice the time that it should take, and the usual patience.
    assert!(deadline(&world) >= Time::from_secs(11 + 2 * 2001));
    world.step_at(deadline(&world), vec![], vec![]);
    let stop = world.lease(0).stop.unwrap();
    assert_eq!((stop.how, stop.asked), (StopHow::Suspend, 2));
    assert_eq!(free(&world), [0, 1500], "memory is booked once");
    world.step_at(deadline(&world), vec![], vec![]);
    let stop = world.lease(0).stop.unwrap();
    assert_eq!((stop.how, stop.asked), (StopHow::Kill, 3));
    let before = world.state().stale_events();
    world.step_at(world.state().now(), vec![Event::SuspendRefused { lease: LeaseId(0) }], vec![]);
    assert_eq!(world.state().stale_events(), before + 1, "it is too late for that");
    world.step_at(world.state().now(), vec![stopped(0, Outcome::Interrupted, 0, 10)], vec![]);
    assert_eq!(free(&world), [2, 4000]);
    assert_eq!((world.job(0).phase, world.job(0).reason), (Phase::Pending, Reason::Preempted));
    world.check_log();
}

#[test]
fn what_ends_otherwise_gives_its_memory_back() {
    for outcome in [Outcome::Finished, Outcome::Failed, Outcome::Interrupted] {
        let mut world = world(NEVER);
        world.step(11, vec![], vec![suspend(0)]);
        world.step(12, vec![stopped(0, outcome, 0, 0)], vec![]);
        assert_eq!(free(&world), [2, 4000], "{outcome:?}");
        assert!(world.state().job(JobId(0)).is_none_or(|job| job.parked.is_none()));
    }
}

#[test]
fn a_suspended_job_can_be_cancelled() {
    let mut world = world(NEVER);
    world.step(11, vec![], vec![suspend(0)]);
    world.step(20, vec![suspended(0, 10)], vec![]);
    world.step(21, vec![cancel(0)], vec![]);
    assert!(world.state().job(JobId(0)).is_none());
    assert_eq!(free(&world), [2, 4000]);
    assert!(world.state().node(NodeId(0)).is_empty());
}

#[test]
fn a_node_that_is_gone_takes_what_waited_there_along() {
    let mut world = world(NEVER);
    world.step(11, vec![], vec![suspend(0)]);
    world.step(20, vec![suspended(0, 10)], vec![]);
    assert!(!world.state().node(NodeId(0)).is_empty());
    world.step(21, vec![node_down(0)], vec![]);
    let job = world.job(0);
    assert!(job.parked.is_none());
    assert_eq!(job.spec.gangs[0].demand.mem, Mib(500), "it asks for all of it again");
    assert_eq!((job.done(), job.ledger.lost_work), (Span::ZERO, Span::from_secs(10)));
    // It may go elsewhere.
    world.run(22, 0, with_mem(whole(1, &[2, 3]), 500));
    world.check_log();
}

#[test]
fn processes_that_end_by_themselves_while_they_wait_are_lost_once() {
    let mut world = world(NEVER);
    world.step(11, vec![], vec![suspend(0)]);
    let lost = || Event::SuspendedLost { job: JobId(0) };
    let before = world.state().stale_events();
    world.step(12, vec![lost()], vec![]);
    assert_eq!(world.state().stale_events(), before + 1, "it does not wait yet");
    world.step(20, vec![suspended(0, 10)], vec![]);
    world.step(21, vec![lost()], vec![]);
    let job = world.job(0);
    assert_eq!((job.phase, job.reason), (Phase::Pending, Reason::NodeFailed));
    assert_eq!((job.done(), job.ledger.lost_work), (Span::ZERO, Span::from_secs(10)));
    assert_eq!(free(&world), [2, 4000]);
    world.step(22, vec![lost()], vec![]);
    assert_eq!(world.state().stale_events(), before + 2, "it is lost already");
    // Nothing binds it to its node any more.
    world.run(23, 0, with_mem(whole(1, &[2, 3]), 500));
    world.check_log();
}

#[test]
fn a_node_that_is_gone_before_the_job_left_its_gpus_leaves_nothing_booked() {
    let mut world = world(NEVER);
    world.step(11, vec![], vec![suspend(0)]);
    world.step(12, vec![node_down(0)], vec![]);
    let job = world.job(0);
    assert!(job.parked.is_none() && job.phase == Phase::Pending);
    assert_eq!(job.ledger.lost_work, Span::from_secs(11));
    world.step(13, vec![suspended(0, 11)], vec![]);
    assert!(world.job(0).parked.is_none(), "the word came too late");
}

#[test]
fn a_start_that_fails_loses_what_was_in_memory() {
    let mut world = world(NEVER);
    world.step(11, vec![], vec![suspend(0)]);
    world.step(20, vec![suspended(0, 10)], vec![]);
    world.step(30, vec![], vec![Act::Start(0, whole(0, &[0, 1]))]);
    world.step(31, vec![Event::StartFailed { lease: LeaseId(1) }], vec![]);
    let job = world.job(0);
    assert_eq!((job.done(), job.ledger.lost_work), (Span::ZERO, Span::from_secs(10)));
    assert_eq!(free(&world), [2, 4000]);
}

#[test]
fn a_gang_of_which_a_node_fails_meanwhile_has_nowhere_to_go_on() {
    let mut world = world(NEVER);
    world.submit(2, 2, &["gpus 1 tasks 2 near apart saves never"]);
    world.step(2, vec![stopped(0, Outcome::Finished, 1, 0)], vec![]);
    let lease = world.run(2, 2, both(whole(0, &[0]), whole(1, &[2])));
    world.step(11, vec![], vec![suspend(lease)]);
    world.step(12, vec![node_down(1)], vec![]);
    world.step(13, vec![suspended(lease, 9)], vec![]);
    let job = world.job(2);
    assert!(job.parked.is_none());
    assert_eq!(job.ledger.lost_work, Span::from_secs(9));
    assert_eq!(free(&world), [2, 4000]);
}

pub(super) fn both(mut one: Placement, other: Placement) -> Placement {
    one.parts.extend(other.parts);
    one
}

#[test]
fn what_was_asked_for_is_what_predictors_learn_by() {
    let mut world = world(NEVER);
    let asked = Arc::clone(&world.job(0).spec);
    world.step(11, vec![], vec![suspend(0)]);
    world.step(20, vec![suspended(0, 10)], vec![]);
    assert_ne!(world.job(0).spec, asked);
    assert_eq!(*world.job(0).asked(), asked);
}
