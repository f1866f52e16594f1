//! The messages of the most common mistakes, in one place: each names the next step.

use std::fs;
use std::process::Command;

use expect_test::expect_file;

use crate::cluster::Cluster;

/// What a command says, with all that differs from run to run replaced.
fn said(cluster: &Cluster, command: &mut Command) -> String {
    let ran = command.output().expect("the program runs");
    let mut words = String::from_utf8_lossy(&ran.stderr).into_owned();
    if !ran.stdout.is_empty() {
        words = format!("{}{words}", String::from_utf8_lossy(&ran.stdout));
    }
    let folder = cluster.folder().display().to_string();
    let words = words.replace(&folder, "FOLDER").replace(cluster.address(), "HOST:PORT");
    let node = cluster.json(&["nodes"])[0]["name"].as_str().unwrap_or_default().to_owned();
    let words = words.replace(&format!("`{node}`"), "`NODE`");
    // Moments differ.
    let lines = words.lines().filter(|line| !line.starts_with("submitted"));
    let words = lines.collect::<Vec<_>>().join("\n");
    let code = ran.status.code().unwrap_or(-1);
    let lines = words.lines().filter(|line| !line.is_empty());
    lines.map(|line| format!("  {line}\n")).collect::<String>() + &format!("  = {code}\n")
}

#[test]
fn common_mistakes_name_the_next_step() {
    let cluster = Cluster::start("4xV100");
    cluster.text(&["tenant", "set", "default", "--gpus", "16"]);
    fs::write(cluster.folder().join("bad.sh"), "#!/bin/sh\n#SBATCH --gres=cake:3\ntrue\n").unwrap();
    fs::write(cluster.folder().join("bad.toml"), "comand = 'true'\n").unwrap();
    let busy = cluster.submit(&["--gpus", "3", "--", "sleep", "600"]);
    cluster.until(&busy, "running");
    let mut text = String::new();
    let mut note = |title: &str, words: &[&str], command: &mut Command| {
        text += &format!("{title}\n$ hostler {}\n{}\n", words.join(" "), said(&cluster, command));
    };
    let large = cluster.submit(&["--gpus", "8", "--", "true"]);
    cluster.until(&large, "held");
    for (title, words) in [
        ("More GPUs than any node has", &["show", &large][..]),
        (
            "A model that no node has",
            &["submit", "--gpus", "1", "--gpu-model", "H900", "--", "true"],
        ),
        ("More than the quota", &["submit", "--gpus", "1", "--tasks", "17", "--", "true"]),
        ("A folder that is not there", &["submit", "--workdir", "nosuch", "--wait", "--", "true"]),
        ("A program that is not there", &["submit", "--wait", "--", "nosuch-program"]),
        ("A script with a line that makes no sense", &["submit", "bad.sh"]),
        ("A script that is not there", &["submit", "nosuch.sh"]),
        ("A job file with a wrong name", &["submit", "bad.toml"]),
        ("No command", &["submit", "--gpus", "1"]),
        ("A command without `--`", &["submit", "sh", "train.sh"]),
        ("An image that no node runs", &["submit", "--image", "/torch.sif", "--", "true"]),
        ("More GPUs than there are, at submission", &["submit", "--gpus", "8", "--", "true"]),
        ("A user who is not there", &["usage", "--user", "nobdy", "--csv"]),
        ("A job to cancel that is not there", &["cancel", "999"]),
        ("A job that is not there", &["show", "999"]),
        ("After a job that is not there", &["submit", "--after", "999", "--", "true"]),
        ("A time that is none", &["submit", "--max-time", "soon", "--", "true"]),
        ("A policy that is none", &["policy", "set", "fifa"]),
        ("A node that is not there", &["drain", "gpu-99"]),
        ("A tenant that is not there", &["token", "create", "ada", "--tenant", "lap"]),
    ] {
        note(title, words, cluster.command().args(words));
    }
    let plain = format!("http://{}", cluster.address());
    let mut login = cluster.command();
    let words = ["login", "http://HOST:PORT", "--token", "h_token"];
    login.args(["login", &plain, "--token", "h_token"]);
    note("Plain HTTP where there is TLS", &words, &mut login);
    let words = ["queue"];
    note("A wrong token", &words, cluster.command().args(words).env("HOSTLER_TOKEN", "h_wrong"));
    let nobody = cluster.folder().join("nobody");
    let mut never = cluster.command();
    note("Never logged in", &words, never.args(words).env("XDG_CONFIG_HOME", nobody));
    let text = text.trim_end().to_owned() + "\n";
    expect_file!["mistakes.txt"].assert_eq(&text);
}

#[test]
fn the_doctor_finds_a_daemon_and_says_what_is_wrong() {
    let cluster = Cluster::start("1xV100");
    let data = cluster.folder().join("data");
    let data = data.to_str().expect("a plain name");
    let found = |words: &[&str]| -> Vec<(String, String)> {
        let ran = cluster.run(&[&["doctor", "--json"], words].concat());
        let found: serde_json::Value =
            serde_json::from_slice(&ran.stdout).expect("findings are JSON");
        let found = found.as_array().expect("a list").clone();
        let word = |finding: &serde_json::Value, key: &str| {
            finding[key].as_str().expect("a word").to_owned()
        };
        found.iter().map(|finding| (word(finding, "check"), word(finding, "verdict"))).collect()
    };
    let healthy = found(&["--data", data]);
    for check in ["daemon", "clock", "nodes"] {
        assert!(healthy.contains(&(check.to_owned(), "good".to_owned())), "{healthy:?}");
    }
    assert!(healthy.iter().all(|(_, verdict)| verdict != "broken"), "{healthy:?}");
    let node = cluster.json(&["nodes"])[0]["name"].as_str().expect("a name").to_owned();
    cluster.text(&["drain", &node]);
    let drained = found(&[]);
    assert!(drained.contains(&("nodes".to_owned(), "warning".to_owned())), "{drained:?}");
    let ran = cluster.command().args(["doctor"]).env("HOSTLER_TOKEN", "h_wrong").output();
    let ran = ran.expect("the program runs");
    let words = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{words}");
    assert!(words.contains("broken   daemon") && words.contains("hostler login"), "{words}");
}
