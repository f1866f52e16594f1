//! Limits that a login would set: what `/etc/security/limits.conf` and the files beside it say of
//! a person.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde::{Deserialize, Serialize};

use crate::person::Account;

/// The file, and the folder of those that come after it.
const FILE: &str = "/etc/security/limits.conf";
const FOLDER: &str = "/etc/security/limits.d";

/// Bytes of all of them that are read.
const BYTES_MAX: usize = 1 << 20;

/// One limit; none where there is to be no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginLimit {
    /// Which, by its place in the table.
    item: usize,
    /// What may be exceeded by nobody but root.
    hard: bool,
    /// How much.
    most: Option<u64>,
}

/// Names as they are written, what is meant, and how much one of it is.
const ITEMS: &[(&str, Resource, u64)] = &[
    ("core", Resource::Core, 1024),
    ("data", Resource::Data, 1024),
    ("fsize", Resource::Fsize, 1024),
    ("memlock", Resource::Memlock, 1024),
    ("rss", Resource::Rss, 1024),
    ("stack", Resource::Stack, 1024),
    ("as", Resource::As, 1024),
    ("cpu", Resource::Cpu, 60),
    ("nofile", Resource::Nofile, 1),
    ("nproc", Resource::Nproc, 1),
    ("locks", Resource::Locks, 1),
    ("sigpending", Resource::Sigpending, 1),
    ("msgqueue", Resource::Msgqueue, 1),
    ("rtprio", Resource::Rtprio, 1),
];

/// The limits of a person on this machine. Files that cannot be read say nothing.
pub fn of(account: &Account, groups: &[u32]) -> Vec<LoginLimit> {
    let names = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let names = group_names(groups, &names);
    parse(&texts(Path::new(FILE), Path::new(FOLDER)), account, groups, &names)
}

/// Sets them for a process that was started just now. A limit that may not be raised stays.
pub fn set(limits: &[LoginLimit], pid: u32) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    for (item, (_, resource, _)) in ITEMS.iter().enumerate() {
        let said = |hard| limits.iter().find(|limit| limit.item == item && limit.hard == hard);
        let (hard, soft) = (said(true), said(false));
        if hard.is_none() && soft.is_none() {
            continue;
        }
        // It has the limits of this process.
        let now = getrlimit(*resource);
        let maximum = hard.map_or(now.maximum, |limit| limit.most);
        let current = soft.map_or(now.current, |limit| limit.most);
        let wanted = |maximum| Rlimit { current: least(current, maximum), maximum };
        if prlimit(Some(pid), *resource, wanted(maximum)).is_err() {
            let _ = prlimit(Some(pid), *resource, wanted(least(now.maximum, maximum)));
        }
    }
}

/// The smaller of two bounds, of which none is larger than all.
fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn texts(file: &Path, folder: &Path) -> String {
    let mut files = vec![file.to_owned()];
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut more: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    more.retain(|path| path.extension().is_some_and(|ending| ending == "conf"));
    more.sort();
    files.extend(more);
    let mut all = String::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if all.len() + text.len() <= BYTES_MAX {
            all = all + &text + "\n";
        }
    }
    all
}

/// Names of groups by number.
fn group_names(groups: &[u32], file: &str) -> Vec<String> {
    let name = |line: &str| {
        let mut fields = line.split(':');
        let (name, gid) = (fields.next()?, fields.nth(1)?.parse().ok()?);
        groups.contains(&gid).then(|| name.to_owned())
    };
    file.lines().filter_map(name).collect()
}

