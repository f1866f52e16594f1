//! What people get wrong, and readers that have seen enough.

use std::process::Stdio;

use crate::cluster::Cluster;

#[test]
fn a_relative_folder_is_meant_from_where_the_command_is_typed() {
    let cluster = Cluster::start("1xV100");
    let (here, below) = (cluster.folder().to_owned(), cluster.folder().join("below"));
    std::fs::create_dir(&below).unwrap();
    for (folder, expected) in [(".", &here), ("below", &below), ("./below/.", &below)] {
        let job = cluster.submit(&["--workdir", folder, "--wait", "--", "pwd"]);
        let real = expected.canonicalize().unwrap();
        assert_eq!(cluster.text(&["logs", &job]).trim(), real.to_str().unwrap(), "{folder}");
    }
    std::fs::write(here.join("job.yaml"), "command: [pwd]\nworkdir: below\n").unwrap();
    let job = cluster.submit(&["job.yaml", "--wait"]);
    let real = below.canonicalize().unwrap();
    assert_eq!(cluster.text(&["logs", &job]).trim(), real.to_str().unwrap());
}

#[test]
fn a_reader_that_has_gone_ends_every_command_quietly() {
    let cluster = Cluster::start("1xV100");
    let job = cluster.submit(&["--array", "2", "--wait", "--", "echo", "hello"]);
    cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    let one = format!("{job}_0");
    for words in [
        &["queue"][..],
        &["queue", "--json"],
        &["history"],
        &["show", &one],
        &["show", &job],
        &["explain", &one],
        &["logs", &one],
        &["logs", &job],
        &["nodes"],
        &["top"],
        &["tenant", "list"],
        &["token", "list"],
        &["policy", "show"],
        &["log", "export"],
        &["policies"],
        &["submit", "--", "true"],
        &["hold", "2"],
        &["completions", "bash"],
    ] {
        let mut command = cluster.command();
        let piped = command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!said.contains("panicked"), "{words:?}: {said}");
        assert!(ended.status.code().is_some_and(|code| code < 2), "{words:?}: {said}");
    }
}

#[test]
fn numbers_and_names_that_make_no_sense_are_refused_with_the_limit() {
    let cluster = Cluster::start("1xV100");
    let parts = "a part of one GPU from 0.01 to 1, or whole ones up to 64000";
    for (words, limit) in [
        (["--gpus", "nan"], parts),
        (["--gpus", "inf"], parts),
        (["--gpus", "-1"], parts),
        (["--gpus", "0.001"], parts),
        (["--gpus", "99999999999"], parts),
        (["--cpus", "nan"], "from 0.001 to 64000"),
        (["--cpus", "-1"], "from 0.001 to 64000"),
        (["--mem", "-1"], "MiB from 0 to 4294967295"),
        (["--gpu-mem", "nan"], "MiB from 0 to 4294967295"),
        (["--tasks", "0"], "use 1 to 4096"),
        (["--tasks", "99999999999"], "use 1 to 4096"),
        (["--nodes", "0"], "use 1 to 4096"),
        (["--steps", "0"], "from 1 on"),
        (["--steps", "-1"], "from 1 on"),
        (["--array", "-1"], "with 1 job at least"),
        (["--max-time", "0"], "write 1s or more"),
        (["--estimate", "0s"], "write 1s or more"),
        (["--deadline", "999999d"], "write 36600d or less"),
        (["--grace", "2h"], "write 3600s or less"),
        (["--env", "1A=x"], "no digit first"),
        (["--env", "A B=x"], "no digit first"),
        (["--env", "=x"], "no digit first"),
        (["--name", "a\u{7}b"], "no control characters"),
        (["--name", ""], "use 1 to 128 characters"),
        (["--group", "a/b"], "no slashes"),
    ] {
        let ran = cluster.run(&["submit", words[0], words[1], "--", "true"]);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(limit), "{words:?}: {said}");
    }
    for (words, limit) in [
        (&["serve", "--fence-secs", "18446744073709551615"][..], "31622400"),
        (&["tenant", "set", "x", "--weight", "0"], "0 is not in 1.."),
        (&["tenant", "set", "x", "--gpus", "-1"], "give a whole number, or `none`"),
    ] {
        let ran = cluster.run(words);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(limit), "{words:?}: {said}");
    }
    // What files say is refused by the daemon, with the same limits.
    for (text, limit) in [
        ("gpus: 0.005", "a part of one GPU from 0.01 to 1"),
        ("gpus: 1.5", "whole ones up to 64000"),
        ("tasks: 0", "use 1 to 4096"),
        ("steps: 0", "use 1 or more"),
        ("env: {'1A': x}", "no digit first"),
        ("name: \"a\\u0007b\"", "no control characters"),
    ] {
        let text = format!("command: ['true']\n{text}\n");
        std::fs::write(cluster.folder().join("job.yaml"), text).unwrap();
        let ran = cluster.run(&["submit", "job.yaml"]);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{limit}: {said}");
        assert!(said.contains(limit), "{said}");
    }
}
