//! The daemon under test: started in a fresh folder, asked through its own command line.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::tools::command;

/// Time for a start on a busy machine.
const START_SECS_MAX: u64 = 60;

/// Requests a second that each token may make: more than any machine makes here.
const RATE: &str = "1000000";

/// Jobs of a tenant at a time: requests are many and each job is a process.
const JOBS: &str = "100";

/// A daemon with an agent and GPUs that are not there.
pub struct Daemon {
    child: Child,
    program: PathBuf,
    folder: PathBuf,
    server: String,
    admin: String,
}

impl Daemon {
    pub fn start(root: &Path) -> Result<Daemon> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let built = target.unwrap_or_else(|| root.join("target")).join("debug/hostler");
        let folder = std::env::temp_dir().join(format!("hostler-fuzz-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
        // Jobs run as somebody who may not enter the folder of the build.
        let program = folder.join("hostler");
        fs::copy(&built, &program).with_context(|| format!("no `{}`", built.display()))?;
        let mut serve = command(&folder, &program, &["serve", "--data", "data", "--plain"]);
        serve.args(["--listen", "127.0.0.1:0", "--with-agent", "--fake-gpus", "4xH200"]);
        serve.args(["--rate", RATE, "--log-level", "debug"]);
        serve.stdout(File::create(folder.join("said"))?);
        serve.stderr(File::create(folder.join("log"))?);
        let child = serve.spawn().context("cannot start the daemon")?;
        let (server, admin) = (String::new(), String::new());
        let mut daemon = Daemon { child, program, folder, server, admin };
        daemon.wait_for_agent()?;
        for tenant in ["default", "fuzz"] {
            daemon.ask(&["tenant", "set", tenant, "--jobs", JOBS])?;
        }
        Ok(daemon)
    }

    /// Waits until the daemon said how to log in and its own node is there.
    fn wait_for_agent(&mut self) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(START_SECS_MAX);
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait()? {
                bail!("the daemon ended: {status}; see {}", self.folder.display());
            }
            let said = fs::read_to_string(self.folder.join("said"))?;
            let words: Vec<&str> = said.split_whitespace().collect();
            if let Some(at) = words.iter().position(|word| *word == "login") {
                self.server = words.get(at + 1).context("no address")?.to_string();
                self.admin = fs::read_to_string(self.folder.join("data/admin-token"))?;
                if self.ask(&["nodes"]).is_ok_and(|nodes| nodes.contains(" up ")) {
                    return Ok(());
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        bail!("the daemon was not ready in {START_SECS_MAX} s; see {}", self.folder.display())
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn server(&self) -> &str {
        &self.server
    }

    /// Writes the document into a file: agents may not read it themselves.
    pub fn document(&self) -> Result<PathBuf> {
        let address = self.server.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address)?;
        let admin = &self.admin;
        write!(
            stream,
            "GET /api/v1/openapi.json HTTP/1.0\r\nAuthorization: Bearer {admin}\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        if !head.starts_with("HTTP/1.0 200") && !head.starts_with("HTTP/1.1 200") {
            bail!("no document: {head}");
        }
        let file = self.folder.join("openapi.json");
        fs::write(&file, body)?;
        Ok(file)
    }

    /// What `hostler` answers as the first admin.
    fn ask(&self, words: &[&str]) -> Result<String> {
        let mut ask = self.client(words, &self.admin);
        let output = ask.output().context("cannot run `hostler`")?;
        if !output.status.success() {
            bail!("`hostler {}`: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    fn client(&self, words: &[&str], token: &str) -> Command {
        let mut ask = command(&self.folder, &self.program, words);
        ask.env("HOSTLER_SERVER", &self.server).env("HOSTLER_TOKEN", token);
        ask.stdout(Stdio::piped()).stderr(Stdio::piped());
        ask
    }

    /// A fresh token. An `agent` has one that enrols, a `node` the one that it gets for it.
    pub fn token(&self, role: &str) -> Result<String> {
        if role == "node" {
            // The one of the agent in the daemon: connections that ask for no upgrade do not
            // disturb it.
            return Ok(fs::read_to_string(self.folder.join("data/agent-token"))?);
        }
        let made = self.ask(&["token", "create", "--role", role, "--tenant", "fuzz", "fuzz"])?;
        let token = made.split_whitespace().find(|word| word.starts_with("hst_"));
        Ok(token.context("no token was made")?.to_owned())
    }

    /// Ends what is left of a run, so that the next one finds room.
    pub fn cancel_all(&self) -> Result<()> {
        let list = self.ask(&["queue", "--limit", "1000"])?;
        let first = list.lines().filter_map(|line| line.split_whitespace().next());
        let numbers: Vec<&str> = first.filter(|word| word.parse::<u32>().is_ok()).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        // Some end by themselves in the meantime.
        let _ = self.ask(&[&["cancel"], numbers.as_slice()].concat());
        Ok(())
    }

    /// Answers by status, as the daemon noted them.
    pub fn answers(&self) -> Result<BTreeMap<u16, u64>> {
        let log = fs::read(self.folder.join("log"))?;
        let mut answers = BTreeMap::new();
        for line in String::from_utf8_lossy(&log).lines().filter(|line| line.contains(": request "))
        {
            let status = line.split_once(" status=").and_then(|(_, rest)| rest.split(' ').next());
            let status = status.and_then(|status| status.parse().ok());
            *answers.entry(status.context("a request without a status")?).or_default() += 1;
        }
        Ok(answers)
    }

    /// Ends the daemon, which must still be there, and removes its folder.
    pub fn stop(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the daemon ended by itself: {status}; see {}", self.folder.display());
        }
        self.child.kill()?;
        self.child.wait()?;
        fs::remove_dir_all(&self.folder)?;
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
