//! What travels with a job from where it is submitted: the folder, the umask, and variables.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Result, bail};
use hostler_live::api::Me;
use hostler_live::client::{Client, ClientError};
use hostler_live::job::{is_variable, umask_of};
use hostler_live::limits::COMMAND_BYTES_MAX;

use super::{Submission, absolute};

/// What `--workdir` says for a folder of the job's own.
pub const PRIVATE: &str = "private";

/// What files of jobs are not open for, where nothing is said.
const USUAL_UMASK: u32 = 0o022;

/// Variables that go along with a job that runs as its submitter: where programs are, and which
/// language is spoken. None of them is secret.
const USUAL: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
];

/// Variables that belong to the shell or to the machine, not to the person.
const STAYING: &[&str] =
    &["_", "PWD", "OLDPWD", "SHLVL", "HOME", "USER", "LOGNAME", "SHELL", "MAIL"];

/// Names of the largest variables that are told when there are too many.
const LARGEST_TOLD: usize = 3;

/// Which variables go along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// Whether all do.
    all: bool,
    /// Those that are named, some with another value.
    named: Vec<(String, Option<String>)>,
}

impl FromStr for Export {
    type Err = String;

    fn from_str(text: &str) -> Result<Export, String> {
        let mut export = Export::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            match part {
                "ALL" => export.all = true,
                "NONE" | "NIL" => export = Export::default(),
                part => {
                    let (name, value) = match part.split_once('=') {
                        Some((name, value)) => (name, Some(value.to_owned())),
                        None => (part, None),
                    };
                    if !is_variable(name) {
                        let known = "write NAME, NAME=VALUE, ALL or NONE, with commas between";
                        return Err(format!("`{part}` names no variable; {known}"));
                    }
                    export.named.push((name.to_owned(), value));
                }
            }
        }
        Ok(export)
    }
}

impl Export {
    /// The variables that are meant, and what is to be said of those that are not set.
    fn of(&self, here: &BTreeMap<String, String>) -> (BTreeMap<String, String>, Vec<String>) {
        let (mut found, mut notes) = (BTreeMap::new(), Vec::new());
        if self.all {
            let goes = |name: &str| {
                let ours = ["HOSTLER_", "SLURM_"].iter().any(|prefix| name.starts_with(prefix));
                is_variable(name) && !ours && !STAYING.contains(&name)
            };
            let all = here.iter().filter(|(name, _)| goes(name));
            found.extend(all.map(|(name, value)| (name.clone(), value.clone())));
        }
        for (name, value) in &self.named {
            match value.as_ref().or_else(|| here.get(name)) {
                Some(value) => {
                    found.insert(name.clone(), value.clone());
                }
                None => notes.push(format!("`--export {name}`: it is not set")),
            }
        }
        (found, notes)
    }
}

/// All variables of this process that are text.
fn variables() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Adds the variables that `--export` names; `--env` comes before them.
pub fn export(job: &mut Submission) -> Result<()> {
    let Some(export) = &job.export else { return Ok(()) };
    let (found, notes) = export.of(&variables());
    add(job, found)?;
    job.notes.extend(notes);
    Ok(())
}

fn add(job: &mut Submission, found: BTreeMap<String, String>) -> Result<()> {
    let bytes: usize = found.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    if bytes > COMMAND_BYTES_MAX {
        let mut largest: Vec<_> = found.iter().collect();
        largest.sort_by_key(|(name, value)| std::cmp::Reverse(name.len() + value.len()));
        let largest: Vec<&str> =
            largest.iter().take(LARGEST_TOLD).map(|(name, _)| name.as_str()).collect();
        bail!(
            "the variables that go along have {bytes} bytes, at most {COMMAND_BYTES_MAX}; the \
             largest are {}; name those that the job needs by `--export NAME,..`",
            largest.join(", ")
        );
    }
    for (name, value) in found {
        job.request.env.entry(name).or_insert(value);
    }
    Ok(())
}

/// Adds what goes along by itself. A job that runs as its submitter starts in this folder, with a
/// few variables, unless something else is said; other jobs have a folder of their own.
pub fn settle(client: &mut Client, job: &mut Submission) -> Result<()> {
    let in_place = match client.get::<Me>("/me") {
        Ok(me) => me.in_place,
        // An older daemon does not know the question; what else is wrong shows with the job.
        Err(ClientError::Refused { .. }) => false,
        Err(error) => return Err(error.into()),
    };
    let request = &mut job.request;
    if request.workdir == PRIVATE {
        request.workdir.clear();
    } else if !request.workdir.is_empty() || in_place {
        let folder = if request.workdir.is_empty() { "." } else { &request.workdir };
        request.workdir = absolute(folder)?;
    }
    if request.umask.is_empty() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        request.umask = umask_in(&status).unwrap_or_default();
    }
    if in_place && job.export.is_none() {
        let mut here = variables();
        here.retain(|name, _| USUAL.contains(&name.as_str()) || name.starts_with("LC_"));
        add(job, here)?;
    }
    Ok(())
}

/// The mask of a process, where it is not the usual one.
fn umask_in(status: &str) -> Option<String> {
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?.trim();
    umask_of(mask).filter(|mask| *mask != USUAL_UMASK).map(|mask| format!("{mask:03o}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> BTreeMap<String, String> {
        let pairs = [("A", "1"), ("B", "2"), ("HOME", "/h"), ("HOSTLER_TOKEN", "secret")];
        let pairs = pairs.iter().chain(&[("SLURM_JOB_ID", "3"), ("BASH_FUNC_f%%", "() {}")]);
        pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn exported(text: &str) -> String {
        let (found, notes) = text.parse::<Export>().unwrap().of(&here());
        let found = found.iter().map(|(name, value)| format!("{name}={value}"));
        found.chain(notes).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn variables_go_along_by_name_or_all_of_them_but_never_ours() {
        assert_eq!(exported("NONE"), "");
        assert_eq!(exported("A,C=x y,HOME"), "A=1 C=x y HOME=/h");
        assert_eq!(exported("ALL"), "A=1 B=2");
        assert_eq!(exported("ALL,B=9"), "A=1 B=9");
        assert_eq!(exported("D"), "`--export D`: it is not set");
        assert!("1A".parse::<Export>().unwrap_err().contains("ALL or NONE"));
        assert!("A B".parse::<Export>().is_err());
    }

    #[test]
    fn a_usual_mask_is_not_told() {
        assert_eq!(umask_in("Name:\tx\nUmask:\t0022\n"), None);
        assert_eq!(umask_in("Umask:\t0077\n").as_deref(), Some("077"));
        assert_eq!((umask_in(""), umask_in("Umask:\tnone\n")), (None, None));
    }

    #[test]
    fn too_many_variables_are_told_with_the_largest() {
        let request = Default::default();
        let mut job = Submission { request, notes: Vec::new(), wait: false, export: None };
        let large = [("SMALL", 10), ("LARGE", 60_000), ("LARGER", 60_001)];
        let large = large.map(|(name, bytes)| (name.to_owned(), "x".repeat(bytes)));
        let fault = add(&mut job, large.into()).unwrap_err().to_string();
        assert!(fault.contains("the largest are LARGER, LARGE, SMALL"), "{fault}");
        job.request.env.insert("A".to_owned(), "mine".to_owned());
        add(&mut job, [("A".to_owned(), "theirs".to_owned())].into()).unwrap();
        assert_eq!(job.request.env["A"], "mine");
    }
}
