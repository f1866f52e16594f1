//! Daemon and agents as processes of their own, for tests that kill, cut and starve them.
//!
//! Everything lies in one folder and goes away with it, also when a test fails. Every wait has an
//! end. Not a test itself.

#![allow(dead_code, reason = "no test uses all of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests stop with the fault, as tests do")]

pub mod processes;
#[path = "../../../hostler-live/tests/store/server.rs"]
pub mod server;

use std::any::Any;
use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hostler_live::api::{JobPage, MadeToken, NewToken};
use hostler_live::client::{Access, Client, ClientError};
use hostler_live::job::{JobRequest, JobState, JobView};
use hostler_live::store::Role;
use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_hostler");

/// The longest that anything may take here, on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until there is an answer.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(LOOK);
    }
}

/// Words before an agent under which images can be run on the machines that tests run on: layers
/// over layers are not to be had on every file system, and `crun` wants control groups of one
/// version.
pub fn surroundings() -> Vec<&'static str> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_mixed = mounts.contains(" /sys/fs/cgroup/unified ");
    let mut words = Vec::new();
    if is_mixed && rustix::process::geteuid().is_root() {
        let script = "umount /sys/fs/cgroup/unified; exec \"$@\"";
        words.extend(["unshare", "--mount", "sh", "-c", script, "sh"]);
    }
    words.extend(["env", "STORAGE_DRIVER=vfs"]);
    words
}

/// A process that does not outlive its owner.
pub struct Guarded(Child);

impl Guarded {
    pub fn spawn(command: &mut Command) -> Guarded {
        Guarded(command.stdin(Stdio::null()).spawn().unwrap())
    }

