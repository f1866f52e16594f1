//! Suspended jobs while they wait: what they count as, and that nothing strands them.

use super::suspensions::{NEVER, both, free, suspend, suspended, with_mem, world};
use crate::event::{Event, Outcome};
use crate::id::{Features, ModelId, NodeId, ProfileKey, WindowId};
use crate::profile::{Profile, Run};
use crate::reason::Reason;
use crate::testkit::*;
use crate::units::{Mib, Pace, Span};
use crate::window::Window;

/// Job 0 waits suspended since second 20 and has done 10 s of work.
fn parked(asks: &str) -> World {
    let mut world = world(asks);
    world.step(11, vec![], vec![suspend(0)]);
    world.step(20, vec![suspended(0, 10)], vec![]);
    world
}

fn window(node: u32, evicts: bool) -> Event {
    let spec = Window { nodes: [NodeId(node)].into(), from: secs(30), until: secs(100), evicts };
    Event::WindowSet { window: WindowId(0), spec }
}

#[test]
fn a_job_that_is_lost_with_its_node_says_so() {
    let mut world = parked(NEVER);
    assert_eq!(world.job(0).reason, Reason::Suspended);
    world.step(21, vec![node_down(0)], vec![]);
    assert_eq!(world.job(0).reason, Reason::NodeFailed);
}

#[test]
fn a_node_that_is_marked_otherwise_takes_back_who_waits_there() {
    let mut world = world(NEVER);
    let marked = |features| Event::FeaturesChanged { node: NodeId(0), features };
    let pool = Features(1 << 40);
    world.step(2, vec![stopped(0, Outcome::Finished, 1, 0)], vec![]);
    world.step(2, vec![marked(Features::SUSPENDS.with(pool))], vec![]);
    let mut spec = asks(NEVER);
    spec.gangs[0].demand.needs = pool;
    world.step(2, vec![submit(2, spec)], vec![]);
    let lease = world.run(2, 2, with_mem(whole(0, &[0, 1]), 500));
    world.step(11, vec![], vec![suspend(lease)]);
    world.step(20, vec![suspended(lease, 9)], vec![]);
    world.step(21, vec![marked(Features::SUSPENDS)], vec![]);
    let demand = &world.job(2).spec.gangs[0].demand;
    assert_eq!(world.state().capacity().slots(NodeId(0), demand, 1), 1);
    world.step(22, vec![], vec![Act::Start(2, whole(0, &[0, 1]))]);
    assert_eq!(world.job(2).spec.gangs[0].demand.needs, pool, "it asks for that elsewhere");
    world.check_log();
}

#[test]
fn a_window_that_evicts_loses_what_waits_in_memory() {
    let mut world = parked(NEVER);
    world.step(21, vec![window(0, true)], vec![]);
    assert_eq!(free(&world), [2, 1500]);
    world.step(30, vec![], vec![]);
    assert_eq!(free(&world), [2, 4000]);
    let job = world.job(0);
    assert_eq!((job.reason, job.ledger.lost_work), (Reason::Evicted, Span::from_secs(10)));
    assert_eq!(job.spec.gangs[0].demand.mem, Mib(500));
    world.run(31, 0, with_mem(whole(1, &[2, 3]), 500));
    world.check_log();
    let mut lasting = parked(NEVER);
    lasting.step(21, vec![window(0, false)], vec![]);
    lasting.step(30, vec![], vec![]);
    assert_eq!((free(&lasting), lasting.job(0).reason), ([2, 1500], Reason::Suspended));
}

#[test]
fn who_leaves_its_gpus_when_a_window_has_evicted_is_lost_as_well() {
    let mut world = world(NEVER);
    world.step(20, vec![], vec![suspend(0)]);
    world.step(21, vec![window(0, true)], vec![]);
    world.step(30, vec![], vec![]);
    world.step(40, vec![suspended(0, 28)], vec![]);
    assert_eq!((free(&world), world.job(0).reason), ([2, 4000], Reason::Evicted));
}

#[test]
fn nobody_is_suspended_where_it_could_not_come_back() {
    let drain = |node| Event::NodeDrain { node: NodeId(node), draining: true };
    // A window is near that the job would run into.
    for fact in [drain(1), window(1, false)] {
        let mut world = world(NEVER);
        world.submit(2, 2, &["gpus 1 tasks 2 near apart saves never"]);
        world.step(2, vec![stopped(0, Outcome::Finished, 1, 0)], vec![]);
        let lease = world.run(2, 2, both(whole(0, &[0]), whole(1, &[2])));
        assert!(world.state().parking(world.lease(lease)).is_some());
        world.step(3, vec![fact.clone()], vec![]);
        assert!(world.state().parking(world.lease(lease)).is_none(), "{fact:?}");
    }
}

#[test]
fn who_holds_a_gpu_whole_moves_all_of_it() {
    let moved = |asks: &str| {
        let mut world = world(NEVER);
        world.step(2, vec![stopped(0, Outcome::Finished, 1, 0)], vec![]);
        world.submit(2, 2, &[asks]);
        let lease = world.run(2, 2, whole(0, &[0]));
        world.state().parking(world.lease(lease)).map(|parking| parking.parts[0].mem)
    };
    assert_eq!(moved("gpus 1"), Some(Mib(1000)));
    // Half of it was asked for, and nobody shares.
    assert_eq!(moved("gpu 500"), Some(Mib(1000)));
    assert_eq!(moved("gpu 500 gpu-mem 300"), Some(Mib(300)));
}

#[test]
fn work_of_who_waits_suspended_is_counted_anew_when_the_reference_changes() {
    let measured = |first: u64| {
        let mut profile = Profile::default();
        profile.measured.set(Run(ModelId(0), false, 2), Pace(first * Pace::ONE.0));
        Event::Profiled { key: ProfileKey(0), profile }
    };
    let mut world = world("gpus 2 mem 500 saves never profile 0");
    world.step(2, vec![measured(1)], vec![]);
    world.step(11, vec![], vec![suspend(0)]);
    world.step(20, vec![suspended(0, 10)], vec![]);
    world.step(21, vec![measured(2)], vec![]);
    assert_eq!(world.job(0).done(), Span::from_secs(5));
    world.check_log();
}

#[test]
fn what_waits_in_memory_counts_as_lost_where_a_job_may_lose_some() {
    let mut world = world(NEVER);
    world.set_abilities(2, |abilities| abilities.lost_work_max = Some(Span::from_secs(150)));
    world.step(101, vec![], vec![suspend(0)]);
    world.step(110, vec![suspended(0, 100)], vec![]);
    world.step(110, vec![], vec![Act::Start(0, whole(0, &[0, 1]))]);
    world.step(110, vec![started(1)], vec![]);
    let may = |world: &World| world.state().may_stop_for_good(world.lease(1));
    // It takes 1001 s to come back; 100 s of work are in memory before it does any more.
    world.step(110 + 1001 + 50, vec![], vec![]);
    assert!(may(&world));
    world.step(110 + 1001 + 51, vec![], vec![]);
    assert!(!may(&world), "151 s would be lost");
}
