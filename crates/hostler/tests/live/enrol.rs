//! How another machine joins: a token that works once, and one of the node's own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use crate::cluster::Cluster;

/// An agent that does not outlive its test.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn agent(cluster: &Cluster, data: &str) -> Command {
    let kept = std::fs::read_to_string(cluster.folder().join("config/hostler/credentials.toml"));
    let kept: toml::Table = kept.unwrap().parse().unwrap();
    let mut agent = cluster.command();
    agent.args(["agent", "--server", &format!("https://{}", cluster.address()), "--data", data]);
    agent.args(["--fingerprint", kept["fingerprint"].as_str().unwrap()]);
    agent.args(["--name", "second", "--fake-gpus", "1xT4", "--image-programs", "none"]);
    agent
}

fn is_up(cluster: &Cluster) -> bool {
    let nodes = cluster.json(&["nodes"]);
    let second = nodes.as_array().unwrap().iter().find(|node| node["name"] == "second");
    second.is_some_and(|node| node["connected"] == true)
}

#[test]
fn an_agent_enrols_once_and_comes_back_with_its_own_token() {
    let cluster = Cluster::start("1xV100");
    let made = cluster.json(&["token", "create", "--role", "agent", "second"]);
    let once = made["token"].as_str().unwrap();
    let missing = agent(&cluster, "a").output().unwrap();
    let words = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(words.contains("hostler token create --role agent"), "{words}");

    let mut first = agent(&cluster, "a");
    let first = first.env("HOSTLER_TOKEN", once).stderr(Stdio::null()).spawn().unwrap();
    let first = Agent(first);
    cluster.wait_for("the node", is_up);
    let kept = cluster.folder().join("a/token");
    let own = std::fs::read_to_string(&kept).unwrap();
    assert_ne!(own, once);
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    drop(first);
    cluster.wait_for("the node to be gone", |cluster| !is_up(cluster));

    let again = agent(&cluster, "a").stderr(Stdio::null()).spawn().unwrap();
    let _again = Agent(again);
    cluster.wait_for("the node", is_up);
    let job = cluster.submit(&["--gpus", "1", "--gpu-model", "T4", "--", "true"]);
    cluster.until(&job, "finished");

    let spent = agent(&cluster, "b").env("HOSTLER_TOKEN", once).output().unwrap();
    let words = String::from_utf8_lossy(&spent.stderr).into_owned();
    assert_eq!(spent.status.code(), Some(1), "{words}");
    assert!(words.contains("`hostler token create --role agent second`"), "{words}");
    assert!(!cluster.folder().join("b/token").exists());
    // So does one whose own token is good no more.
    std::fs::create_dir_all(cluster.folder().join("c")).unwrap();
    std::fs::write(cluster.folder().join("c/token"), "h_unknown").unwrap();
    let unknown = agent(&cluster, "c").output().unwrap();
    let words = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert_eq!(unknown.status.code(), Some(1), "{words}");
    assert!(words.contains("hostler token create --role agent NAME"), "{words}");
    let log = std::fs::read(cluster.folder().join("data/hostler.db")).unwrap();
    let holds = |secret: &str| log.windows(secret.len()).any(|part| part == secret.as_bytes());
    assert!(!holds(once) && !holds(&own), "the store holds no secret");
}

#[test]
fn an_agent_that_died_before_it_heard_that_it_is_enrolled_comes_in() {
    let cluster = Cluster::start("1xV100");
    let made = cluster.json(&["token", "create", "--role", "agent", "second"]);
    let once = made["token"].as_str().unwrap();
    let first = agent(&cluster, "a").env("HOSTLER_TOKEN", once).stderr(Stdio::null()).spawn();
    let first = Agent(first.unwrap());
    cluster.wait_for("the node", is_up);
    drop(first);
    cluster.wait_for("the node to be gone", |cluster| !is_up(cluster));
    // As it was before the answer came: the secret is written down, the one-time token is spent.
    let data = cluster.folder().join("a");
    std::fs::rename(data.join("token"), data.join("token-to-be")).unwrap();
    let again = agent(&cluster, "a").env("HOSTLER_TOKEN", once).stderr(Stdio::null()).spawn();
    let _again = Agent(again.unwrap());
    cluster.wait_for("the node", is_up);
    assert!(data.join("token").exists());
}
