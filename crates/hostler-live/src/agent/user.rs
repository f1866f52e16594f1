//! Who a job runs as, and how a process becomes that user.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Gid, Uid};
use serde::{Deserialize, Serialize};

use super::login_limits::{self, LoginLimit};
use super::refusal::refused;
use crate::person::{Account, OVERFLOW_UID, Person, is_account_name};
use crate::wire::StartOrder;

/// A user of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobUser {
    /// Its number.
    pub uid: u32,
    /// Number of its group.
    pub gid: u32,
    /// Its name.
    pub name: String,
    /// Its home.
    pub home: String,
    /// Its shell; the usual one when empty.
    #[serde(default)]
    pub shell: String,
    /// Numbers of its other groups.
    #[serde(default)]
    pub groups: Vec<u32>,
    /// What a login would limit it to.
    #[serde(default)]
    pub limits: Vec<LoginLimit>,
}

/// Who a process is to the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl Identity {
    /// Makes this process, which must have one thread only, that of the user, for good: all groups
    /// are the user's, and no number is left by which it could go back.
    pub fn assume(&self) -> io::Result<()> {
        let Identity { uid, gid, groups } = self;
        // To the kernel this number means that nothing is to be changed.
        if [uid, gid].into_iter().chain(groups).any(|number| *number == u32::MAX) {
            return Err(io::Error::other("it has a number that stands for nobody"));
        }
        let groups: Vec<Gid> = groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
        rustix::thread::set_thread_groups(&groups)?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        let is = (rustix::process::getuid(), rustix::process::geteuid()) == (uid, uid)
            && (rustix::process::getgid(), rustix::process::getegid()) == (gid, gid);
        if is { Ok(()) } else { Err(io::Error::other("the kernel kept another user")) }
    }
}

impl JobUser {
    /// The user of this name, or of this `UID:GID`.
    pub fn find(text: &str, passwd: &Path) -> Option<JobUser> {
        if let Some((uid, gid)) = text.split_once(':') {
            let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
            return Some(JobUser::bare(uid, gid, &uid.to_string(), "/"));
        }
        let account = Account::in_file(text, passwd)?;
        Some(JobUser::bare(account.uid, account.gid, &account.name, &account.home))
    }

    /// A user with its first group alone.
    pub fn bare(uid: u32, gid: u32, name: &str, home: &str) -> JobUser {
        let (name, home) = (name.to_owned(), home.to_owned());
        JobUser { uid, gid, name, home, ..JobUser::default() }
    }

    /// A person with all that a login on this machine would give.
    fn logged_in(account: Account) -> io::Result<JobUser> {
        let groups = account.groups()?;
        let limits = login_limits::of(&account, &groups);
        let Account { name, uid, gid, home, shell } = account;
        Ok(JobUser { uid, gid, name, home, shell, groups, limits })
    }

    /// Who its processes are to the kernel.
    pub fn identity(&self) -> Identity {
        Identity { uid: self.uid, gid: self.gid, groups: self.groups.clone() }
    }

    /// Whether the user can run this program in a folder, found out by doing so: every folder above
    /// and the file of the program itself have a word in it.
    pub fn can_work_in(&self, folder: &Path) -> io::Result<()> {
        let mut program = Command::new("/proc/self/exe");
        program.arg("--version").env_clear().current_dir(folder);
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A job of this user that still runs could take the program over.
        run_as(Some(self), &mut program, |program| program.status().map(drop))
    }
}

/// Runs a program as a job's user, without more rights than that has.
pub(super) fn run_as<T: Send>(
    user: Option<&JobUser>,
    program: &mut Command,
    run: impl FnOnce(&mut Command) -> io::Result<T> + Send,
) -> io::Result<T> {
    if let Some(user) = user.filter(|_| is_root()) {
        program.uid(user.uid).gid(user.gid);
    }
    let run = || {
        rustix::thread::set_no_new_privs(true)?;
        run(program)
    };
    // A thread of its own: what it gives up is gone for good.
    thread::scope(|scope| {
        let ended = thread::Builder::new().spawn_scoped(scope, run)?.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("it cannot be run")))
    })
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
    /// The person who submitted the job.
    People {
        /// The lowest number that a person may have; root is none.
        uid_min: u32,
    },
}

impl JobUsers {
    /// Who the job of an order runs as; none for the agent's own user.
    pub fn of(&self, order: &StartOrder) -> io::Result<Option<JobUser>> {
        match self {
            JobUsers::Own => Ok(order.person.as_ref().and_then(own_account)),
            JobUsers::One(user) => Ok(Some(user.clone())),
            JobUsers::PerTenant { first, last } => of_tenant(*first, *last, order.tenant).map(Some),
            JobUsers::People { uid_min } => {
                let person = order.person.as_ref().ok_or_else(|| refused(NOBODY.to_owned()))?;
                of_person(person, *uid_min).map(Some)
            }
        }
    }

    /// What the agent can do for people, in a word for the daemon; none where it does not matter
    /// who submitted a job.
    pub fn ability(&self) -> Option<String> {
        match self {
            JobUsers::People { .. } => Some(ABILITY.to_owned()),
            JobUsers::Own => Some(ability_of(rustix::process::geteuid().as_raw())),
            JobUsers::One(_) | JobUsers::PerTenant { .. } => None,
        }
    }

