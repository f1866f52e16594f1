//! Jobs that are to give way, and what becomes of them meanwhile.

use hostler_live::driver::slurm::read::End;
use hostler_live::job::JobState;

use crate::there::{There, node};

const SETTINGS: &str = "preempt_requeueable = true\ncalls_max = 1\ncomments = false\nfull_secs = 3";

/// A long job holds all GPUs there are.
fn with_a_long_one() -> There {
    let mut there = There::new("kind = 'srtf'", SETTINGS, &[node("n1", 8, 64_000)]);
    there.submit("1", 8, 600);
    there.seconds(6);
    there.run("1", 8);
    there.seconds(4);
    assert_eq!(there.here(), [(1, "1".to_owned(), JobState::Running)]);
    there
}

#[test]
fn a_job_that_ends_as_it_is_to_give_way_does_not_run_once_more() {
    let mut there = with_a_long_one();
    there.hangs = true;
    there.submit("2", 8, 1);
    there.seconds(5);
    assert_eq!(there.hanging(), 1, "{:?}", there.log);
    // Between the last look and the command.
    there.end("1", End::Finished);
    there.answer();
    there.hangs = false;
    there.seconds(6);
    assert_eq!(there.came("scontrol requeue"), 1);
    assert_eq!(there.jobs["1"].restarts, 0, "it runs twice");
    let over = there.over();
    assert_eq!((over.len(), over[0].state), (1, JobState::Finished));
    there.run("2", 8);
    there.seconds(4);
    assert_eq!(there.here(), [(2, "2".to_owned(), JobState::Running)]);
}

#[test]
fn what_waits_to_be_asked_for_is_dropped_with_the_stay_that_it_is_about() {
    let mut there = with_a_long_one();
    there.submit("2", 0, 600);
    there.jobs.get_mut("2").unwrap().priority = 0;
    there.seconds(4);
    // The only call that there may be at a time hangs.
    there.hangs = true;
    there.cancel(2);
    there.seconds(4);
    assert_eq!(there.hanging(), 1);
    there.submit("3", 8, 1);
    there.seconds(5);
    let stop = there.host.state().leases().next().unwrap().stop;
    assert!(stop.is_some(), "the long job is to give way");
    there.end("1", End::Finished);
    there.seconds(4);
    there.hangs = false;
    there.answer();
    there.seconds(6);
    assert_eq!(there.came("scontrol requeue"), 0, "{:?}", there.log);
    assert_eq!(there.jobs["1"].restarts, 0);
    there.run("3", 8);
    there.seconds(4);
    assert_eq!(there.here(), [(3, "3".to_owned(), JobState::Running)]);
}

#[test]
fn a_job_that_may_not_be_requeued_any_more_is_not_stopping_for_ever() {
    let mut there = with_a_long_one();
    there.hangs = true;
    there.submit("2", 8, 1);
    there.seconds(5);
    assert_eq!(there.hanging(), 1);
    there.jobs.get_mut("1").unwrap().requeues = false;
    there.hangs = false;
    there.answer();
    there.seconds(8);
    let leases: Vec<_> = there.host.state().leases().cloned().collect();
    assert_eq!(leases.len(), 1);
    assert_eq!(leases[0].stop, None, "nobody can stop it");
    // It goes on as another job, which gives way to nobody.
    let (one, two) = ("1".to_owned(), "2".to_owned());
    assert_eq!(there.here(), [(2, two, JobState::Queued), (3, one, JobState::Running)]);
    assert!(there.over()[0].facts.reason.contains("gives way no more"), "{:?}", there.over());
    assert_eq!(there.came("scontrol requeue"), 1);
    there.end("1", End::Finished);
    there.seconds(6);
    there.run("2", 8);
}

#[test]
fn a_job_that_gives_way_waits_again_and_starts_anew() {
    let mut there = with_a_long_one();
    there.submit("2", 8, 1);
    there.seconds(12);
    assert_eq!((there.jobs["1"].restarts, there.jobs["1"].partition.as_str()), (1, "hostler"));
    there.run("2", 8);
    there.seconds(4);
    there.end("2", End::Finished);
    there.seconds(8);
    there.run("1", 8);
    there.seconds(4);
    assert_eq!(there.here(), [(1, "1".to_owned(), JobState::Running)]);
}
