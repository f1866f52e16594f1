//! A lab: a folder with a daemon, machines and people, and the page on which all is written down.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Guarded, PROGRAM, processes, wait_for};
use crate::record::Record;

/// Where the daemon listens, as it is written down.
const ADDRESS: &str = "127.0.0.1:7717";

/// The lab.
pub struct Lab {
    folder: TempDir,
    page: String,
    in_block: bool,
    record: Record,
    address: String,
    daemon: Option<Guarded>,
    agents: BTreeMap<String, (String, Guarded)>,
    /// Words before the agent of a machine, without which it could not run images here.
    pub before: BTreeMap<String, Vec<String>>,
}

impl Lab {
    /// An empty machine with a page that has a title.
    pub fn new(title: &str) -> Lab {
        let folder = tempfile::Builder::new().prefix("hostler-").tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(PROGRAM, bin.join("hostler")).unwrap();
        // Jobs of a root agent run as somebody else.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let mut record = Record::default();
        record.replace(&format!("{}/", folder.path().display()), "/home/");
        Lab {
            folder,
            page: format!("# {title}\n"),
            in_block: false,
            record,
            address: "127.0.0.1:0".to_owned(),
            daemon: None,
            agents: BTreeMap::new(),
            before: BTreeMap::new(),
        }
    }

    /// The home of a person.
    pub fn home(&self, who: &str) -> PathBuf {
        let home = self.folder.path().join(who);
        fs::create_dir_all(&home).unwrap();
        home
    }

    /// A part of the page.
    pub fn day(&mut self, title: &str, words: &str) {
        self.write(&format!("\n## {title}\n"));
        self.tell(words);
    }

    /// A part of the page that cannot be played here stays as it is.
    pub fn leave(&mut self, title: &str, recorded: &str) {
        let head = format!("\n## {title}\n");
        let begin = recorded.find(&head).unwrap_or_else(|| panic!("no {title} is recorded"));
        let rest = &recorded[begin + head.len()..];
        let end = rest.find("\n## ").unwrap_or(rest.len());
        self.write(&format!("{head}{}", &rest[..end]));
    }

