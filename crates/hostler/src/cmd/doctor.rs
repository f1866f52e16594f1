//! `hostler doctor`: looks for what is wrong here and at the daemon, and says what to do about it.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Result, bail};
use hostler_live::agent::cgroup;
use hostler_live::agent::gpus::Gpus;
use hostler_live::agent::image::{find, try_out};
use hostler_live::api::PolicyText;
use hostler_live::client::{Ask, Client, Method};
use hostler_live::host::NodeView;
use hostler_live::image::Program;
use serde::Serialize;

use crate::cli::Doctor;
use crate::live::{access, print_json, variable};
use crate::say::print;

/// Seconds that two clocks may differ by before people wonder about times.
const CLOCK_SECS_MAX: f64 = 5.0;

/// Free space below which a store, or the output of jobs, is about to fail.
const ROOM_MIB_MIN: u64 = 1024;

/// Files of a data folder that nobody else may read.
const SECRETS: [&str; 4] = ["admin-token", "tls-key.pem", "token", "hostler.db"];

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Good,
    Warning,
    Broken,
}

/// What a check found out.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    says: String,
    /// What to do about it; nothing where all is well.
    #[serde(skip_serializing_if = "String::is_empty")]
    next: String,
}

impl Finding {
    fn good(check: &'static str, says: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Good, says: says.into(), next: String::new() }
    }

    fn warning(check: &'static str, says: impl Into<String>, next: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Warning, says: says.into(), next: next.into() }
    }

    fn broken(check: &'static str, says: impl Into<String>, next: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Broken, says: says.into(), next: next.into() }
    }
}

/// Looks at everything and tells what it found.
pub fn run(args: &Doctor) -> Result<()> {
    let mut findings = daemon();
    findings.extend(args.listen.map(port));
    if let Some(folder) = &args.data {
        findings.extend(data_folder(folder));
    }
    findings.extend([limits(), gpus(), sharing(), containers()]);
    if args.json {
        print_json(&findings)?;
    } else {
        for Finding { check, verdict, says, next } in &findings {
            let word = match verdict {
                Verdict::Good => "good",
                Verdict::Warning => "warning",
                Verdict::Broken => "broken",
            };
            print(format_args!("{word:<8} {check:<11} {says}"))?;
            if !next.is_empty() {
                print(format_args!("{:21}{next}", ""))?;
            }
        }
    }
    let broken = findings.iter().filter(|finding| finding.verdict == Verdict::Broken).count();
    if broken > 0 {
        bail!("{broken} of {} checks failed", findings.len());
    }
    Ok(())
}

/// The daemon that commands here talk to: whether it answers, its clock, its nodes, its policy.
fn daemon() -> Vec<Finding> {
    let access = match access() {
        Ok(access) => access,
        Err(fault) => {
            let next = "where no commands are typed, nothing";
            return vec![Finding::warning("daemon", fault.to_string(), next)];
        }
    };
    let server = access.server.to_string();
    let mut client = match Client::new(access) {
        Ok(client) => client,
        Err(fault) => return vec![Finding::broken("daemon", fault.to_string(), "")],
    };
    let ask = Ask { method: Method::GET, path: "/nodes", headers: &[], body: None };
    let answer = match client.ask(&ask) {
        Ok(answer) => answer,
        Err(fault) => {
            let next = "see whether `hostler serve` runs there, and whether a firewall is between";
            return vec![Finding::broken("daemon", fault.to_string(), next)];
        }
    };
    if !answer.status.is_success() {
        let says = format!("{server} refuses the token: {}", answer.status);
        let next = "use the `hostler login` line that an admin gets from `hostler token create`";
        return vec![Finding::broken("daemon", says, next)];
    }
    let mut findings = vec![Finding::good("daemon", format!("{server} answers"))];
    findings.extend(answer.date.map(clock));
    findings.extend(serde_json::from_slice(&answer.body).ok().map(nodes));
    findings.extend(client.get::<PolicyText>("/policy").ok().and_then(policy));
    findings
}

/// Whether this machine and the daemon agree on the time; the daemon tells whole seconds.
fn clock(theirs: SystemTime) -> Finding {
    let secs = match SystemTime::now().duration_since(theirs) {
        Ok(ahead) => ahead.as_secs_f64(),
        Err(behind) => -behind.duration().as_secs_f64(),
    };
    if secs.abs() <= CLOCK_SECS_MAX {
        return Finding::good("clock", "agrees with that of the daemon");
    }
    let word = if secs > 0.0 { "ahead of" } else { "behind" };
    let says = format!("{:.0} s {word} that of the daemon", secs.abs());
    Finding::warning("clock", says, "let both follow a time server, as with chrony")
}

fn nodes(nodes: Vec<NodeView>) -> Finding {
    let out: Vec<String> = nodes
        .iter()
        .filter(|node| node.health != "up")
        .map(|node| match node.reason.is_empty() {
            true => format!("{} is {}", node.name, node.health),
            false => format!("{} is {}: {}", node.name, node.health, node.reason),
        })
        .collect();
    match (nodes.len(), out.len()) {
        (0, _) => {
            let next = "`hostler token create --role agent NAME` says how one joins";
            Finding::warning("nodes", "none has joined", next)
        }
        (all, 0) => Finding::good("nodes", format!("all {all} take jobs")),
        (all, some) => {
            let says = format!("{some} of {all} take no jobs: {}", out.join("; "));
            Finding::warning("nodes", says, "see `hostler nodes`, and the agent's log there")
        }
    }
}

