//! A shell with job control, a home that nobody else may enter, and `hostler` on its path.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use crate::harness::{PROGRAM, processes, wait_for};

/// Ports below those that the system gives to anybody who connects somewhere.
const FIRST_PORT: u32 = 10_000;
const PORTS: u32 = 8_000;

/// A person at a terminal.
pub struct Terminal {
    home: TempDir,
    shell: Child,
    input: ChildStdin,
    /// All that was printed, by commands and by what runs beside them.
    seen: Arc<Mutex<Vec<String>>>,
    typed: u32,
}

impl Terminal {
    /// Opens one, for another user where that is said.
    pub fn open(user: Option<u32>) -> Terminal {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // As root's home is: jobs that run as somebody else cannot pass.
        let home = tempfile::Builder::new().prefix("hostler-").tempdir().unwrap();
        let bin = home.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        put_program(&bin, std::process::id() + number);
        let mut shell = Command::new("bash");
        shell.env_clear().env("HOME", home.path()).current_dir(&home);
        shell.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(user) = user {
            chown(&home, Some(user), Some(user)).unwrap();
            shell.uid(user).gid(user);
        }
        let mut shell = shell.spawn().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (output, lines) = (shell.stdout.take().unwrap(), seen.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                lines.lock().unwrap().push(line);
            }
        });
        let mut input = shell.stdin.take().unwrap();
        writeln!(input, "exec 2>&1; set -m").unwrap();
        Terminal { home, shell, input, seen, typed: 0 }
    }

    pub fn home(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// Types a command and waits for its end; gives what was printed meanwhile. One that a daemon
    /// which is only just starting cannot answer is typed again, as people do.
    pub fn types(&mut self, command: &str) -> String {
        wait_for(command, || {
            let begin = self.begin(command);
            let (code, text) = wait_for(command, || self.ended(begin));
            let early = text.contains("cannot reach");
            assert!(code == "0" || early, "`{command}` ends with {code}:\n{}", self.all());
            (code == "0").then_some(text)
        })
    }

    /// Types a command that goes on, and ends it when a line has been printed.
    pub fn types_and_breaks_off(&mut self, command: &str, wanted: &str) {
        let begin = self.begin(command);
        wait_for(command, || {
            let printed = self.seen.lock().unwrap()[begin..].iter().any(|line| line == wanted);
            assert!(printed || self.ended(begin).is_none(), "{}", self.all());
            printed.then_some(())
        });
        let words: Vec<&str> = command.split_whitespace().collect();
        for pid in processes::children(self.shell.id()) {
            let line = processes::named(&[pid]).concat();
            if words.iter().skip(1).all(|word| line.contains(word)) {
                processes::terminate(pid);
            }
        }
        wait_for(command, || self.ended(begin));
    }

    /// A line that was printed, by how it begins.
    pub fn line(&self, begin: &str) -> String {
        wait_for(begin, || {
            let seen = self.seen.lock().unwrap();
            seen.iter().find(|line| line.starts_with(begin)).cloned()
        })
    }

    fn begin(&mut self, command: &str) -> usize {
        self.typed += 1;
        let begin = self.seen.lock().unwrap().len();
        writeln!(self.input, "{command}\necho \"ended {} $?\"", self.typed).unwrap();
        begin
    }

    /// The exit code of the last command and what was printed since it was typed.
    fn ended(&self, begin: usize) -> Option<(String, String)> {
        let mark = format!("ended {} ", self.typed);
        let seen = self.seen.lock().unwrap();
        let code = seen[begin..].iter().find_map(|line| line.strip_prefix(&mark))?;
        Some((code.to_owned(), seen[begin..].join("\n")))
    }

    fn all(&self) -> String {
        self.seen.lock().unwrap().join("\n")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- terminal\n{}", self.all());
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
        processes::with_variable("HOME", self.home.path()).into_iter().for_each(processes::kill);
        // Where the agent keeps its things, which is elsewhere when jobs cannot come here.
        if let Ok(agent) = self.home.path().join("hostler-data/agent").canonicalize() {
            processes::end_all(&agent);
            let _ = std::fs::remove_dir_all(agent);
        }
    }
}

/// `hostler` as the tour calls it, on a port of its own.
fn put_program(bin: &Path, number: u32) {
    let program = bin.join("hostler-program");
    if std::fs::hard_link(PROGRAM, &program).is_err() {
        std::fs::copy(PROGRAM, &program).unwrap();
    }
    let ports = (0..PORTS).map(|step| FIRST_PORT + (number * 7 + step) % PORTS);
    let free = |port: &u32| TcpListener::bind(format!("127.0.0.1:{port}")).is_ok();
    let port = ports.into_iter().find(free).expect("a port is free");
    let program = program.display();
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = serve ]; then set -- \"$@\" --listen 127.0.0.1:{port}; fi\n\
         exec {program} \"$@\"\n"
    );
    std::fs::write(bin.join("hostler"), script).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bin.join("hostler"), mode).unwrap();
}
