//! Who a job runs as.
//!
//! Reads `/etc/passwd` only: users of directory services are named by number.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

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
        let mut run = || {
            // A job of this user that still runs could take the program over.
            rustix::thread::set_no_new_privs(true)?;
            program.status().map(drop)
        };
        // A thread of its own: what it gives up is gone for good.
        thread::scope(|scope| scope.spawn(&mut run).join())
            .unwrap_or_else(|_| Err(io::Error::other("cannot look into the folder")))
    }
}

fn parse(line: &str) -> Option<JobUser> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, gid, _, home, ..] = fields[..] else { return None };
    let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
    Some(JobUser { uid, gid, name: name.to_owned(), home: home.to_owned() })
}

/// Who the jobs of an agent run as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JobUsers {
    /// The agent's own user.
    #[default]
    Own,
    /// One user for all: they can read and end each other's processes.
    One(JobUser),
    /// One user for each tenant, the same on every node: the first number plus that of the tenant.
    PerTenant {
        /// User of the first tenant.
        first: u32,
        /// The last user that may be taken.
        last: u32,
    },
}

impl JobUsers {
    /// Who jobs of a tenant run as; none for the agent's own user.
    pub fn of(&self, tenant: u32) -> io::Result<Option<JobUser>> {
        match self {
            JobUsers::Own => Ok(None),
            JobUsers::One(user) => Ok(Some(user.clone())),
            JobUsers::PerTenant { first, last } => {
                let uid = first.checked_add(tenant).filter(|uid| uid <= last).ok_or_else(|| {
                    let fault = format!("tenant {tenant} has no user in {first}-{last}");
                    io::Error::new(io::ErrorKind::InvalidInput, fault)
                })?;
                let (name, home) = (uid.to_string(), "/".to_owned());
                Ok(Some(JobUser { uid, gid: uid, name, home }))
            }
        }
    }

    /// Whether jobs run as the user of this process, and can read all that it can.
    pub fn are_own(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        match self {
            JobUsers::Own => true,
            JobUsers::One(user) => user.uid == own,
            JobUsers::PerTenant { first, last } => (*first..=*last).contains(&own),
        }
    }

    /// One of them, to find out what they can do.
    pub fn any(&self) -> Option<JobUser> {
        self.of(0).ok().flatten()
    }
}

/// Whether this process may start others as another user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_have_users_of_their_own_as_far_as_they_go() {
        let users = JobUsers::PerTenant { first: 60_000, last: 60_001 };
        let uid = |tenant| users.of(tenant).map(|user| user.map(|user| (user.uid, user.gid)));
        assert_eq!(uid(0).unwrap(), Some((60_000, 60_000)));
        assert_eq!(uid(1).unwrap(), Some((60_001, 60_001)));
        assert_eq!(uid(2).unwrap_err().to_string(), "tenant 2 has no user in 60000-60001");
        assert!(uid(u32::MAX).is_err());
    }
}
