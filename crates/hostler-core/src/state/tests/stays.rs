//! Stays: how they begin, move, stop and end, and who is told.

use std::cell::RefCell;

use crate::cluster::Layout;
use crate::decision::{StopHow, StopWhy};
use crate::event::{Event, Outcome};
use crate::id::{DeviceId, JobId, LeaseId, NodeId};
use crate::job::{Ending, Job, Phase};
use crate::limits::{PACKED_FAILURES_MAX, START_FAILURES_MAX};
use crate::placement::Lease;
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::testkit::*;
use crate::units::{Span, Time};
use crate::watch::Watch;

/// What watchers were told, in words.
#[derive(Default)]
struct Told(RefCell<Vec<String>>);

impl Told {
    fn note(&self, text: String) {
        self.0.borrow_mut().push(text);
    }
}

impl Watch for Told {
    fn submitted(&mut self, _: Time, job: &Job) {
        self.note(format!("{:?} came", job.id));
    }

    fn began(&mut self, at: Time, _: &ClusterState, job: &Job, lease: &Lease) {
        self.note(format!("{:?} began {:?} at {at}", job.id, lease.id));
    }

    fn ended(&mut self, at: Time, _: &ClusterState, job: &Job, lease: &Lease) {
        self.note(format!("{:?} ended {:?} at {at} after {}", job.id, lease.id, job.ledger.ran));
    }

    fn moved(&mut self, at: Time, _: &ClusterState, job: &Job, from: &Lease, to: &Lease) {
        let gpus = (from.placement.gpus(), to.placement.gpus());
        self.note(format!("{:?} moved at {at}, gpus {gpus:?}, ran {}", job.id, job.ledger.ran));
    }

    fn retired(&mut self, _: Time, _: &ClusterState, job: &Job) {
        self.note(format!("{:?} {:?}", job.id, job.phase));
    }
}

fn told(world: &World<Told>) -> Vec<String> {
    std::mem::take(&mut world.watch().0.borrow_mut())
}

#[test]
fn watchers_see_a_job_come_begin_end_and_retire() {
    let mut world = World::new(Told::default(), &[2]);
    world.submit(0, 0, &["gpus 1"]);
    let lease = world.run(5, 0, whole(0, &[0]));
    world.step(9, vec![finished(lease, 4)], vec![]);
    let expected = [
        "job0 came",
        "job0 began lease0 at 5",
        "job0 ended lease0 at 9 after 4",
        "job0 Done(Finished)",
    ];
    assert_eq!(told(&world), expected);
}

#[test]
fn a_move_is_told_once_and_is_neither_an_end_nor_a_beginning() {
    let mut world = World::new(Told::default(), &[4]);
    world.submit(0, 0, &["gpus 1 tasks 2 elastic 1:4 lasts 100"]);
    world.run(0, 0, tasks(0, 2, &[0, 1]));
    told(&world);
    world.step(10, vec![], vec![Act::Resize(0, tasks(0, 3, &[1, 2, 3]))]);
    assert_eq!(told(&world), ["job0 moved at 10, gpus (2, 3), ran 10"]);
    assert_eq!(world.lease(0).since, secs(10));
    assert_eq!(world.lease(0).started, Some(secs(0)));
    assert_eq!(world.job(0).ledger.served, [(crate::id::ModelId(0), 20_000_000)]);
    assert_eq!(world.state().held_of(DeviceId(0)), [0, 0]);
    assert_eq!(world.state().held_of(DeviceId(3)), [1000, 1000]);
    world.step(20, vec![finished(0, 20)], vec![]);
    let ended = ["job0 ended lease0 at 20 after 20", "job0 Done(Finished)"];
    assert_eq!(told(&world), ended);
    assert_eq!(world.state().lease_count(), 0);
}

#[test]
fn a_move_to_another_node_changes_the_lists_of_both() {
    let mut world = World::of("1 | 1");
    world.submit(0, 0, &["gpus 1"]);
    world.run(0, 0, whole(0, &[0]));
    world.step(5, vec![], vec![Act::Resize(0, whole(1, &[1]))]);
    let leases = |node| world.state().node(NodeId(node)).leases.clone();
    assert_eq!((leases(0), leases(1)), (vec![], vec![LeaseId(0)]));
    world.check_log();
}

