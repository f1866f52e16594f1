//! Daemon and agent of the demonstration: in a folder of their own, on loopback, asked through
//! their command line.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::tools::command;

/// Time for a start, on a machine that has just been switched on.
const START_SECS_MAX: u64 = 60;

/// Time after which jobs end by themselves when this command was interrupted.
const FENCE_SECS: &str = "60";

/// Longest wait for jobs that were cancelled.
const END_SECS_MAX: u64 = 20;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// The numbers of all jobs that there can be.
const ALL_JOBS: &str = "1-1000";

/// Lines of a log that are shown when something is wrong.
const TAIL_LINES: usize = 15;

/// A daemon with one agent. What they began is ended with them.
pub struct Cluster {
    folder: PathBuf,
    program: PathBuf,
    server: String,
    admin: String,
    /// The newest first.
    processes: Vec<Child>,
}

impl Cluster {
    /// Starts both; the agent has these options.
    pub fn start(program: &Path, agent: &[&str]) -> Result<Cluster> {
        if !program.is_file() {
            bail!("there is no program `{}`", program.display());
        }
        let folder = std::env::temp_dir().join(format!("hostler-gpu-demo-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
        // Jobs of an agent that is root run as somebody else.
        fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
        let copy = folder.join("hostler");
        fs::copy(program, &copy)?;
        let (server, admin) = (String::new(), String::new());
        let mut cluster = Cluster { folder, program: copy, server, admin, processes: Vec::new() };
        let serve = ["serve", "--data", "data", "--plain", "--listen", "127.0.0.1:0"];
        cluster.spawn("daemon", &[&serve[..], &["--fence-secs", FENCE_SECS]].concat())?;
        cluster.until("the daemon", Cluster::has_login)?;
        let token = cluster.text(&["token", "create", "--role", "agent", "demo"])?;
        fs::write(cluster.folder.join("token"), token)?;
        let words = ["agent", "--name", "demo", "--data", "agent", "--image-programs", "none"];
        let access = ["--server", &cluster.server.clone(), "--token-file", "token"];
        cluster.spawn("agent", &[&words, &access[..], agent].concat())?;
        cluster.until("the agent", |cluster| {
            Ok(cluster.text(&["nodes"]).is_ok_and(|nodes| nodes.contains(" up ")))
        })?;
        Ok(cluster)
    }

    fn spawn(&mut self, name: &str, words: &[&str]) -> Result<()> {
        let mut command = self.command(words);
        command.stdout(File::create(self.folder.join(format!("{name}.out")))?);
        command.stderr(File::create(self.log(name))?);
        let child = command.spawn().with_context(|| format!("cannot start the {name}"))?;
        self.processes.insert(0, child);
        Ok(())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// Waits until it is so, as long as daemon and agent are there.
    fn until(&mut self, what: &str, is_so: fn(&mut Cluster) -> Result<bool>) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(START_SECS_MAX);
        while !is_so(self)? {
            self.check()?;
            if Instant::now() > end {
                bail!("{what} was not ready in {START_SECS_MAX} s\n{}", self.tails());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn has_login(&mut self) -> Result<bool> {
        let said = fs::read_to_string(self.folder.join("daemon.out"))?;
        let mut words = said.split_whitespace();
        if !said.ends_with('\n') || !words.any(|word| word == "login") {
            return Ok(false);
        }
        self.server = words.next().context("no address")?.to_owned();
        self.admin = fs::read_to_string(self.folder.join("data/admin-token"))?.trim().to_owned();
        Ok(true)
    }

    /// Fails when daemon or agent have ended.
    pub fn check(&mut self) -> Result<()> {
        for child in &mut self.processes {
            if let Some(status) = child.try_wait()? {
                bail!("daemon or agent ended: {status}\n{}", self.tails());
            }
        }
        Ok(())
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `hostler` as nobody in particular.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(&self.folder, &self.program, words);
        for name in ["HOSTLER_SERVER", "HOSTLER_TOKEN", "HOSTLER_FINGERPRINT"] {
            command.env_remove(name);
        }
        // A proxy is for what lies outside.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }

    /// What `hostler` prints as the first admin.
    pub fn text(&self, words: &[&str]) -> Result<String> {
        let mut command = self.command(words);
        command.env("HOSTLER_SERVER", &self.server).env("HOSTLER_TOKEN", &self.admin);
        let output = command.output().context("cannot run `hostler`")?;
        if !output.status.success() {
            bail!("`hostler {}`: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    pub fn json(&self, words: &[&str]) -> Result<Value> {
        Ok(serde_json::from_str(&self.text(words)?)?)
    }

    /// The newest lines of both logs.
    fn tails(&self) -> String {
        let tail = |name: &str| {
            let text = fs::read_to_string(self.log(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
        };
        format!("--- daemon\n{}\n--- agent\n{}", tail("daemon"), tail("agent"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Jobs outlive their agent.
        let _ = self.text(&["cancel", ALL_JOBS]);
        let end = Instant::now() + Duration::from_secs(END_SECS_MAX);
        let is_busy = |queue: Result<Value>| {
            queue.is_ok_and(|queue| queue.as_array().is_some_and(|jobs| !jobs.is_empty()))
        };
        while is_busy(self.json(&["queue", "--json"])) && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        for child in &mut self.processes {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
