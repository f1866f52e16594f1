//! Jobs that nobody here started, and those that what runs them keeps back.

use expect_test::expect;

use crate::border;
use crate::cluster::Tenant;
use crate::event::{Event, Outcome};
use crate::id::{JobId, NodeId, TenantId};
use crate::job::{Ending, Estimate, Job, Phase};
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::testkit::*;
use crate::units::{Span, Time};
use crate::watch::Watch;

#[test]
fn a_job_that_is_found_to_run_holds_its_place_and_ends_like_any_other() {
    let mut world = World::of("4");
    world.submit(0, 0, &["gpus 2", "gpus 3"]);
    let estimate = Estimate { run: Span::from_secs(100), spread: Span::ZERO };
    let believed = Event::Estimated { job: JobId(0), estimate };
    world.step(1, vec![believed, adopted(0, 0, whole(0, &[1, 3]), 30)], vec![]);
    assert_eq!(world.job(0).phase, Phase::Running(world.lease(0).id));
    assert_eq!(world.state().capacity().gpu_free(NodeId(0)).0, 2000);
    // It has 70 s left of what is believed, and is not to be found a second time.
    assert_eq!(world.lease(0).expected_end, secs(71));
    let again = border::check(world.state(), &adopted(1, 0, whole(0, &[0]), 0)).unwrap_err();
    assert_eq!(again.to_string(), "job 0 was found to run on what is held already");
    world.step(50, vec![stopped(0, Outcome::Finished, 79, 0)], vec![]);
    assert!(world.state().job(JobId(0)).is_none());
    assert_eq!(world.state().capacity().gpu_free(NodeId(0)).0, 4000);
    world.check_log();
}

#[test]
fn only_what_nobody_holds_is_found_in_use() {
    let mut world = World::of("2 | 2 | 0");
    world.submit(0, 0, &["gpus 1", "gpus 2", "gpus 2"]);
    world.run(1, 0, whole(0, &[0]));
    let says = |world: &World, event: Event| match border::check(world.state(), &event) {
        Ok(()) => "fine".to_owned(),
        Err(fault) => fault.to_string(),
    };
    let found = |placement| adopted(1, 1, placement, 0);
    assert_eq!(says(&world, found(whole(1, &[2, 3]))), "fine");
    let held = "job 1 was found to run on what is held already";
    assert_eq!(says(&world, found(whole(0, &[0]))), held);
    // Twice the same GPU, one of another node, parts out of order, no place at all, a part of one.
    assert_eq!(says(&world, found(whole(1, &[2, 2]))), held);
    assert_eq!(says(&world, found(whole(1, &[0]))), held);
    assert_eq!(says(&world, found(together([whole(1, &[2]), whole(0, &[1])]))), held);
    assert_eq!(says(&world, found(together([]))), held);
    assert_eq!(says(&world, found(fraction(1, 2, 500))), held);
    assert_eq!(says(&world, found(as_role(1, whole(1, &[2])))), held);
    assert_eq!(says(&world, found(whole(7, &[2]))), "no node 7");
    assert_eq!(says(&world, found(cpu(2, 99_999))), held);
    let other = adopted(5, 1, whole(1, &[2]), 0);
    assert_eq!(says(&world, other), "lease 5 is out of order: 1 is next");
    assert_eq!(says(&world, adopted(1, 9, whole(1, &[2]), 0)), "no job 9");
    world.check();
}

