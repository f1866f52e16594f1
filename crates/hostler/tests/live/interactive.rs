//! Inside of jobs: terminals, commands and ports.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::Cluster;
use crate::terminal::Terminal;

/// Runs a command with this input to its end.
fn fed(cluster: &Cluster, words: &[&str], input: Vec<u8>) -> Output {
    let mut command = cluster.command();
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    output
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A shell that shows plainly when it is ready.
fn shell(cluster: &Cluster, options: &[&str]) -> Terminal {
    let mut command = cluster.command();
    command.arg("run").args(options).args([
        "--gpus",
        "1",
        "--env",
        "PS1=ready> ",
        "--",
        "sh",
        "-i",
    ]);
    let terminal = Terminal::start(&mut command);
    terminal.until("ready> ");
    terminal
}

fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A command that ends with its owner.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_job_has_our_terminal_with_its_size_keys_and_exit_code() {
    let cluster = Cluster::start("2xV100");
    let mut terminal = shell(&cluster, &[]);
    let job = terminal.job();
    terminal.until("Ctrl-] d leaves it running");
    terminal.press("stty size; echo $TERM; echo gpu-$CUDA_VISIBLE_DEVICES-\n");
    terminal.until("33 101\r\nvt100\r\ngpu-0-");
    terminal.resize(40, 120);
    terminal.press_until("stty size\n", "40 120");
    terminal.press("sh -c 'echo waits-$((40+1)); exec sleep 600'\n");
    terminal.until("waits-41");
    terminal.press("\x03");
    terminal.press_until("echo after-$((40+2))\n", "after-42");
    assert_eq!(cluster.job(&job)["state"], "running");
    terminal.press("exit 7\n");
    assert_eq!(terminal.code(), Some(7), "{}", terminal.screen());
    let view = cluster.job(&job);
    assert_eq!((&view["state"], &view["exit_code"]), (&"failed".into(), &7.into()));
    // The output of a terminal is recorded as any other.
    assert!(cluster.text(&["logs", &job]).contains("after-42"));
}

#[test]
fn without_a_terminal_streams_are_joined_and_nothing_is_lost() {
    let cluster = Cluster::start("2xV100");
    let ran = fed(&cluster, &["run", "--gpus", "1", "--", "cat"], b"hello\n".to_vec());
    assert_eq!((ran.stdout.as_slice(), ran.status.code()), (&b"hello\n"[..], Some(0)));
    let script = "cat > /dev/null; echo out; echo wrong >&2; exit 5";
    let ran = fed(&cluster, &["run", "--gpus", "1", "--", "sh", "-c", script], vec![b'x'; 300_000]);
    assert_eq!((ran.stdout.as_slice(), ran.status.code()), (&b"out\n"[..], Some(5)));
    assert!(errors(&ran).lines().any(|line| line == "wrong"), "{}", errors(&ran));
    let large: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 251) as u8).collect();
    let ran = fed(&cluster, &["run", "--gpus", "1", "--", "cat"], large.clone());
    assert!(ran.status.success(), "{}", errors(&ran));
    assert!(ran.stdout == large, "{} bytes came back of {}", ran.stdout.len(), large.len());
    let ran = fed(&cluster, &["run", "--gpus", "1", "--", "no-such-program"], Vec::new());
    assert_eq!(ran.status.code(), Some(127), "{}", errors(&ran));
    let ran = fed(&cluster, &["run", "--gpus", "1", "--array", "3", "--", "cat"], Vec::new());
    assert!(errors(&ran).contains("use `hostler submit`"), "{}", errors(&ran));
}

#[test]
fn a_job_that_nobody_reads_is_told_so_as_in_a_pipe() {
    let cluster = Cluster::start("2xV100");
    let jobs: Vec<String> = (1..=4).map(|job| job.to_string()).collect();
    for job in &jobs {
        let mut command = cluster.command();
        command.args(["run", "--gpus", "1", "--", "yes"]).stdout(Stdio::piped());
        let mut run = Ends(command.stderr(Stdio::null()).spawn().unwrap());
        let mut line = [0; 2];
        let mut stdout = run.0.stdout.take().unwrap();
        stdout.read_exact(&mut line).unwrap();
        drop(stdout);
        assert!(run.0.wait().unwrap().success());
        assert_eq!(cluster.until(job, "failed")["exit_code"], 141);
    }
}

