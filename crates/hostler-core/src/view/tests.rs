//! What a policy sees, and that nothing of it panics.

use super::View;
use crate::event::{Event, Outcome};
use crate::id::{JobId, LeaseId, ModelId, NodeId, ProfileKey};
use crate::profile::Profile;
use crate::target::Team;
use crate::testkit::*;
use crate::units::{Milli, Rate, Span};

/// Job 0 ran for 10 s on two GPUs and does again since 20; it is 25 now.
fn world() -> World {
    let mut world = World::of("4 | 0");
    world.submit(0, 0, &["gpus 2 lasts 50", "gpus 1"]);
    let run = Span::from_secs(50);
    let estimate = crate::job::Estimate { run, spread: Span::ZERO };
    world.step(0, vec![Event::Estimated { job: JobId(0), estimate }], vec![]);
    let first = world.run(0, 0, whole(0, &[0, 1]));
    world.step(10, vec![stopped(first, Outcome::Interrupted, 10, 0)], vec![]);
    world.run(20, 0, whole(0, &[0, 1]));
    world.step(25, vec![], vec![]);
    world
}

#[test]
fn service_and_work_count_the_stay_that_goes_on() {
    let world = world();
    let view = View::new(world.state());
    let (runs, waits) = (view.job(JobId(0)).unwrap(), view.job(JobId(1)).unwrap());
    assert_eq!((view.served(runs), view.served(waits)), (30_000_000, 0));
    assert_eq!(view.done(runs), Span::from_secs(15));
    assert_eq!(view.remaining(runs), Some(Span::from_secs(35)));
    assert_eq!((view.done(waits), view.remaining(waits)), (Span::ZERO, None));
    let (turn, time) = view.running_account(runs).unwrap();
    assert_eq!((turn.team, turn.model), (Team::alone(JobId(0)), ModelId(0)));
    assert_eq!((time, view.running_account(waits)), (Span::from_secs(5), None));
}

#[test]
fn what_there_is_not_is_none_and_no_panic() {
    let world = world();
    let view = View::new(world.state());
    assert!(view.node(NodeId(9)).is_none() && view.model(ModelId(9)).is_none());
    assert!(view.job(JobId(9)).is_none() && view.lease(LeaseId(9)).is_none());
    assert!(view.turn(JobId(9)).is_none() && view.solve_record(JobId(9)).is_none());
    let elsewhere = whole(9, &[0]);
    assert_eq!(view.gpu_of(&elsewhere.parts[0]), Milli(0));
    let job = view.job(JobId(0)).unwrap();
    assert_eq!(view.believed_rate(job, &elsewhere), Rate(1));
    assert_eq!(view.believed_rate(job, &whole(0, &[0])), Rate::FULL);
    assert_eq!(view.gpu_of(&whole(0, &[0, 1]).parts[0]), Milli(2000));
}

#[test]
fn a_lease_that_is_made_up_is_none_and_no_panic() {
    let world = world();
    let view = View::new(world.state());
    let real = view.leases().next().unwrap();
    assert!(view.may_preempt(real) && view.may_stop_for_good(real));
    let mut made_up = real.clone();
    made_up.id = LeaseId(9);
    made_up.placement = std::sync::Arc::new(whole(9, &[70]));
    assert!(!view.may_preempt(&made_up) && !view.may_stop_for_good(&made_up));
    assert_eq!((view.best_stop(&made_up), view.parking(&made_up)), (None, None));
    assert_eq!(view.model_of(&made_up), None);
    // Under a number that there is, the state goes by what it knows of that.
    made_up.id = real.id;
    assert_eq!(view.model_of(&made_up), Some(ModelId(0)));
    assert_eq!(view.best_stop(&made_up), view.best_stop(real));
}

#[test]
fn a_device_of_another_node_has_the_least_speed() {
    let mut world = World::of("4 | 4");
    let profile = Event::Profiled { key: ProfileKey(0), profile: Profile::default() };
    world.step(0, vec![profile], vec![]);
    world.submit(0, 0, &["gpus 1 profile 0"]);
    let view = View::new(world.state());
    let job = view.job(JobId(0)).unwrap();
    // Node 1 has the devices 4 to 7.
    assert_eq!(view.believed_rate(job, &whole(1, &[0])), Rate(1));
    assert!(view.believed_rate(job, &whole(1, &[4])) > Rate(1));
}

#[test]
fn a_view_shows_the_state() {
    let world = world();
    let (view, state) = (View::new(world.state()), world.state());
    assert_eq!((view.now(), view.next_job()), (state.now(), state.next_job()));
    assert_eq!((view.job_count(), view.lease_count()), (2, 1));
    assert_eq!((view.jobs().count(), view.leases().count()), (2, 1));
    assert_eq!((view.nodes().len(), view.models().len(), view.tenants().len()), (2, 2, 2));
    assert_eq!(view.pending().iter().copied().collect::<Vec<_>>(), [JobId(1)]);
    assert_eq!(view.by_expected_end().next().unwrap().expected_end, secs(60));
    assert_eq!((view.by_alarm().count(), view.retired()), (0, 0));
    assert_eq!(view.model_of(view.leases().next().unwrap()), Some(ModelId(0)));
    assert_eq!((view.abilities(), view.solution_is_stale()), (state.abilities(), true));
    assert_eq!(view.catalogue_step(), state.catalogue_step());
    assert_eq!(view.journal().end(), state.journal().end());
}
