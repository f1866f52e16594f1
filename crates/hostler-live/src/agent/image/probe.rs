//! Whether a program that runs images can start a container here, found out by starting one.
//!
//! That it tells its version promises nothing: a kernel without namespaces, control groups of two
//! kinds or limits that cannot be set show only when something is run. What is run is `true` of
//! this machine, in an empty folder in which the machine's programs are seen, by the words and as
//! the user of a job.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hostler_core::id::{JobId, LeaseId};
use rustix::fs::{MemfdFlags, memfd_create};

use super::find::{self, Found};
use super::{Container, FOLDERS, end_leftovers, launch, run_as};
use crate::agent::folder;
use crate::agent::launch::{USUAL_PATH, give};
use crate::agent::shim::ShimOrder;
use crate::agent::user::JobUser;
use crate::image::{ImageKind, Mount, Program};
use crate::wire::{StartOrder, TaskOrder};

/// How long a program may take to run a container that does nothing, on a busy machine.
const TRIAL_MAX: Duration = Duration::from_secs(20);

/// Bytes of what it says, and characters of that for people.
const SAID_BYTES_MAX: u64 = 4096;
const SAID_CHARS_MAX: usize = 300;

/// What is run.
const NOTHING: &str = "/usr/bin/true";

/// Of programs that are here, those that start containers for a user, and why others do not. They
/// keep their things in this folder.
pub fn try_out(
    found: Vec<Found>,
    args: &[String],
    folder: &Path,
    user: Option<&JobUser>,
) -> (Vec<Found>, Vec<String>) {
    let mut unusable = Vec::new();
    let good = |found: &Found| match fault(found, args, folder, user) {
        None => true,
        Some(fault) => {
            unusable.push(format!("{} {}: {fault}", found.program.name(), found.version));
            false
        }
    };
    (found.into_iter().filter(good).collect(), unusable)
}

fn fault(found: &Found, args: &[String], folder: &Path, user: Option<&JobUser>) -> Option<String> {
    // Files that enroot runs are made by its own tools only.
    if found.program == Program::Enroot {
        return None;
    }
    let untried = |fault: io::Error| Some(format!("it cannot be tried: {fault}"));
    try_one(found, args, folder, user, untried).unwrap_or_else(untried)
}

fn try_one(
    found: &Found,
    args: &[String],
    folder: &Path,
    user: Option<&JobUser>,
    untried: impl Fn(io::Error) -> Option<String>,
) -> io::Result<Option<String>> {
    let place = Place::new(folder)?;
    let root = place.0.join("trial").display().to_string();
    if ImageKind::of(&root) != Some(ImageKind::Folder) {
        return Ok(None);
    }
    let mounts = furnish(Path::new(&root), user)?;
    let image = Image { root: &root, mounts: &mounts };
    let fault = |layered| match run(found, args, folder, image, user, layered) {
        Ok((code, said)) => verdict(found.program, code, &said),
        Err(fault) => untried(fault),
    };
    // Where nothing can be laid over a folder, images that are read-only may still be run.
    Ok(fault(true).filter(|_| found.program != Program::Podman || fault(false).is_some()))
}

/// A folder of the agent's own, which nobody had a hand in before: what is made as root inside a
/// folder of a user could be exchanged on the way.
struct Place(PathBuf);

impl Place {
    fn new(folder: &Path) -> io::Result<Place> {
        let parent = folder.parent().unwrap_or(folder);
        folder::make(parent, 0o711)?;
        let path =
            parent.join(format!("trial-{:016x}", getrandom::u64().map_err(io::Error::other)?));
        DirBuilder::new().mode(0o711).create(&path)?;
        Ok(Place(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(fault) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%fault, "`{}` stays", self.0.display());
        }
    }
}

/// What is run: a folder, and what of the machine is seen in it.
#[derive(Clone, Copy)]
struct Image<'a> {
    root: &'a str,
    mounts: &'a [Mount],
}

/// Why a program could not start a container, by how it ended. What the command in it does, or that
/// it is not there, is another matter.
fn verdict(program: Program, code: Option<i32>, said: &str) -> Option<String> {
    let good = match program {
        // It gives 126 also where the kernel refuses what a container is made of, and others where
        // it does not get as far as that.
        Program::Podman => matches!(code, Some(0 | 127)),
        Program::Apptainer | Program::Singularity => code.is_some_and(|code| code != 255),
        Program::Enroot => true,
    };
    if good {
        return None;
    }
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line: String = lines.next_back().unwrap_or("it says nothing").to_owned();
    let line: String =
        line.chars().filter(|letter| !letter.is_control()).take(SAID_CHARS_MAX).collect();
    let code = code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
    Some(format!("it cannot start a container ({code}): {line}"))
}