#[test]
fn a_signal_does_not_wait_behind_input_that_nobody_reads() {
    let cluster = Cluster::start("2xV100");
    let script = "trap 'echo heard; exit 7' INT; echo ready; while :; do sleep 0.1; done";
    let job = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(&job, "running");
    let inside = ["exec", &job, "--no-terminal", "--", "sh", "-c", script];
    for words in [&["run", "--gpus", "1", "--no-terminal", "--", "sh", "-c", script][..], &inside] {
        let mut command = cluster.command();
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = Ends(command.spawn().unwrap());
        let mut stdout = child.0.stdout.take().unwrap();
        let mut ready = [0; 6];
        stdout.read_exact(&mut ready).unwrap();
        // More than waits anywhere on the way.
        let mut stdin = child.0.stdin.take().unwrap();
        let feeding = std::thread::spawn(move || drop(stdin.write_all(&vec![b'x'; 16 << 20])));
        std::thread::sleep(Duration::from_secs(1));
        let pid = i32::try_from(child.0.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        assert_eq!(child.0.wait().unwrap().code(), Some(7), "{words:?}");
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "heard\n");
        feeding.join().unwrap();
    }
}

#[test]
fn who_leaves_finds_the_job_again() {
    let cluster = Cluster::start("2xV100");
    // Nobody is attached yet when it begins: that, too, may take this long.
    let mut terminal = shell(&cluster, &["--linger", "10s"]);
    let job = terminal.job();
    terminal.press("echo here-$((40+2))\n");
    terminal.until("here-42");
    terminal.press("\x1dd");
    assert_eq!(terminal.code(), Some(0));
    terminal.until(&format!("`hostler attach {job}` comes back to it"));
    // Whoever leaves on purpose is not waited for.
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(cluster.job(&job)["state"], "running");
    let mut terminal = Terminal::start(cluster.command().args(["attach", &job]));
    terminal.until("here-42");
    terminal.press("echo again-$((40+3))\n");
    terminal.until("again-43");
    terminal.press("exit 3\n");
    assert_eq!(terminal.code(), Some(3), "{}", terminal.screen());
    let late = cluster.run(&["attach", &job]);
    assert!(errors(&late).contains("is over"), "{}", errors(&late));
    let batch = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(&batch, "running");
    let none = cluster.run(&["attach", &batch]);
    assert!(errors(&none).contains("not started by `hostler run`"), "{}", errors(&none));
}

#[test]
fn a_job_whose_person_vanished_ends_unless_it_is_kept() {
    let cluster = Cluster::start("2xV100");
    let (lost, kept) = (shell(&cluster, &["--linger", "10s"]), shell(&cluster, &["--keep"]));
    let (left, stays) = (lost.job(), kept.job());
    drop((lost, kept));
    let view = cluster.until(&left, "failed");
    let reason = view["reason"].as_str().unwrap();
    assert!(reason.contains("nobody was attached"), "{reason}");
    let over = cluster.text(&["history", &left]);
    assert!(over.contains(": nobody was attached to it for 10 s"), "{over}");
    assert_eq!(cluster.job(&stays)["state"], "running");
    // A shell ignores a request to end, and not a hang-up.
    let begun = Instant::now();
    cluster.text(&["cancel", &stays]);
    cluster.until(&stays, "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn who_waits_is_told_why_and_may_give_up() {
    let cluster = Cluster::start("1xV100");
    let first = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(&first, "running");
    let mut command = cluster.command();
    command.args(["run", "--gpus", "1", "--", "sh"]);
    let mut terminal = Terminal::start(&mut command);
    let job = terminal.job();
    terminal.until("waits: ");
    terminal.signal(Signal::INT);
    assert_eq!(terminal.code(), Some(130), "{}", terminal.screen());
    assert_eq!(cluster.job(&job)["state"], "cancelled");
}

#[test]
fn a_restart_of_daemon_and_agent_does_not_end_a_session() {
    let mut cluster = Cluster::start("1xV100");
    let mut terminal = shell(&cluster, &[]);
    terminal.press("x=40; echo first-$((x+1))\n");
    terminal.until("first-41");
    cluster.crash();
    terminal.until("trying again");
    terminal.press_until("echo second-$((x+2))\n", "second-42");
    terminal.press("exit 4\n");
    assert_eq!(terminal.code(), Some(4), "{}", terminal.screen());
    // Nothing is shown twice.
    assert_eq!(terminal.screen().matches("first-41").count(), 1, "{}", terminal.screen());
}

#[test]
fn commands_run_inside_a_job_and_end_with_it() {
    let cluster = Cluster::start("4xV100");
    let blocker = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(&blocker, "running");
    let words = ["--gpus", "2", "--env", "MINE=yes", "--", "sh", "-c"];
    let script = "echo $CUDA_VISIBLE_DEVICES $PWD $(id -u); sleep 600";
    let job = cluster.submit(&[&words[..], &[script]].concat());
    cluster.until(&job, "running");
    cluster.wait_for("a line", |cluster| cluster.text(&["logs", &job]).ends_with('\n'));
    let same = "echo $CUDA_VISIBLE_DEVICES $PWD $(id -u)";
    let ran = cluster.run(&["exec", &job, "--", "sh", "-c", same]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), cluster.text(&["logs", &job]));
    let both = "echo $MINE $HOSTLER_JOB; cat; echo no >&2; exit 9";
    let ran = fed(&cluster, &["exec", &job, "--", "sh", "-c", both], b"input\n".to_vec());
    let expected = (format!("yes {job}\ninput\n"), "no\n".to_owned(), Some(9));
    let stdout = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!((stdout, errors(&ran), ran.status.code()), expected);
    let mut terminal = Terminal::start(cluster.command().args(["exec", &job, "--", "sh", "-i"]));
    terminal.press_until("stty size\n", "33 101");
    terminal.press("exit 6\n");
    assert_eq!(terminal.code(), Some(6), "{}", terminal.screen());
    for (words, why) in [
        (&["exec", &job, "--rank", "7", "--", "true"][..], "has no task 7"),
        (&["exec", "999", "--", "true"], "no such job: 999"),
    ] {
        let ran = cluster.run(words);
        assert!(errors(&ran).contains(why), "{}", errors(&ran));
    }
    // One that runs away from its session is still inside the job.
    let script = "setsid sleep 600 & echo $! $$; sleep 600";
    let mut command = cluster.command();
    command.args(["exec", &job, "--", "sh", "-c", script]).stdout(Stdio::piped());
    let mut inside = Ends(command.stderr(Stdio::null()).spawn().unwrap());
    let mut line = [0; 64];
    let count = inside.0.stdout.as_mut().unwrap().read(&mut line).unwrap();
    let pids: Vec<u32> = String::from_utf8_lossy(&line[..count])
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect();
    assert!(pids.iter().all(|pid| runs(*pid)));
    cluster.text(&["cancel", &job]);
    cluster.until(&job, "cancelled");
    assert!(!pids.iter().any(|pid| runs(*pid)), "a command outlives its job");
    assert!(!inside.0.wait().unwrap().success());
    let ran = cluster.run(&["exec", &job, "--", "true"]);
    assert!(errors(&ran).contains("is over"), "{}", errors(&ran));
}

