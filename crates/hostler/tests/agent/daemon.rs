//! A daemon that says what the test says, and an agent that is connected to it.

use std::fs::Permissions;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hostler_core::decision::StopHow;
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_live::wire::{
    FromAgent, LeaseReport, Stage, StartOrder, Stream, TaskExit, TaskOrder, ToAgent,
};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

/// The longest that anything may take here, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// Both ends of one agent.
pub struct Fake {
    listener: TcpListener,
    socket: Option<WebSocket<TcpStream>>,
    agent: Child,
    data: TempDir,
    options: Vec<String>,
    /// Fence that the agent is told.
    pub fence_ms: u64,
    /// Whether beats are answered.
    pub answers: bool,
}

impl Fake {
    /// An agent without leases, welcomed.
    pub fn new(options: &[&str]) -> Fake {
        Fake::with_fence(options, 30_000)
    }

    /// An agent without leases in a control group of its own.
    pub fn in_group(group: &Path) -> Fake {
        Fake::after(&format!("echo $$ > {}/cgroup.procs", group.display()))
    }

    /// An agent without leases that a shell becomes after these commands.
    pub fn after(commands: &str) -> Fake {
        Fake::start_agent(&[], 30_000, Some(commands))
    }

    /// An agent without leases that is told this fence.
    pub fn with_fence(options: &[&str], fence_ms: u64) -> Fake {
        Fake::start_agent(options, fence_ms, None)
    }

