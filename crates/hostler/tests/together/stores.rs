//! The same story on either store: order, exit codes, arrays, dependencies, quotas, time limits,
//! output, and a daemon that is killed in the middle of it.

use std::time::Duration;

use crate::harness::server::Server;
use crate::harness::{Cluster, wait_for};

#[test]
fn the_story_on_sqlite() {
    story(&[]);
}

#[test]
fn the_story_on_postgresql() {
    let Some(server) = Server::start() else { return };
    story(&["--store", &server.address()]);
}

#[test]
fn a_database_server_that_crashes_stops_the_daemon_and_costs_nothing() {
    let Some(server) = Server::start() else { return };
    let mut cluster = Cluster::start(&["--store", &server.address()], &["1xV100"]);
    let (gate, script) = cluster.gate("gate");
    let script = format!("{script}; exit 3");
    let job = cluster.submit(&["--gpus", "1", "--", "sh", "-c", &script]);
    cluster.until(job, "running");
    server.stop();
    let refused = cluster.run(&["submit", "--gpus", "1", "--", "true"]).unwrap_err();
    assert!(refused.contains("lost the connection"), "{refused}");
    assert_eq!(cluster.daemon().exit_code(), Some(1));
    std::fs::write(&gate, "").unwrap();
    let words = cluster.try_serve().unwrap_err();
    assert!(words.contains("see to the database server"), "{words}");
    server.start_again();
    cluster.serve();
    let view = cluster.until(job, "failed");
    assert_eq!((&view["exit_code"], &view["restarts"]), (&3.into(), &0.into()));
    drop(cluster);
}

fn story(options: &[&str]) {
    let mut cluster = Cluster::start(options, &["1xV100", "1xV100"]);
    cluster.text(&["tenant", "set", "small", "--jobs", "1"]);
    let go = cluster.notes().join("go");
    let script =
        format!("echo begun; while [ ! -e {} ]; do sleep 0.05; done; exit 3", go.display());
    let both = cluster.submit(&["--tasks", "2", "--gpus", "1", "--", "sh", "-c", &script]);
    let mut order = vec![both];
    for code in ["exit 0", "exit 4"] {
        order.push(cluster.submit(&["--tasks", "2", "--gpus", "1", "--", "sh", "-c", code]));
    }
    let after = cluster.submit(&["--after", &order[1].to_string(), "--", "true"]);
    let never = cluster.submit(&["--after", &both.to_string(), "--", "true"]);
    let slow = cluster.submit(&["--max-time", "1s", "--grace", "1s", "--", "sleep", "600"]);
    let first = cluster.submit(&["--array", "3", "--", "sh", "-c", "exit $HOSTLER_ARRAY_INDEX"]);
    cluster.submit(&["--tenant", "small", "--gpus", "1", "--", "true"]);
    let refused = cluster.run(&["submit", "--tenant", "small", "--", "true"]).unwrap_err();
    assert!(refused.contains("tenant `small` may have 1 job"), "{refused}");
    cluster.until(both, "running");
    cluster.kill_daemon();
    cluster.serve();
    let said = || cluster.run(&["logs", &both.to_string(), "--rank", "1"]).ok();
    wait_for("output", || said().filter(|text| text == "begun\n"));
    std::fs::write(&go, "").unwrap();
    for (job, state) in [(order[1], "finished"), (order[2], "failed"), (after, "finished")] {
        cluster.until(job, state);
    }
    cluster.until(never, "cancelled");
    cluster.until(slow, "timed-out");
    let codes: Vec<i64> = (first..first + 3)
        .map(|job| wait_for("the array", || cluster.job(job)["exit_code"].as_i64()))
        .collect();
    assert_eq!(codes, [0, 1, 2]);
    let view = cluster.until(both, "failed");
    assert_eq!((&view["exit_code"], &view["restarts"]), (&3.into(), &0.into()), "{view}");
    let started = order.iter().map(|job| cluster.job(*job)["started"].as_f64().unwrap());
    assert!(started.is_sorted(), "gangs of the whole cluster start in order");
    cluster.until_drained(Duration::from_secs(60));
    let history = cluster.text(&["history", "--json", "--limit", "100"]);
    let history: Vec<serde_json::Value> = serde_json::from_str(&history).unwrap();
    assert_eq!(history.len(), 10, "{history:#?}");
}