#[test]
fn commands_end_with_their_person_and_with_a_shim_that_is_killed() {
    let cluster = Cluster::start("2xV100");
    let job = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(&job, "running");
    let start = |script: &str| {
        let mut command = cluster.command();
        command.args(["exec", &job, "--", "sh", "-c", script]).stdout(Stdio::piped());
        let mut inside = Ends(command.stderr(Stdio::null()).spawn().unwrap());
        let mut line = [0; 64];
        let count = inside.0.stdout.as_mut().unwrap().read(&mut line).unwrap();
        let pids = String::from_utf8_lossy(&line[..count]).into_owned();
        let pids: Vec<u32> = pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        (inside, pids)
    };
    let (inside, pids) = start("sleep 600 & echo $! $$; wait");
    assert!(pids.iter().all(|pid| runs(*pid)));
    drop(inside);
    cluster.wait_for("the end of a command", |_| !pids.iter().any(|pid| runs(*pid)));
    assert_eq!(cluster.job(&job)["state"], "running");
    // Without its variables, and in a session that only the record of the shim names.
    let script = "env -i sh -c 'sleep 600' & echo $! $$ $PPID; wait";
    let (_inside, pids) = start(script);
    let shim = i32::try_from(pids[2]).ok().and_then(Pid::from_raw).unwrap();
    kill_process(shim, Signal::KILL).unwrap();
    cluster.wait_for("the end of all", |_| !pids.iter().any(|pid| runs(*pid)));
}

/// A server in a job: the program itself, from where jobs can read it.
fn server(cluster: &Cluster, port: u16) -> String {
    let program = cluster.folder().join("hostler");
    std::fs::copy(env!("CARGO_BIN_EXE_hostler"), &program).unwrap();
    let listen = format!("127.0.0.1:{port}");
    let words = ["serve", "--plain", "--data", "data", "--listen", &listen];
    let job =
        cluster.submit(&[&["--gpus", "1", "--", program.to_str().unwrap()], &words[..]].concat());
    cluster.until(&job, "running");
    cluster.wait_for("the server", |_| TcpStream::connect(&listen).is_ok());
    job
}

/// What a port answers to a request; empty when it is closed.
fn asked(port: u16) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(request);
        let _ = stream.read_to_string(&mut answer);
    }
    answer
}

