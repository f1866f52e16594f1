//! Who a job runs as.
//!
//! Reads `/etc/passwd` only: users of directory services are named by number.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

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

    /// Whether the user can run this program in a folder, found out by doing so: every folder above
    /// and the file of the program itself have a word in it.
    pub fn can_work_in(&self, folder: &Path) -> io::Result<()> {
        let mut program = Command::new("/proc/self/exe");
        program.arg("--version").env_clear().current_dir(folder);
        if is_root() {
            program.uid(self.uid).gid(self.gid);
        }
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        program.status().map(drop)
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
