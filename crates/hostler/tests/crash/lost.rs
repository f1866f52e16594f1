//! Stores that lost their data: the daemon does not take them for a first start, says what is wrong
//! and what to do, and that works.

use std::fs;
use std::path::PathBuf;

use hostler_live::api::Accepted;
use hostler_live::job::JobView;
use serde_json::Value;

use crate::harness::{Cluster, shell, wait_for};

/// Jobs that fill more pages of a write-ahead log than are merged into the file at a time.
const JOBS_OF_A_MERGE: u32 = 400;

/// A daemon that acknowledged some jobs and was killed.
fn killed_with(options: &[&str], jobs: u32) -> Cluster {
    let mut cluster = Cluster::new(&[&["--plain"], options].concat());
    cluster.serve();
    submit(&cluster, jobs);
    cluster.kill_daemon();
    cluster
}

fn submit(cluster: &Cluster, jobs: u32) {
    let mut client = cluster.client();
    for _ in 0..jobs {
        client.post::<Accepted>("/jobs", &shell("true", 1.0)).unwrap();
    }
}

fn store(cluster: &Cluster) -> PathBuf {
    cluster.folder().join("data/hostler.db")
}

fn log(cluster: &Cluster) -> PathBuf {
    cluster.folder().join("data/hostler.db-wal")
}

/// Waits until the note beside the store, which is written about once a second, tells of all that
/// is in it.
fn until_noted(cluster: &Cluster) {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let reader = rusqlite::Connection::open_with_flags(store(cluster), flags).unwrap();
    let last = reader.query_row("SELECT MAX(number) FROM log", [], |row| row.get(0));
    let last: i64 = last.unwrap();
    drop(reader);
    let note = cluster.folder().join("data/hostler.mark");
    wait_for("the note", || {
        let note: Value = serde_json::from_slice(&fs::read(&note).ok()?).ok()?;
        (note["record"].as_i64()? >= last).then_some(())
    });
}

/// How often a daemon said that it serves.
fn served(cluster: &Cluster) -> usize {
    let log = fs::read_to_string(cluster.folder().join("daemon.log")).unwrap();
    log.matches("serving url").count()
}

fn is_there(cluster: &Cluster, job: u32) -> bool {
    cluster.client().get::<JobView>(&format!("/jobs/{job}")).is_ok()
}

/// The words with which a daemon refuses, which name the fault and every way out.
fn refused(cluster: &mut Cluster, fault: &str) -> String {
    let words = cluster.try_serve().expect_err("it was taken for sound, or for a first start");
    assert!(words.contains("has lost data") && words.contains(fault), "{words}");
    assert!(words.contains("hostler restore FILE --data data --force"), "{words}");
    assert!(words.contains("--new-store"), "{words}");
    words
}

fn snapshots(cluster: &Cluster) -> Vec<PathBuf> {
    let entries = fs::read_dir(cluster.folder().join("data/snapshots")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "db")).collect()
}

#[test]
fn a_store_whose_file_was_emptied_is_no_first_start() {
    let mut cluster = killed_with(&[], 5);
    fs::write(store(&cluster), "").unwrap();
    refused(&mut cluster, "the file is empty");
    assert!(log(&cluster).exists(), "nothing was tidied away");
    // A store of a version that left no note is known by what else is in the folder.
    fs::remove_file(cluster.folder().join("data/hostler.mark")).unwrap();
    refused(&mut cluster, "the file is empty");
}

#[test]
fn a_store_whose_file_was_removed_is_no_first_start_and_its_snapshot_is_offered() {
    let mut cluster = Cluster::new(&["--plain", "--snapshot-secs", "1"]);
    cluster.serve();
    submit(&cluster, 7);
    // One that began after the last of them.
    let begun = snapshots(&cluster);
    let taken = wait_for("two snapshots", || {
        let taken = snapshots(&cluster);
        let fresh: Vec<PathBuf> = taken.into_iter().filter(|file| !begun.contains(file)).collect();
        (fresh.len() > 1).then_some(fresh)
    });
    assert!(taken.len() < 6, "{taken:?}");
    cluster.kill_daemon();
    fs::remove_file(store(&cluster)).unwrap();
    let words = refused(&mut cluster, "the file is gone");
    let offered = words.split('`').find(|word| word.contains("snapshots/")).unwrap().to_owned();
    cluster.text(&["restore", &offered, "--data", "data", "--force"]);
    cluster.serve();
    assert!((1..=7).all(|job| is_there(&cluster, job)), "all jobs are back");
}

#[test]
fn a_write_ahead_log_that_was_deleted_is_noticed_before_and_after_its_first_merge() {
    let mut cluster = killed_with(&[], 5);
    fs::remove_file(log(&cluster)).unwrap();
    refused(&mut cluster, "although a daemon was served from here");

    let mut cluster = killed_with(&[], JOBS_OF_A_MERGE);
    cluster.serve();
    submit(&cluster, 20);
    until_noted(&cluster);
    cluster.kill_daemon();
    fs::remove_file(log(&cluster)).unwrap();
    let words = refused(&mut cluster, "was acknowledged");
    // What is left can be gone on with, if somebody says so.
    assert!(words.contains("goes on with what is left"), "{words}");
    cluster.text(&["restore", "data/hostler.db", "--data", "data", "--force"]);
    cluster.serve();
    assert!(is_there(&cluster, 1) && !is_there(&cluster, JOBS_OF_A_MERGE + 20));
}

#[test]
fn garbage_in_the_middle_of_the_write_ahead_log_is_told() {
    let mut cluster = killed_with(&[], 30);
    let path = log(&cluster);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 200].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    refused(&mut cluster, "in the middle");
    // Asked for explicitly, it begins anew and keeps what is left.
    cluster.options.push("--new-store".to_owned());
    let before = served(&cluster);
    cluster.spawn_daemon();
    let token = cluster.folder().join("data/admin-token");
    let aside = cluster.folder().join("data/lost-1");
    // The token is kept before the store knows it: whoever is killed in between makes another.
    let serves = |cluster: &Cluster| served(cluster) == before + 1;
    let begun = |cluster: &Cluster| aside.exists() && token.exists() && serves(cluster);
    wait_for("a first start", || begun(&cluster).then_some(()));
    assert_eq!(fs::read(aside.join("hostler.db-wal")).unwrap(), bytes);
    assert!(aside.join("admin-token").exists() && aside.join("hostler.db").exists());
    cluster.kill_daemon();
    // The same words do nothing to a store that is sound.
    let made = fs::read_to_string(&token).unwrap();
    cluster.spawn_daemon();
    wait_for("another start", || {
        assert!(!cluster.daemon().has_ended(), "{}", cluster.tail("daemon"));
        (served(&cluster) == before + 2).then_some(())
    });
    assert_eq!(fs::read_to_string(&token).unwrap(), made);
    assert!(!cluster.folder().join("data/lost-2").exists());
}

#[test]
fn a_stop_leaves_a_snapshot_with_everything() {
    let mut cluster = Cluster::new(&["--plain"]);
    cluster.serve();
    submit(&cluster, 9);
    cluster.stop_daemon();
    let [taken] = &snapshots(&cluster)[..] else { panic!("{:?}", snapshots(&cluster)) };
    fs::write(store(&cluster), b"garbage").unwrap();
    let words = cluster.try_serve().unwrap_err();
    assert!(words.contains("is damaged") && words.contains("the newest snapshot is"), "{words}");
    let taken = taken.display().to_string();
    cluster.text(&["restore", &taken, "--data", "data", "--force"]);
    cluster.serve();
    assert!((1..=9).all(|job| is_there(&cluster, job)));
}
