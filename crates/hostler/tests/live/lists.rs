//! Lists that people read: folded, by end, of some people, on a narrow screen.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::cluster::Cluster;

fn first_words(text: &str) -> Vec<String> {
    let lines = text.lines().skip(1);
    lines.map(|line| line.split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn arrays_are_one_line_and_notes_fit_the_screen() {
    let cluster = Cluster::start("1xV100");
    let running = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(&running, "running");
    let array = cluster.submit(&["--array", "1200", "--gpus", "1", "--", "true"]);
    let waits = cluster.submit(&["--after", &array, "--gpus", "1", "--", "true"]);
    let queue = cluster.text(&["queue"]);
    assert_eq!(first_words(&queue), [running.clone(), array.clone(), waits.clone()]);
    assert!(queue.contains("queued x1200"), "{queue}");
    let ran = cluster.command().arg("queue").env("COLUMNS", "80").output().unwrap();
    let narrow = String::from_utf8(ran.stdout).unwrap();
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    assert!(!narrow.contains('\u{1b}'), "a pipe gets no colours: {narrow}");
    assert_eq!(cluster.text(&["queue", "--each", "--limit", "50"]).lines().count(), 51);
    assert_eq!(cluster.json(&["queue", "--limit", "1500"]).as_array().unwrap().len(), 1202);
    let own = cluster.text(&["queue", "-u", "me", &waits]);
    assert_eq!(first_words(&own), [waits.as_str()]);
    assert_eq!(cluster.text(&["queue", "-u", "nobody"]).lines().count(), 1);
    let mut watch = cluster.command();
    let mut watch = watch.args(["queue", "--watch=1"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let heads = lines.filter(|line| line.starts_with("JOB ")).take(2).count();
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert_eq!(heads, 2);
    cluster.text(&["cancel", &array]);
    cluster.until(&waits, "cancelled");
}

#[test]
fn history_goes_by_end_and_takes_filters() {
    let cluster = Cluster::start("2xV100");
    let gate = cluster.folder().join("gate");
    let slow = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
    let slow = cluster.submit(&["--gpus", "1", "--", "sh", "-c", &slow]);
    let quick = cluster.submit(&["--gpus", "1", "--wait", "--", "true"]);
    let bad = cluster.submit(&["--gpus", "1", "--", "sh", "-c", "kill -SEGV $$"]);
    cluster.until(&bad, "failed");
    std::fs::write(&gate, "").unwrap();
    cluster.until(&slow, "finished");
    let by_end = [slow.clone(), bad.clone(), quick.clone()];
    let history = cluster.text(&["history"]);
    assert_eq!(first_words(&history), by_end, "{history}");
    assert!(history.contains("SIGSEGV"), "{history}");
    assert!(history.contains("ENDED (UTC)") && history.contains("20"), "{history}");
    // Page by page it is the same.
    let mut client = cluster.json(&["history", "--limit", "1"]);
    assert_eq!(client.as_array_mut().unwrap().remove(0)["id"].to_string(), slow);
    assert_eq!(first_words(&cluster.text(&["history", "--state", "failed"])), [bad.as_str()]);
    assert_eq!(first_words(&cluster.text(&["history", "--since", "1h", "-u", "me"])), by_end);
    assert!(first_words(&cluster.text(&["history", "--until", "2020-01-01"])).is_empty());
    let csv = cluster.text(&["history", "--csv"]);
    assert!(csv.starts_with("job,array,index,name,user,"), "{csv}");
    let numbers: Vec<&str> =
        csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(numbers, by_end, "{csv}");
    assert!(csv.contains(&format!("\n{bad},,,sh,admin,default,failed,139,")), "{csv}");
    // A page may hold more lines than were asked for.
    let array = cluster.submit(&["--array", "3", "--wait", "--", "true"]);
    assert_eq!(first_words(&cluster.text(&["history", "--limit", "1"])), [array.as_str()]);
    let each = cluster.text(&["history", "--limit", "2", "--each"]);
    assert_eq!(first_words(&each).len(), 2, "{each}");
    let two = first_words(&cluster.text(&["history", "--limit", "2"]));
    assert_eq!(two, [array, slow.clone()]);
    let told = cluster.run(&["submit", "--notify", "end", "--", "true"]);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("note: nobody will be told"), "{told}");
    let wrong = cluster.run(&["history", "--since", "yesterday"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn all_that_was_asked_for_is_shown() {
    let cluster = Cluster::start("2xV100");
    let job = cluster.submit(&[
        "--gpus",
        "0.5",
        "--share",
        "willing",
        "--gpu-mem",
        "4096",
        "--cpus",
        "0.5",
        "--mem",
        "64",
        "--workdir",
        "/tmp",
        "--env",
        "SECRET=word",
        "--deadline",
        "2h",
        "--estimate",
        "5m",
        "--group",
        "sweep",
        "--grace",
        "10s",
        "--steps",
        "9",
        "--max-time",
        "1h",
        "--checkpoints",
        "--wait",
        "--",
        "true",
    ]);
    let shown = cluster.text(&["show", &job]);
    for line in [
        "workdir         /tmp",
        "gpus            0.5",
        "gpu memory      4096 MiB",
        "sharing         willing",
        "cpus            0.5",
        "memory          64 MiB",
        "group           sweep",
        "max time        1h00m",
        "estimate        5m00s",
        "grace           10s",
        "steps           9",
        "variables       SECRET",
        "checkpoints     it can be stopped and started again",
        "exit code       0",
    ] {
        assert!(shown.lines().any(|other| other == line), "{line}\n{shown}");
    }
    assert!(shown.contains("deadline        20") && !shown.contains("word"), "{shown}");
}
