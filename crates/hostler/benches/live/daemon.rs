//! A daemon, and an agent, in a folder of their own that goes with them.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use hostler_live::api::MadeToken;
use hostler_live::server::ADMIN_TOKEN;

use crate::http::Http;
use crate::{processes, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hostler");

/// Requests a second that the daemon lets one token make: not what is measured.
const RATE: &str = "1000000";

/// A daemon that runs.
pub struct Daemon {
    folder: PathBuf,
    process: Child,
    agent: Option<Child>,
    pub address: String,
    pub token: String,
}

impl Daemon {
    pub fn start(name: &str, policy: &str) -> Daemon {
        let base = std::env::var_os("HOSTLER_BENCH_FOLDER").map(PathBuf::from);
        let base = base.unwrap_or_else(std::env::temp_dir);
        let folder = base.join(format!("hostler-bench-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        std::fs::write(folder.join("policy.toml"), policy).expect("a file can be written");
        let mut process = Command::new(PROGRAM)
            .args(["serve", "--plain", "--listen", "127.0.0.1:0", "--rate", RATE])
            .args(["--data", "data", "--policy", "policy.toml", "--log-level", "warn"])
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the daemon starts");
        let mut line = String::new();
        let out = process.stdout.take().expect("a pipe was asked for");
        BufReader::new(out).read_line(&mut line).expect("the daemon speaks");
        let words: Vec<&str> = line.split_whitespace().collect();
        let address = words[2].trim_start_matches("http://").to_owned();
        let token = std::fs::read_to_string(folder.join("data").join(ADMIN_TOKEN));
        let token = token.expect("the first start leaves a token").trim().to_owned();
        Daemon { folder, process, agent: None, address, token }
    }

    pub async fn client(&self) -> Http {
        Http::connect(&self.address, &self.token).await
    }

    /// Starts an agent with made-up GPUs and waits until it is there.
    pub async fn start_agent(&mut self, gpus: &str) {
        let mut client = self.client().await;
        let token = r#"{"role":"agent","name":"bench"}"#;
        let made: MadeToken = client.post("/tokens", token).await;
        let agent = Command::new(PROGRAM)
            .args(["agent", "--server", &format!("http://{}", self.address), "--data", "agent"])
            .args(["--name", "bench", "--fake-gpus", gpus, "--cpus", "64"])
            .env("HOSTLER_TOKEN", made.token)
            .current_dir(&self.folder)
            .stderr(Stdio::null())
            .spawn();
        self.agent = Some(agent.expect("the agent starts"));
        until(&mut client, "agents_connected", 1.0).await;
    }

    /// Seconds of processor time of daemon and agent, and of what the agent has waited for.
    pub fn processor_secs(&self) -> (f64, f64) {
        let agent = self.agent.as_ref().map(|agent| processes::processor_secs(agent.id()));
        let agent = agent.map_or(0.0, |secs| secs.own + secs.children);
        (processes::processor_secs(self.process.id()).own, agent)
    }

    /// MiB that the daemon holds now, and the most that it held.
    pub fn memory_mib(&self) -> (f64, f64) {
        let path = format!("/proc/{}/status", self.process.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let kib = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            number.unwrap_or(0.0) / 1024.0
        };
        (kib("VmRSS:"), kib("VmHWM:"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        for process in self.agent.iter_mut().chain([&mut self.process]) {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
