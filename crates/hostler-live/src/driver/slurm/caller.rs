//! Runs Slurm's commands and reads what they print. None may take longer than its patience, and
//! none prints more than is kept.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::runtime::Handle;

use super::read::{self, SlurmJob, SlurmNode};
use super::{CallFault, Sight, SlurmCall, SlurmSettings, SlurmWord, Told, words};
use crate::driver::{Call, Caller, Word};
use crate::host::Ear;

/// Bytes that a command may print: all of a hundred thousand jobs.
const PRINTED_MAX: u64 = 512 << 20;

/// Of the daemon's own variables, what Slurm's commands need. The rest may hold secrets, or what
/// somebody likes to see.
const VARIABLES: [&str; 6] =
    ["PATH", "HOME", "LD_LIBRARY_PATH", "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT"];

/// Words in what a command says when Slurm is not there, or did not answer in time. It may have
/// done what it was asked for.
const SILENCE: [&str; 10] = [
    "unable to contact",
    "connection refused",
    "timed out",
    "zero bytes were transmitted",
    "communication connection failure",
    "authentication",
    "configuration source",
    "socket error",
    "temporarily unable",
    "in standby mode",
];

/// Slurm's commands, as they are called here.
#[derive(Clone, Debug)]
pub struct Commands {
    bin: Option<PathBuf>,
    conf: Option<PathBuf>,
    patience: Duration,
}

impl Commands {
    /// As settings say.
    pub fn new(settings: &SlurmSettings) -> Commands {
        Commands {
            bin: settings.bin.clone(),
            conf: settings.conf.clone(),
            patience: Duration::from_secs(settings.call_secs),
        }
    }

    /// Runs one and gives what it printed, with times as seconds since the epoch.
    pub async fn run(&self, words: &[&str]) -> Result<String, CallFault> {
        self.run_with(words, "%s").await
    }

    async fn run_with(&self, words: &[&str], times: &str) -> Result<String, CallFault> {
        let (program, arguments) = words.split_first().expect("a command has a name");
        let path = match &self.bin {
            Some(bin) => bin.join(program),
            None => PathBuf::from(program),
        };
        let mut command = Command::new(&path);
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let own = VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command
            .env_clear()
            .envs(own)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("SLURM_TIME_FORMAT", times)
            .env("SLURM_BITSTR_LEN", "0");
        if let Some(conf) = &self.conf {
            command.env("SLURM_CONF", conf);
        }
        match tokio::time::timeout(self.patience, finished(command)).await {
            Ok(Ok(said)) => said,
            Ok(Err(fault)) => {
                Err(CallFault::Silent(format!("`{}` cannot be run: {fault}", path.display())))
            }
            Err(_) => {
                let secs = self.patience.as_secs();
                Err(CallFault::Silent(format!("`{program}` gave no answer in {secs} s")))
            }
        }
    }

    /// Runs one, and fails in the words of an error of this program's.
    pub async fn text(&self, words: &[&str]) -> Result<String, String> {
        self.run(words).await.map_err(CallFault::words)
    }

    /// The same with times as dates of UTC, as people keep them.
    pub async fn text_dated(&self, words: &[&str]) -> Result<String, String> {
        self.run_with(words, "standard").await.map_err(CallFault::words)
    }

    /// All jobs.
    pub async fn jobs(&self) -> Result<Vec<SlurmJob>, CallFault> {
        let text = self.run(&["squeue", "-a", "--json"]).await?;
        read::jobs(&text).map_err(|fault| CallFault::Silent(format!("`squeue --json`: {fault}")))
    }

    /// All nodes.
    pub async fn nodes(&self) -> Result<Vec<SlurmNode>, CallFault> {
        let text = self.run(&["sinfo", "-h", "-N", "-a", "-o", read::NODES]).await?;
        // A node that is reserved is shown as such only while nothing runs there.
        let reserved = self.run(&["scontrol", "-o", "show", "reservation"]).await?;
        let mut nodes = read::nodes(&text);
        for name in read::reserved(&reserved) {
            let mine = nodes.iter_mut().filter(|node| node.name == name);
            mine.for_each(|node| node.reserved = true);
        }
        Ok(nodes)
    }