/// What is said of one person: lines for a user come before those for a group, these before those
/// for all; among equals the last counts.
fn parse(text: &str, account: &Account, groups: &[u32], names: &[String]) -> Vec<LoginLimit> {
    let mut found: Vec<(u8, LoginLimit)> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        let [domain, kind, item, value] = words[..] else { continue };
        let Some(rank) = rank(domain, account, groups, names) else { continue };
        let Some(item) = ITEMS.iter().position(|(name, ..)| *name == item) else { continue };
        let most = match value {
            "unlimited" | "infinity" | "-1" => None,
            number => match number.parse::<u64>() {
                Ok(number) => Some(number.saturating_mul(ITEMS[item].2)),
                Err(_) => continue,
            },
        };
        for hard in [true, false] {
            if kind != "-" && (kind == "hard") != hard {
                continue;
            }
            let same =
                |(_, limit): &&mut (u8, LoginLimit)| limit.item == item && limit.hard == hard;
            let limit = LoginLimit { item, hard, most };
            match found.iter_mut().find(same) {
                Some(before) if before.0 <= rank => *before = (rank, limit),
                Some(_) => {}
                None => found.push((rank, limit)),
            }
        }
    }
    found.sort_by_key(|(_, limit)| (limit.item, !limit.hard));
    found.into_iter().map(|(_, limit)| limit).collect()
}

/// How closely a line speaks of a person; none where it is about others.
fn rank(domain: &str, account: &Account, groups: &[u32], names: &[String]) -> Option<u8> {
    let within = |range: &str, number: u32| -> Option<bool> {
        let (first, last) = range.split_once(':')?;
        let end = |text: &str, usual| if text.is_empty() { Some(usual) } else { text.parse().ok() };
        Some((end(first, 0)?..=end(last, u32::MAX)?).contains(&number))
    };
    if domain == "*" {
        return Some(0);
    }
    if let Some(group) = domain.strip_prefix('@') {
        let is = names.iter().any(|name| name == group)
            || groups.iter().any(|gid| within(group, *gid) == Some(true));
        return is.then_some(1);
    }
    (domain == account.name || within(domain, account.uid) == Some(true)).then_some(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> String {
        let account = Account {
            name: "ada".into(),
            uid: 1001,
            gid: 100,
            home: "/".into(),
            shell: String::new(),
        };
        let found = parse(text, &account, &[100, 7], &["users".into(), "lab".into()]);
        let word = |limit: &LoginLimit| {
            let kind = if limit.hard { "hard" } else { "soft" };
            let most = limit.most.map_or("unlimited".to_owned(), |most| most.to_string());
            format!("{kind} {} {most}", ITEMS[limit.item].0)
        };
        found.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_is_said_of_a_user_beats_groups_and_these_beat_all() {
        assert_eq!(
            limits("* soft nofile 10\n@lab soft nofile 20\n@lab hard nofile 30\n"),
            "hard nofile 30, soft nofile 20"
        );
        assert_eq!(
            limits("ada - nofile 5\n* - nofile 9\n@lab - nofile 7\n"),
            "hard nofile 5, soft nofile 5"
        );
        assert_eq!(limits("eve - nofile 5\n@others - nofile 5\n# ada - nofile 5\n"), "");
        assert_eq!(
            limits("1000:1002 - core 2\n:1000 - core 3\n@7: - core 1\n"),
            "hard core 2048, soft core 2048"
        );
        assert_eq!(
            limits("* - memlock unlimited\n* hard cpu 2\n* - nofile many\n* - cake 2\n"),
            "hard memlock unlimited, soft memlock unlimited, hard cpu 120"
        );
    }

    #[test]
    fn limits_are_set_for_a_process_and_the_lower_stays_below_the_upper() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let nofile = ITEMS.iter().position(|(name, ..)| *name == "nofile").unwrap();
        let limit = |hard, most| LoginLimit { item: nofile, hard, most: Some(most) };
        set(&[limit(true, 60), limit(false, 70)], child.id());
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[3..5], ["60", "60"], "{line}");
    }

    #[test]
    fn groups_have_names_and_files_come_in_order() {
        let groups = "root:x:0:\nlab:x:7:ada\nusers:x:100:\n";
        assert_eq!(group_names(&[100, 7], groups), ["lab", "users"]);
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("b.conf", "third"), ("a.conf", "second"), ("c.txt", "not read")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let first = folder.path().join("limits");
        std::fs::write(&first, "first").unwrap();
        assert_eq!(texts(&first, folder.path()), "first\nsecond\nthird\n");
    }
}
