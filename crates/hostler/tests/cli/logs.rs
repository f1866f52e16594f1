//! `simulate --log` and `replay`: whole logs, altered ones, damaged ones and ones cut off.

use std::io::Read;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Folder, Ran, Tables, repository};

fn lines(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// Names of jobs in the order in which they were started.
pub fn starts(log: &str) -> Vec<String> {
    let (mut names, mut started) = (Vec::new(), Vec::new());
    let list = |record: &Value, key: &str| record[key].as_array().cloned().unwrap_or_default();
    for record in lines(log) {
        let submitted = list(&record, "events").into_iter().filter(|e| e["event"] == "submitted");
        names.extend(submitted.map(|event| event["spec"]["name"].clone()));
        let starts = list(&record, "decisions").into_iter().filter(|d| d["decision"] == "start");
        started.extend(starts.map(|start| start["job"].as_u64().expect("a job is a number")));
    }
    let name = |job: u64| names[job as usize].as_str().expect("a name is text").to_owned();
    started.into_iter().map(name).collect()
}

/// A folder with the log of the lecture example under a policy.
fn lecture_log(policy: &str) -> Folder {
    let folder = Folder::new();
    let trace = repository("testdata/traces/lecture");
    folder.run(&format!("simulate --trace {trace} --policy {policy} --log log")).ok();
    folder
}

#[test]
fn every_policy_replays_to_the_numbers_of_its_run() {
    let folder = Folder::new();
    folder.quiet("trace gen pai-like --jobs 120 --seed 3 --scale 40 --load 1.5 --out trace");
    for def in hostler_policies::builtin().all() {
        let kind = &def.kind;
        let line = format!("simulate --trace trace --policy {kind} --json --log log --force");
        let run = folder.json(&line);
        let replayed = folder.json("replay log --json");
        for key in ["jobs_done", "jobs_rejected", "avg_jct_s", "makespan_s", "gpu_utilisation"] {
            assert_eq!(run[key], replayed["summary"][key], "{kind}: {key}");
        }
        assert_eq!(replayed["decisions_compared"], Value::Null);
        let checked = folder.json("replay log --check --json");
        let compared = checked["decisions_compared"].as_u64();
        // One start for each job at least; under some policies nobody ever waits.
        assert!(compared.is_some_and(|compared| compared >= 120), "{kind}: {compared:?}");
    }
}

#[test]
fn replay_tells_people_what_the_log_ends_with() {
    let folder = lecture_log("fifo");
    let text = folder.quiet("replay log --check");
    assert!(text.contains("jobs: 4 done, 0 failed, 0 rejected, 0 not over"), "{text}");
    assert!(text.contains("avg jct 35.00 s, makespan 70.00 s"), "{text}");
    assert!(text.contains("the policy was asked again"), "{text}");
}

#[test]
fn a_log_with_another_policy_in_it_fails_the_check_and_names_the_record() {
    let folder = lecture_log("fifo");
    let log = folder.text("log");
    // The lecture's jobs wait for one another; a policy that preempts decides otherwise.
    let settings = "kind = \\\"sjf\\\"\\npreempt = true";
    let altered = log.replacen("kind = \\\"fifo\\\"", settings, 1);
    assert_ne!(altered, log, "the log names its policy");
    folder.write("log", altered);
    folder.run("replay log").ok();
    folder.run("replay log --check").fails(1, &["record ", "logged was", "the policy now says"]);
}

#[test]
fn a_log_with_one_decision_altered_fails_the_check_and_names_the_record() {
    let folder = lecture_log("fifo");
    let log = folder.text("log");
    // The record with two starts: swap the jobs, so that each runs in the place of the other.
    let altered = log.replacen("\"lease\":0,\"job\":0", "\"lease\":0,\"job\":9", 1);
    let altered = altered.replacen("\"lease\":1,\"job\":1", "\"lease\":1,\"job\":0", 1);
    let altered = altered.replacen("\"lease\":0,\"job\":9", "\"lease\":0,\"job\":1", 1);
    assert_ne!(altered, log, "the log starts jobs 0 and 1");
    let at = log.lines().zip(altered.lines()).position(|(one, other)| one != other);
    let record = at.expect("a line differs") + 1;
    folder.write("log", altered);
    let words = format!("record {record}: logged was");
    folder.run("replay log --check").fails(1, &[&words, "Start", "the policy now says"]);
}

#[test]
fn a_last_line_that_is_cut_off_is_left_out_with_a_warning() {
    let folder = lecture_log("fifo");
    let log = folder.text("log");
    let records = log.lines().count();
    folder.write("log", &log[..log.len() - 5]);
    let ran = folder.run("replay log").ok();
    let warning = format!("warning: log:{records}: the last line is cut off and left out");
    assert!(ran.stderr.contains(&warning), "{}", ran.stderr);
    assert!(ran.stdout.contains(&format!("{} records", records - 1)), "{}", ran.stdout);
    folder.run("replay log --check").ok();
}

#[test]
fn a_damaged_line_is_named() {
    let folder = lecture_log("fifo");
    let log = folder.text("log");
    let mut damaged: Vec<&str> = log.lines().collect();
    damaged[2] = "{\"record\":\"inp";
    folder.write("log", damaged.join("\n") + "\n");
    folder.run("replay log").fails(1, &["log:3: no record of a log"]);
    damaged[2] = "{\"record\":\"input\",\"at\":-1,\"events\":[]}";
    folder.write("log", damaged.join("\n") + "\n");
    folder.run("replay log").fails(1, &["log:3: no record of a log"]);
    folder.write("log", b"\xff\xfe\n");
    folder.run("replay log").fails(1, &["log:1: no record of a log"]);
}

#[test]
fn a_line_that_does_not_follow_from_those_before_is_named() {
    let folder = lecture_log("fifo");
    let log = folder.text("log");
    for (from, to) in [
        ("\"lease\":2,", "\"lease\":7,"),
        ("\"lease\":2,\"job\":2", "\"lease\":2,\"job\":99"),
        ("\"node\":0,\"tasks\"", "\"node\":9,\"tasks\""),
        ("\"tasks\":1,\"cpu\":1000", "\"tasks\":1,\"cpu\":4294967295"),
        ("\"node-up\",\"node\":0", "\"node-up\",\"node\":5"),
    ] {
        let altered = log.replacen(from, to, 1);
        assert_ne!(altered, log, "no `{from}` in the log");
        let line = log.lines().zip(altered.lines()).position(|(one, other)| one != other);
        let place = format!("log:{}: does not follow", line.expect("a line differs") + 1);
        folder.write("log", altered);
        folder.run("replay log").fails(1, &[&place]);
        folder.run("replay log --check").fails(1, &[&place]);
    }
}

#[test]
fn what_is_no_log_is_refused() {
    let folder = Folder::new();
    folder.write("empty", "");
    folder.run("replay empty").fails(1, &["`empty` is empty"]);
    folder.run("replay missing").fails(1, &["`missing`", "No such file"]);
    std::fs::create_dir(folder.path("folder")).expect("a folder can be made");
    folder.run("replay folder").fails(1, &["`folder`", "directory"]);
    folder.write("other", "{\"record\":\"input\",\"at\":0,\"events\":[]}\n");
    folder.run("replay other").fails(1, &["`other` does not begin with a policy"]);
    let output = "{\"record\":\"output\",\"at\":0,\"asked\":false,\"decisions\":[]}\n";
    folder.write("other", output);
    folder.run("replay other").fails(1, &["`other` does not begin with facts"]);
}

fn with_policy(settings: &str) -> String {
    let settings = Value::from(settings);
    let event = format!("{{\"event\":\"policy-changed\",\"settings\":{settings}}}");
    format!("{{\"record\":\"input\",\"at\":0,\"events\":[{event}]}}\n")
}

#[test]
fn a_log_of_an_unknown_policy_is_refused_wherever_it_is_named() {
    let folder = Folder::new();
    folder.write("log", with_policy("kind = 'fito'"));
    folder.run("replay log").fails(1, &["log:1: ", "unknown policy `fito`"]);
    folder.write("log", with_policy("kind = 'fifo'") + &with_policy("kind = 'fito'"));
    folder.run("replay log").fails(1, &["log:2: ", "unknown policy `fito`"]);
}

#[test]
fn a_log_that_cannot_be_written_is_an_error() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    let line = "simulate --trace trace --policy fifo --log";
    folder.run(&format!("{line} missing/log")).fails(1, &["cannot write `missing/log`"]);
    folder.run(&format!("{line} trace")).fails(1, &["cannot write `trace`"]);
    if cfg!(target_os = "linux") {
        let full = folder.run(&format!("{line} /dev/full"));
        full.fails(1, &["cannot write `/dev/full`", "No space left"]);
    }
}