#[test]
fn the_second_stay_loads_what_the_first_saved() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1 lasts 100 loads 7"]);
    let estimate = crate::job::Estimate { run: Span::from_secs(100), spread: Span::ZERO };
    world.step(0, vec![Event::Estimated { job: JobId(0), estimate }], vec![]);
    world.run(10, 0, whole(0, &[0]));
    assert_eq!((world.lease(0).load, world.lease(0).expected_end), (Span::ZERO, secs(110)));
    world.step(40, vec![stopped(0, Outcome::Interrupted, 30, 0)], vec![]);
    world.run(50, 0, whole(0, &[1]));
    let lease = world.lease(1);
    assert_eq!((lease.load, lease.base), (Span::from_secs(7), Span::from_secs(30)));
    assert_eq!(lease.expected_end, secs(50 + 7 + 70));
    // Progress counts for this stay alone; the end follows what was seen.
    let done = Span::from_secs(10);
    world.step(70, vec![Event::Progress { lease: LeaseId(1), done, idle: Span::ZERO }], vec![]);
    assert_eq!(world.lease(1).expected_end, secs(70 + 60));
    let job = world.job(0);
    let done = world.lease(1).believed_done(job.spec.checkpoint, secs(75));
    assert_eq!(done, Span::from_secs(45));
    assert_eq!((job.ledger.restarts, job.ledger.first_start), (1, Some(secs(10))));
    assert_eq!(job.ledger.waited, Span::from_secs(20));
}

#[test]
fn an_end_is_believed_after_the_saves_that_come_before_it_and_no_other() {
    let believe =
        |secs: u64| crate::job::Estimate { run: Span::from_secs(secs), spread: Span::ZERO };
    for (run, end) in [(29, 29), (30, 30), (31, 35), (60, 64), (61, 69)] {
        let mut world = World::of("1 | 1");
        world.submit(0, 0, &["gpus 1 saves 4 every 30"]);
        let estimated = Event::Estimated { job: JobId(0), estimate: believe(run) };
        world.step(0, vec![estimated], vec![]);
        world.run(0, 0, whole(0, &[0]));
        assert_eq!(world.lease(0).expected_end, secs(end), "{run} s of work");
    }
    // A move while it saves costs nothing of what is left, which is the rest of the save and 40 s.
    let mut world = World::of("1 | 1");
    world.submit(0, 0, &["gpus 1 saves 4 every 30"]);
    world.step(0, vec![Event::Estimated { job: JobId(0), estimate: believe(70) }], vec![]);
    world.run(0, 0, whole(0, &[0]));
    world.step(32, vec![], vec![Act::Resize(0, whole(1, &[1]))]);
    assert_eq!(world.lease(0).expected_end, secs(78));
    let checkpoint = world.job(0).spec.checkpoint;
    let done = |at: u64| world.lease(0).believed_done(checkpoint, secs(at));
    assert_eq!([33, 34, 35, 66, 69].map(done), [30, 30, 31, 60, 61].map(Span::from_secs));
    // What is reported counts from then on, and the next save is 5 s of work away.
    let (lease, done) = (LeaseId(0), Span::from_secs(55));
    world.step(60, vec![Event::Progress { lease, done, idle: Span::ZERO }], vec![]);
    assert_eq!(world.lease(0).expected_end, secs(60 + 15 + 4));
    world.check_log();
}

