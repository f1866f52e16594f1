//! The program under the names of Slurm's commands.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::cluster::Cluster;

/// Makes the links as they are packaged, to a copy of the program that jobs reach: it may have been
/// built in a home.
fn links(cluster: &Cluster) {
    let script = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
        .join("../../packaging/slurm-links/link.sh");
    let program = cluster.folder().join("hostler");
    std::fs::copy(env!("CARGO_BIN_EXE_hostler"), &program).unwrap();
    let mut made = Command::new("sh");
    made.arg(script).arg(cluster.folder()).arg(program);
    assert!(made.status().unwrap().success());
}

fn called(cluster: &Cluster, name: &str, words: &[&str], input: &str) -> Output {
    let mut command = Command::new(cluster.folder().join(name));
    command.args(words).current_dir(cluster.folder());
    command.env("XDG_CONFIG_HOME", cluster.folder().join("config"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who does not read it has ended by now.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn scripts_are_submitted_listed_and_cancelled_as_with_slurm() {
    let cluster = Cluster::start("2xV100");
    links(&cluster);
    let script = "#!/bin/bash\n#SBATCH -J slow -G 1\nsleep 600\n";
    std::fs::write(cluster.folder().join("job.sh"), script).unwrap();
    let ran = called(&cluster, "sbatch", &["-J", "faster", "job.sh", "--an", "argument"], "");
    let job = said(&ran).trim().strip_prefix("Submitted batch job ").unwrap().to_owned();
    let view = cluster.until(&job, "running");
    assert_eq!((&view["name"], &view["request"]["gpus"]), (&"faster".into(), &1.0.into()));
    assert_eq!(view["request"]["command"], serde_json::json!(["job.sh", "--an", "argument"]));
    let wrapped = ["--parsable", "--array=1-4", "-G2", "--wrap", "true"];
    let array = said(&called(&cluster, "sbatch", &wrapped, "")).trim().to_owned();
    let listed = said(&called(&cluster, "squeue", &["--me"], ""));
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].trim_start().starts_with("JOBID PARTITION"), "{listed}");
    assert!(lines[1].contains(" faster ") && lines[1].contains(" R "), "{listed}");
    assert!(lines[2].trim_start().starts_with(&array) && lines[2].contains(" PD "), "{listed}");
    let nodes = said(&called(&cluster, "sinfo", &["-h"], ""));
    assert!(nodes.starts_with("all*") && nodes.contains(" mix "), "{nodes}");
    let part = format!("{array}_[2-3]");
    assert!(called(&cluster, "scancel", &[&part], "").status.success());
    assert_eq!(cluster.job(&format!("{array}_3"))["state"], "cancelled");
    assert_eq!(cluster.job(&format!("{array}_1"))["state"], "queued");
    assert!(called(&cluster, "scancel", &["--me"], "").status.success());
    cluster.until(&job, "cancelled");
    assert_eq!(said(&called(&cluster, "squeue", &["-h"], "")), "");
    let wrong = called(&cluster, "squeue", &["--format=%i"], "");
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn standard_input_is_a_script_and_srun_runs_what_it_is_told() {
    let cluster = Cluster::start("2xV100");
    links(&cluster);
    let srun = cluster.folder().join("srun");
    let script = format!(
        "#!/bin/sh\n#SBATCH -n 2 --cpus-per-task=1\n{} --label sh -c 'echo task $SLURM_PROCID'\n",
        srun.display()
    );
    let ran = called(&cluster, "sbatch", &["--wait", "--parsable"], &script);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let job = said(&ran).trim().to_owned();
    assert_eq!(cluster.text(&["logs", &job]), "0 | task 0\n1 | task 1\n");
    assert_eq!(cluster.text(&["logs", &job, "--rank", "0"]), "task 0\n");
    assert_eq!(cluster.text(&["logs", &job, "--rank", "1"]), "task 1\n");
    let ran = called(&cluster, "srun", &["-G", "1", "sh", "-c", "echo hello; exit 5"], "");
    assert_eq!((said(&ran).as_str(), ran.status.code()), ("hello\n", Some(5)));
    let ran = called(&cluster, "sbatch", &[], "echo no first line\n");
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(told.contains("is no script; the first line names the program"), "{told}");
}
