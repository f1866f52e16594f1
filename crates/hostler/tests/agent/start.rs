//! How jobs start: once, with their environment, as the right user, and what they say.

use expect_test::expect;
use hostler_core::id::LeaseId;
use hostler_live::wire::{FromAgent, LeaseReport, Stage, Stream, ToAgent};

use crate::daemon::{Fake, order, task};

#[test]
fn jobs_end_with_their_true_exit_codes() {
    let mut fake = Fake::new(&["--fake-gpus", "2xV100"]);
    fake.start(1, "true");
    fake.start(2, "exit 3");
    fake.start(3, "kill -9 $$");
    fake.say(ToAgent::Start(Box::new(order(4, &["no-such-program"]))));
    let ends = [1, 2, 3, 4].map(|lease| {
        // Each is reported until it is forgotten, whichever came first.
        format!("{lease} {}", fake.ended(lease))
    });
    assert_eq!(ends, ["1 0:0", "2 0:3", "3 0:-9", "4 0:127"]);
    let (_, words) = fake.output(4, Stream::Stderr, 0);
    expect![[r#"
        hostler: cannot run `no-such-program`: No such file or directory (os error 2)
    "#]]
    .assert_eq(&words);
}

#[test]
fn a_task_has_a_clean_environment_and_a_folder_of_its_own() {
    let mut fake = Fake::new(&["--fake-gpus", "2xV100"]);
    let mut order = order(1, &["sh", "-c", "env | sort; pwd; cat; echo done >&2"]);
    order.env.insert("GREETING".into(), "hello world".into());
    order.tasks = vec![task(1)];
    order.tasks[0].rank = 0;
    order.restart = 2;
    fake.say(ToAgent::Start(Box::new(order)));
    assert_eq!(fake.ended(1), "0:0");
    let (_, text) = fake.output(1, Stream::Stdout, 0);
    let data = fake.file("").parent().unwrap().parent().unwrap().display().to_string();
    let varies = ["PATH=", "USER=", "LOGNAME=", "HOME=", "SHLVL=", "_=", "OLDPWD="];
    let lines = text.lines().filter(|line| !varies.iter().any(|name| line.starts_with(name)));
    let text: String = lines.map(|line| line.replace(&data, "DATA") + "\n").collect();
    expect![[r#"
        CUDA_DEVICE_ORDER=PCI_BUS_ID
        CUDA_VISIBLE_DEVICES=1
        GREETING=hello world
        HOSTLER_CHECKPOINT_DIR=DATA/checkpoints/1
        HOSTLER_JOB=1
        HOSTLER_LEASE=1
        HOSTLER_RESTART=2
        HOSTLER_SOCKET=DATA/leases/1/socket
        LANG=C.UTF-8
        LOCAL_RANK=1
        LOCAL_WORLD_SIZE=1
        MASTER_ADDR=127.0.0.1
        MASTER_PORT=29500
        PWD=DATA/jobs/1
        RANK=0
        SHELL=/bin/sh
        WORLD_SIZE=1
        DATA/jobs/1
    "#]]
    .assert_eq(&text);
    assert_eq!(fake.output(1, Stream::Stderr, 0).1, "done\n");
    assert_eq!(fake.output(1, Stream::Stdout, -3).1.len(), 3);
}

#[test]
fn an_order_that_comes_twice_runs_once_and_never_after_it_was_forgotten() {
    let mut fake = Fake::new(&[]);
    let script = "echo x >> $HOSTLER_CHECKPOINT_DIR/runs";
    fake.start(1, script);
    fake.start(1, script);
    assert_eq!(fake.ended(1), "0:0");
    fake.start(1, script);
    assert_eq!(fake.ended(1), "0:0");
    fake.say(ToAgent::Forget { lease: LeaseId(1) });
    fake.start(1, script);
    fake.stage(1, |stage| *stage == Stage::Unknown);
    fake.kill_agent();
    // It tells up to which number it knew leases, whatever it forgot of them.
    let known = LeaseReport { lease: LeaseId(1), stage: Stage::Unknown };
    assert_eq!(fake.restart_agent(), [known]);
    fake.start(1, script);
    fake.stage(1, |stage| *stage == Stage::Unknown);
    assert_eq!(std::fs::read_to_string(fake.file("runs")).unwrap(), "x\n");
    // What it wrote is kept for readers.
    assert_eq!(fake.output(1, Stream::Stdout, 0).1, "");
}

#[test]
fn a_job_that_cannot_start_says_why() {
    let mut fake = Fake::new(&[]);
    let mut order = order(1, &["true"]);
    order.workdir = "/no/such/folder".into();
    fake.say(ToAgent::Start(Box::new(order)));
    let fault = fake.ended(1);
    assert!(fault.contains("cannot start in `/no/such/folder` as"), "{fault}");
}

#[test]
fn jobs_of_a_root_agent_run_as_an_unprivileged_user() {
    if !is_root() {
        println!("skipped: the tests do not run as root");
        return;
    }
    let mut fake = Fake::new(&["--job-user", "65534:65534"]);
    fake.start(1, "id -u; id -g; id -G");
    fake.ended(1);
    assert_eq!(fake.output(1, Stream::Stdout, 0).1, "65534\n65534\n65534\n");
    // Neither the agent nor its folder lends them anything.
    let mut fake = Fake::new(&[]);
    fake.start(1, "id -un; cat $(dirname $HOSTLER_SOCKET)/order.json; cat /proc/$PPID/environ");
    fake.ended(1);
    assert_eq!(fake.output(1, Stream::Stdout, 0).1, "nobody\n");
    assert!(fake.output(1, Stream::Stderr, 0).1.matches("ermission denied").count() == 2);
}

#[test]
fn a_job_tells_its_progress() {
    let mut fake = Fake::new(&[]);
    let program = fake.program_for_jobs();
    fake.start(1, &format!("{} progress --step 5 --total 10 --saved", program.display()));
    let said = fake.hear(|message| match message {
        FromAgent::Progress { step, total, saved, .. } => Some((step, total, saved)),
        _ => None,
    });
    assert_eq!(said, (5, Some(10), true));
    assert_eq!(fake.ended(1), "0:0");
}

#[test]
fn old_output_makes_room_for_new() {
    let mut fake = Fake::new(&["--output-mib", "1"]);
    fake.start(1, "head -c 20000000 /dev/zero | tr '\\0' a; echo; echo the end");
    assert_eq!(fake.ended(1), "0:0");
    let (begin, text) = fake.output(1, Stream::Stdout, 0);
    let end = begin + text.len() as u64;
    assert_eq!(end, 20_000_000 + 9);
    assert_eq!(begin, ((end >> 20) - 15) << 20);
    assert_eq!(fake.output(1, Stream::Stdout, -8).1, "the end\n");
}

#[test]
fn an_agent_shows_what_the_machine_offers() {
    let shown = std::process::Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["agent", "--show", "--name", "n", "--cpus", "4", "--mem-mib", "100"])
        .args(["--fake-gpus", "8xV100:32768", "--image-programs", "none"])
        .env_remove("HOSTLER_SERVER")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let shown = shown.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    expect![[r#"
        {
          "name": "n",
          "version": "VERSION",
          "address": "127.0.0.1",
          "cpu_milli": 4000,
          "mem_mib": 100,
          "gpu_model": "V100",
          "gpu_mem_mib": 32768,
          "gpus": 8,
          "rack": 0,
          "abilities": [
            "images",
            "streams"
          ]
        }
    "#]]
    .assert_eq(&shown);
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
