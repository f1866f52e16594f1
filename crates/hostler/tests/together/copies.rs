//! A folder of an agent that was copied.

use std::process::Command;

use crate::harness::{Cluster, wait_for};

#[test]
fn an_agent_on_a_copied_folder_is_refused_while_the_first_lives() {
    // A beat every two seconds.
    let mut cluster = Cluster::start(&["--fence-secs", "12"], &["1xV100"]);
    let starts = cluster.notes().join("starts");
    let script = format!("echo x >> {}; sleep 600", starts.display());
    let job = cluster.submit(&["--gpus", "1", "--", "sh", "-c", &script]);
    cluster.until(job, "running");
    let mut copy = Command::new("cp");
    let copied = copy.args(["-a", "n0", "copy"]).current_dir(cluster.folder()).status();
    assert!(copied.unwrap().success());

    let mut second = cluster.spawn_agent_on(0, "copy");
    assert_eq!(second.exit_code(), Some(1), "{}", cluster.tail("copy"));
    let (words, daemon) = (cluster.tail("copy"), cluster.tail("daemon"));
    assert!(words.contains("another agent speaks for node `n0`"), "{words}");
    assert!(words.contains("and lives"), "{words}");
    assert!(words.contains("hostler token create --role agent"), "{words}");
    let warned = |line: &str| line.contains("WARN") && line.contains("an agent is refused");
    assert!(daemon.lines().any(warned), "{daemon}");
    assert_eq!(cluster.nodes()[0]["health"], "up");

    // The first one comes back at once, also from a crash, and its job never noticed.
    cluster.kill_agent(0);
    cluster.spawn_agent(0);
    wait_for("the node", || (cluster.nodes()[0]["connected"] == true).then_some(()));
    let view = cluster.until(job, "running");
    assert_eq!(view["restarts"], 0, "{view}");
    assert_eq!(std::fs::read_to_string(starts).unwrap(), "x\n");
    assert!(!cluster.tail("n0").contains("refuse"), "{}", cluster.tail("n0"));
}