#[test]
fn a_log_is_not_written_over_unless_forced() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    folder.write("log", "precious");
    let line = "simulate --trace trace --policy fifo --log log";
    folder.run(line).fails(1, &["`log` is there already", "`--force`"]);
    assert_eq!(folder.text("log"), "precious");
    folder.quiet(&format!("{line} --force"));
    folder.quiet("replay log --check");
    folder.run("simulate --policy fifo --force").fails(2, &["--log"]);
}

/// The log goes through a pipe, so that the writer stands still half-way until it is killed.
#[cfg(target_os = "linux")]
#[test]
fn a_log_whose_writer_was_killed_replays_up_to_the_cut() {
    use std::os::unix::process::ExitStatusExt;
    let folder = Folder::new();
    let mut command = folder.program();
    command.args(["simulate", "--policy", "srtf", "--log", "/dev/stdout"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let mut pipe = child.stdout.take().expect("it is piped");
    let mut log = vec![0; 1 << 20];
    pipe.read_exact(&mut log).expect("the log is longer");
    child.kill().expect("it is ours");
    assert_eq!(child.wait().expect("it is ours").signal(), Some(9));
    pipe.read_to_end(&mut log).expect("what was written can be read");
    let whole = log.iter().filter(|byte| **byte == b'\n').count();
    let cut = log.last() != Some(&b'\n');
    folder.write("log", log);
    let ran = folder.run("replay log --check --json").ok();
    let warning = format!("log:{}: the last line is cut off", whole + 1);
    assert_eq!(ran.stderr.contains(&warning), cut, "{}", ran.stderr);
    let result: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(result["records"], whole);
}

#[cfg(unix)]
#[test]
fn a_closed_stderr_changes_no_exit_code() {
    let folder = Folder::new();
    let mut tables = Tables::new().job("stranded", 0, "1,2000,,1000,20000,");
    tables.nodes = tables.nodes.replace(",,\n", ",0,10\n");
    tables.write(&folder);
    let commands = [
        ("simulate --policy fito", 2),
        ("simulate --policy fifo --trace missing", 1),
        ("simulate --policy fifo --trace trace", 0),
        ("compare --policies fifo --trace trace", 0),
    ];
    for (line, code) in commands {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        drop(reader);
        let mut command = folder.program();
        command.args(line.split_whitespace()).stdout(Stdio::null()).stderr(writer);
        let status = command.status().expect("the program can be started");
        assert_eq!(status.code(), Some(code), "`{line}`");
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let folder = lecture_log("fifo");
    let commands = [
        "policies",
        "policies sjf --json",
        "completions bash",
        "replay log",
        "simulate --policy fifo --trace trace",
        "compare --policies fifo --trace trace",
        "trace check trace",
        "trace gen pai-like --jobs 10 --out out",
        "--help",
        "help simulate",
    ];
    Tables::new().plain_job("a", 0).write(&folder);
    for line in commands {
        // The reader is gone before the program writes.
        let mut reader = Command::new("true");
        let mut reader = reader.stdin(Stdio::piped()).spawn().expect("`true` starts");
        let closed = reader.stdin.take().expect("it was piped");
        reader.wait().expect("it is ours");
        let mut command = folder.program();
        command.args(line.split_whitespace()).stdout(closed).stderr(Stdio::piped());
        let output = command.spawn().and_then(|child| child.wait_with_output());
        let ran = Ran::new(&output.expect("the program ran"));
        assert_eq!(ran.code, Some(0), "`{line}`: {}", ran.stderr);
        assert!(!ran.stderr.contains("error"), "`{line}`: {}", ran.stderr);
    }
    assert!(folder.path("hostler-report.html").exists(), "the report is written all the same");
}
