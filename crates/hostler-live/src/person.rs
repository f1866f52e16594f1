//! People as machines know them: accounts by name and number, from the machine's own files or, by
//! `getent` and `id`, from its directory service.
//!
//! A name travels with a job; what it means is looked up on the machine that runs the job.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The number that stands for users whom the kernel cannot name, and for `nobody`.
pub const OVERFLOW_UID: u32 = 65534;

/// Numbers of people begin here; those below belong to the system.
pub const FIRST_PERSON_UID: u32 = 1000;

/// Where programs of the system are.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Characters of the name of an account: what `useradd` takes, and room for a domain.
const NAME_CHARS_MAX: usize = 96;

/// Groups of one person: what the kernel takes of NFS and of `setgroups` is less and more.
pub const GROUPS_MAX: usize = 1024;

/// Time that a directory service has to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Bytes of an answer; one that is longer is none.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Somebody for whom programs are run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Person {
    /// The account's name, the same on every machine.
    pub name: String,
    /// Its number where the person came in; a machine on which it is another refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
}

/// An account of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// Number of its first group.
    pub gid: u32,
    /// Its home.
    pub home: String,
    /// The shell that a login would start.
    pub shell: String,
}

impl Account {
    /// The account of a name; none where there is no such.
    pub fn named(name: &str) -> io::Result<Option<Account>> {
        if !is_account_name(name) {
            return Ok(None);
        }
        find(name, |account| account.name == name)
    }

    /// The account of a number.
    pub fn numbered(uid: u32) -> io::Result<Option<Account>> {
        find(&uid.to_string(), |account| account.uid == uid)
    }

    /// The account of a name in a file like `/etc/passwd`.
    pub fn in_file(name: &str, passwd: &Path) -> Option<Account> {
        let lines = std::fs::read_to_string(passwd).ok()?;
        lines.lines().filter_map(parse).find(|account| account.name == name)
    }

    /// Numbers of all groups of the account, as a login would give them.
    pub fn groups(&self) -> io::Result<Vec<u32>> {
        let said = match ask("id", &["-G", &self.name]) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => None,
            said => said?,
        };
        let mut groups = match said {
            Some(text) => {
                let numbers: Result<_, _> = text.split_whitespace().map(str::parse).collect();
                numbers.map_err(|_| io::Error::other("`id -G` answered no numbers"))?
            }
            None => member_of(&self.name, &std::fs::read_to_string("/etc/group")?),
        };
        if !groups.contains(&self.gid) {
            groups.insert(0, self.gid);
        }
        groups.truncate(GROUPS_MAX);
        Ok(groups)
    }
}

/// Whether a text can be the name of an account. Digits alone would be taken for a number, and a
/// dash in front for an option.
pub fn is_account_name(name: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-@+$".contains(&byte);
    let first = name.bytes().next();
    first.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() <= NAME_CHARS_MAX
        && name.bytes().all(usual)
        && !name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Looks into the file first: it needs no process, and goes before a directory on most machines.
fn find(key: &str, wanted: impl Fn(&Account) -> bool) -> io::Result<Option<Account>> {
    let lines = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    if let Some(account) = lines.lines().filter_map(parse).find(&wanted) {
        return Ok(Some(account));
    }
    let said = match ask("getent", &["passwd", key]) {
        // A machine without it has no directory service either.
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => None,
        said => said?,
    };
    let found = said.and_then(|text| text.lines().next().and_then(parse));
    Ok(found.filter(wanted))
}

fn parse(line: &str) -> Option<Account> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, gid, _, home, rest @ ..] = &fields[..] else { return None };
    let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
    let shell = rest.first().copied().unwrap_or_default().to_owned();
    Some(Account { name: (*name).to_owned(), uid, gid, home: (*home).to_owned(), shell })
}

/// Groups of which a file like `/etc/group` names somebody as a member.
fn member_of(name: &str, groups: &str) -> Vec<u32> {
    let number = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let gid = fields.next()?.parse().ok()?;
        fields.next()?.split(',').any(|member| member == name).then_some(gid)
    };
    groups.lines().filter_map(number).collect()
}

/// What a program of the system says; none where it says no. It may ask a server for it.
fn ask(program: &str, words: &[&str]) -> io::Result<Option<String>> {
    let mut child = Command::new(program)
        .args(words)
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let begun = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > ANSWER_MAX {
            child.kill()?;
            child.wait()?;
            let fault = format!("`{program}` did not answer within {} s", ANSWER_MAX.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, fault));
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(50));
    };
    let mut text = String::new();
    let out = child.stdout.take().expect("it was started with a pipe");
    out.take(ANSWER_BYTES_MAX).read_to_string(&mut text)?;
    Ok(status.success().then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_programs_would_misread_are_none() {
        let good = ["ada", "ada.l", "_apt", "a1", "1a", "ada@lab.example", "host$"];
        let bad = ["", "-G", "0", "1000", "a:b", "a b", "a/b", "a\n", "ä", "+a"];
        assert!(good.iter().all(|name| is_account_name(name)));
        assert!(bad.iter().all(|name| !is_account_name(name)), "{bad:?}");
        assert!(!is_account_name(&"a".repeat(NAME_CHARS_MAX + 1)));
    }

    #[test]
    fn lines_of_accounts_and_groups_are_read() {
        let ada = parse("ada:x:1001:100:Ada:/home/ada:/bin/bash").unwrap();
        assert_eq!((ada.uid, ada.gid, ada.home.as_str()), (1001, 100, "/home/ada"));
        assert_eq!(ada.shell, "/bin/bash");
        assert_eq!(parse("ada:x:1001:100:Ada:/home/ada").unwrap().shell, "");
        for line in ["", "ada", "ada:x:-1:100::/:/bin/sh", "ada:x:4294967296:1::/:", "+::::::"] {
            assert_eq!(parse(line), None, "{line}");
        }
        let groups = "root:x:0:\nlab:x:7:eve,ada\nother:x:8:adam\nlast:x:9:ada\nbroken\n";
        assert_eq!(member_of("ada", groups), [7, 9]);
    }

    #[test]
    fn root_is_found_by_name_and_number_and_nobody_by_a_made_up_one() {
        let root = Account::named("root").unwrap().unwrap();
        assert_eq!(Account::numbered(0).unwrap().unwrap().uid, 0);
        assert!(root.groups().unwrap().contains(&root.gid));
        assert_eq!(Account::named("no-such-account-here").unwrap(), None);
        assert_eq!(Account::numbered(3_999_999_999).unwrap(), None);
        assert_eq!(Account::named("0").unwrap(), None, "numbers are no names");
    }
}
