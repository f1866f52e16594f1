//! Speeds that are believed, and work that is counted anew when they change.

use crate::event::{Event, Outcome};
use crate::id::{JobId, LeaseId, ModelId, ProfileKey};
use crate::job::Estimate;
use crate::profile::{Profile, Reach, Run};
use crate::state::Change;
use crate::testkit::*;
use crate::units::{Pace, Rate, Span};

fn profiled(profile: Profile) -> Event {
    Event::Profiled { key: ProfileKey(0), profile }
}

/// Steps per second on one GPU of each model.
fn measured(first: u64, second: u64) -> Event {
    let mut profile = Profile::default();
    profile.measured.set(Run(ModelId(0), false, 1), Pace(first * Pace::ONE.0));
    profile.measured.set(Run(ModelId(1), false, 1), Pace(second * Pace::ONE.0));
    profiled(profile)
}

fn estimated(job: u32, run: u64) -> Event {
    let estimate = Estimate { run: Span::from_secs(run), spread: Span::from_secs(run / 10) };
    Event::Estimated { job: JobId(job), estimate }
}

#[test]
fn a_slow_model_makes_the_expected_end_later() {
    let mut world = World::of("1 | 1 model 1");
    let jobs = vec![
        measured(1, 4),
        submit(0, asks("gpus 1 profile 0")),
        submit(1, asks("gpus 1 profile 0")),
        estimated(0, 100),
        estimated(1, 100),
    ];
    world.step(0, jobs, vec![]);
    world.run(0, 0, whole(0, &[0]));
    world.run(0, 1, whole(1, &[1]));
    assert_eq!((world.lease(0).rate, world.lease(0).expected_end), (Rate(250_000), secs(400)));
    assert_eq!((world.lease(1).rate, world.lease(1).expected_end), (Rate::FULL, secs(100)));
    let ends: Vec<u32> = world.state().by_expected_end().map(|lease| lease.id.0).collect();
    assert_eq!(ends, [1, 0]);
    // A move takes the work that is left along.
    world.step(50, vec![finished(1, 50)], vec![]);
    world.step(100, vec![], vec![Act::Resize(0, whole(1, &[1]))]);
    assert_eq!((world.lease(0).rate, world.lease(0).expected_end), (Rate::FULL, secs(175)));
    let done = world.lease(0).believed_done(world.job(0).spec.checkpoint, secs(110));
    assert_eq!(done, Span::from_secs(35));
}

#[test]
fn work_is_counted_anew_when_the_reference_changes() {
    let mut world = World::of("2");
    let jobs = vec![
        measured(1, 2),
        submit(0, asks("gpus 1 profile 0")),
        submit(1, asks("gpus 1 profile 1")),
        estimated(0, 100),
        estimated(1, 100),
    ];
    world.step(0, jobs, vec![]);
    world.run(0, 0, whole(0, &[0]));
    let done = Span::from_secs(20);
    world.step(40, vec![Event::Checkpointed { lease: LeaseId(0), done }], vec![]);
    world.step(40, vec![Event::Progress { lease: LeaseId(0), done, idle: Span::ZERO }], vec![]);
    // The fastest model is twice as fast as was believed: seconds of it are half as many.
    world.step(40, vec![measured(1, 4)], vec![]);
    let job = world.job(0);
    assert_eq!(job.ledger.done, Span::from_secs(10));
    let estimate = Estimate { run: Span::from_secs(50), spread: Span::from_secs(5) };
    assert_eq!(job.estimate, Some(estimate));
    assert_eq!(world.job(1).estimate.unwrap().run, Span::from_secs(100));
    let lease = world.lease(0);
    assert_eq!(
        (lease.progress, lease.rate),
        (Some((secs(40), Span::from_secs(10))), Rate(250_000))
    );
    assert_eq!(lease.expected_end, secs(40 + 160));
    // Whoever stops then has done what it did.
    world.step(60, vec![stopped(0, Outcome::Interrupted, 12, 0)], vec![]);
    assert_eq!(world.job(0).ledger.done, Span::from_secs(12));
}

#[test]
fn factors_alone_change_no_account() {
    let mut world = World::of("2");
    let half =
        |rate| profiled(Profile { models: vec![(ModelId(0), Rate(rate))], ..Profile::default() });
    let jobs = vec![half(500_000), submit(0, asks("gpus 1 profile 0")), estimated(0, 100)];
    world.step(0, jobs, vec![]);
    world.run(0, 0, whole(0, &[0]));
    world.step(10, vec![half(250_000)], vec![]);
    assert_eq!(world.job(0).estimate.unwrap().run, Span::from_secs(100));
    assert_eq!(world.lease(0).rate, Rate(500_000));
}

