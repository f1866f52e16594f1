//! What keeps jobs apart from each other and from the machine: users, rights, limits, folders.

use std::fs::Permissions;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use hostler_core::decision::StopHow;
use hostler_live::wire::{Stage, StartOrder, Stream, ToAgent};

use crate::daemon::{Fake, order, wait_for};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn shell(lease: u32, script: &str) -> StartOrder {
    order(lease, &["sh", "-c", script])
}

fn start(fake: &mut Fake, order: StartOrder) {
    fake.say(ToAgent::Start(Box::new(order)));
}

#[test]
fn jobs_of_tenants_run_as_users_of_their_own() {
    if !is_root() {
        println!("skipped: only root starts programs as somebody else");
        return;
    }
    let mut fake = Fake::new(&["--job-users", "61000-61005"]);
    let secret = StartOrder {
        env: [("SECRET".to_owned(), "told to nobody".to_owned())].into(),
        tenant: 4,
        ..shell(1, "echo $$ > $HOSTLER_CHECKPOINT_DIR/pid; id -u; id -G; sleep 600")
    };
    start(&mut fake, secret);
    fake.running(1);
    let pid = fake.pid_in("pid");
    let script = format!(
        "id -u; cat /proc/{pid}/environ; ls $(dirname $HOSTLER_CHECKPOINT_DIR)/1; kill -9 {pid}"
    );
    let nosy = StartOrder { tenant: 5, job: hostler_core::id::JobId(2), ..shell(2, &script) };
    start(&mut fake, nosy);
    assert_ne!(fake.ended(2), "0:0");
    assert_eq!(fake.output(2, Stream::Stdout, 0).1, "61005\n");
    let words = fake.output(2, Stream::Stderr, 0).1;
    assert_eq!(words.to_lowercase().matches("not permitted").count(), 1, "{words}");
    assert_eq!(words.to_lowercase().matches("permission denied").count(), 2, "{words}");
    start(&mut fake, StartOrder { tenant: 6, ..shell(3, "true") });
    let fault = fake.ended(3);
    assert!(fault.contains("tenant 6 has no user in 61000-61005"), "{fault}");
    assert!(fault.contains("of_machine: false"), "other tenants fare better: {fault}");
    fake.stop(1, StopHow::Kill, 0);
    assert!(fake.ended(1).contains("interrupted"));
    assert_eq!(fake.output(1, Stream::Stdout, 0).1, "61004\n61004\n");
}

#[test]
fn programs_give_jobs_no_more_rights() {
    let mut fake = Fake::new(&[]);
    fake.start(1, "grep NoNewPrivs /proc/self/status");
    assert_eq!(fake.ended(1), "0:0");
    assert_eq!(fake.output(1, Stream::Stdout, 0).1, "NoNewPrivs:\t1\n");
}

#[test]
fn a_job_that_runs_for_too_long_ends_without_the_daemon() {
    let mut fake = Fake::new(&[]);
    start(&mut fake, StartOrder { limit_ms: Some(1), ..shell(1, "sleep 600") });
    assert_eq!(fake.ended(1), "0:-15 interrupted");
}

#[test]
fn what_is_missing_is_the_fault_of_the_machine_unless_the_job_named_it() {
    let mut fake = Fake::new(&[]);
    start(&mut fake, StartOrder { workdir: "/no/such/folder".into(), ..shell(1, "true") });
    let stage = fake.stage(1, |stage| *stage != Stage::Starting);
    assert!(matches!(stage, Stage::Impossible { .. }), "{stage:?}");
    if !is_root() {
        println!("skipped in part: only root starts programs as somebody else");
        return;
    }
    let jobs = fake.folder().join("jobs");
    std::fs::DirBuilder::new().mode(0o700).create(&jobs).unwrap();
    fake.start(2, "true");
    let stage = fake.stage(2, |stage| *stage != Stage::Starting);
    assert!(matches!(stage, Stage::NotStarted { of_machine: true, .. }), "{stage:?}");
}

