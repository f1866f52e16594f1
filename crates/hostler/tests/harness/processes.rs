//! Which processes belong to a folder of a test: its shims, and the jobs below them.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longest time for killed processes to be gone.
const GONE: Duration = Duration::from_secs(20);

/// Shims whose lease lies below a folder.
pub fn shims(folder: &Path) -> Vec<u32> {
    let is_shim = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0).skip(1);
        let lease = || folder.as_os_str().as_encoded_bytes();
        words.next() == Some(b"shim") && words.next().is_some_and(|at| at.starts_with(lease()))
    };
    let shims: Vec<u32> = all().into_iter().filter(is_shim).collect();
    // A task that is only just being started still looks like its shim.
    let is_task = |pid: &&u32| parent(**pid).is_some_and(|parent| shims.contains(&parent));
    shims.iter().filter(|pid| !is_task(pid)).copied().collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Processes that one process has started.
pub fn children(of: u32) -> Vec<u32> {
    all().into_iter().filter(|pid| parent(*pid) == Some(of)).collect()
}

/// Seconds of processor time.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorSecs {
    /// Of a process itself.
    pub own: f64,
    /// Of those that it has waited for.
    pub children: f64,
}

/// What a process has taken so far.
pub fn processor_secs(pid: u32) -> ProcessorSecs {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> =
        rest.split_whitespace().skip(11).take(4).filter_map(|word| word.parse().ok()).collect();
    let [user, system, waited_user, waited_system] = ticks[..] else {
        return ProcessorSecs { own: 0.0, children: 0.0 };
    };
    ProcessorSecs { own: (user + system) / 100.0, children: (waited_user + waited_system) / 100.0 }
}

/// Processes that were started with a variable of this value.
pub fn with_variable(name: &str, value: &Path) -> Vec<u32> {
    let mut wanted = format!("{name}=").into_bytes();
    wanted.extend(value.as_os_str().as_encoded_bytes());
    let has_it = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
    };
    all().into_iter().filter(has_it).collect()
}

/// Shims and everything that a job of an agent below a folder has started.
pub fn left(folder: &Path) -> Vec<u32> {
    let mut mark = b"HOSTLER_SOCKET=".to_vec();
    mark.extend(folder.as_os_str().as_encoded_bytes());
    let of_job = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(&mark))
    };
    let mut left: Vec<u32> = all().into_iter().filter(of_job).collect();
    left.extend(shims(folder));
    left
}

/// Command lines of processes, for people.
pub fn named(pids: &[u32]) -> Vec<String> {
    let name = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!("{pid}: {}", String::from_utf8_lossy(&line).replace('\0', " "))
    };
    pids.iter().map(name).collect()
}

/// Kills one process; it may be gone already.
pub fn kill(pid: u32) {
    let _ = kill_process(number(pid), Signal::KILL);
}

/// Asks one process to end.
pub fn terminate(pid: u32) {
    let _ = kill_process(number(pid), Signal::TERM);
}

fn number(pid: u32) -> Pid {
    i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process has a number")
}

/// Kills all that is left below a folder.
pub fn end_all(folder: &Path) {
    let end = Instant::now() + GONE;
    loop {
        let left = left(folder);
        if left.is_empty() || Instant::now() > end {
            return;
        }
        left.into_iter().for_each(kill);
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("processes can be listed");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}