#[test]
fn nothing_that_keeps_a_job_back_does_so_once_it_runs() {
    let mut world = World::of("8");
    let quota = Tenant { gpus_max: Some(2), ..Tenant::named("red") };
    let quota = Event::TenantChanged { tenant: TenantId(0), spec: quota };
    world.step(0, vec![quota], vec![]);
    world.submit(1, 0, &["gpus 2", "gpus 2", "gpus 1 after 0", "gpus 1 array 3:1"]);
    world.submit(1, 4, &["gpus 1 array 3:1 tenant 1", "gpus 1 tenant 1"]);
    let pause = Event::Paused { job: JobId(5), until: secs(9) };
    world.step(2, vec![held(3, true), pause], vec![]);
    let found = |lease, job, gpu| adopted(lease, job, whole(0, &[gpu]), 0);
    let facts = vec![found(0, 1, 0), found(1, 2, 1), found(2, 3, 2), found(3, 5, 3)];
    world.step(3, facts, vec![]);
    expect![[r#"
        job0 waits: not considered yet
        job1 runs lease0 on node0[gpu0]
        job2 runs lease1 on node0[gpu1]
        job3 runs lease2 on node0[gpu2]
        job4 waits: not considered yet
        job5 runs lease3 on node0[gpu3]
    "#]]
    .assert_eq(&world.jobs());
    assert_eq!(world.state().let_through(TenantId(0)), 6000);
    // What they came after, or paused for, is of no interest any more.
    world.step(9, vec![stopped(2, Outcome::Finished, 6, 0), cancel(0)], vec![]);
    assert_eq!(world.job(2).phase, Phase::Running(world.lease(1).id));
    assert_eq!(world.job(4).phase, Phase::Pending);
    world.check_log();
}

#[test]
fn a_node_that_takes_nothing_new_may_be_found_in_use() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1"]);
    let drain = Event::NodeDrain { node: NodeId(0), draining: true };
    world.step(1, vec![drain, adopted(0, 0, whole(0, &[1]), 0)], vec![]);
    assert_eq!(world.state().capacity().gpu_free(NodeId(0)).0, 1000);
    world.step(2, vec![stopped(0, Outcome::Interrupted, 0, 0)], vec![]);
    assert_eq!(world.job(0).phase, Phase::Pending);
    world.check_log();
}

#[test]
fn what_runs_the_jobs_may_keep_one_back_whatever_a_person_says() {
    let mut world = World::of("4");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    world.step(1, vec![kept_back(0, true), kept_back(0, true)], vec![]);
    assert_eq!((world.job(0).phase, world.job(0).reason), (Phase::Held, Reason::KeptBack));
    world.step(2, vec![held(0, true)], vec![]);
    assert_eq!(world.job(0).reason, Reason::Held);
    world.step(3, vec![held(0, false)], vec![]);
    assert_eq!(world.job(0).reason, Reason::KeptBack);
    let stale = world.state().stale_events();
    world.step(4, vec![kept_back(0, false), kept_back(1, false), kept_back(7, true)], vec![]);
    assert_eq!(world.job(0).phase, Phase::Pending);
    assert_eq!(world.state().stale_events(), stale + 1);
    // One that runs is not held by it, nor when it waits again.
    world.run(5, 0, whole(0, &[0]));
    world.step(6, vec![kept_back(0, true)], vec![]);
    assert!(matches!(world.job(0).phase, Phase::Running(_)));
    world.check_log();
}

#[test]
fn what_it_received_before_it_was_found_is_what_it_received() {
    let mut world = World::of("4");
    world.submit(0, 0, &["gpus 2"]);
    world.step(10, vec![adopted(0, 0, whole(0, &[0, 1]), 3600)], vec![]);
    assert_eq!(world.job(0).ledger.gpu_time(), 2 * 3_600_000_000);
    world.step(40, vec![stopped(0, Outcome::Finished, 3630, 0)], vec![]);
    let learnt = world.state().services().learnt().map(|service| service.gpu_time);
    assert_eq!(learnt.collect::<Vec<u64>>(), [2 * 3_630_000_000]);
    world.check_log();
}

/// What watchers were told of a job that was found.
#[derive(Default)]
struct Told(Vec<(u32, Span, Option<Ending>)>);

impl Watch for Told {
    fn retired(&mut self, _: Time, _: &ClusterState, job: &Job) {
        let ending = match job.phase {
            Phase::Done(ending) => Some(ending),
            _ => None,
        };
        self.0.push((job.id.0, job.ledger.ran, ending));
    }
}

#[test]
fn its_account_begins_when_it_was_found() {
    let mut world = World::new(Told::default(), &[2]);
    world.submit(0, 0, &["gpus 1 lasts 50"]);
    world.step(10, vec![adopted(0, 0, whole(0, &[0]), 20)], vec![]);
    world.step(40, vec![stopped(0, Outcome::Finished, 50, 0)], vec![]);
    assert_eq!(world.watch().0, [(0, Span::from_secs(30), Some(Ending::Finished))]);
}
