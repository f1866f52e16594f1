//! What survives a kill -9 of the agent, and what a kill -9 of the shim leaves.

use hostler_core::decision::StopHow;
use hostler_live::wire::{Stage, Stream};

use crate::daemon::{Fake, kill, parent_of, wait_for, wait_for_end_of};

#[test]
fn a_job_goes_on_while_its_agent_is_dead_and_is_taken_over() {
    let mut fake = Fake::new(&[]);
    let script = "echo $$ > $HOSTLER_CHECKPOINT_DIR/pid; echo before; \
        while [ ! -e $HOSTLER_CHECKPOINT_DIR/go ]; do sleep 0.01; done; echo after; exit 3";
    fake.start(1, script);
    fake.running(1);
    let pid = fake.pid_in("pid");
    fake.kill_agent();
    let held = fake.restart_agent();
    assert_eq!(held.len(), 1);
    assert!(!matches!(held[0].stage, Stage::Ended { .. }), "{:?}", held[0]);
    fake.running(1);
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
    std::fs::write(fake.file("go"), "").unwrap();
    assert_eq!(fake.ended(1), "0:3");
    assert_eq!(fake.output(1, Stream::Stdout, 0).1, "before\nafter\n");
}

#[test]
fn a_job_that_ends_while_its_agent_is_dead_keeps_its_exit_code() {
    let mut fake = Fake::new(&[]);
    let script = "echo $$ > $HOSTLER_CHECKPOINT_DIR/pid; \
        while [ ! -e $HOSTLER_CHECKPOINT_DIR/go ]; do sleep 0.01; done; exit 7";
    fake.start(1, script);
    let pid = fake.pid_in("pid");
    let shim = parent_of(pid);
    fake.kill_agent();
    std::fs::write(fake.file("go"), "").unwrap();
    wait_for_end_of(pid);
    wait_for_end_of(shim);
    fake.restart_agent();
    assert_eq!(fake.ended(1), "0:7");
}

#[test]
fn a_taken_over_job_can_be_stopped() {
    let mut fake = Fake::new(&[]);
    fake.start(1, "echo $$ > $HOSTLER_CHECKPOINT_DIR/pid; exec sleep 600");
    fake.pid_in("pid");
    fake.kill_agent();
    fake.restart_agent();
    fake.stop(1, StopHow::Kill, 20_000);
    assert_eq!(fake.ended(1), "0:-15 interrupted");
}

#[test]
fn a_shim_that_is_killed_takes_its_job_with_it() {
    let mut fake = Fake::new(&[]);
    let script = "
        setsid sh -c 'echo $$ > $HOSTLER_CHECKPOINT_DIR/stranger; while :; do sleep 1; done' &
        echo $$ > $HOSTLER_CHECKPOINT_DIR/pid
        while :; do sleep 1; done";
    fake.start(1, script);
    fake.running(1);
    let family = [fake.pid_in("pid"), fake.pid_in("stranger")];
    kill(parent_of(family[0]));
    assert_eq!(fake.ended(1), "interrupted");
    family.into_iter().for_each(wait_for_end_of);
}

#[test]
fn agent_and_shim_killed_together_leave_nothing_running() {
    let mut fake = Fake::new(&[]);
    let script = "
        sh -c 'trap \"\" TERM HUP; echo $$ > $HOSTLER_CHECKPOINT_DIR/child; while :; do sleep 1; done' &
        echo $$ > $HOSTLER_CHECKPOINT_DIR/pid
        while :; do sleep 1; done";
    fake.start(1, script);
    fake.running(1);
    let family = [fake.pid_in("pid"), fake.pid_in("child")];
    fake.kill_agent();
    kill(parent_of(family[0]));
    // The kernel ends the task itself; the rest waits for the next agent.
    wait_for_end_of(family[0]);
    fake.restart_agent();
    assert_eq!(fake.ended(1), "interrupted");
    family.into_iter().for_each(wait_for_end_of);
}

#[test]
fn a_second_agent_on_the_same_folder_is_refused() {
    let fake = Fake::new(&[]);
    let folder = fake.file("").parent().unwrap().parent().unwrap().to_owned();
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["agent", "--server", "http://127.0.0.1:1", "--data"])
        .arg(&folder)
        .env("HOSTLER_TOKEN", "secret")
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(words.contains("another agent uses the data folder"), "{words}");
    wait_for("an exit code", || second.status.code().filter(|code| *code == 1));
}
