//! What `hostler logs` gives back: every byte, or a word about those that are gone.

use std::process::{Command, Output};

use crate::harness::{Cluster, PROGRAM};

fn logs(cluster: &Cluster, arguments: &[&str]) -> Output {
    let access = cluster.access();
    let mut command = Command::new(PROGRAM);
    command.arg("logs").args(arguments).env("HOSTLER_TOKEN", access.token);
    command.env("HOSTLER_SERVER", access.server.to_string());
    command.env("XDG_CONFIG_HOME", cluster.folder().join("config"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn output_that_is_no_text_comes_back_byte_for_byte() {
    let cluster = Cluster::start(&[], &["1xV100"]);
    // All bytes in an order that makes no text, over several pieces.
    let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at * 7 + at / 251) as u8).collect();
    let file = cluster.notes().join("bytes");
    std::fs::write(&file, &bytes).unwrap();
    let script = format!("cat {0}; cat {0} >&2", file.display());
    let job = cluster.submit(&["--gpus", "1", "--", "sh", "-c", &script]);
    cluster.until(job, "finished");
    let job = job.to_string();
    assert!(logs(&cluster, &[&job]).stdout == bytes, "of both streams");
    assert!(logs(&cluster, &[&job, "--stdout"]).stdout == bytes, "of standard output");
    assert!(logs(&cluster, &[&job, "--stderr"]).stdout == bytes, "of standard error");
    assert!(logs(&cluster, &[&job, "--stdout", "-f"]).stdout == bytes, "followed");
    let tail = logs(&cluster, &[&job, "--stdout", "--tail", "3"]).stdout;
    assert!(bytes.ends_with(&tail), "the last lines are a part of it");
    let breaks = tail[..tail.len() - 1].iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(breaks, 2);
}

#[test]
fn what_is_gone_of_a_long_output_is_told() {
    let mut cluster = Cluster::start(&[], &[]);
    cluster.enrol("n0", &["--fake-gpus", "1xV100", "--output-mib", "1"]);
    cluster.until_up();
    let script = "head -c 20000000 /dev/zero | tr '\\0' a";
    let job = cluster.submit(&["--gpus", "1", "--", "sh", "-c", script]).to_string();
    cluster.until(job.parse().unwrap(), "finished");
    let output = logs(&cluster, &[&job]);
    let words = String::from_utf8_lossy(&output.stderr);
    let gone = 20_000_000 - output.stdout.len();
    let expected = format!("the first {gone} bytes of stdout are gone");
    assert!(gone > 0 && words.contains(&expected), "{expected}: {words}");
    let tail = logs(&cluster, &[&job, "--tail", "1"]);
    assert!(!tail.stdout.is_empty());
}