    /// A paragraph, filled to the width of the page.
    pub fn tell(&mut self, words: &str) {
        let mut text = String::new();
        let mut line = String::new();
        for word in words.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 100 {
                text += &format!("{}\n", std::mem::take(&mut line));
            }
            line = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        }
        self.write(&format!("\n{text}{line}\n"));
    }

    fn write(&mut self, text: &str) {
        if std::mem::take(&mut self.in_block) {
            self.page += "```\n";
        }
        self.page += text;
    }

    /// A file of a person, shown on the page.
    pub fn file(&mut self, who: &str, name: &str, text: &str) {
        let path = self.home(who).join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        self.show(who, &format!("cat {name}"), text);
    }

    /// Types a command that must succeed; gives what it prints.
    pub fn types(&mut self, who: &str, command: &str) -> String {
        self.ends_with(who, command, 0)
    }

    /// Types a command that ends with this code.
    pub fn ends_with(&mut self, who: &str, command: &str, code: i32) -> String {
        let (text, ended) = self.run(who, command);
        assert_eq!(ended, Some(code), "{who}$ {command}\n{text}\n{}", self.logs());
        self.show(who, command, &text);
        text
    }

    /// Runs a command that is not written down.
    pub fn quietly(&self, who: &str, command: &str) -> String {
        let (text, ended) = self.run(who, command);
        assert_eq!(ended, Some(0), "{who}$ {command}\n{text}\n{}", self.logs());
        text
    }

    fn run(&self, who: &str, command: &str) -> (String, Option<i32>) {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("exec 2>&1\n{command}")]).stdin(Stdio::null());
        let output = self.at_home(&mut shell, who).output().unwrap();
        // A terminal ends its lines as old ones did.
        let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        (text, output.status.code())
    }

    fn at_home<'a>(&self, command: &'a mut Command, who: &str) -> &'a mut Command {
        let home = self.home(who);
        let bin = self.folder.path().join("bin");
        command.env_clear().current_dir(&home).env("HOME", &home);
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()))
    }

    /// Writes down that somebody typed a command, and what it printed.
    pub fn show(&mut self, who: &str, command: &str, text: &str) {
        if !std::mem::replace(&mut self.in_block, true) {
            self.page += "\n```console\n";
        }
        let prompt = if who == "admin" { "# ".to_owned() } else { format!("{who}$ ") };
        let command = folded(&prompt, &self.record.plain(command));
        let text = self.record.plain(text);
        self.page += &format!("{prompt}{}\n{text}", command.trim_end());
        if !text.is_empty() && !text.ends_with('\n') {
            self.page.push('\n');
        }
    }

    /// Something that is secret, or differs from run to run, and what stands for it on the page.
    pub fn hide(&mut self, text: &str, by: &str) {
        self.record.replace(text.trim(), by);
    }

    /// Starts the daemon beside the shell; gives what its first start prints.
    pub fn serve(&mut self, options: &str) -> String {
        let home = self.home("admin");
        let (out, log) = (home.join("serve.out"), self.folder.path().join("daemon.log"));
        let mut command = Command::new(PROGRAM);
        self.at_home(&mut command, "admin");
        command.arg("serve").args(options.split_whitespace()).args(["--listen", &self.address]);
        command.stdout(File::create(&out).unwrap());
        command.stderr(File::options().create(true).append(true).open(&log).unwrap());
        self.daemon = Some(Guarded::spawn(&mut command));
        let first = self.address.ends_with(":0");
        let read = || fs::read_to_string(&out).unwrap();
        if first {
            let line = wait_for("the first line", || Some(read()).filter(|t| t.ends_with('\n')));
            let words: Vec<&str> = line.split_whitespace().collect();
            self.address = words[2].trim_start_matches("https://").to_owned();
            let (address, pin) = (self.address.clone(), words[4].to_owned());
            self.record.replace(&address, ADDRESS);
            self.record.replace(&pin, "sha256:..");
        }
        let shown = format!("hostler serve {options}").trim_end().to_owned() + " &";
        self.show("admin", &shown, &read());
        read()
    }

    /// Ends the daemon as a service is ended.
    pub fn stop_daemon(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        processes::terminate(daemon.pid());
        assert_eq!(daemon.exit_code(), Some(0), "{}", self.logs());
        self.show("admin", "kill %1", "");
    }

    /// Starts the agent of a machine beside the shell, and waits until it is there.
    pub fn agent(&mut self, name: &str, options: &str) {
        let before = self.before.get(name).cloned().unwrap_or_default();
        let words: Vec<String> = before.into_iter().chain([PROGRAM.to_owned()]).collect();
        let mut command = Command::new(&words[0]);
        self.at_home(&mut command, name);
        command
            .args(&words[1..])
            .arg("agent")
            .args(options.split_whitespace())
            .stdout(Stdio::null());
        let log = self.folder.path().join(format!("{name}.log"));
        command.stderr(File::options().create(true).append(true).open(log).unwrap());
        let agent = Guarded::spawn(&mut command);
        self.agents.insert(name.to_owned(), (options.to_owned(), agent));
        self.show(name, &format!("hostler agent {options} &"), "");
        self.until_connected(name, true);
        self.until_node(name, "up");
    }

    /// Waits until the daemon knows that an agent came or went.
    fn until_connected(&self, name: &str, connected: bool) {
        wait_for(&format!("{name} to come or go"), || {
            let nodes: Value = self.json("admin", "nodes");
            let is = |node: &&Value| node["name"] == name && node["connected"] == connected;
            nodes.as_array()?.iter().find(is).map(drop)
        });
    }

    /// With what the agent of a machine was started.
    pub fn options(&self, name: &str) -> String {
        self.agents[name].0.clone()
    }

    /// Starts the agent of a machine again.
    pub fn agent_again(&mut self, name: &str) {
        let (options, _) = self.agents.remove(name).unwrap();
        self.agent(name, &options);
    }

    /// Kills the agent of a machine, and all that it runs where the machine itself is lost.
    pub fn kill_agent(&mut self, name: &str, machine_too: bool) {
        self.agents.get_mut(name).unwrap().1.kill();
        self.until_connected(name, false);
        if machine_too {
            processes::end_all(&self.home(name));
        }
    }

    pub fn until_node(&self, name: &str, health: &str) {
        wait_for(&format!("{name} to be {health}"), || {
            let nodes: Value = self.json("admin", "nodes");
            let is = |node: &&Value| node["name"] == name && node["health"] == health;
            nodes.as_array()?.iter().find(is).map(drop)
        });
    }

    /// Waits until a job is in a state.
    pub fn until(&self, job: &str, state: &str) -> Value {
        wait_for(&format!("job {job} to be {state}"), || {
            let shown = self.json("admin", &format!("show {job}"));
            let jobs = shown.as_array().cloned().unwrap_or_else(|| vec![shown]);
            let over = jobs.iter().any(|job| job["ended"].is_number() && job["state"] != state);
            assert!(!over, "job {job} is not {state}: {jobs:?}\n{}", self.logs());
            jobs.iter().all(|job| job["state"] == state).then(|| jobs[0].clone())
        })
    }

    /// What a command prints as JSON.
    pub fn json(&self, who: &str, words: &str) -> Value {
        let (text, _) = self.run(who, &format!("hostler {words} --json 2> /dev/null"));
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// All that was written down.
    pub fn page(mut self) -> String {
        self.write("");
        std::mem::take(&mut self.page)
    }

    /// The last lines of all logs.
    fn logs(&self) -> String {
        let names = self.agents.keys().map(String::as_str).chain(["daemon"]);
        let tail = |name: &str| {
            let text = fs::read_to_string(self.folder.path().join(format!("{name}.log")));
            let text = text.unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("--- {name}\n{}", lines[lines.len().saturating_sub(8)..].join("\n"))
        };
        names.map(tail).collect::<Vec<_>>().join("\n")
    }
}

/// A command as people type it when it is long.
fn folded(prompt: &str, command: &str) -> String {
    let mut lines = vec![String::new()];
    for (number, part) in command.split(" --").enumerate() {
        let part = if number > 0 { format!(" --{part}") } else { part.to_owned() };
        let line = lines.last_mut().expect("there is a line");
        let room = if number > 0 { 96 } else { 98 - prompt.chars().count() };
        if !line.is_empty() && line.chars().count() + part.chars().count() > room {
            line.push_str(" \\");
            lines.push(format!("   {part}"));
        } else {
            line.push_str(&part);
        }
    }
    lines.join("\n")
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Those who start shims go first.
        self.agents.clear();
        self.daemon = None;
        processes::end_all(self.folder.path());
    }
}
