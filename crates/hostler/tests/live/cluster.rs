//! A daemon with an agent in a folder of its own, and the commands that talk to it.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hostler");

/// Longest time that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon that schedules this machine.
pub struct Cluster {
    folder: TempDir,
    gpus: String,
    daemon: Option<Child>,
    address: String,
}

impl Cluster {
    /// Starts one with made-up GPUs.
    pub fn start(gpus: &str) -> Cluster {
        let open = std::fs::Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new().prefix("hostler-").permissions(open).tempdir();
        let folder = folder.expect("the system does as it is told");
        let mut cluster = Cluster {
            folder,
            gpus: gpus.to_owned(),
            daemon: None,
            address: "127.0.0.1:0".to_owned(),
        };
        let login = cluster.serve();
        let words: Vec<&str> = login.split_whitespace().skip(1).collect();
        cluster.address = words[1].trim_start_matches("https://").to_owned();
        let [words @ .., _, file] = words.as_slice() else { panic!("{login}") };
        let token = File::open(cluster.folder().join(file)).expect("the system does as it is told");
        let status = cluster.command().args(words).stdin(token).status();
        assert!(status.expect("the system does as it is told").success());
        cluster.wait_for("a node", |cluster| cluster.json(&["nodes"])[0]["health"] == "up");
        cluster
    }

    /// Starts the daemon and gives the first line that it prints.
    fn serve(&mut self) -> String {
        let is_new = !self.folder.path().join("data").exists();
        let mut daemon = self.command();
        daemon.args(["serve", "--data", "data", "--listen", &self.address]);
        // Where the tests do not run as root, jobs run as their user.
        daemon.args(["--with-agent", "--trust-tenants", "--fake-gpus", &self.gpus]);
        // What is installed here makes no difference.
        daemon.args(["--image-programs", "none"]);
        let mut daemon = daemon
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the system does as it is told");
        let mut line = String::new();
        let out = daemon.stdout.take().expect("the system does as it is told");
        if is_new {
            BufReader::new(out).read_line(&mut line).expect("the system does as it is told");
        }
        self.daemon = Some(daemon);
        line
    }

    /// Kills the daemon without warning and starts another.
    pub fn crash(&mut self) {
        let mut daemon = self.daemon.take().expect("the system does as it is told");
        daemon.kill().expect("the system does as it is told");
        daemon.wait().expect("the system does as it is told");
        self.serve();
        self.wait_for("the daemon", |cluster| cluster.run(&["nodes"]).status.success());
    }

    /// Where the daemon listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file that is not there yet, and a script for jobs that goes on until it is.
    pub fn gate(&self, name: &str) -> (PathBuf, String) {
        let gate = self.folder().join(name);
        let script = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
        (gate, script)
    }

    /// A command that is not run yet.
    pub fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        for name in ["HOSTLER_SERVER", "HOSTLER_TOKEN", "HOSTLER_FINGERPRINT"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, words: &[&str]) -> Output {
        self.command().args(words).output().expect("the system does as it is told")
    }

    /// Runs a command that must succeed and gives what it prints.
    pub fn text(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}");
        String::from_utf8(output.stdout).expect("the system does as it is told")
    }

    /// The same with `--json`.
    pub fn json(&self, words: &[&str]) -> Value {
        let mut words = words.to_vec();
        words.push("--json");
        serde_json::from_str(&self.text(&words)).expect("the system does as it is told")
    }

    /// Submits with these words and gives the number of the job or array.
    pub fn submit(&self, words: &[&str]) -> String {
        let mut all = vec!["submit"];
        all.extend(words);
        let text = self.text(&all);
        text.trim().to_owned()
    }

    /// A job; of an array the first.
    pub fn job(&self, job: &str) -> Value {
        match self.json(&["show", job]) {
            Value::Array(jobs) => jobs.first().cloned().unwrap_or_default(),
            job => job,
        }
    }

    /// Waits until a job is in a state.
    pub fn until(&self, job: &str, state: &str) -> Value {
        self.wait_for(&format!("job {job} to be {state}"), |cluster| {
            cluster.job(job)["state"] == state
        });
        self.job(job)
    }

    pub fn wait_for(&self, what: &str, holds: impl Fn(&Cluster) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            let queue = || String::from_utf8_lossy(&self.run(&["queue"]).stdout).into_owned();
            assert!(begun.elapsed() < PATIENCE, "waited for {what}\n{}", queue());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Jobs that still run would outlive the daemon under their shims.
        let jobs = self.run(&["queue", "--json"]);
        let jobs: Value = serde_json::from_slice(&jobs.stdout).unwrap_or_default();
        for job in jobs.as_array().into_iter().flatten() {
            self.run(&["cancel", &job["id"].to_string()]);
        }
        let begun = Instant::now();
        let empty = |cluster: &Cluster| {
            let left = cluster.run(&["queue", "--json"]).stdout;
            left.starts_with(b"[]") || left.is_empty()
        };
        while !empty(self) && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(50));
        }
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
