//! How jobs end: when they did, and at once where they cannot begin.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hostler_live::client::ClientError;
use hostler_live::job::JobRequest;
use serde_json::Value;

use crate::harness::{Cluster, shell, wait_for};

/// Seconds since the epoch.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

#[test]
fn a_job_that_ended_while_its_agent_was_dead_ended_then() {
    let mut cluster = Cluster::start(&[], &["1xV100"]);
    let (gate, script) = cluster.gate("gate");
    let job = cluster.submit(&["--gpus", "1", "--", "sh", "-c", &script]);
    cluster.until(job, "running");
    cluster.kill_agent(0);
    let opened = now();
    std::fs::write(&gate, "").unwrap();
    let end = cluster.folder().join("n0/leases/0/end.json");
    wait_for("its end", || end.exists().then_some(()));
    let closed = now();
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(cluster.job(job)["state"], "running");
    cluster.spawn_agent(0);
    let view = cluster.until(job, "finished");
    // The word of it takes a moment.
    let ended = view["ended"].as_f64().unwrap();
    let meanwhile = opened - 0.5..closed + 4.0;
    assert!(meanwhile.contains(&ended), "not in {meanwhile:?}: {view}");
}

#[test]
fn a_job_whose_folder_is_missing_fails_at_once_and_says_so() {
    let cluster = Cluster::start(&[], &["1xV100"]);
    let begun = Instant::now();
    let job = cluster.submit(&["--gpus", "1", "--workdir", "/no/such/folder", "--", "true"]);
    let view = cluster.until(job, "failed");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}: {view}", begun.elapsed());
    let reason = view["reason"].as_str().unwrap();
    assert!(reason.contains("cannot start in `/no/such/folder`"), "{view}");
    assert_eq!((&view["restarts"], &view["exit_code"]), (&0.into(), &Value::Null), "{view}");
    // The node goes on.
    let next = cluster.submit(&["--gpus", "1", "--", "true"]);
    cluster.until(next, "finished");
}

#[test]
fn a_folder_that_is_not_named_from_the_root_on_is_refused() {
    let cluster = Cluster::start(&[], &["1xV100"]);
    let request = JobRequest { workdir: "data".to_owned(), ..shell("true", 1.0) };
    let refused = cluster.client().post::<Value>("/jobs", &request).unwrap_err();
    let ClientError::Refused { status: 400, .. } = &refused else { panic!("{refused:?}") };
    assert!(refused.to_string().contains("name the folder from `/` on"), "{refused}");
}

#[test]
fn a_node_whose_agent_is_gone_gets_no_jobs_until_it_is_back() {
    let mut cluster = Cluster::start(&[], &["2xV100"]);
    let stays = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(stays, "running");
    cluster.kill_agent(0);
    let health = |cluster: &Cluster, wanted: &str| {
        wait_for(wanted, || {
            let nodes: Vec<Value> = cluster.client().get("/nodes").unwrap();
            (nodes[0]["health"] == wanted).then(|| nodes[0]["reason"].clone())
        })
    };
    let why = health(&cluster, "silent");
    assert!(why.as_str().unwrap().starts_with("its agent is not connected"), "{why}");
    let waits = cluster.submit(&["--gpus", "1", "--", "true"]);
    std::thread::sleep(Duration::from_secs(1));
    let view = cluster.job(waits);
    assert_eq!((&view["state"], &view["nodes"]), (&"queued".into(), &serde_json::json!([])));
    let view = cluster.job(stays);
    assert_eq!(view["state"], "running", "what runs there goes on: {view}");
    assert!(view["reason"].as_str().unwrap().contains("its agent is not connected"), "{view}");
    cluster.spawn_agent(0);
    cluster.until(waits, "finished");
    health(&cluster, "up");
    assert_eq!(cluster.job(stays)["state"], "running");
    cluster.text(&["cancel", &stays.to_string()]);
    cluster.until(stays, "cancelled");
}
