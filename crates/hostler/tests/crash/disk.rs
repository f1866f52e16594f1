//! A disk that is full: what was acknowledged stays, what cannot be kept is refused, and all goes
//! on when there is room again.
//!
//! Needs a file system of its own, which only root can mount.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

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
    let (gate, script) = cluster.gate("gate");
    let script = format!("{script}; exit 6");
    let running = cluster.submit(&["--gpus", "1", "--", "sh", "-c", &script]);
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
    // It ends while nobody can keep that.
    fs::write(&gate, "").unwrap();
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

#[test]
fn a_full_disk_of_an_agent_is_told_to_everybody() {
    let mut cluster = Cluster::new(&["--plain", "--fence-secs", "12"]);
    let Some(disk) = SmallDisk::mount(&mut cluster, "n0") else { return };
    cluster.serve();
    cluster.enrol("n0", &["--fake-gpus", "1xV100"]);
    cluster.until_up();
    let print = "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end";
    let loud = cluster.submit(&["--gpus", "1", "--", "sh", "-c", print]);
    let view = cluster.until(loud, "finished");
    let reason = view["reason"].as_str().unwrap();
    assert!(reason.contains("bytes of its output are lost"), "{view}");
    let node = wait_for("the node to rest", || {
        let node = cluster.nodes().remove(0);
        (node["health"] == "resting").then_some(node)
    });
    let reason = node["reason"].as_str().unwrap();
    assert!(reason.contains("cannot write to the agent's folder"), "{node}");
    assert!(reason.contains("No space left"), "{node}");
    let table = cluster.text(&["nodes"]);
    assert!(table.contains("n0 gets no jobs: cannot write"), "{table}");
    let words = cluster.tail("n0");
    assert!(words.contains("output of a job is lost"), "{words}");
    assert!(words.contains("no job is started here"), "{words}");
    let metrics = metrics(&cluster);
    let lost = |line: &&str| line.starts_with("hostler_output_lost_bytes_total ");
    let lost = metrics.lines().find(lost).unwrap_or_else(|| panic!("{metrics}"));
    assert!(!lost.ends_with(" 0"), "{lost}");

    let late = cluster.submit(&["--gpus", "1", "--", "true"]);
    std::thread::sleep(Duration::from_secs(3));
    let view = cluster.job(late);
    assert_eq!((&view["state"], &view["started"]), (&"queued".into(), &Value::Null), "{view}");
    // There is room again, and the stream of what was printed says where it ends.
    for file in fs::read_dir(disk.0.join("leases/0")).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("stdout") {
            fs::remove_file(path).unwrap();
        }
    }
    cluster.until(late, "finished");
    let node = cluster.nodes().remove(0);
    assert_eq!((&node["health"], &node["reason"]), (&"up".into(), &"".into()), "{node}");
}

#[test]
fn a_stream_says_where_a_full_disk_left_a_gap() {
    let mut cluster = Cluster::new(&["--plain"]);
    let Some(disk) = SmallDisk::mount(&mut cluster, "n0") else { return };
    cluster.serve();
    cluster.enrol("n0", &["--fake-gpus", "1xV100"]);
    cluster.until_up();
    let (full, free) = (cluster.notes().join("full"), cluster.notes().join("free"));
    let wait =
        |file: &std::path::Path| format!("while [ ! -e {} ]; do sleep 0.05; done", file.display());
    let script = format!(
        "echo begin; {}; head -c 100000 /dev/zero; sleep 0.5; {}; echo end",
        wait(&full),
        wait(&free)
    );
    let job = cluster.submit(&["--gpus", "1", "--", "sh", "-c", &script]);
    cluster.until(job, "running");
    wait_for("output", || (cluster.text(&["logs", &job.to_string()]) == "begin\n").then_some(()));
    disk.fill();
    fs::write(&full, "").unwrap();
    let said = || cluster.tail("n0").contains("output of a job is lost").then_some(());
    wait_for("the agent to say so", said);
    disk.clear();
    fs::write(&free, "").unwrap();
    cluster.until(job, "finished");
    let text = cluster.text(&["logs", &job.to_string()]);
    let text = text.replace('\0', "");
    assert!(text.starts_with("begin\n"), "{text:?}");
    assert!(text.contains("bytes of output are lost here: No space left"), "{text:?}");
    assert!(text.ends_with("]\nend\n"), "{text:?}");
}

/// The page of figures.
fn metrics(cluster: &Cluster) -> String {
    let access = cluster.access();
    let address = (access.server.host.as_str(), access.server.port);
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         connection: close\r\n\r\n",
        access.token.trim()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}
