//! Who a job runs as.
//!
//! Reads `/etc/passwd` only: users of directory services are named by number.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// A user of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobUser {
    /// Its number.
    pub uid: u32,
    /// Number of its group.
    pub gid: u32,
    /// Its name.
    pub name: String,
    /// Its home.
    pub home: String,
}

impl JobUser {
    /// The user of this name, or of this `UID:GID`.
    pub fn find(text: &str, passwd: &Path) -> Option<JobUser> {
        if let Some((uid, gid)) = text.split_once(':') {
            let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
            return Some(JobUser { uid, gid, name: uid.to_string(), home: "/".to_owned() });
        }
        let lines = std::fs::read_to_string(passwd).ok()?;
        lines.lines().find_map(|line| parse(line).filter(|user| user.name == text))
    }
}

fn parse(line: &str) -> Option<JobUser> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, gid, _, home, ..] = fields[..] else { return None };
    let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
    Some(JobUser { uid, gid, name: name.to_owned(), home: home.to_owned() })
}

/// Whether this process may start others as another user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
