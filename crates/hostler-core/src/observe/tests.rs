//! Speeds of stays that end: when they can be told, and what they are.

use super::{observed, unfit};
use crate::decision::StopHow;
use crate::event::Outcome;
use crate::id::{LeaseId, ModelId, ProfileKey};
use crate::predict::Observed;
use crate::testkit::*;
use crate::units::{Rate, Span};

fn speed(world: &World, lease: u32, outcome: Outcome, done: u64) -> Option<Observed> {
    let work = (Span::from_secs(done), Span::ZERO);
    observed(world.state(), LeaseId(lease), outcome, work)
}

fn finished_speed(world: &World, lease: u32, done: u64) -> Option<Observed> {
    speed(world, lease, Outcome::Finished, done)
}

/// Job 0 of profile 0 runs since 10 on two nodes; it is 30 now.
fn spread() -> World {
    let mut world = World::of("2 | 2 rack 1 | 2 model 1");
    world.submit(0, 0, &["gpus 1 tasks 2 profile 0 loads 4 saves 5"]);
    world.run(10, 0, together([tasks(0, 1, &[0]), tasks(1, 1, &[2])]));
    world.step(30, vec![], vec![]);
    world
}

#[test]
fn a_speed_is_work_over_the_time_that_it_took() {
    let world = spread();
    let seen = finished_speed(&world, 0, 10).unwrap();
    let expected = Observed {
        key: ProfileKey(0),
        model: ModelId(0),
        gpus: 2,
        spread: true,
        partner: None,
        rate: Rate(500_000),
    };
    assert_eq!(seen, expected);
    assert_eq!(finished_speed(&world, 0, 0).unwrap().rate, Rate(1));
    assert_eq!(finished_speed(&world, 7, 10), None);
}

#[test]
fn loading_and_saving_are_no_work() {
    let mut world = spread();
    world.step(30, vec![stopped(0, Outcome::Interrupted, 8, 0)], vec![]);
    world.run(40, 0, tasks(0, 2, &[0, 1]));
    let save = Act::new(|_, plan| {
        plan.stop(LeaseId(1), StopHow::Checkpoint).unwrap();
    });
    world.step(50, vec![], vec![save]);
    world.step(59, vec![], vec![]);
    // 19 s less 4 s to load and 5 s to save; 8 s of the work were done before.
    let seen = speed(&world, 1, Outcome::Interrupted, 13).unwrap();
    assert_eq!((seen.rate, seen.spread), (Rate(500_000), false));
    // Who finished by itself saved nothing.
    let seen = finished_speed(&world, 1, 23).unwrap();
    assert_eq!(seen.rate, Rate(1_000_000));
    let lost = (Span::from_secs(8), Span::from_secs(10));
    let seen = observed(world.state(), LeaseId(1), Outcome::Interrupted, lost).unwrap();
    assert_eq!(seen.rate, Rate(1_000_000));
}

#[test]
fn saves_that_a_job_made_by_itself_are_no_work() {
    let mut world = World::of("1");
    world.submit(0, 0, &["gpus 1 profile 0 saves 4 every 30"]);
    world.run(0, 0, whole(0, &[0]));
    world.step(64, vec![], vec![]);
    // One save after 30 s; whoever is done after 60 does not save again.
    assert_eq!(finished_speed(&world, 0, 60).unwrap().rate, Rate::FULL);
    // Stopped there, it may have been about to.
    assert_eq!(speed(&world, 0, Outcome::Interrupted, 60), None);
    assert_eq!(speed(&world, 0, Outcome::Interrupted, 45).unwrap().rate, Rate(750_000));
}

#[test]
fn what_cannot_be_told_apart_is_no_speed() {
    let mut world = World::of("4 | 2 model 1");
    let jobs = [
        "gpus 1 tasks 2 profile 0",
        "gpus 1 tasks 2 elastic 1:3 profile 0",
        "tasks 1 profile 0",
        "gpus 1",
    ];
    world.submit(0, 0, &jobs);
    let two_models = together([tasks(0, 1, &[0]), tasks(1, 1, &[4])]);
    world.run(0, 0, two_models);
    world.run(0, 1, tasks(0, 1, &[1]));
    world.run(0, 2, cpu(0, 1));
    world.run(0, 3, whole(0, &[2]));
    world.step(10, vec![], vec![]);
    assert!((0..4).all(|lease| finished_speed(&world, lease, 5).is_none()));
}