#[test]
fn a_stop_keeps_the_first_reason_and_counts_how_often_it_was_asked() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1 limit 50 saves 9"]);
    world.run(0, 0, whole(0, &[0]));
    let save = Act::new(|_, plan| {
        plan.stop(LeaseId(0), StopHow::Checkpoint).unwrap();
    });
    world.step(10, vec![], vec![save]);
    let stop = world.lease(0).stop.unwrap();
    assert_eq!((stop.how, stop.asked, stop.deadline), (StopHow::Checkpoint, 1, secs(319)));
    assert_eq!(world.job(0).phase_since, secs(10));
    // The time limit is no concern any more.
    world.step(60, vec![], vec![]);
    assert_eq!(world.lease(0).stop.unwrap().asked, 1);
    world.step(320, vec![cancel(0)], vec![]);
    let stop = world.lease(0).stop.unwrap();
    assert_eq!((stop.how, stop.asked, stop.why), (StopHow::Kill, 2, StopWhy::Preempted));
    assert_eq!((stop.deadline, world.job(0).phase_since), (secs(620), secs(10)));
    world.step(321, vec![stopped(0, Outcome::Interrupted, 0, 0)], vec![]);
    assert_eq!(world.state().job_count(), 0);
}

#[test]
fn a_job_whose_starts_fail_too_often_is_given_up() {
    let mut world = World::new(Told::default(), &[2]);
    world.submit(0, 0, &["gpus 1"]);
    for lease in 0..=START_FAILURES_MAX {
        world.step(u64::from(lease), vec![], vec![Act::Start(0, whole(0, &[0]))]);
        world.step(u64::from(lease), vec![start_failed(lease)], vec![]);
    }
    assert_eq!(told(&world).last().unwrap(), "job0 Done(Failed)");
}

#[test]
fn starts_that_fail_beside_others_are_counted_apart() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1 willing", "gpu 500"]);
    world.step(1, vec![], vec![Act::Start(0, fraction(0, 0, 500))]);
    world.step(1, vec![], vec![Act::Start(1, fraction(0, 0, 500))]);
    world.step(2, vec![start_failed(0), start_failed(1)], vec![]);
    let failures = |id| {
        let ledger = &world.job(id).ledger;
        (ledger.start_failures, ledger.packed_failures)
    };
    assert_eq!((failures(0), failures(1)), ((0, 1), (1, 0)));
    assert_eq!(world.job(0).reason, Reason::StartFailed);
}

#[test]
fn a_job_that_fails_beside_all_others_is_given_up_in_the_end() {
    let mut world = World::new(Told::default(), &[2]);
    world.submit(0, 0, &["gpus 1 willing"]);
    for lease in 0..=PACKED_FAILURES_MAX {
        assert_eq!(world.job(0).ledger.packed_failures, lease);
        world.step(u64::from(lease), vec![], vec![Act::Start(0, fraction(0, 0, 500))]);
        world.step(u64::from(lease), vec![start_failed(lease)], vec![]);
    }
    assert_eq!(told(&world).last().unwrap(), "job0 Done(Failed)");
}

#[test]
fn a_stay_ends_as_its_outcome_and_the_stop_say() {
    let end = |outcome, why: Option<StopWhy>| {
        let mut world = World::new(Told::default(), &[2]);
        world.submit(0, 0, &["gpus 1"]);
        world.run(0, 0, whole(0, &[0]));
        if let Some(why) = why {
            let stop = move |_: &crate::view::View<'_>, plan: &mut crate::plan::Plan<'_>| {
                plan.stop_because(LeaseId(0), StopHow::Kill, why).unwrap();
            };
            world.step(1, vec![], vec![Act::new(stop)]);
        }
        world.step(2, vec![stopped(0, outcome, 1, 0)], vec![]);
        world.state().job(JobId(0)).map_or_else(
            || told(&world).pop().unwrap(),
            |job| format!("{:?}: {:?}", job.phase, job.reason),
        )
    };
    let done = |ending: Ending| format!("job0 {:?}", Phase::Done(ending));
    assert_eq!(end(Outcome::Finished, None), done(Ending::Finished));
    assert_eq!(end(Outcome::Finished, Some(StopWhy::TimeLimit)), done(Ending::Finished));
    assert_eq!(end(Outcome::Failed, None), done(Ending::Failed));
    assert_eq!(end(Outcome::Interrupted, None), "Pending: NodeFailed");
    assert_eq!(end(Outcome::Interrupted, Some(StopWhy::Preempted)), "Pending: Preempted");
    assert_eq!(end(Outcome::Interrupted, Some(StopWhy::LeaseEnded)), "Pending: Preempted");
    assert_eq!(end(Outcome::Interrupted, Some(StopWhy::NodeFailed)), "Pending: NodeFailed");
    assert_eq!(end(Outcome::Interrupted, Some(StopWhy::NoAnswer)), "Pending: StartFailed");
    assert_eq!(end(Outcome::Interrupted, Some(StopWhy::TimeLimit)), done(Ending::TimedOut));
    assert_eq!(end(Outcome::Interrupted, Some(StopWhy::Cancelled)), done(Ending::Cancelled));
}

