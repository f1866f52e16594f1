//! Facts that come late, twice or about what is over are counted and change nothing else.

use crate::event::{Event, Outcome};
use crate::id::{JobId, LeaseId, NodeId};
use crate::job::{Estimate, Phase};
use crate::testkit::*;
use crate::units::{Milli, Span, Time};

/// A fact in a world where job 0 is over after lease 0, job 1 runs with lease 1 and is told to stop
/// there, and node 1 is down.
fn world() -> World {
    let mut world = World::of("4 | 1");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    let first = world.run(1, 0, whole(0, &[0]));
    world.run(1, 1, whole(0, &[1]));
    world.step(2, vec![finished(first, 1), node_down(1)], vec![]);
    world
}

/// The fact is counted as stale, and only that.
fn is_stale(event: Event) {
    let mut world = world();
    let (jobs, leases) = (world.jobs(), world.state().lease_count());
    let before = world.state().stale_events();
    world.step(3, vec![event.clone()], vec![]);
    assert_eq!(world.state().stale_events(), before + 1, "{event:?}");
    assert_eq!((world.jobs(), world.state().lease_count()), (jobs, leases), "{event:?}");
}

fn progress(lease: u32, done: u64) -> Event {
    let done = Span::from_secs(done);
    Event::Progress { lease: LeaseId(lease), done, idle: Span::ZERO }
}

fn checkpoint(lease: u32, done: u64) -> Event {
    Event::Checkpointed { lease: LeaseId(lease), done: Span::from_secs(done) }
}

#[test]
fn what_is_said_of_leases_that_ended_is_counted() {
    for lease in [0, 9] {
        is_stale(started(lease));
        is_stale(start_failed(lease));
        is_stale(progress(lease, 3));
        is_stale(checkpoint(lease, 3));
        is_stale(finished(lease, 3));
        is_stale(stopped(lease, Outcome::Interrupted, 3, 0));
        is_stale(Event::Used { lease: LeaseId(lease), gpu: Milli(5) });
    }
}

#[test]
fn what_is_said_of_jobs_that_are_over_is_counted() {
    let estimate = Estimate { run: Span::from_secs(1), spread: Span::ZERO };
    is_stale(cancel(0));
    is_stale(held(0, true));
    is_stale(held(0, false));
    is_stale(Event::Paused { job: JobId(0), until: secs(9) });
    is_stale(Event::Estimated { job: JobId(0), estimate });
}

#[test]
fn what_is_known_already_is_counted() {
    is_stale(started(1));
    is_stale(start_failed(1));
    is_stale(node_down(1));
}

#[test]
fn a_node_retires_once() {
    let mut world = world();
    let retired = || Event::NodeRetired { node: NodeId(1) };
    let before = world.state().stale_events();
    world.step(3, vec![retired()], vec![]);
    assert_eq!((world.state().stale_events(), world.state().retired()), (before, 1));
    world.step(4, vec![retired()], vec![]);
    assert_eq!((world.state().stale_events(), world.state().retired()), (before + 1, 1));
}

#[test]
fn a_start_that_is_confirmed_after_the_stop_was_asked_for_is_late() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1"]);
    world.step(1, vec![], vec![Act::Start(0, whole(0, &[0]))]);
    world.step(2, vec![], vec![Act::Preempt(0)]);
    world.step(3, vec![started(0)], vec![]);
    assert_eq!(world.state().stale_events(), 1);
    assert_eq!(world.job(0).phase, Phase::Stopping(LeaseId(0)));
    assert!(!world.job(0).started);
    // A failure that crossed with the stop ends the stay all the same.
    world.step(4, vec![start_failed(0)], vec![]);
    assert_eq!((world.job(0).phase, world.job(0).ledger.preemptions), (Phase::Pending, 1));
    assert_eq!(world.state().stale_events(), 1);
}

#[test]
fn work_that_is_safe_never_gets_less() {
    let mut world = world();
    world.step(3, vec![checkpoint(1, 20)], vec![]);
    world.step(4, vec![checkpoint(1, 10)], vec![]);
    assert_eq!(world.job(1).ledger.done, Span::from_secs(20));
    world.step(5, vec![stopped(1, Outcome::Interrupted, 15, 2)], vec![]);
    assert_eq!(world.job(1).ledger.done, Span::from_secs(20));
    assert_eq!(world.job(1).ledger.lost_work, Span::from_secs(2));
}

#[test]
fn a_clock_that_goes_back_stands_still() {
    let mut world = world();
    world.step(50, vec![], vec![]);
    world.step(7, vec![], vec![]);
    assert_eq!(world.state().now(), secs(50));
    assert_ne!(world.state().now(), Time::ZERO);
}

#[test]
fn numbers_that_were_left_out_are_never_given() {
    let mut world = world();
    let (jobs, leases) = (JobId(100), LeaseId(50));
    let skipped = vec![Event::JobsSkipped { next: jobs }, Event::LeasesSkipped { next: leases }];
    world.step(3, skipped, vec![]);
    assert_eq!((world.state().next_job(), world.state().next_lease()), (jobs, leases));
    let back =
        vec![Event::JobsSkipped { next: JobId(3) }, Event::LeasesSkipped { next: LeaseId(3) }];
    world.step(4, back, vec![]);
    assert_eq!((world.state().next_job(), world.state().next_lease()), (jobs, leases));
    world.submit(5, 100, &["gpus 1"]);
    assert_eq!(world.run(6, 100, whole(0, &[2])), 50);
    world.check_log();
}
