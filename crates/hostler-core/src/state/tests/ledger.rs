//! What jobs are credited with, and what is learnt of groups.

use crate::event::{Event, Outcome};
use crate::id::{GroupId, JobId, LeaseId, ModelId, TenantId};
use crate::limits::USES_SEEN_MIN;
use crate::service::Service;
use crate::state::ClusterState;
use crate::testkit::*;
use crate::units::{Milli, Span};

#[test]
fn gpu_time_is_counted_by_model_and_by_share() {
    let mut world = World::of("2 | 2 model 1 | 0");
    world.submit(0, 0, &["gpus 1 tasks 3 + tasks 1", "gpu 250", "tasks 1"]);
    let both = together([tasks(0, 1, &[0]), tasks(1, 2, &[2, 3]), as_role(1, cpu(2, 1))]);
    world.run(10, 0, both);
    world.run(10, 1, fraction(0, 1, 250));
    world.run(10, 2, cpu(1, 1));
    let ends = (0..3).map(|lease| stopped(lease, Outcome::Interrupted, 0, 0)).collect();
    world.step(30, ends, vec![]);
    let served = |id| world.job(id).ledger.served.clone();
    let second = 1_000_000;
    assert_eq!(served(0), [(ModelId(0), 20 * second), (ModelId(1), 40 * second)]);
    assert_eq!(served(1), [(ModelId(0), 5 * second)]);
    assert_eq!((served(2), world.job(2).ledger.ran), (vec![], Span::from_secs(20)));
    assert_eq!(world.job(0).ledger.gpu_time(), 60 * second);
    // The next stay adds to it.
    world.run(40, 1, fraction(0, 1, 250));
    world.step(44, vec![stopped(3, Outcome::Interrupted, 0, 0)], vec![]);
    assert_eq!(world.job(1).ledger.served, [(ModelId(0), 6 * second)]);
    assert_eq!(world.job(1).ledger.waited, Span::from_secs(20));
}

#[test]
fn waiting_ends_with_the_job_wherever_it_waited() {
    let mut world = World::of("1");
    world.submit(5, 0, &["gpus 1", "gpus 1"]);
    world.step(10, vec![held(0, true)], vec![]);
    world.step(30, vec![held(0, false)], vec![]);
    world.step(50, vec![], vec![Act::Start(0, whole(0, &[0]))]);
    assert_eq!(world.job(0).ledger.waited, Span::from_secs(45));
}

/// Jobs of a group of tenant 0 that used so much each.
fn group(world: &mut World, uses: &[u32]) {
    for (at, used) in (1..).zip(uses) {
        let id = world.state().next_job().0;
        world.submit(at, id, &["gpu 500 group 3"]);
        let lease = world.run(at, id, fraction(0, 0, 500));
        let gpu = Milli(*used);
        world.step(
            at,
            vec![Event::Used { lease: LeaseId(lease), gpu }, finished(lease, 1)],
            vec![],
        );
    }
}

#[test]
fn the_most_that_enough_jobs_of_a_group_used_is_expected_of_the_next() {
    assert_eq!(USES_SEEN_MIN, 3);
    let mut world = World::of("1");
    group(&mut world, &[200, 300]);
    world.submit(9, 2, &["gpu 500 group 3"]);
    assert_eq!(world.job(2).gpu_use, None);
    world.step(9, vec![cancel(2)], vec![]);
    let mut world = World::of("1");
    group(&mut world, &[200, 300, 100]);
    let others = ["gpu 500 group 3", "gpu 500 group 4", "gpu 500", "gpu 500 group 3 tenant 1"];
    world.submit(9, 3, &others);
    let expected: Vec<_> = (3..7).map(|id| world.job(id).gpu_use).collect();
    assert_eq!(expected, [Some(Milli(300)), None, None, None]);
}

/// Runs a job of a group of a tenant from 0 to 10 s, and ends it so.
fn ended(spec: &str, end: impl Fn(u32) -> Event) -> Vec<Service> {
    let mut world = World::of("1");
    world.submit(0, 0, &[spec]);
    world.run(0, 0, whole(0, &[0]));
    world.step(10, vec![end(0)], vec![]);
    world.step(10, vec![stopped(0, Outcome::Interrupted, 0, 0)], vec![]);
    let saved = ClusterState::restore(world.state().snapshot(false));
    assert_eq!(saved.services(), world.state().services());
    saved.services().learnt().copied().collect()
}

#[test]
fn what_a_job_needed_is_known_when_it_came_to_its_own_end() {
    let gpu_time = 10_000_000;
    let service = |tenant, group| Service { tenant: TenantId(tenant), group, gpu_time };
    assert_eq!(ended("gpus 1", |lease| finished(lease, 1)), [service(0, None)]);
    let failed = |lease| stopped(lease, Outcome::Failed, 0, 0);
    assert_eq!(ended("gpus 1 tenant 1 group 3", failed), [service(1, Some(GroupId(3)))]);
    assert_eq!(ended("gpus 1", |_| cancel(0)), []);
    assert_eq!(ended("gpus 1", |lease| stopped(lease, Outcome::Interrupted, 0, 0)), []);
}

#[test]
fn jobs_that_never_had_a_gpu_teach_nothing() {
    let mut world = World::of("1");
    world.submit(0, 0, &["tasks 1", "gpus 1"]);
    world.run(0, 0, cpu(0, 1));
    world.step(10, vec![finished(0, 1), cancel(1)], vec![]);
    assert!(world.state().services().is_empty());
}

#[test]
fn time_without_work_is_not_counted_as_received() {
    let mut world = World::of("1");
    world.submit(0, 0, &["gpus 1"]);
    world.run(0, 0, whole(0, &[0]));
    let idle = |idle: u64| Event::Progress {
        lease: LeaseId(0),
        done: Span::from_secs(1),
        idle: Span::from_secs(idle),
    };
    world.step(10, vec![idle(4)], vec![]);
    assert_eq!(world.lease(0).settled, secs(4));
    world.step(20, vec![idle(6)], vec![]);
    assert_eq!((world.lease(0).settled, world.lease(0).idle), (secs(6), Span::from_secs(6)));
}

#[test]
fn jobs_are_summed_up_over_the_life_of_each() {
    let mut world = World::of("1");
    world.submit(0, 0, &["gpus 1"]);
    world.submit(10, 1, &["gpus 1"]);
    world.run(10, 0, whole(0, &[0]));
    let secs_of = |world: &World, id| world.state().crowd_since(world.job(id)) / 1_000_000;
    world.step(30, vec![], vec![]);
    // One job for ten seconds, then two for twenty.
    assert_eq!((secs_of(&world, 0), secs_of(&world, 1)), (50, 40));
    world.step(40, vec![finished(0, 1)], vec![]);
    world.step(45, vec![held(1, true)], vec![]);
    // Alone, and kept back: it counts all the same.
    world.step(50, vec![], vec![]);
    assert_eq!(secs_of(&world, 1), 70);
    let saved = ClusterState::restore(world.state().snapshot(false));
    assert_eq!(saved.crowd_since(saved.job(JobId(1)).expect("it waits")), 70_000_000);
}
