//! How jobs are ended: politely, by force, whole, and by the fence.

use std::time::{Duration, Instant};

use hostler_core::decision::StopHow;
use hostler_live::wire::{Stream, ToAgent};

use crate::daemon::{Fake, order, show, task, wait_for_end_of};

#[test]
fn a_stop_lets_a_job_save_and_leave() {
    let mut fake = Fake::new(&[]);
    let script = |trap: &str, file: &str| {
        let noted = format!("echo $$ > $HOSTLER_CHECKPOINT_DIR/{file}");
        format!("trap {trap}; {noted}; while :; do sleep 0.01; done")
    };
    fake.start(1, &script("'echo saved; exit 0' USR1", "pid"));
    fake.pid_in("pid");
    fake.stop(1, StopHow::Checkpoint, 20_000);
    assert_eq!(fake.ended(1), "0:0 interrupted");
    assert_eq!(fake.output(1, Stream::Stdout, 0).1, "saved\n");

    // One that does not know the signal is not killed by it.
    fake.start(2, &script("'echo asked; exit 4' TERM", "pid2"));
    fake.pid_in("pid2");
    fake.stop(2, StopHow::Checkpoint, 20_000);
    assert_eq!(fake.ended(2), "0:4 interrupted");
    assert_eq!(fake.output(2, Stream::Stdout, 0).1, "asked\n");
}

#[test]
fn a_whole_family_that_does_not_listen_is_killed_after_its_grace() {
    let mut fake = Fake::new(&[]);
    let script = "
        trap '' TERM
        sh -c 'trap \"\" TERM; echo $$ > $HOSTLER_CHECKPOINT_DIR/child; while :; do sleep 1; done' &
        setsid sh -c 'echo $$ > $HOSTLER_CHECKPOINT_DIR/stranger; trap \"\" TERM; while :; do sleep 1; done' &
        while :; do sleep 1; done";
    fake.start(1, script);
    let family = [fake.pid_in("child"), fake.pid_in("stranger")];
    let begun = Instant::now();
    fake.stop(1, StopHow::Kill, 700);
    assert_eq!(fake.ended(1), "0:-9 interrupted");
    assert!(begun.elapsed() >= Duration::from_millis(700), "the grace was cut short");
    // Nothing of it runs when it is said to have ended.
    for pid in family {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid} is left");
    }
}

#[test]
fn what_a_job_leaves_behind_goes_with_it() {
    let mut fake = Fake::new(&[]);
    fake.start(1, "setsid sleep 600 & echo $! > $HOSTLER_CHECKPOINT_DIR/left; exit 0");
    assert_eq!(fake.ended(1), "0:0");
    wait_for_end_of(fake.pid_in("left"));
}

#[test]
fn a_gang_ends_with_the_first_of_its_tasks_that_fails() {
    let mut fake = Fake::new(&["--fake-gpus", "2xV100"]);
    let script = "if [ $RANK = 1 ]; then exit 5; fi; exec sleep 600";
    let mut order = order(1, &["sh", "-c", script]);
    (order.tasks, order.world_size) = (vec![task(0), task(1)], 2);
    fake.say(ToAgent::Start(Box::new(order)));
    assert_eq!(fake.ended(1), "1:5 0:-15");
}

#[test]
fn a_stop_that_comes_with_the_start_ends_the_job() {
    let mut fake = Fake::new(&[]);
    fake.start(1, "exec sleep 600");
    fake.stop(1, StopHow::Kill, 0);
    let end = fake.ended(1);
    assert!(end.ends_with("interrupted"), "{end}");
}

#[test]
fn a_machine_that_is_not_heard_ends_its_jobs_without_its_agent() {
    let mut fake = Fake::with_fence(&[], 3_000);
    fake.start(1, "echo $$ > $HOSTLER_CHECKPOINT_DIR/pid; exec sleep 600");
    fake.running(1);
    let pid = fake.pid_in("pid");
    fake.kill_agent();
    wait_for_end_of(pid);
    let held = fake.restart_agent();
    assert_eq!(held.len(), 1);
    assert_eq!(fake.ended(1), "0:-15 interrupted");
}

#[test]
fn a_daemon_that_does_not_answer_fences_the_machine() {
    let mut fake = Fake::with_fence(&[], 3_000);
    fake.start(1, "echo $$ > $HOSTLER_CHECKPOINT_DIR/pid; exec sleep 600");
    fake.running(1);
    fake.answers = false;
    wait_for_end_of(fake.pid_in("pid"));
    // The agent has given up the silent connection by then and says it over the next.
    let held = fake.welcome();
    let end = if show(&held[0].stage).contains("interrupted") {
        show(&held[0].stage)
    } else {
        fake.ended(1)
    };
    assert_eq!(end, "0:-15 interrupted");
}