    /// Kills it as a crash does.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Waits for its own end.
    pub fn exit_code(&mut self) -> Option<i32> {
        wait_for("the end of a process", || self.0.try_wait().unwrap()).code()
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One agent.
pub struct Agent {
    pub name: String,
    token: String,
    server: Option<String>,
    options: Vec<String>,
    before: Vec<String>,
    process: Option<Guarded>,
}

/// A daemon and its agents.
pub struct Cluster {
    folder: TempDir,
    /// Words before the daemon's command line, such as another network.
    pub before: Vec<String>,
    /// More options of the daemon.
    pub options: Vec<String>,
    address: String,
    access: Option<Access>,
    daemon: Option<Guarded>,
    pub agents: Vec<Agent>,
    /// What goes after the processes and before the folder.
    pub held: Vec<Box<dyn Any>>,
}

impl Cluster {
    /// A folder for one; nothing runs yet.
    pub fn new(options: &[&str]) -> Cluster {
        let mut folder = tempfile::Builder::new().prefix("hostler-").tempdir().unwrap();
        folder.disable_cleanup(std::env::var_os("HOSTLER_TEST_KEEP").is_some());
        let notes = folder.path().join("notes");
        std::fs::create_dir(&notes).unwrap();
        // Jobs of a root agent run as somebody else and leave files here.
        for path in [folder.path(), &notes] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        Cluster {
            folder,
            before: Vec::new(),
            options: words(options),
            address: "127.0.0.1:0".to_owned(),
            access: None,
            daemon: None,
            agents: Vec::new(),
            held: Vec::new(),
        }
    }

    /// A daemon on loopback with agents of so many made-up GPUs.
    pub fn start(options: &[&str], gpus: &[&str]) -> Cluster {
        let mut cluster = Cluster::new(options);
        cluster.options.push("--plain".to_owned());
        cluster.serve();
        for (number, gpus) in gpus.iter().enumerate() {
            let options = ["--fake-gpus", gpus, "--address", "127.0.0.1"];
            cluster.enrol(&format!("n{number}"), &options);
        }
        cluster.until_up();
        cluster
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where jobs may write.
    pub fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    /// A file that is not there yet, and a script for jobs that goes on until it is.
    pub fn gate(&self, name: &str) -> (PathBuf, String) {
        let gate = self.notes().join(name);
        let script = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
        (gate, script)
    }

    /// Listens somewhere else than on a free port of loopback.
    pub fn listen(&mut self, address: &str) {
        address.clone_into(&mut self.address);
    }

    pub fn access(&self) -> Access {
        self.access.clone().expect("the daemon has been started")
    }

    pub fn client(&self) -> Client {
        Client::new(self.access()).unwrap()
    }

    fn command(&self, before: &[String]) -> Command {
        let mut words = before.iter().map(String::as_str).chain([PROGRAM]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        for name in ["HOSTLER_SERVER", "HOSTLER_TOKEN", "HOSTLER_FINGERPRINT"] {
            command.env_remove(name);
        }
        command
    }

    fn log(&self, name: &str) -> File {
        let path = self.folder.path().join(format!("{name}.log"));
        File::options().create(true).append(true).open(path).unwrap()
    }

    /// Starts the daemon and waits until it answers.
    pub fn serve(&mut self) {
        self.spawn_daemon();
        if self.access.is_none() {
            self.read_login();
        }
        let answers = self.until_answer();
        assert!(answers, "the daemon has ended\n{}", self.tail("daemon"));
    }

    /// Starts the daemon and waits until it answers, or gives the words with which it ends.
    pub fn try_serve(&mut self) -> Result<(), String> {
        let path = self.folder.path().join("daemon.log");
        let before = std::fs::metadata(&path).map_or(0, |file| file.len());
        self.spawn_daemon();
        if self.until_answer() {
            return Ok(());
        }
        let code = self.daemon().exit_code();
        let log = std::fs::read(&path).unwrap();
        let words = String::from_utf8_lossy(&log[usize::try_from(before).unwrap()..]).into_owned();
        assert_eq!(code, Some(1), "a daemon that cannot serve says so: {words}");
        Err(words)
    }

    /// Whether the daemon answers in the end, or ends.
    fn until_answer(&mut self) -> bool {
        wait_for("the daemon", || {
            let ended = self.daemon().has_ended();
            (ended || self.answers()).then_some(!ended)
        })
    }

    /// Tells the daemon to stop and waits for its end.
    pub fn stop_daemon(&mut self) {
        processes::terminate(self.daemon().pid());
        assert_eq!(self.daemon().exit_code(), Some(0), "{}", self.tail("daemon"));
        self.daemon = None;
    }

    /// Starts the daemon and waits for nothing.
    pub fn spawn_daemon(&mut self) {
        let mut command = self.command(&self.before);
        command.args(["serve", "--data", "data", "--rate", "100000", "--listen", &self.address]);
        command.args(&self.options);
        let out = File::options().create(true).append(true).open(self.folder.path().join("login"));
        command.stdout(out.unwrap()).stderr(self.log("daemon"));
        self.daemon = Some(Guarded::spawn(&mut command));
    }

    fn answers(&self) -> bool {
        if self.before.is_empty() {
            let ready: Result<Value, _> = self.client().get("/nodes");
            return ready.is_ok();
        }
        self.run(&["nodes"]).is_ok()
    }

    /// Takes in the line that the first start prints.
    fn read_login(&mut self) {
        let line = wait_for("the first line", || {
            let text = std::fs::read_to_string(self.folder.path().join("login")).unwrap();
            let ended = self.daemon.as_mut().unwrap().has_ended();
            assert!(!ended, "the daemon has ended\n{}", self.tail("daemon"));
            text.ends_with('\n').then_some(text)
        });
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, url, rest @ .., _, file] = words.as_slice() else { panic!("{line}") };
        let token = std::fs::read_to_string(self.folder.path().join(file)).unwrap();
        self.access = Some(Access::new(url, &token, rest.get(1).copied()).unwrap());
        let port = url.rsplit(':').next().unwrap();
        let host = self.address.rsplit_once(':').unwrap().0;
        self.address = format!("{host}:{port}");
    }

    pub fn daemon(&mut self) -> &mut Guarded {
        self.daemon.as_mut().expect("the daemon has been started")
    }

    pub fn kill_daemon(&mut self) {
        self.daemon().kill();
        self.daemon = None;
    }

    /// Adds an agent and starts it.
    pub fn enrol(&mut self, name: &str, options: &[&str]) {
        self.enrol_at(name, options, &[], None);
    }

    /// Adds an agent that runs after these words and reaches the daemon at another address.
    pub fn enrol_at(&mut self, name: &str, more: &[&str], before: &[&str], server: Option<&str>) {
        let token = if self.before.is_empty() {
            let new = NewToken {
                role: Role::Agent,
                name: name.to_owned(),
                tenant: None,
                new_tenant: false,
                unix_user: None,
            };
            self.client().post::<MadeToken>("/tokens", &new).unwrap().token
        } else {
            self.text(&["token", "create", "--role", "agent", name]).trim().to_owned()
        };
        let mut options = words(&["--cpus", "64", "--mem-mib", "65536"]);
        options.extend(words(more));
        // Whether a program runs images is tried out, which takes a second.
        if !more.contains(&"--image-programs") {
            options.extend(words(&["--image-programs", "none"]));
        }
        let agent = Agent {
            name: name.to_owned(),
            token,
            server: server.map(str::to_owned),
            options,
            before: words(before),
            process: None,
        };
        self.agents.push(agent);
        self.spawn_agent(self.agents.len() - 1);
    }

    pub fn spawn_agent(&mut self, number: usize) {
        let process = self.spawn_agent_on(number, &self.agents[number].name);
        self.agents[number].process = Some(process);
    }

    /// Starts the agent of a node on another folder.
    pub fn spawn_agent_on(&self, number: usize, data: &str) -> Guarded {
        let agent = &self.agents[number];
        let access = self.access();
        let server = agent.server.clone().unwrap_or_else(|| access.server.to_string());
        let mut command = self.command(&agent.before);
        command.args(["agent", "--server", &server, "--name", &agent.name, "--data", data]);
        command.args(&agent.options).env("HOSTLER_TOKEN", &agent.token);
        if let Some(fingerprint) = &access.fingerprint {
            command.args(["--fingerprint", fingerprint]);
        }
        command.stdout(Stdio::null()).stderr(self.log(data));
        Guarded::spawn(&mut command)
    }

    /// Lets the agent of a node have other options and words before it from its next start on.
    pub fn change_agent(&mut self, number: usize, options: &[&str], before: &[&str]) {
        let agent = &mut self.agents[number];
        (agent.options, agent.before) = (words(options), words(before));
    }

    pub fn kill_agent(&mut self, number: usize) {
        self.agents[number].process.take().unwrap().kill();
    }

    /// Waits until all agents are there.
    pub fn until_up(&self) {
        wait_for("all nodes", || {
            let nodes = self.nodes();
            let up = nodes.iter().filter(|node| node["health"] == "up").count();
            (up == self.agents.len()).then_some(())
        });
    }

    pub fn nodes(&self) -> Vec<Value> {
        match self.before.is_empty() {
            true => self.client().get("/nodes").unwrap(),
            false => serde_json::from_str(&self.text(&["nodes", "--json"])).unwrap(),
        }
    }

    /// Runs a command where the daemon is; gives what it prints, or its complaint.
    pub fn run(&self, arguments: &[&str]) -> Result<String, String> {
        self.run_by(&self.access().token, arguments)
    }

    /// The same as the holder of another token.
    pub fn run_by(&self, token: &str, arguments: &[&str]) -> Result<String, String> {
        let access = self.access();
        let mut command = self.command(&self.before);
        command.args(arguments).env("HOSTLER_SERVER", access.server.to_string());
        command.env("HOSTLER_TOKEN", token);
        command.envs(access.fingerprint.map(|pin| ("HOSTLER_FINGERPRINT", pin)));
        let output = command.output().unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).unwrap()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Starts a command where the daemon is; what it prints goes to a file.
    pub fn spawn(&self, arguments: &[&str], output: &Path) -> Guarded {
        let access = self.access();
        let mut command = self.command(&self.before);
        command.args(arguments).env("HOSTLER_SERVER", access.server.to_string());
        command.env("HOSTLER_TOKEN", access.token);
        command.envs(access.fingerprint.map(|pin| ("HOSTLER_FINGERPRINT", pin)));
        Guarded::spawn(command.stdout(File::create(output).unwrap()))
    }

    /// Runs a command that must succeed.
    pub fn text(&self, arguments: &[&str]) -> String {
        self.run(arguments).unwrap_or_else(|fault| panic!("{arguments:?}: {fault}"))
    }

    /// Submits by the command line; gives the number of the job.
    pub fn submit(&self, arguments: &[&str]) -> u32 {
        let all = [&["submit"], arguments].concat();
        self.text(&all).trim().parse().unwrap()
    }

    /// A job; of an array the first.
    pub fn job(&self, job: u32) -> Value {
        let shown = self.text(&["show", &job.to_string(), "--json"]);
        match serde_json::from_str(&shown).unwrap() {
            Value::Array(jobs) => jobs[0].clone(),
            job => job,
        }
    }

    /// Waits until a job is in a state.
    pub fn until(&self, job: u32, state: &str) -> Value {
        wait_for(&format!("job {job} to be {state}"), || {
            let view = self.job(job);
            let over = view["ended"].is_number();
            assert!(view["state"] == state || !over, "job {job} is not {state}: {view}");
            (view["state"] == state).then_some(view)
        })
    }

    /// Waits until no job is left.
    pub fn until_drained(&self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut client = self.client();
        loop {
            let left: Result<JobPage, ClientError> = client.get("/jobs");
            match left {
                Ok(page) if page.jobs.is_empty() => return,
                left => assert!(Instant::now() < end, "jobs are left: {left:#?}"),
            }
            std::thread::sleep(5 * LOOK);
        }
    }

    /// The last lines of a log.
    pub fn tail(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.folder.path().join(format!("{name}.log")));
        let text = text.unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let agents = self.agents.iter().map(|agent| agent.name.as_str());
            for name in ["daemon"].into_iter().chain(agents) {
                eprintln!("--- {name}\n{}", self.tail(name));
            }
        }
        // Those who start shims go first.
        self.agents.clear();
        self.daemon = None;
        processes::end_all(self.folder.path());
        self.held.clear();
    }
}

/// A request of one task for a shell script.
pub fn shell(script: &str, gpus: f64) -> JobRequest {
    let command = words(&["sh", "-c", script]);
    JobRequest { command, gpus, tasks: 1, grace_secs: Some(5), ..JobRequest::default() }
}

pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Whether a job is over.
pub fn is_over(job: &JobView) -> bool {
    match job.state {
        JobState::Held
        | JobState::Queued
        | JobState::Starting
        | JobState::Running
        | JobState::Stopping => false,
        JobState::Finished
        | JobState::Failed
        | JobState::Cancelled
        | JobState::TimedOut
        | JobState::Rejected => true,
    }
}
