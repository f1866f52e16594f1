//! Limits and bounds of a job by control groups (version 2), where the agent may make them.
//!
//! Wants a group of its own (`Delegate=yes` in its unit, or root). Without, jobs run without
//! limits, still within their session and below their shim; the agent says so once.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Microseconds over which the CPU limit is counted, the kernel's own default.
const CPU_PERIOD_US: u64 = 100_000;

/// Name of the group that the agent itself moves to; units name it as `DelegateSubgroup=`.
const AGENT_GROUP: &str = "hostler-agent";

/// Why jobs of an agent started like this process would run without limits, if so. Changes
/// nothing.
pub fn fault() -> Option<io::Error> {
    able().err()
}

fn able() -> io::Result<()> {
    let own = own_group()?;
    check_controllers(&own)?;
    // Those who may write here may hand controllers on to groups below.
    fs::OpenOptions::new().write(true).open(own.join("cgroup.subtree_control")).map(drop)
}

fn check_controllers(own: &Path) -> io::Result<()> {
    let controllers = fs::read_to_string(own.join("cgroup.controllers"))?;
    let there = |wanted: &&str| controllers.split_whitespace().any(|it| it == *wanted);
    if ["cpu", "memory"].iter().all(there) {
        return Ok(());
    }
    Err(io::Error::other("cpu and memory are not under control groups of version 2"))
}

/// Prepares the agent's own group and gives the folder below which jobs get theirs; one for each
/// data folder.
pub fn prepare(data: &Path) -> io::Result<PathBuf> {
    let own = own_group()?;
    check_controllers(&own)?;
    // Only a group without processes hands on its controllers, so the agent moves down.
    let agent = own.join(AGENT_GROUP);
    if let Err(fault) = hand_on(&own) {
        make(&agent)?;
        fs::write(agent.join("cgroup.procs"), std::process::id().to_string())?;
        hand_on(&own).map_err(|_| fault)?;
    }
    let jobs = own.join(format!("hostler-jobs-{}", fs::metadata(data)?.ino()));
    make(&jobs)?;
    hand_on(&jobs)?;
    Ok(jobs)
}

/// A group for one task.
#[derive(Clone, Debug)]
pub struct ControlGroup {
    path: PathBuf,
}

impl ControlGroup {
    /// The group of this name below `jobs`, whether it is there or not.
    pub fn named(jobs: &Path, name: &str) -> ControlGroup {
        ControlGroup { path: jobs.join(name) }
    }

    /// Makes the group with limits; zero is none.
    pub fn make(&self, cpu_milli: u32, mem_mib: u32) -> io::Result<()> {
        make(&self.path)?;
        if cpu_milli > 0 {
            let quota = u64::from(cpu_milli) * CPU_PERIOD_US / 1000;
            self.write("cpu.max", &format!("{quota} {CPU_PERIOD_US}"))?;
        }
        if mem_mib > 0 {
            self.write("memory.max", &(u64::from(mem_mib) << 20).to_string())?;
            // What does not fit must not go to the disk instead. Not every kernel counts that.
            let _ = self.write("memory.swap.max", "0");
        }
        Ok(())
    }

    /// Puts a process in.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// The processes in it.
    pub fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Takes the group away, once it is empty; says whether it is gone. One that is still in use
    /// stays.
    pub fn remove(&self) -> bool {
        match fs::remove_dir(&self.path) {
            Ok(()) => true,
            Err(fault) => fault.kind() == io::ErrorKind::NotFound,
        }
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.path.join(file), text)
    }
}

fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn hand_on(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.subtree_control"), "+cpu +memory")
}

/// The folder of the group that this process is in, or of the one above when it has moved down.
fn own_group() -> io::Result<PathBuf> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "no control groups of version 2");
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mount = mounts.lines().find_map(mount_point).ok_or_else(missing)?;
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).ok_or_else(missing)?;
    let own = Path::new(mount).join(own);
    let above = own.parent().filter(|_| own.ends_with(AGENT_GROUP));
    Ok(above.unwrap_or(&own).to_owned())
}

/// The mount point, if a line of mountinfo is about control groups of version 2.
fn mount_point(line: &str) -> Option<&str> {
    let (before, after) = line.split_once(" - ")?;
    after.starts_with("cgroup2 ").then(|| before.split(' ').nth(4)).flatten()
}