fn policy(policy: PolicyText) -> Option<Finding> {
    let fault = policy.violation?;
    let next = "set another with `hostler policy set`, and tell whoever wrote the first";
    Some(match policy.nobody_decides {
        true => Finding::broken("policy", format!("nobody decides: {fault}"), next),
        false => Finding::warning("policy", format!("another took over: {fault}"), next),
    })
}

/// Whether a daemon could listen here.
fn port(listen: SocketAddr) -> Finding {
    match TcpListener::bind(listen) {
        Ok(_) => Finding::good("port", format!("{listen} is free")),
        Err(fault) => {
            let next = "a daemon that runs has it; else choose another with `--listen`";
            Finding::warning("port", format!("{listen}: {fault}"), next)
        }
    }
}

/// Whether a data folder has room, and keeps its secrets.
fn data_folder(folder: &Path) -> Vec<Finding> {
    let mut findings = vec![room(folder)];
    for name in SECRETS {
        let path = folder.join(name);
        let Ok(file) = fs::metadata(&path) else { continue };
        if file.mode() & 0o077 != 0 {
            let says = format!("others may read `{}`", path.display());
            let next = format!("chmod 600 {}", path.display());
            findings.push(Finding::broken("secrets", says, next));
        }
    }
    findings
}

fn room(folder: &Path) -> Finding {
    let room = match rustix::fs::statvfs(folder) {
        Ok(room) => room,
        Err(fault) => {
            let says = format!("cannot look at `{}`: {fault}", folder.display());
            return Finding::broken("disk", says, "name the folder of `serve` or `agent --data`");
        }
    };
    let mib = room.f_bavail.saturating_mul(room.f_frsize) >> 20;
    let says = format!("{:.1} GiB free at `{}`", mib as f64 / 1024.0, folder.display());
    if mib >= ROOM_MIB_MIN {
        return Finding::good("disk", says);
    }
    Finding::broken("disk", says, "make room: nothing can be submitted or started without")
}

/// Whether an agent here could keep jobs to their cores and memory.
fn limits() -> Finding {
    match cgroup::fault() {
        None => Finding::good("limits", "jobs can be kept to their cores and memory"),
        Some(fault) => {
            let says = format!("jobs would run without limits of cores and memory: {fault}");
            let next = "start the agent by its unit (`Delegate=yes`) or as root, on a system with \
                        control groups of version 2 alone";
            Finding::warning("limits", says, next)
        }
    }
}

fn gpus() -> Finding {
    let kind = Gpus::find().kind();
    match kind.count {
        0 => {
            let next = "where there should be some, see whether `nvidia-smi` finds them";
            Finding::warning("gpus", "NVML finds none here", next)
        }
        count => {
            Finding::good("gpus", format!("{count} {}, {} MiB each", kind.model, kind.mem_mib))
        }
    }
}

/// Whether GPUs here can be shared by parts.
fn sharing() -> Finding {
    match on_path("nvidia-cuda-mps-control") {
        Some(path) => Finding::good("sharing", format!("`agent --mps` can use {}", path.display())),
        None => {
            let next = "it comes with NVIDIA's driver; without it jobs share a GPU by turns";
            Finding::warning("sharing", "no multi-process service here", next)
        }
    }
}

/// Whether images can be run here, found out by running one as whoever asks.
fn containers() -> Finding {
    let found = find(&Program::ALL, &variable("PATH").unwrap_or_default());
    let (found, unusable) = match tempfile::tempdir() {
        Ok(folder) => try_out(found, &[], &folder.path().join("images"), None),
        Err(_) => (found, Vec::new()),
    };
    let found: Vec<String> =
        found.iter().map(|it| format!("{} {}", it.program.name(), it.version)).collect();
    match (found.is_empty(), unusable.is_empty()) {
        (false, true) => Finding::good("containers", found.join(", ")),
        (_, false) => {
            let good = if found.is_empty() { "nothing works".to_owned() } else { found.join(", ") };
            let says = format!("{good}; {}", unusable.join("; "));
            let next = "see what it needs in docs/containers.md; `agent --image-programs` names \
                        those to use";
            Finding::warning("containers", says, next)
        }
        (true, true) => {
            let names = Program::ALL.map(Program::name).join(", ");
            let next = "for jobs with `--image`, install one of them on nodes; see \
                        docs/containers.md";
            Finding::warning("containers", format!("none of {names} is here"), next)
        }
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = variable("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_that_is_far_off_is_told_with_its_direction() {
        let now = SystemTime::now();
        assert_eq!(clock(now).verdict, Verdict::Good);
        let ahead = clock(now - Duration::from_secs(60));
        assert!(ahead.says.contains("60 s ahead of"), "{ahead:?}");
        let behind = clock(now + Duration::from_secs(61));
        assert!(behind.says.contains("s behind"), "{behind:?}");
        assert_eq!((ahead.verdict, behind.verdict), (Verdict::Warning, Verdict::Warning));
    }

    #[test]
    fn secrets_that_others_may_read_are_broken() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("admin-token");
        fs::write(&token, "secret").unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
        let said = data_folder(folder.path());
        let broken: Vec<_> =
            said.iter().filter(|finding| finding.verdict == Verdict::Broken).collect();
        assert_eq!(broken.len(), 1, "{said:?}");
        assert!(broken[0].next.starts_with("chmod 600 "), "{said:?}");
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        let said = data_folder(folder.path());
        assert!(said.iter().all(|finding| finding.verdict == Verdict::Good), "{said:?}");
        let none = data_folder(&folder.path().join("none"));
        assert_eq!(none[0].verdict, Verdict::Broken);
    }

    #[test]
    fn a_port_that_is_taken_is_told() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(port(taken.local_addr().unwrap()).verdict, Verdict::Warning);
    }
}
