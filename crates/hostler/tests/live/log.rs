//! The daemon's log, taken elsewhere.

use crate::cluster::Cluster;

#[test]
fn an_exported_log_is_replayed_with_the_same_decisions() {
    let mut cluster = Cluster::start("2xV100");
    // Nothing begins that is to be held.
    let (gate, script) = cluster.gate("gate");
    let array = cluster.submit(&["--gpus", "1", "--array", "4", "--", "sh", "-c", &script]);
    let after = cluster.submit(&["--gpus", "1", "--after", &array, "--", "true"]);
    let held = cluster.submit(&["--gpus", "1", "--after", &after, "--", "true"]);
    cluster.text(&["hold", &held]);
    let cancelled = cluster.submit(&["--gpus", "2", "--", "sleep", "600"]);
    std::fs::write(&gate, "").unwrap();
    cluster.until(&after, "finished");
    cluster.until(&cancelled, "running");
    cluster.text(&["policy", "set", "sjf:estimate=median"]);
    let group = ["--group", "sweep", "--gpus", "1"];
    let more: Vec<String> =
        (0..3).map(|_| cluster.submit(&[&group[..], &["--", "sleep", "0.1"]].concat())).collect();
    cluster.text(&["cancel", &cancelled]);
    cluster.text(&["release", &held]);
    cluster.until(&held, "finished");
    for job in &more {
        cluster.until(job, "finished");
    }
    cluster.crash();
    // One that gives way to a shorter one, however long that takes to come.
    cluster.text(&["policy", "set", "sjf:estimate=user:preempt=true"]);
    let whole = ["--gpus", "2", "--checkpoints", "--grace", "1s", "--estimate"];
    let script = "[ $HOSTLER_RESTART = 0 ] && exec sleep 600; true";
    let long = cluster.submit(&[&whole[..], &["10h", "--", "sh", "-c", script]].concat());
    cluster.until(&long, "running");
    let short = cluster.submit(&[&whole[..], &["1s", "--", "true"]].concat());
    cluster.until(&short, "finished");
    let view = cluster.until(&long, "finished");
    assert_eq!(view["restarts"], 1, "{view}");
    cluster.text(&["log", "export", "--out", "daemon.jsonl"]);
    let replayed = cluster.json(&["replay", "daemon.jsonl", "--check"]);
    assert!(replayed["decisions_compared"].as_u64().unwrap() > 20, "{replayed}");
    let taken = cluster.run(&["log", "export", "--out", "daemon.jsonl"]);
    let words = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(words.contains("give `--force` to write over it"), "{words}");
    cluster.text(&["log", "export", "--out", "daemon.jsonl", "--force"]);
    let text = cluster.text(&["log", "export"]);
    assert!(text.starts_with(r#"{"record":"input""#) && text.ends_with("}\n"), "{text}");
}

#[test]
fn jobs_go_by_blended_estimates_and_the_log_tells_the_same_story() {
    let cluster = Cluster::start("2xV100");
    cluster.text(&["policy", "set", "bounded-sjf:estimate=blend"]);
    let named = |name: &str, secs: &str| {
        cluster.submit(&["--gpus", "1", "--name", name, "--", "sleep", secs])
    };
    for _ in 0..3 {
        let (short, long) = (named("quick-look", "0.1"), named("whole-epoch", "0.6"));
        cluster.until(&short, "finished");
        cluster.until(&long, "finished");
    }
    let (gate, script) = cluster.gate("gate");
    let holds = cluster.submit(&["--gpus", "2", "--name", "holding", "--", "sh", "-c", &script]);
    cluster.until(&holds, "running");
    let (long, short) = (named("whole-epoch", "0.6"), named("quick-look", "0.1"));
    std::fs::write(&gate, "").unwrap();
    cluster.until(&short, "finished");
    cluster.until(&long, "finished");
    cluster.text(&["log", "export", "--out", "daemon.jsonl"]);
    let log = std::fs::read_to_string(cluster.folder().join("daemon.jsonl")).unwrap();
    assert!(log.contains("\"event\":\"estimated\""), "{log}");
    let replayed = cluster.json(&["replay", "daemon.jsonl", "--check"]);
    assert!(replayed["decisions_compared"].as_u64().unwrap() > 8, "{replayed}");
}