#[test]
fn who_can_never_run_is_rejected_with_the_reason() {
    let mut world = World::new(Told::default(), &[2]);
    world.submit(0, 0, &["gpus 1"]);
    told(&world);
    world.step(4, vec![], vec![Act::Reject(0)]);
    assert_eq!(told(&world), ["job0 Done(Rejected)"]);
    assert_eq!(world.state().pending().len(), 0);
}

#[test]
fn a_divided_device_stays_divided_in_saved_facts() {
    let mut world = World::of("2");
    let divide = |layout| Act::new(move |_, plan| plan.repartition(DeviceId(1), layout).unwrap());
    world.step(1, vec![], vec![divide(Layout::Mig)]);
    assert_eq!(world.state().capacity().layout(DeviceId(1)), Layout::Mig);
    let mut other = World::of("2");
    other.engine.restore(world.engine.snapshot());
    assert_eq!(other.state().capacity().layout(DeviceId(1)), Layout::Mig);
    world.step(2, vec![], vec![divide(Layout::Shared)]);
    assert_eq!(world.state().capacity().layout(DeviceId(1)), Layout::Shared);
}

#[test]
fn alarms_come_in_order_of_time() {
    let mut world = World::of("4");
    world.submit(0, 0, &["gpus 1 limit 90", "gpus 1 limit 30", "gpus 1"]);
    for job in 0..3 {
        world.run(0, job, whole(0, &[job]));
    }
    let alarms: Vec<u32> = world.state().by_alarm().map(|lease| lease.job.0).collect();
    assert_eq!(alarms, [1, 0]);
    world.step(5, vec![], vec![Act::Preempt(2)]);
    assert_eq!(world.state().by_alarm().count(), 3);
}

#[test]
fn who_cannot_be_saved_is_preempted_only_within_the_loss_that_is_allowed() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1 saves never", "gpus 1"]);
    let [unsaved, saved] = [world.run(0, 0, whole(0, &[0])), world.run(0, 1, whole(0, &[1]))];
    let may = |world: &World, lease: u32| world.state().may_preempt(world.lease(lease));
    world.step(100, vec![], vec![]);
    assert_eq!((may(&world, unsaved), may(&world, saved)), (false, true));
    world.set_abilities(100, |abilities| abilities.lost_work_max = Some(Span::from_secs(500)));
    assert!(may(&world, unsaved));
    world.step(501, vec![Event::RoundEnded], vec![]);
    assert!(!may(&world, unsaved), "it would lose more than is allowed");
    // It lost 200 s: it is left alone for twice that, and then it would lose too much.
    let lost = stopped(unsaved, Outcome::Interrupted, 0, 200);
    world.step(502, vec![lost], vec![]);
    let again = world.run(600, 0, whole(0, &[0]));
    for (at, allowed) in [(700, false), (999, false), (1000, false), (1200, false)] {
        world.step(at, vec![Event::RoundEnded], vec![]);
        assert_eq!(may(&world, again), allowed, "at {at}");
    }
    world.set_abilities(1200, |abilities| abilities.lost_work_max = Some(Span::from_secs(900)));
    assert!(may(&world, again));
}

#[test]
fn a_start_that_is_not_confirmed_has_nothing_to_lose() {
    let mut world = World::of("1");
    world.submit(0, 0, &["gpus 1 saves never"]);
    world.step(1, vec![], vec![Act::Start(0, whole(0, &[0]))]);
    assert!(world.state().may_preempt(world.lease(0)));
}
