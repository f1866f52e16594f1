//! A disk that is full: what was acknowledged stays, what cannot be kept is refused, and all goes
//! on when there is room again.
//!
//! Needs a file system of its own, which only root can mount.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::harness::{Cluster, wait_for};

/// A small file system on a folder.
struct SmallDisk(PathBuf);

/// Is unmounted with its owner.
struct Mounted(PathBuf);

impl SmallDisk {
    /// Mounts one on a folder of a cluster.
    fn mount(cluster: &mut Cluster, name: &str) -> Option<SmallDisk> {
        let path = cluster.folder().join(name);
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: a full disk needs a file system of its own, and root to mount it");
            return None;
        }
        fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m,mode=0711", "hostler-test"]).arg(&path);
        if !mount.status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: a full disk needs a file system of its own, and mounting fails");
            return None;
        }
        cluster.held.push(Box::new(Mounted(path.clone())));
        Some(SmallDisk(path))
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut file = File::create(self.filler()).unwrap();
        for size in [1 << 16, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn clear(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a process may not be quite gone.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_of_the_daemon_refuses_jobs_and_loses_none() {
    let mut cluster = Cluster::new(&["--plain"]);
    let Some(disk) = SmallDisk::mount(&mut cluster, "data") else { return };
    cluster.serve();
    cluster.enrol("n0", &["--fake-gpus", "1xV100"]);
    cluster.until_up();
    let running = cluster.submit(&["--gpus", "1", "--", "sh", "-c", "sleep 2; exit 6"]);
    cluster.until(running, "running");
    disk.fill();
    // What is left of the last page may hold some more.
    let mut kept = Vec::new();
    let words = wait_for("the disk to be full", || {
        let key = format!("k{}", kept.len());
        match cluster.run(&["submit", "--gpus", "1", "--key", &key, "--", "true"]) {
            Ok(number) => {
                kept.push(number.trim().parse::<u32>().unwrap());
                None
            }
            Err(words) => Some(words),
        }
    });
    assert!(words.contains("no space left"), "the refusal says why: {words}");
    assert_eq!(cluster.daemon().exit_code(), Some(1));
    let log = cluster.tail("daemon");
    assert!(log.contains("free some and start again"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    let refused = cluster.try_serve();
    if let Err(words) = &refused {
        assert!(words.contains("no space left"), "{words}");
    } else {
        cluster.kill_daemon();
    }
    disk.clear();
    cluster.serve();
    let key = format!("k{}", kept.len());
    let again = cluster.submit(&["--gpus", "1", "--key", &key, "--", "true"]);
    assert!(!kept.contains(&again), "the refused one is a new job");
    kept.push(again);
    for job in kept {
        cluster.until(job, "finished");
    }
    let view = cluster.until(running, "failed");
    assert_eq!((&view["exit_code"], &view["restarts"]), (&6.into(), &0.into()));
}

#[test]
fn a_full_disk_of_an_agent_costs_no_job() {
    let times = ["--fence-secs", "5", "--dead-secs", "30"];
    let mut cluster = Cluster::new(&[&["--plain"], &times[..]].concat());
    let Some(disk) = SmallDisk::mount(&mut cluster, "n0") else { return };
    cluster.serve();
    cluster.enrol("n0", &["--fake-gpus", "2xV100"]);
    cluster.until_up();
    let go = cluster.notes().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.1; done; exit 7", go.display());
    let running = cluster.submit(&["--gpus", "1", "--", "sh", "-c", &script]);
    cluster.until(running, "running");
    disk.fill();
    let late = cluster.submit(&["--gpus", "1", "--", "sh", "-c", "exit 8"]);
    // Longer than the fence, which goes on being written.
    std::thread::sleep(Duration::from_secs(7));
    let view = cluster.job(late);
    assert!(view["ended"].is_null(), "it waits for a machine that can: {view}");
    fs::write(&go, "").unwrap();
    let view = cluster.until(running, "failed");
    assert_eq!((&view["exit_code"], &view["restarts"]), (&7.into(), &0.into()), "{view}");
    disk.clear();
    assert_eq!(cluster.until(late, "failed")["exit_code"], 8);
}