    async fn see(&self, what: Sight) -> Result<Told, CallFault> {
        match what {
            Sight::Config => {
                let text = self.run(&["scontrol", "show", "config"]).await?;
                Ok(Told::Config { counts_memory: counts_memory(&text) })
            }
            Sight::Nodes => self.nodes().await.map(Told::Nodes),
            Sight::Jobs => self.jobs().await.map(Told::Jobs),
            Sight::Briefs => {
                let words = ["squeue", "-h", "-r", "-a", "-t", "all", "-o", read::BRIEF];
                self.run(&words).await.map(|text| Told::Briefs(read::briefs(&text)))
            }
        }
    }

    async fn ends(&self, jobs: &[String]) -> Result<Told, CallFault> {
        let jobs = jobs.join(",");
        let words = ["sacct", "-X", "-P", "-n", "-j", &jobs, "-o", read::ENDED];
        self.run(&words).await.map(|text| Told::Ends(read::ends(&text)))
    }

    async fn answer(&self, call: SlurmCall) -> SlurmWord {
        match call {
            SlurmCall::Read { number, what } => {
                SlurmWord::Told { number, told: self.see(what).await }
            }
            SlurmCall::Remember { number, jobs } => {
                SlurmWord::Told { number, told: self.ends(&jobs).await }
            }
            SlurmCall::Change { number, steps } => {
                for step in &steps {
                    let words: Vec<&str> = step.iter().map(String::as_str).collect();
                    if let Err(fault) = self.run(&words).await {
                        return SlurmWord::Changed { number, done: Err(fault) };
                    }
                }
                SlurmWord::Changed { number, done: Ok(()) }
            }
        }
    }
}

/// Whether Slurm gives memory of nodes to jobs, as its configuration says.
pub fn counts_memory(config: &str) -> bool {
    let value = config.lines().find_map(|line| line.strip_prefix("SelectTypeParameters"));
    value.is_some_and(|value| value.to_ascii_uppercase().contains("MEMORY"))
}

/// Waits for a command to end; what it printed, or what it complained about.
async fn finished(mut command: Command) -> std::io::Result<Result<String, CallFault>> {
    let mut child = command.spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (out, err) = tokio::join!(all_of(out), all_of(err));
    let (out, err) = (out?, err?);
    let status = child.wait().await?;
    if status.success() {
        return Ok(Ok(out));
    }
    let fault = words::sentence(&err);
    let fault = if fault.is_empty() { status.to_string() } else { fault };
    let said = err.to_ascii_lowercase();
    let silent = SILENCE.iter().any(|word| said.contains(word));
    Ok(Err(if silent { CallFault::Silent(fault) } else { CallFault::Refused(fault) }))
}

async fn all_of(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(PRINTED_MAX).read_to_end(&mut bytes).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Carries out what the driver asks for.
pub struct SlurmCaller {
    commands: Arc<Commands>,
    runtime: Handle,
    ear: Ear,
}

impl SlurmCaller {
    /// One that tells this ear what came of its calls.
    pub fn new(settings: &SlurmSettings, runtime: Handle, ear: Ear) -> SlurmCaller {
        SlurmCaller { commands: Arc::new(Commands::new(settings)), runtime, ear }
    }
}

impl Caller for SlurmCaller {
    fn call(&mut self, call: Call) {
        let Call::Slurm(call) = call;
        let (commands, ear) = (Arc::clone(&self.commands), self.ear.clone());
        self.runtime.spawn(async move {
            let word = commands.answer(call).await;
            ear.hear(Word::Slurm(word)).await;
        });
    }
}