fn forwarded(cluster: &Cluster, job: &str, port: u16) -> (Ends, u16) {
    let local = free_port();
    let mut command = cluster.command();
    command.args(["forward", job, &format!("{local}:{port}")]);
    let log = std::fs::File::create(cluster.folder().join("forward.log")).unwrap();
    let forward = Ends(command.stderr(log).spawn().unwrap());
    cluster.wait_for("a port", |_| TcpStream::connect(("127.0.0.1", local)).is_ok());
    (forward, local)
}

fn said(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("forward.log")).unwrap()
}

#[test]
fn ports_of_a_job_are_reached_and_those_of_others_are_not() {
    let cluster = Cluster::start("4xV100");
    let port = free_port();
    let job = server(&cluster, port);
    let (mut forward, local) = forwarded(&cluster, &job, port);
    for _ in 0..3 {
        let answer = asked(local);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}\n{}", said(cluster.folder()));
    }
    // Another job on the same node does not lead there, nor does any lead to the daemon itself.
    let other = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(&other, "running");
    let daemon: u16 = cluster.address().rsplit(':').next().unwrap().parse().unwrap();
    for foreign in [port, daemon] {
        let (_forward, local) = forwarded(&cluster, &other, foreign);
        assert_eq!(asked(local), "");
        cluster.wait_for("a refusal", |cluster| {
            said(cluster.folder()).contains("belongs to another process, not to the job")
        });
    }
    let (_forward, nothing) = forwarded(&cluster, &other, free_port());
    assert_eq!(asked(nothing), "");
    cluster.wait_for("a refusal", |cluster| said(cluster.folder()).contains("nothing listens"));
    cluster.text(&["cancel", &job]);
    cluster.until(&job, "cancelled");
    assert!(forward.0.wait().unwrap().success());
    let late = cluster.run(&["forward", &job, "8888"]);
    assert_eq!(late.status.code(), Some(1), "{}", errors(&late));
    assert!(errors(&late).contains(&format!("job {job} is over: cancelled")), "{}", errors(&late));
}

#[test]
fn only_those_who_may_end_a_job_come_in() {
    let cluster = Cluster::start("2xV100");
    let job = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(&job, "running");
    let token = |words: &[&str]| {
        let made = cluster.text(&[&["token", "create"], words].concat());
        made.split_whitespace().find(|word| word.starts_with("hst_")).unwrap().to_owned()
    };
    let stranger = token(&["eve", "--tenant", "other", "--new-tenant"]);
    let viewer = token(&["bob", "--role", "viewer"]);
    // One that is revoked ends what was begun with it.
    let own = token(&["ada"]);
    let mut command = cluster.command();
    command.args(["exec", &job, "--", "sh", "-c", "echo in; sleep 600"]).stdout(Stdio::piped());
    let mut inside = Ends(command.env("HOSTLER_TOKEN", own).stderr(Stdio::null()).spawn().unwrap());
    inside.0.stdout.as_mut().unwrap().read_exact(&mut [0; 3]).unwrap();
    let tokens = cluster.json(&["token", "list"]);
    let of_ada = tokens.as_array().unwrap().iter().find(|token| token["name"] == "ada").unwrap();
    cluster.text(&["token", "revoke", &of_ada["id"].to_string()]);
    assert!(!inside.0.wait().unwrap().success());
    for (token, why) in [
        (stranger.as_str(), "no such job".to_owned()),
        (viewer.as_str(), "may not do this".to_owned()),
        ("hst_nobody", "token".to_owned()),
    ] {
        for words in [&["exec", &job, "--", "true"][..], &["attach", &job]] {
            let ran = cluster.command().args(words).env("HOSTLER_TOKEN", token).output().unwrap();
            assert!(!ran.status.success());
            assert!(errors(&ran).contains(&why), "{words:?}: {}", errors(&ran));
        }
    }
}

#[test]
fn srun_has_a_terminal() {
    let cluster = Cluster::start("1xV100");
    let srun = cluster.folder().join("srun");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_hostler"), &srun).unwrap();
    let mut command = std::process::Command::new(srun);
    command.args(["--pty", "-G", "1", "sh", "-c", "tty && stty size && exit 8"]);
    command.current_dir(cluster.folder()).env("XDG_CONFIG_HOME", cluster.folder().join("config"));
    let mut terminal = Terminal::start(&mut command);
    assert_eq!(terminal.code(), Some(8), "{}", terminal.screen());
    let screen = terminal.until("33 101");
    assert!(screen.contains("/dev/pts/"), "{screen}");
}
