//! What `/proc` knows about processes: who belongs to a job, and what they listen to.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// One process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// Its session.
    pub session: u32,
    /// When it was started, in ticks since the boot: with the number, its identity.
    pub started: u64,
    /// Whether it has ended and only waits to be read off.
    pub ended: bool,
    /// Whether it was stopped and does nothing until it is continued.
    pub stopped: bool,
}

/// One process, if it is there.
pub fn process(pid: u32) -> Option<Process> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// All processes that this one may see.
pub fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

/// Everything that `root` started and what came of that, ended ones left out. Complete where `root`
/// takes on orphans.
pub fn below(root: u32, all: &[Process]) -> Vec<Process> {
    let mut family = BTreeSet::from([root]);
    loop {
        let before = family.len();
        let children = all.iter().filter(|process| family.contains(&process.parent));
        let children: Vec<u32> = children.map(|process| process.pid).collect();
        family.extend(children);
        if family.len() == before {
            break;
        }
    }
    let member =
        |process: &&Process| process.pid != root && !process.ended && family.contains(&process.pid);
    all.iter().filter(member).copied().collect()
}

/// Whether a process has a handler for a signal.
pub fn catches(pid: u32, signal: Signal) -> bool {
    signals(&pid.to_string(), "SigCgt:") & (1 << (signal.as_raw() - 1)) != 0
}

/// Whether a process is the first of a namespace of its own, which the kernel spares from signals
/// that it does not handle.
pub fn is_first(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    let numbers: Vec<&str> = numbers.split_whitespace().collect();
    numbers.len() > 1 && numbers.last() == Some(&"1")
}

/// The signals that this process ignores; the first is the lowest bit.
pub fn ignored() -> u64 {
    signals("self", "SigIgn:")
}

fn signals(process: &str, kind: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(kind));
    mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
}

/// Whether a process was started with a variable of this value, as far as it may be read.
pub fn has_variable(pid: u32, name: &str, value: &str) -> bool {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let wanted = format!("{name}={value}");
    environ.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

/// Numbers of the sockets that a process has open, as far as it may be looked at.
pub fn sockets(pid: u32) -> BTreeSet<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return BTreeSet::new() };
    let number = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    entries.filter_map(|entry| number(entry.ok()?)).collect()
}

/// Whether a process has a GPU open; none where it may not be looked at.
pub fn holds_gpu(pid: u32) -> Option<bool> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        let is_over = process(pid).is_none_or(|process| process.ended);
        return is_over.then_some(false);
    };
    Some(entries.flatten().any(|entry| {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        let number = target.to_str().and_then(|path| path.strip_prefix("/dev/nvidia"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    }))
}

/// Sends a signal; one to a process that is gone goes nowhere.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Changes with every start of the machine.
pub fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

fn parse(pid: u32, stat: &str) -> Option<Process> {
    // The name stands in brackets and may hold anything, brackets included.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    Some(Process {
        pid,
        parent: number(1)?,
        session: number(3)?,
        started: fields.get(19)?.parse().ok()?,
        ended: matches!(*fields.first()?, "Z" | "X"),
        stopped: *fields.first()? == "T",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "42 (a) b) S 7 42 40 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 12345 1000 5";
        let seen = parse(42, stat).unwrap();
        let (parent, session, started) = (7, 40, 12345);
        let (ended, stopped) = (false, false);
        assert_eq!(seen, Process { pid: 42, parent, session, started, ended, stopped });
    }

    #[test]
    fn this_process_is_not_below_itself() {
        let all = processes();
        let own = std::process::id();
        assert!(all.iter().any(|process| process.pid == own));
        assert!(below(own, &all).iter().all(|process| process.pid != own));
    }
}