#[test]
fn who_waits_is_ranked_again_when_its_speeds_change() {
    let mut world = World::of("1");
    world.submit(0, 0, &["gpus 1 profile 0", "gpus 1 profile 1", "gpus 1"]);
    let seen = world.state().journal().end();
    world.engine.begin(secs(1));
    world.engine.take_fact(measured(1, 1));
    let changes = world.state().journal().since(seen).unwrap();
    assert_eq!(changes, [Change::Queued(JobId(0))]);
}

#[test]
fn the_slowest_task_and_the_distance_tell_the_speed() {
    let mut world = World::of("2 | 2 model 1 | 2 rack 1");
    let rate = |millis: u32| Rate(millis * 1000);
    let profile = Profile {
        models: vec![(ModelId(0), rate(800)), (ModelId(1), rate(500))],
        reach: vec![(Reach::Rack, rate(900)), (Reach::Cluster, rate(100))],
        ..Profile::default()
    };
    let spec = submit(0, asks("gpus 1 tasks 2 profile 0"));
    world.step(0, vec![profiled(profile), spec, submit(1, asks("tasks 1"))], vec![]);
    let believed = |placement| world.state().believed_rate(world.job(0), &placement);
    assert_eq!(believed(tasks(0, 2, &[0, 1])), rate(800));
    assert_eq!(believed(together([tasks(0, 1, &[0]), tasks(1, 1, &[2])])), rate(450));
    assert_eq!(believed(together([tasks(0, 1, &[0]), tasks(2, 1, &[4])])), rate(80));
    assert_eq!(believed(together([cpu(0, 1), cpu(1, 1)])), rate(900));
    assert_eq!(world.state().believed_rate(world.job(1), &tasks(1, 1, &[2])), Rate::FULL);
}

#[test]
fn work_is_not_counted_by_a_reference_that_stands_still() {
    /// One GPU is of no use at pace zero; two are.
    fn of(single: u64) -> Event {
        let mut profile = Profile::default();
        profile.measured.set(Run(ModelId(0), false, 1), Pace(single * Pace::ONE.0));
        profile.measured.set(Run(ModelId(0), false, 2), Pace::ONE);
        profiled(profile)
    }
    let mut world = World::of("2");
    let jobs = vec![of(0), submit(0, asks("gpus 1 profile 0")), estimated(0, 100)];
    world.step(0, jobs, vec![]);
    let believed = |world: &World| world.job(0).estimate.unwrap().run;
    world.step(1, vec![of(2)], vec![]);
    assert_eq!(believed(&world), Span::from_secs(100));
    world.step(2, vec![of(0)], vec![]);
    assert_eq!(believed(&world), Span::from_secs(100));
    world.step(3, vec![of(2)], vec![]);
    world.step(4, vec![of(1)], vec![]);
    assert_eq!(believed(&world), Span::from_secs(200));
}

#[test]
fn who_waits_or_runs_is_ranked_again_when_another_estimate_comes() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1", "gpus 1", "gpus 1"]);
    world.run(0, 1, whole(0, &[0]));
    world.step(0, vec![held(2, true)], vec![]);
    let seen = world.state().journal().end();
    world.engine.begin(secs(1));
    (0..3).for_each(|job| world.engine.take_fact(estimated(job, 5)));
    let changes = world.state().journal().since(seen).unwrap();
    let running = [Change::Rescheduled(LeaseId(0)), Change::Slipped(LeaseId(0))];
    assert_eq!(changes, [&[Change::Queued(JobId(0))][..], &running].concat());
    assert_eq!(world.lease(0).expected_end, secs(5));
}

#[test]
fn who_has_done_less_than_believed_is_ranked_again() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1"]);
    world.run(0, 0, whole(0, &[0]));
    let mut told = |at: u64, done: u64| {
        let seen = world.state().journal().end();
        world.engine.begin(secs(at));
        let done = Span::from_secs(done);
        let idle = Span::ZERO;
        world.engine.take_fact(Event::Progress { lease: LeaseId(0), done, idle });
        let told = world.state().journal().since(seen).unwrap().to_vec();
        world.engine.end_input();
        let proposal = world.engine.propose();
        world.engine.commit(proposal);
        told
    };
    assert_eq!(told(10, 10), []);
    assert_eq!(told(20, 15), [Change::Slipped(LeaseId(0))]);
    assert_eq!(told(30, 30), []);
}