#[test]
fn an_agent_whose_folder_is_closed_to_jobs_says_what_to_do() {
    if !is_root() {
        println!("skipped: only root starts programs as somebody else");
        return;
    }
    let mode = Permissions::from_mode(0o700);
    let closed = tempfile::Builder::new().permissions(mode).tempdir().unwrap();
    let data = closed.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("token"), "secret-of-the-agent").unwrap();
    let agent = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["agent", "--server", "http://127.0.0.1:9", "--name", "n", "--data"])
        .arg(&data)
        .args(["--log-format", "json"])
        .output()
        .unwrap();
    let words = String::from_utf8(agent.stderr).unwrap();
    assert_eq!(agent.status.code(), Some(1), "{words}");
    assert!(words.contains("jobs run as `nobody`, who cannot work in"), "{words}");
    assert!(words.contains("that everybody may pass through"), "{words}");
}

#[test]
fn an_order_that_outlived_its_lease_goes_with_the_next_agent() {
    let mut fake = Fake::new(&[]);
    fake.kill_agent();
    let lease = fake.folder().join("leases/77");
    std::fs::create_dir(&lease).unwrap();
    for name in ["order.json", "stdout-0.0"] {
        std::fs::write(lease.join(name), "what a job was told, and what it said").unwrap();
    }
    assert_eq!(fake.restart_agent(), []);
    assert!(!lease.join("order.json").exists());
    assert!(lease.join("stdout-0.0").exists());
}

#[test]
fn a_job_gets_the_cores_and_the_memory_that_it_asked_for_and_no_more() {
    let Some(group) = TestGroup::make() else {
        println!("skipped: no control groups of version 2 with cpu and memory can be made here");
        return;
    };
    let mut fake = Fake::in_group(&group.path);
    let script =
        "cd /sys/fs/cgroup/$(sed -n s/^0::.//p /proc/self/cgroup) && cat cpu.max memory.max";
    let limited = |order| StartOrder { cpu_milli: 500, mem_mib: 64, ..order };
    start(&mut fake, limited(shell(1, script)));
    assert_eq!(fake.ended(1), "0:0", "{}", fake.output(1, Stream::Stderr, 0).1);
    assert_eq!(fake.output(1, Stream::Stdout, 0).1, "50000 100000\n67108864\n");
    // One process that takes four times as much as it may.
    start(&mut fake, limited(shell(2, "exec dd if=/dev/zero of=/dev/null bs=256M count=1")));
    assert_eq!(fake.ended(2), "0:-9");
    // A start that fails leaves nothing behind.
    start(&mut fake, limited(StartOrder { workdir: "/no/such/folder".into(), ..shell(3, "true") }));
    fake.ended(3);
    wait_for("empty groups", || group.leases().is_empty().then_some(()));
}

/// A control group for an agent, which goes with the test.
struct TestGroup {
    path: PathBuf,
}

impl TestGroup {
    fn make() -> Option<TestGroup> {
        let root = Path::new("/sys/fs/cgroup");
        let can = std::fs::read_to_string(root.join("cgroup.controllers")).ok()?;
        let has = |wanted: &str| can.split_whitespace().any(|controller| controller == wanted);
        if !has("cpu") || !has("memory") {
            return None;
        }
        std::fs::write(root.join("cgroup.subtree_control"), "+cpu +memory").ok()?;
        let path = root.join(format!("hostler-test-{}", std::process::id()));
        std::fs::create_dir(&path).ok()?;
        Some(TestGroup { path })
    }

    /// Groups of leases below it.
    fn leases(&self) -> Vec<PathBuf> {
        let below = |path: &Path| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
        };
        let jobs = below(&self.path);
        jobs.iter().flat_map(|jobs| below(jobs)).collect()
    }
}

impl Drop for TestGroup {
    fn drop(&mut self) {
        // A process that was killed is still in its group for a moment.
        for _ in 0..100 {
            let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| entry.path().is_dir()) {
                let _ = std::fs::remove_dir(entry.path());
            }
            if std::fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