    fn start_agent(options: &[&str], fence_ms: u64, before: Option<&str>) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let data = tempfile::Builder::new().prefix("hostler-").tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let agent = spawn(&listener, data.path(), &options, before);
        let (socket, answers) = (None, true);
        let mut fake = Fake { listener, socket, agent, data, options, fence_ms, answers };
        assert_eq!(fake.welcome(), []);
        fake
    }

    /// Accepts the agent's next connection; gives what it holds.
    pub fn welcome(&mut self) -> Vec<LeaseReport> {
        let stream = wait_for("a connection", || self.listener.accept().ok()).0;
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        self.socket = Some(accept(stream));
        let held = self.hear(|message| match message {
            FromAgent::Hello { held, .. } => Some(held),
            _ => None,
        });
        let fence_ms = self.fence_ms;
        self.say(ToAgent::Welcome { node: NodeId(0), beat_ms: 200, fence_ms });
        held
    }

    pub fn say(&mut self, message: ToAgent) {
        let text = serde_json::to_string(&message).unwrap();
        self.socket.as_mut().unwrap().send(Message::text(text)).unwrap();
    }

    /// Waits for a message that `wanted` accepts, and answers beats meanwhile.
    pub fn hear<T>(&mut self, wanted: impl Fn(FromAgent) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let text = match self.socket.as_mut().unwrap().read() {
                Ok(Message::Text(text)) => text,
                Ok(_) => continue,
                Err(tungstenite::Error::Io(fault)) if is_timeout(&fault) => continue,
                Err(fault) => panic!("the connection broke: {fault}"),
            };
            let message: FromAgent = serde_json::from_str(&text).unwrap();
            if let FromAgent::Beat { number, .. } = message
                && self.answers
            {
                self.say(ToAgent::BeatSeen { number });
            }
            if let Some(found) = wanted(message) {
                return found;
            }
        }
        panic!("the agent did not say what was waited for");
    }

    /// Waits for a stage of a lease.
    pub fn stage(&mut self, lease: u32, wanted: impl Fn(&Stage) -> bool) -> Stage {
        self.hear(|message| match message {
            FromAgent::Report(report)
                if report.lease == LeaseId(lease) && wanted(&report.stage) =>
            {
                Some(report.stage)
            }
            _ => None,
        })
    }

    pub fn running(&mut self, lease: u32) {
        self.stage(lease, |stage| *stage == Stage::Running);
    }

    /// How a lease ended: each exit as `rank:code` or `rank:-signal`.
    pub fn ended(&mut self, lease: u32) -> String {
        show(&self.stage(lease, |stage| !matches!(stage, Stage::Starting | Stage::Running)))
    }

    /// Starts a shell command as one task and gives the lease back for further words.
    pub fn start(&mut self, lease: u32, script: &str) {
        self.say(ToAgent::Start(Box::new(order(lease, &["sh", "-c", script]))));
    }

    pub fn stop(&mut self, lease: u32, how: StopHow, grace_ms: u64) {
        self.say(ToAgent::Stop { lease: LeaseId(lease), how, grace_ms });
    }

    /// All output of task 0 of a lease that has ended, from `offset` on, with where it began.
    pub fn output(&mut self, lease: u32, stream: Stream, offset: i64) -> (u64, String) {
        let (mut all, mut first, mut next) = (String::new(), None, offset);
        loop {
            let lease = LeaseId(lease);
            self.say(ToAgent::ReadOutput { request: 1, lease, rank: 0, stream, offset: next });
            let (offset, text, bytes, last) = self.hear(|message| match message {
                FromAgent::Output { offset, text, bytes, last, fault, .. } => {
                    assert_eq!(fault, None);
                    Some((offset, text, bytes, last))
                }
                _ => None,
            });
            all += &text;
            first.get_or_insert(offset);
            next = i64::try_from(offset + bytes).unwrap();
            if last {
                return (first.unwrap(), all);
            }
        }
    }

    /// Kills the agent, as a crash does.
    pub fn kill_agent(&mut self) {
        self.agent.kill().unwrap();
        self.agent.wait().unwrap();
        self.socket = None;
    }

    /// Starts an agent on the same folder; gives what it holds.
    pub fn restart_agent(&mut self) -> Vec<LeaseReport> {
        self.agent = spawn(&self.listener, self.data.path(), &self.options, None);
        self.welcome()
    }

    /// The agent's data folder.
    pub fn folder(&self) -> &Path {
        self.data.path()
    }

    /// Where the job of all leases may leave files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.data.path().join("checkpoints/1").join(name)
    }

    /// The program, where an unprivileged job may run it: the build folder may be closed to it.
    pub fn program_for_jobs(&self) -> PathBuf {
        let program = self.data.path().join("hostler");
        let built = env!("CARGO_BIN_EXE_hostler");
        // A copy takes so long on a busy disk that the agent gives up on its silent daemon.
        if std::fs::hard_link(built, &program).is_err() {
            std::fs::copy(built, &program).unwrap();
        }
        program
    }

    /// A process number that the job wrote to a file.
    pub fn pid_in(&self, name: &str) -> u32 {
        let path = self.file(name);
        wait_for(name, || std::fs::read_to_string(&path).ok()?.trim().parse().ok())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

fn spawn(listener: &TcpListener, data: &Path, options: &[String], before: Option<&str>) -> Child {
    // As if it had enrolled before: the daemon that the test plays only speaks of leases.
    std::fs::set_permissions(data, Permissions::from_mode(0o711)).unwrap();
    std::fs::write(data.join("token"), "secret-of-the-agent").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let program = env!("CARGO_BIN_EXE_hostler");
    let mut command = Command::new(program);
    if let Some(before) = before {
        command = Command::new("sh");
        command.args(["-c", &format!("{before}; exec \"$0\" \"$@\""), program]);
    }
    command
        .args(["agent", "--server", &server, "--name", "n", "--image-programs", "none", "--data"])
        .arg(data)
        .args(options)
        .env("HOSTLER_TOKEN", "secret-of-the-agent")
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn accept(stream: TcpStream) -> WebSocket<TcpStream> {
    let mut attempt = tungstenite::accept(stream);
    loop {
        match attempt {
            Ok(socket) => return socket,
            Err(tungstenite::HandshakeError::Interrupted(middle)) => attempt = middle.handshake(),
            Err(fault) => panic!("no handshake: {fault}"),
        }
    }
}

/// An order to run a command as one task of job 1.
pub fn order(lease: u32, command: &[&str]) -> StartOrder {
    StartOrder {
        lease: LeaseId(lease),
        job: JobId(1),
        restart: 0,
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        env: Default::default(),
        workdir: String::new(),
        tasks: vec![task(0)],
        world_size: 1,
        master_addr: "127.0.0.1".into(),
        master_port: 29500,
        cpu_milli: 0,
        mem_mib: 0,
        array_index: None,
        grace_ms: 100,
        tenant: 0,
        limit_ms: None,
        script: String::new(),
        person: None,
        umask: None,
        image: String::new(),
        mounts: Vec::new(),
        interactive: None,
        resumes: None,
    }
}

pub fn task(rank: u32) -> TaskOrder {
    TaskOrder { rank, local_rank: rank, gpus: vec![(rank, 1000)], gpu_mem_mib: 0 }
}

pub fn show(stage: &Stage) -> String {
    let exit = |exit: &TaskExit| match (exit.code, exit.signal) {
        (Some(code), _) => format!("{}:{code}", exit.rank),
        (None, signal) => format!("{}:-{}", exit.rank, signal.unwrap_or(0)),
    };
    match stage {
        Stage::Ended { exits, interrupted, .. } => {
            let mut words: Vec<String> = exits.iter().map(exit).collect();
            words.extend(interrupted.then(|| "interrupted".to_owned()));
            words.join(" ")
        }
        other => format!("{other:?}"),
    }
}

/// Waits until there is an answer.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited in vain for {what}");
}

/// Waits until a process is gone, ended ones that nobody has read off included.
pub fn wait_for_end_of(pid: u32) {
    wait_for(&format!("the end of process {pid}"), || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start().chars().next());
        matches!(state, None | Some(Some('Z' | 'X'))).then_some(())
    });
}

/// The parent of a process.
pub fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit_once(')').unwrap().1;
    rest.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Kills one process that a test started, by its number.
pub fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn is_timeout(fault: &std::io::Error) -> bool {
    matches!(fault.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