    /// Whether jobs run as the user of this process, and can read all that it can.
    pub fn are_own(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        match self {
            JobUsers::Own => true,
            JobUsers::One(user) => user.uid == own,
            JobUsers::PerTenant { first, last } => (*first..=*last).contains(&own),
            JobUsers::People { .. } => false,
        }
    }

    /// One of them, to find out what they can do; of people, somebody whom nothing belongs to.
    pub fn any(&self) -> Option<JobUser> {
        match self {
            JobUsers::Own => None,
            JobUsers::One(user) => Some(user.clone()),
            JobUsers::PerTenant { first, last } => of_tenant(*first, *last, 0).ok(),
            JobUsers::People { .. } => {
                Some(JobUser::bare(OVERFLOW_UID, OVERFLOW_UID, "other people", "/"))
            }
        }
    }
}

/// The word of an agent that runs jobs as the people who submit them.
pub const ABILITY: &str = "people";

/// The word of an agent that runs all jobs as one user, who may be the person.
pub fn ability_of(uid: u32) -> String {
    format!("user:{uid}")
}

/// Why a job of nobody does not run as anybody.
const NOBODY: &str = "jobs run as the people who submit them, and whoever submitted this one has no \
                      Unix user: an admin types `hostler user add NAME` for those who come by the \
                      daemon's socket, or `hostler token create --unix-user NAME`";

fn of_tenant(first: u32, last: u32, tenant: u32) -> io::Result<JobUser> {
    let uid = first.checked_add(tenant).filter(|uid| *uid <= last).ok_or_else(|| {
        let fault = format!("tenant {tenant} has no user in {first}-{last}");
        io::Error::new(io::ErrorKind::InvalidInput, fault)
    })?;
    Ok(JobUser::bare(uid, uid, &uid.to_string(), "/"))
}

/// A person's account on this machine, unless it is none that jobs may have.
fn of_person(person: &Person, uid_min: u32) -> io::Result<JobUser> {
    let Person { name, uid: known } = person;
    if !is_account_name(name) {
        return Err(refused("its person has a name that no account can have".to_owned()));
    }
    let account = Account::named(name)?.ok_or_else(|| {
        refused(format!("there is no user `{name}` here; add one, with the number of other nodes"))
    })?;
    let uid = account.uid;
    if known.is_some_and(|known| known != uid) {
        return Err(refused(format!(
            "user `{name}` has number {uid} here and {} where the job was submitted; people need \
             the same number on every machine",
            known.unwrap_or_default()
        )));
    }
    // Root would be everybody, and to the kernel the last number is no number at all.
    if uid == 0 || uid < uid_min || uid == OVERFLOW_UID || uid == u32::MAX {
        return Err(refused(format!(
            "user `{name}` has number {uid}, which is no person's; those begin at {}, see `hostler \
             agent --uid-min`",
            uid_min.max(1)
        )));
    }
    JobUser::logged_in(account)
}

/// The account of a person who is the agent's own user, for its home and shell.
fn own_account(person: &Person) -> Option<JobUser> {
    let account = Account::named(&person.name).ok()??;
    let own = rustix::process::geteuid().as_raw();
    let is = account.uid == own && person.uid == Some(own);
    let Account { name, uid, gid, home, shell } = account;
    is.then(|| JobUser { shell, ..JobUser::bare(uid, gid, &name, &home) })
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
        let uid = |tenant| of_tenant(60_000, 60_001, tenant).map(|user| (user.uid, user.gid));
        assert_eq!(uid(0).unwrap(), (60_000, 60_000));
        assert_eq!(uid(1).unwrap(), (60_001, 60_001));
        assert_eq!(uid(2).unwrap_err().to_string(), "tenant 2 has no user in 60000-60001");
        assert!(uid(u32::MAX).is_err());
    }

    #[test]
    fn people_are_neither_root_nor_the_system_nor_somebody_else_elsewhere() {
        let find = |name: &str, uid, uid_min| {
            let found = of_person(&Person { name: name.to_owned(), uid }, uid_min);
            found.map(|user| user.uid).map_err(|fault| fault.to_string())
        };
        assert!(find("root", Some(0), 0).unwrap_err().contains("which is no person's"));
        assert!(find("root", None, 1).unwrap_err().contains("which is no person's"));
        assert!(find("daemon", None, 1000).unwrap_err().contains("begin at 1000"));
        assert_eq!(find("daemon", Some(1), 1), Ok(1));
        assert!(find("daemon", Some(2), 1).unwrap_err().contains("number 1 here and 2 where"));
        assert!(find("nobody", None, 1).is_err(), "whom the kernel cannot name is nobody, too");
        assert!(find("0", None, 1).unwrap_err().contains("no account can have"));
        assert!(find("no-such-person", None, 1).unwrap_err().contains("there is no user"));
    }

    #[test]
    fn a_number_that_changes_nothing_is_refused() {
        let identity = |uid, gid, groups: &[u32]| Identity { uid, gid, groups: groups.to_vec() };
        let max = u32::MAX;
        for wrong in [identity(max, 1, &[]), identity(1, max, &[]), identity(1, 1, &[5, max])] {
            assert!(wrong.assume().is_err());
        }
    }
}
