//! Policies that go by what jobs have received: a newcomer runs at once, over deaths of daemon and
//! agents.

use crate::harness::{Cluster, wait_for};
use crate::preemption::{SCRIPT, assert_in_order};

/// Two jobs that have had their part give way to one that had nothing, and go on from there.
fn newcomers_run_first(policy: &str) {
    let mut cluster = Cluster::new(&["--plain", "--policy", "policy.toml"]);
    std::fs::write(cluster.folder().join("policy.toml"), policy).unwrap();
    cluster.serve();
    cluster.enrol("n0", &["--fake-gpus", "1xV100"]);
    cluster.enrol("n1", &["--fake-gpus", "1xV100"]);
    cluster.until_up();
    let old = ["one", "two"].map(|name| {
        let notes = cluster.notes().join(name);
        let env = format!("NOTES={}", notes.display());
        let options = ["--gpus", "1", "--checkpoints", "--grace", "20s", "--env", &env];
        (cluster.submit(&[&options, &["--", "sh", "-c", SCRIPT][..]].concat()), notes)
    });
    for (_, notes) in &old {
        let steps = || std::fs::read_to_string(notes).unwrap_or_default().lines().count();
        // Four seconds: more than the policy lets pass.
        wait_for("many steps", || (steps() >= 40).then_some(()));
    }
    // What jobs have received is in the log.
    cluster.kill_daemon();
    cluster.serve();
    cluster.until_up();
    let (gate, script) = cluster.gate("go");
    let options = ["--gpus", "1", "--tasks", "2", "--estimate", "1s"];
    let newcomer = cluster.submit(&[&options, &["--", "sh", "-c", &script][..]].concat());
    cluster.until(newcomer, "running");
    cluster.kill_agent(1);
    cluster.spawn_agent(1);
    std::fs::write(&gate, "").unwrap();
    let newcomer = cluster.until(newcomer, "finished");
    assert_eq!(newcomer["restarts"], 0, "{newcomer}");
    for (job, notes) in old {
        let view = cluster.until(job, "finished");
        assert!(view["ended"].as_f64() > newcomer["ended"].as_f64(), "{view}");
        assert_eq!((&view["restarts"], &view["exit_code"]), (&1.into(), &0.into()), "{view}");
        assert_in_order(&std::fs::read_to_string(notes).unwrap());
    }
}

#[test]
fn least_attained_service_lets_newcomers_run_first() {
    newcomers_run_first("kind = 'las'\nquantum_gpu_secs = 2\n");
}

#[test]
fn queues_by_attained_service_let_newcomers_run_first() {
    newcomers_run_first("kind = 'tiresias'\nlimits_gpu_secs = [2, 3600]\n");
}

#[test]
fn leases_let_newcomers_run_who_would_end_late() {
    newcomers_run_first("kind = 'themis'\nlease_secs = 2\nestimate = 'user'\n");
}

#[test]
fn slices_of_time_let_newcomers_have_their_turn() {
    newcomers_run_first("kind = 'gandiva'\nround_secs = 2\ngap_secs = 1\n");
}

#[test]
fn queues_with_the_gittins_index_let_newcomers_run_first() {
    newcomers_run_first("kind = 'gittins'\nlimits_gpu_secs = [2, 3600]\nends_min = 1\n");
}
