//! Backups of a daemon that runs, was stopped or was killed, and what a restore gives back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use hostler_live::api::Accepted;
use hostler_live::client::Client;
use hostler_live::job::JobView;
use serde_json::Value;

use crate::harness::{Cluster, shell};

/// A daemon without agents.
fn cluster(options: &[&str]) -> Cluster {
    let mut cluster = Cluster::new(options);
    cluster.serve();
    cluster
}

fn submit(client: &mut Client) -> u32 {
    client.post::<Accepted>("/jobs", &shell("true", 1.0)).unwrap().first
}

fn is_there(client: &mut Client, job: u32) -> bool {
    client.get::<JobView>(&format!("/jobs/{job}")).is_ok()
}

/// Jobs in a store of which only the one file was copied.
fn jobs_in_copy(cluster: &Cluster, of: &Path) -> u32 {
    let copy = cluster.folder().join("copy.db");
    fs::copy(of, &copy).unwrap();
    let connection = rusqlite::Connection::open(&copy).unwrap();
    connection.query_row("SELECT COUNT(*) FROM jobs", [], |row| row.get(0)).unwrap()
}

fn path(cluster: &Cluster, name: &str) -> String {
    cluster.folder().join(name).display().to_string()
}

#[test]
fn a_stopped_store_is_one_file_although_somebody_read_what_is_over() {
    let mut cluster = cluster(&["--plain"]);
    let mut client = cluster.client();
    for _ in 0..20 {
        submit(&mut client);
    }
    cluster.text(&["cancel", "1-10"]);
    // The reader of what is over keeps its connection.
    cluster.text(&["history"]);
    cluster.text(&["show", "3"]);
    submit(&mut client);
    cluster.stop_daemon();
    let store = cluster.folder().join("data/hostler.db");
    let left = fs::metadata(store.with_extension("db-wal")).map_or(0, |file| file.len());
    assert_eq!(left, 0, "nothing is left beside the file");
    assert_eq!(jobs_in_copy(&cluster, &store), 21);
}

#[test]
fn a_backup_has_every_job_that_was_acknowledged_before_it_and_restores_after_a_kill() {
    // With a certificate: who knows the daemon knows it again.
    let mut cluster = cluster(&[]);
    let (acknowledged, stop) = (AtomicU32::new(0), AtomicU32::new(0));
    let taken: Vec<(u32, PathBuf)> = std::thread::scope(|scope| {
        let mut client = cluster.client();
        let (acknowledged, stop) = (&acknowledged, &stop);
        let busy = scope.spawn(move || {
            while stop.load(Ordering::SeqCst) == 0 {
                acknowledged.store(submit(&mut client), Ordering::SeqCst);
            }
        });
        let taken = (0..4).map(|number| {
            while acknowledged.load(Ordering::SeqCst) < 50 * (number + 1) {
                std::thread::yield_now();
            }
            let before = acknowledged.load(Ordering::SeqCst);
            let file = cluster.folder().join(format!("backup-{number}.db"));
            cluster.text(&["backup", &file.display().to_string()]);
            (before, file)
        });
        let taken = taken.collect();
        stop.store(1, Ordering::SeqCst);
        busy.join().unwrap();
        taken
    });
    let last = acknowledged.load(Ordering::SeqCst);
    cluster.kill_daemon();
    // One that is taken when the daemon was killed has all of them.
    cluster.text(&["backup", &path(&cluster, "killed.db"), "--data", "data"]);
    let killed = (last, cluster.folder().join("killed.db"));
    for (number, (before, file)) in taken.into_iter().chain([killed]).enumerate() {
        let file = file.display().to_string();
        if number > 0 {
            let refused = cluster.run(&["restore", &file, "--data", "data"]).unwrap_err();
            assert!(refused.contains("already") && refused.contains("--force"), "{refused}");
            cluster.text(&["restore", &file, "--data", "data", "--force"]);
        } else {
            fs::rename(cluster.folder().join("data"), cluster.folder().join("lost")).unwrap();
            cluster.text(&["restore", &file, "--data", "data"]);
        }
        cluster.serve();
        let mut client = cluster.client();
        let missing: Vec<u32> = (1..=before).filter(|job| !is_there(&mut client, *job)).collect();
        assert_eq!(missing, [0; 0], "jobs of backup {number} with {before}");
        let next = submit(&mut client);
        assert!(next > last, "job {next} was given out before the store was lost");
        assert!(is_there(&mut client, next));
        cluster.kill_daemon();
    }
}

#[test]
fn a_restore_leaves_numbers_out_once_and_agents_go_on() {
    let mut cluster = Cluster::start(&[], &["4xV100"]);
    let first = cluster.submit(&["--gpus", "1", "--", "true"]);
    cluster.until(first, "finished");
    let file = path(&cluster, "backup.db");
    cluster.text(&["backup", &file]);
    // Known to the agent, and to nobody else after the restore.
    let lost = cluster.submit(&["--gpus", "1", "--", "true"]);
    cluster.until(lost, "finished");
    cluster.kill_daemon();
    cluster.text(&["restore", &file, "--data", "data", "--force"]);
    cluster.serve();
    cluster.until_up();
    let fresh = cluster.submit(&["--gpus", "1", "--", "true"]);
    assert!(fresh > lost + 1000, "{fresh}");
    let view = cluster.until(fresh, "finished");
    assert_eq!(view["restarts"], 0, "no lease of before is taken for its own: {view}");
    assert_eq!(cluster.job(first)["state"], "finished");
    cluster.kill_daemon();
    cluster.serve();
    cluster.until_up();
    assert_eq!(cluster.submit(&["--gpus", "1", "--", "true"]), fresh + 1, "one gap, not two");
}

#[test]
fn a_folder_in_use_or_a_file_that_is_no_backup_is_refused() {
    let mut cluster = cluster(&["--plain"]);
    let job = submit(&mut cluster.client());
    let file = path(&cluster, "backup.db");
    let told: Value =
        serde_json::from_str(&cluster.text(&["backup", &file, "--data", "data", "--json"]))
            .unwrap();
    assert_eq!((&told["jobs"], &told["files"]), (&1.into(), &serde_json::json!([])));
    let again = cluster.run(&["backup", &file]).unwrap_err();
    assert!(again.contains("is there already"), "{again}");
    cluster.text(&["backup", &file, "--force"]);
    let in_use = cluster.run(&["restore", &file, "--data", "data", "--force"]).unwrap_err();
    assert!(in_use.contains("in use"), "{in_use}");
    let whole = fs::read(&file).unwrap();
    for (name, bytes) in [
        ("half.db", &whole[..whole.len() / 2]),
        ("words.db", &b"this is no database, only some words that somebody wrote"[..]),
        ("empty.db", &[][..]),
    ] {
        let bad = path(&cluster, name);
        fs::write(&bad, bytes).unwrap();
        let refused = cluster.run(&["restore", &bad, "--data", "elsewhere"]).unwrap_err();
        assert!(refused.contains("damaged") || refused.contains("no store"), "{refused}");
        assert!(!cluster.folder().join("elsewhere/hostler.db").exists(), "{name}");
    }
    assert!(is_there(&mut cluster.client(), job), "the daemon was not disturbed");
    cluster.stop_daemon();
}

#[test]
fn only_admins_get_a_backup() {
    let cluster = cluster(&["--plain"]);
    let token = cluster.text(&["token", "create", "--role", "user", "ada"]);
    let mut access = cluster.access();
    access.token = token.trim().to_owned();
    let refused = Client::new(access).unwrap().get::<Value>("/backup").unwrap_err();
    assert!(refused.to_string().contains("may not"), "{refused}");
}
