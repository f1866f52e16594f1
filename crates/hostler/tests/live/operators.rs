//! What operators do.

use std::process::{Command, Stdio};

use crate::cluster::Cluster;

#[test]
fn quotas_holds_and_drains_are_obeyed() {
    let cluster = Cluster::start("2xV100");
    let set = cluster.run(&["tenant", "set", "default", "--gpus", "1", "--queued", "2"]);
    assert_eq!((set.status.success(), String::from_utf8_lossy(&set.stderr).as_ref()), (true, ""));
    let made = cluster.run(&["tenant", "set", "nosuch"]);
    assert_eq!(String::from_utf8_lossy(&made.stderr), "made tenant nosuch\n");
    let running = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(&running, "running");
    let over = cluster.submit(&["--gpus", "1", "--", "true"]);
    let view = cluster.until(&over, "held");
    let reason = view["reason"].as_str().unwrap();
    assert!(reason.contains("may have 1 GPU at once: 1 runs; it asks for 1"), "{view}");
    let listed = cluster.text(&["tenant", "list"]);
    let line = listed.lines().find(|line| line.starts_with("default ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[..5], ["default", "2/-", "1/2", "1/1", "0"], "{listed}");
    assert_eq!(view["held_by"], "quota");
    let queue = cluster.text(&["queue", "--state", "held"]);
    assert!(queue.contains("held:quota"), "{queue}");
    let why = cluster.text(&["explain", &over]);
    assert!(why.contains(&format!("job {over} has been held:quota for")), "{why}");
    cluster.submit(&["--gpus", "1", "--", "true"]);
    let refused = cluster.run(&["submit", "--gpus", "1", "--", "true"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(words.contains("tenant `default` may have 2 waiting jobs"), "{words}");
    // What is not named stays as it is.
    let set = cluster.text(&["tenant", "set", "default", "--weight", "2", "--queued", "9"]);
    assert!(set.contains("/9 ") && set.contains("1/1 "), "{set}");
    cluster.text(&["tenant", "set", "default", "--gpus", "none", "--queued", "none"]);
    cluster.until(&over, "finished");
    let node = cluster.json(&["nodes"])[0]["name"].as_str().unwrap().to_owned();
    cluster.text(&["drain", &node]);
    let waits = cluster.submit(&["--gpus", "1", "--", "true"]);
    assert_ne!(cluster.job(&waits)["state"], "finished");
    let why = cluster.text(&["explain", &waits]);
    assert!(why.contains("none of 1 nodes takes jobs"), "{why}");
    let never = cluster.submit(&["--gpus", "1", "--", "true"]);
    cluster.text(&["cancel", &never]);
    let logs = cluster.run(&["logs", "-f", &never]);
    let words = String::from_utf8_lossy(&logs.stderr).into_owned();
    assert!(words.contains("is over and never started"), "{words}");
    cluster.text(&["hold", &waits]);
    cluster.text(&["undrain", &node]);
    let held = cluster.job(&waits);
    assert_eq!((&held["state"], &held["held_by"]), (&"held".into(), &"person".into()));
    assert!(cluster.text(&["show", &waits]).contains("held:person"));
    cluster.text(&["release", &waits]);
    cluster.until(&waits, "finished");
    let picture = cluster.text(&["top"]);
    assert!(picture.starts_with("1 nodes, 1/2 GPUs; 1 running"), "{picture}");
}

#[test]
fn policies_are_set_by_name_and_file_and_shown_with_what_nobody_named() {
    let cluster = Cluster::start("1xV100");
    std::fs::write(cluster.folder().join("sjf.toml"), "kind = 'sjf'\nestimate = 'user'\n").unwrap();
    cluster.text(&["policy", "set", "sjf.toml"]);
    let shown = cluster.text(&["policy", "show"]);
    assert!(shown.starts_with("kind = \"sjf\"\n"), "{shown}");
    assert!(shown.contains("\nestimate = \"user\""), "{shown}");
    assert!(shown.contains("\npreempt = false  # default\n"), "{shown}");
    let usual = "\nestimate = \"user\"  # default where jobs run for real\n";
    let set = cluster.text(&["policy", "set", "fifo-backfill"]);
    let shown = cluster.text(&["policy", "show"]);
    assert!(set.contains(usual) && shown.contains(usual), "{set}{shown}");
    cluster.text(&["policy", "set", "fifo-backfill:depth=50:estimate=median"]);
    let shown = cluster.text(&["policy", "show"]);
    assert!(shown.starts_with("kind = \"fifo-backfill\"\n"), "{shown}");
    assert!(shown.contains("\ndepth = 50\n"), "{shown}");
    assert!(shown.contains("\nestimate = \"median\"\n"), "{shown}");
    let json = cluster.json(&["policy", "show"]);
    let depth = json["settings"].as_array().unwrap().iter().find(|one| one["name"] == "depth");
    let depth = depth.unwrap();
    assert_eq!((&depth["value"], &depth["default"]), (&50.into(), &false.into()));
    let said = |words: &[&str]| {
        let ran = cluster.run(words);
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (code, words) = said(&["policy", "set", "sjf:estimate=oracle"]);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("nobody knows the true run times"), "{words}");
    let (code, words) = said(&["policy", "set", "sfj"]);
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("unknown policy `sfj`"), "{words}");
    let (code, words) = said(&["policy", "set", "nosuch.toml"]);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("cannot read `nosuch.toml`"), "{words}");
    // A file comes first.
    std::fs::write(cluster.folder().join("fifo"), "kind = 'sjf'\nestimate = 'user'\n").unwrap();
    assert!(cluster.text(&["policy", "set", "fifo"]).starts_with("kind = \"sjf\"\n"));
}

#[test]
fn tokens_are_made_used_and_revoked() {
    let cluster = Cluster::start("1xV100");
    let typo = cluster.run(&["token", "create", "--tenant", "visoin", "ada"]);
    let words = String::from_utf8_lossy(&typo.stderr).into_owned();
    assert!(words.contains("no such tenant: visoin") && words.contains("--new-tenant"), "{words}");
    assert!(!cluster.text(&["tenant", "list"]).contains("visoin"));
    let made = cluster.run(&["token", "create", "--tenant", "vision", "--new-tenant", "ada"]);
    let words = String::from_utf8_lossy(&made.stderr).into_owned();
    // What is printed for her to type works as it stands.
    let (_, next) = words.split_once("only you can read: hostler ").unwrap();
    let (next, file) = next.trim().split_once(" < ").unwrap();
    let token = cluster.folder().join(file);
    std::fs::write(&token, &made.stdout).unwrap();
    let mut login = cluster.command();
    login.args(next.split_whitespace()).env("XDG_CONFIG_HOME", cluster.folder().join("ada"));
    login.stdin(std::fs::File::open(token).unwrap());
    assert!(login.status().unwrap().success(), "{next}");
    assert!(!next.contains("hst_"), "a command line is seen by others");
    let made = cluster.json(&["token", "create", "--role", "viewer", "eve"]);
    let id = made["id"].to_string();
    let listed = cluster.text(&["token", "list"]);
    assert!(listed.contains("eve"), "{listed}");
    assert!(!listed.contains("hst_"), "secrets are not listed");
    cluster.text(&["token", "revoke", &id]);
    let tokens = cluster.json(&["token", "list"]);
    let revoked = tokens.as_array().unwrap().iter().find(|token| token["id"] == made["id"]);
    assert!(revoked.unwrap()["revoked"].is_number());
}

#[test]
fn a_wrong_token_or_no_fingerprint_says_how_to_log_in() {
    let cluster = Cluster::start("1xV100");
    let server = format!("https://{}", cluster.address());
    let said = |command: &mut Command| {
        let ran = command.output().unwrap();
        assert_eq!(ran.status.code(), Some(1));
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    let words = said(cluster.command().args(["queue"]).env("HOSTLER_TOKEN", "hst_wrong"));
    assert!(words.contains("no valid token; use `hostler login`"), "{words}");
    let words = said(cluster.command().args(["login", &server, "--token", "x"]));
    assert!(words.contains("give `--fingerprint sha256:..`"), "{words}");
}

#[test]
fn without_a_daemon_the_error_says_what_to_do() {
    let run = |server: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hostler"));
        command.args(["queue"]).stdin(Stdio::null()).env("XDG_CONFIG_HOME", "/nonexistent");
        command.env("HOSTLER_SERVER", server).env("HOSTLER_TOKEN", "x");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(run("").contains("start one with `hostler serve`"), "{}", run(""));
    let words = run("http://127.0.0.1:1");
    assert!(words.contains("cannot reach `http://127.0.0.1:1`"), "{words}");
    assert!(words.contains("`hostler serve` starts it"), "{words}");
}

#[test]
fn a_daemon_whose_agent_ends_does_not_go_on_without_it() {
    let cluster = Cluster::start("1xV100");
    let other = cluster.folder().join("other");
    std::fs::create_dir(&other).unwrap();
    // The folder of an agent that runs already.
    std::os::unix::fs::symlink(cluster.folder().join("data/agent"), other.join("agent")).unwrap();
    let serve = ["serve", "--data", "other", "--listen", "127.0.0.1:0", "--with-agent"];
    let ended = cluster.run(&serve);
    let words = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{words}");
    assert!(words.contains("another agent uses the data folder"), "{words}");
}