/// Runs a container that does nothing, in which may be written or not: its exit code, and what was
/// said.
fn run(
    found: &Found,
    args: &[String],
    folder: &Path,
    Image { root, mounts }: Image<'_>,
    user: Option<&JobUser>,
    layered: bool,
) -> io::Result<(Option<i32>, String)> {
    give(folder, user)?;
    FOLDERS.iter().try_for_each(|name| give(&folder.join(name), user))?;
    let container = Container {
        program: found.program,
        path: found.path.clone(),
        image: root.to_owned(),
        mounts: mounts.to_vec(),
        args: args.to_vec(),
        folder: folder.to_owned(),
        env: find::passed_on(),
        has_devices: false,
    };
    let shim = order(container, folder, user);
    // A file without a name, so that nobody can put another in its place.
    let mut said = File::from(memfd_create("trial", MemfdFlags::CLOEXEC)?);
    let mut words = launch(&shim, &shim.order.tasks[0]);
    if !layered {
        words.command = words.command.iter().flat_map(|word| read_only(word, root)).collect();
    }
    let ended = run_as(user, &words, TRIAL_MAX, said.try_clone()?);
    end_leftovers(&shim);
    let mut text = Vec::new();
    said.rewind()?;
    said.take(SAID_BYTES_MAX).read_to_end(&mut text)?;
    Ok((ended?.code(), String::from_utf8_lossy(&text).into_owned()))
}

/// A word of Podman for a folder over which nothing is laid.
fn read_only(word: &str, root: &str) -> Vec<String> {
    match word {
        "--rootfs" => ["--read-only", "--rootfs"].map(str::to_owned).to_vec(),
        word if word.strip_suffix(":O") == Some(root) => vec![root.to_owned()],
        word => vec![word.to_owned()],
    }
}

/// Makes a folder that a container can be run in, and says what of the machine is seen there. It
/// belongs to the user: Podman makes files in it, and may not where one user is all that it has.
/// All is made before anything is given away, and what is inside goes first.
fn furnish(root: &Path, user: Option<&JobUser>) -> io::Result<Vec<Mount>> {
    let read_only = |path: &str| Mount { read_only: true, ..Mount::same(path) };
    let mut mounts = vec![read_only("/usr")];
    let mut made = vec![root.to_owned()];
    let folders = ["dev", "etc", "proc", "run", "sys", "tmp", "usr", "var", "var/tmp"];
    made.extend(folders.iter().map(|name| root.join(name)));
    let mut links = Vec::new();
    for name in ["bin", "lib", "lib32", "lib64", "libx32", "sbin"] {
        let (here, there) = (Path::new("/").join(name), root.join(name));
        if let Ok(target) = fs::read_link(&here) {
            links.push((target, there));
        } else if here.is_dir() {
            made.push(there);
            mounts.push(read_only(&here.display().to_string()));
        }
    }
    made.iter().try_for_each(|folder| DirBuilder::new().mode(0o700).create(folder))?;
    links.iter().try_for_each(|(target, there)| symlink(target, there))?;
    made.iter().rev().try_for_each(|folder| give(folder, user))?;
    Ok(mounts)
}

/// An order that no daemon gave, under a number that none gives.
fn order(container: Container, folder: &Path, user: Option<&JobUser>) -> ShimOrder {
    let own = std::env::var("PATH").ok().filter(|_| user.is_none());
    ShimOrder {
        order: StartOrder {
            lease: LeaseId(u32::MAX),
            job: JobId(u32::MAX),
            restart: 0,
            command: vec![NOTHING.to_owned()],
            env: BTreeMap::new(),
            workdir: "/".to_owned(),
            tasks: vec![TaskOrder { rank: 0, local_rank: 0, gpus: Vec::new(), gpu_mem_mib: 0 }],
            world_size: 1,
            master_addr: String::new(),
            master_port: 0,
            cpu_milli: 0,
            mem_mib: 0,
            array_index: None,
            grace_ms: 0,
            tenant: 0,
            limit_ms: None,
            script: String::new(),
            person: None,
            umask: None,
            image: container.image.clone(),
            mounts: Vec::new(),
            interactive: None,
            resumes: None,
        },
        workdir: "/".into(),
        checkpoint_dir: "/".into(),
        socket: folder.join("trial.socket"),
        agent_socket: folder.join("trial.socket"),
        alive: folder.join("trial.alive"),
        path: own.unwrap_or_else(|| USUAL_PATH.to_owned()),
        user: user.cloned(),
        cgroup: None,
        mps_pipes: None,
        segment_bytes: 0,
        segments_max: 0,
        container: Some(container),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn podman(folder: &Path, script: &str) -> Found {
        let path = folder.join("podman");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        Found { program: Program::Podman, path, version: "4.3.1".to_owned() }
    }

    #[test]
    fn a_program_that_starts_no_container_is_not_used_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let tried = |script: &str| {
            let found = podman(folder.path(), script);
            let (good, bad) = try_out(vec![found], &[], &folder.path().join("images"), None);
            (good.len(), bad.join(", "))
        };
        let why = "podman 4.3.1: it cannot start a container (exit code 125): no namespaces";
        assert_eq!(tried("echo first >&2; echo no namespaces >&2; exit 125"), (0, why.to_owned()));
        let why = "podman 4.3.1: it cannot start a container (exit code 126): it says nothing";
        assert_eq!(tried("exit 126"), (0, why.to_owned()));
        // The command is not there: that is no fault of who should have run it.
        assert_eq!(tried("exit 127"), (1, String::new()));
        // Who cannot lay anything over a folder can still run images that are read-only.
        let words = "case \"$*\" in *:O*) exit 125;; *--read-only*--rootfs*trial*) exit 0;; esac";
        assert_eq!(tried(&format!("{words}; exit 125")), (1, String::new()));
        // It is run as a job is: the folder, the machine's programs in it, and what is run.
        let words =
            "case \"$*\" in *--volume=/usr:/usr:ro*--entrypoint=*true*trial*) exit 0;; esac";
        assert_eq!(tried(&format!("{words}; exit 125")), (1, String::new()));
    }
}