#[test]
fn a_stay_that_is_too_short_or_never_began_is_no_speed() {
    let mut world = World::of("4");
    world.submit(0, 0, &["gpus 1 profile 0", "gpus 1 profile 0"]);
    world.run(10, 0, whole(0, &[0]));
    world.step(10, vec![], vec![Act::Start(1, whole(0, &[1]))]);
    world.step_at(crate::units::Time(10_999_999), vec![], vec![]);
    assert_eq!(finished_speed(&world, 0, 1), None);
    world.step(11, vec![], vec![]);
    assert_eq!(finished_speed(&world, 0, 1).unwrap().rate, Rate::FULL);
    assert_eq!(finished_speed(&world, 1, 1), None);
}

/// Jobs on halves of the GPUs of one node, started in this order.
fn beside(jobs: &[(&str, u32)]) -> World {
    let mut world = World::of("4");
    for (at, (text, device)) in (0..).zip(jobs) {
        world.submit(at, at as u32, &[text]);
        world.run(at, at as u32, fraction(0, *device, 300));
    }
    world.step(20, vec![], vec![]);
    world
}

#[test]
fn the_one_beside_a_job_for_all_of_its_stay_is_its_partner() {
    let world =
        beside(&[("gpu 300 profile 0", 0), ("gpu 300 profile 1", 0), ("gpu 300 profile 2", 1)]);
    // The second came beside the first, which was alone before.
    assert_eq!(finished_speed(&world, 1, 5).unwrap().partner, Some(ProfileKey(0)));
    assert_eq!(finished_speed(&world, 0, 5), None);
    // A part of a GPU without a neighbour may have had one before.
    assert_eq!(finished_speed(&world, 2, 5), None);
    let three =
        beside(&[("gpu 300 profile 0", 0), ("gpu 300 profile 1", 0), ("gpu 300 profile 2", 0)]);
    assert_eq!(finished_speed(&three, 2, 5), None);
    let unknown = beside(&[("gpu 300", 0), ("gpu 300 profile 1", 0)]);
    assert_eq!(finished_speed(&unknown, 1, 5), None);
}

#[test]
fn a_start_that_fails_beside_one_other_says_that_the_two_do_not_fit() {
    let mut world = beside(&[("gpu 300 profile 0", 0)]);
    world.submit(20, 1, &["gpu 300 profile 1", "gpu 300 profile 1", "gpu 300"]);
    world.step(20, vec![], vec![Act::Start(1, fraction(0, 0, 300))]);
    world.step(20, vec![], vec![Act::Start(2, fraction(0, 1, 300))]);
    let seen = unfit(world.state(), LeaseId(1)).unwrap();
    assert_eq!((seen.key, seen.partner), (ProfileKey(1), Some(ProfileKey(0))));
    assert_eq!((seen.rate, seen.gpus, seen.model), (Rate(0), 1, ModelId(0)));
    // Alone, running, or unknown: nothing tells that the GPUs were the reason.
    assert_eq!(unfit(world.state(), LeaseId(2)), None);
    assert_eq!(unfit(world.state(), LeaseId(0)), None);
    assert_eq!(unfit(world.state(), LeaseId(9)), None);
    world.step(21, vec![], vec![Act::Start(3, fraction(0, 0, 300))]);
    assert_eq!(unfit(world.state(), LeaseId(1)), None);
}

#[test]
fn a_start_that_fails_after_its_stop_was_asked_for_says_nothing() {
    let mut world = beside(&[("gpu 300 profile 0", 0)]);
    world.submit(20, 1, &["gpu 300 profile 1"]);
    world.step(20, vec![], vec![Act::Start(1, fraction(0, 0, 300))]);
    world.step(21, vec![], vec![Act::Preempt(1)]);
    assert_eq!(unfit(world.state(), LeaseId(1)), None);
}
