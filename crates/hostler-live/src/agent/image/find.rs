//! Which programs that run images are here.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::image::{Program, Runtime};
use crate::limits::NAME_CHARS_MAX;

/// How long a program may take to say which version it is.
const PROBE_MAX: Duration = Duration::from_secs(5);

/// Time between two looks at a program that runs.
const LOOK: Duration = Duration::from_millis(10);

/// Bytes of what it says.
const SAID_BYTES_MAX: u64 = 4096;

/// Beginnings of the agent's own variables that programs which run images go by: how the operator
/// sets them up.
const PASSED_ON: [&str; 9] = [
    "APPTAINER_",
    "CONTAINERS_",
    "ENROOT_",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "REGISTRY_AUTH_FILE",
    "SINGULARITY_",
    "STORAGE_",
];

/// A program that is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which.
    pub program: Program,
    /// Where.
    pub path: PathBuf,
    /// What it says of itself.
    pub version: String,
}

impl Found {
    /// The same for the daemon.
    pub fn runtime(&self) -> Runtime {
        Runtime { name: self.program.name().to_owned(), version: self.version.clone() }
    }
}

/// Those of some programs that are in the folders of `PATH` and answer, in their order.
pub fn find(programs: &[Program], path: &str) -> Vec<Found> {
    programs.iter().filter_map(|program| find_one(*program, path)).collect()
}

fn find_one(program: Program, path: &str) -> Option<Found> {
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    let mut files = folders.map(|folder| Path::new(folder).join(program.name()));
    let file = files.find(|file| is_program(file))?;
    match version(program, &file) {
        Ok(version) => Some(Found { program, path: file, version }),
        Err(fault) => {
            let file = file.display();
            tracing::warn!(%file, %fault, "it does not say its version, and runs no images");
            None
        }
    }
}

fn is_program(file: &Path) -> bool {
    let mode = fs::metadata(file).map(|file| (file.is_file(), file.permissions().mode()));
    mode.is_ok_and(|(is_file, mode)| is_file && mode & 0o111 != 0)
}

fn version(program: Program, file: &Path) -> io::Result<String> {
    let word = if program == Program::Enroot { "version" } else { "--version" };
    let mut child = Command::new(file)
        .arg(word)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let status = wait(&mut child, PROBE_MAX)?;
    if !status.success() {
        return Err(io::Error::other(status.to_string()));
    }
    let mut said = String::new();
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    stdout.take(SAID_BYTES_MAX).read_to_string(&mut said)?;
    // `podman version 4.3.1`, `apptainer version 1.4.5`, `3.5.0`.
    let word = said.lines().next().and_then(|line| line.split_whitespace().last());
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || ".-+~_".contains(*letter);
    let word: String = word.unwrap_or("?").chars().filter(plain).take(NAME_CHARS_MAX).collect();
    Ok(if word.is_empty() { "?".to_owned() } else { word })
}

/// Waits for the end of a program; one that takes too long is killed.
pub(super) fn wait(child: &mut Child, limit: Duration) -> io::Result<ExitStatus> {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait()?;
    let fault = format!("it did not end within {} s", limit.as_secs());
    Err(io::Error::new(io::ErrorKind::TimedOut, fault))
}

/// The agent's own variables that such programs go by.
pub(super) fn passed_on() -> BTreeMap<String, String> {
    let known = |name: &String| {
        let name = name.to_ascii_uppercase();
        PASSED_ON.iter().any(|beginning| name.starts_with(beginning))
    };
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| known(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(folder: &Path, name: &str, script: &str, mode: u32) {
        let file = folder.join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn programs_are_found_by_what_they_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = format!("/no/such:relative:{}", folder.path().display());
        program(folder.path(), "podman", "echo podman version 4.3.1", 0o755);
        program(folder.path(), "apptainer", "echo apptainer version 1.4.5-2", 0o644);
        program(folder.path(), "singularity", "exit 3", 0o755);
        program(folder.path(), "enroot", "test $1 = version && printf '3.5.0\\033[2J\\n'", 0o755);
        let found = find(&Program::ALL, &path);
        let said: Vec<(&str, &str)> =
            found.iter().map(|found| (found.program.name(), found.version.as_str())).collect();
        assert_eq!(said, [("podman", "4.3.1"), ("enroot", "3.5.02J")]);
        assert_eq!(find(&[Program::Apptainer], &path), []);
        assert_eq!(find(&[], &path), []);
    }
}
