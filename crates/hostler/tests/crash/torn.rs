//! Files of the store that a crash of the machine or a bad disk left torn: the daemon goes on from
//! what is whole, or says what is wrong and what to do; it never panics.

use std::fs;
use std::path::{Path, PathBuf};

use hostler_live::job::JobView;

use crate::harness::Cluster;

/// A daemon that acknowledged some jobs, without anybody to run them.
fn with_jobs(count: u32) -> Cluster {
    let mut cluster = Cluster::new(&["--plain"]);
    cluster.serve();
    (0..count).for_each(|_| _ = cluster.submit(&["--gpus", "1", "--", "true"]));
    cluster
}

fn store(cluster: &Cluster) -> PathBuf {
    cluster.folder().join("data/hostler.db")
}

/// Numbers of the jobs that are there, which must be the first ones without a gap.
fn jobs(cluster: &Cluster) -> u32 {
    let mut client = cluster.client();
    let mut is_there = |job: &u32| client.get::<JobView>(&format!("/jobs/{job}")).is_ok();
    let first = (1..).take_while(&mut is_there).count();
    let first = u32::try_from(first).unwrap();
    assert!(!is_there(&(first + 2)), "job {} is lost and a later one is not", first + 1);
    first
}

#[test]
fn a_torn_end_of_the_write_ahead_log_costs_what_was_torn_and_nothing_before() {
    let mut cluster = with_jobs(6);
    let log = store(&cluster).with_extension("db-wal");
    let before = fs::metadata(&log).unwrap().len();
    cluster.submit(&["--gpus", "1", "--", "true"]);
    cluster.kill_daemon();
    let after = fs::metadata(&log).unwrap().len();
    assert!(before < after, "the last job is at the end of the log");
    let whole = fs::read(&log).unwrap();
    // Half a transaction: its pages were not all written.
    fs::write(&log, &whole[..usize::try_from((before + after) / 2).unwrap()]).unwrap();
    cluster.serve();
    assert_eq!(jobs(&cluster), 6);
    assert_eq!(cluster.submit(&["--gpus", "1", "--", "true"]), 7, "and it goes on");
    cluster.kill_daemon();
    // Pages that were written as something else.
    let mut scrambled = whole.clone();
    let middle = usize::try_from(before).unwrap() + 500;
    scrambled[middle..middle + 100].fill(0x55);
    fs::write(&log, &scrambled).unwrap();
    match cluster.try_serve() {
        Ok(()) => assert!(jobs(&cluster) >= 6),
        Err(words) => assert_is_clear(&words),
    }
}

#[test]
fn a_damaged_page_is_found_at_the_start() {
    let mut cluster = with_jobs(3);
    cluster.stop_daemon();
    let path = store(&cluster);
    let whole = fs::read(&path).unwrap();
    let page = usize::from(u16::from_be_bytes([whole[16], whole[17]]));
    let pages = whole.len() / page;
    let mut refused = 0;
    for number in 0..pages {
        let mut damaged = whole.clone();
        damaged[number * page..(number + 1) * page].fill(0xaa);
        refused += usize::from(!goes_on(&mut cluster, &path, &damaged));
    }
    assert!(refused > pages / 2, "{refused} of {pages} damaged pages were noticed");
    let half = &whole[..(pages / 2) * page];
    assert!(!goes_on(&mut cluster, &path, half), "a file that was cut off was taken");
    assert!(goes_on(&mut cluster, &path, &whole));
}

#[test]
fn rows_that_are_missing_or_make_no_sense_are_noticed() {
    let mut cluster = with_jobs(3);
    // Without a snapshot, so that all of the log counts.
    cluster.kill_daemon();
    let path = store(&cluster);
    drop(connect(&path));
    let whole = fs::read(&path).unwrap();
    for damage in [
        "UPDATE log SET record = replace(record, 'events', 'ev3nts') WHERE number = 3",
        "DELETE FROM log WHERE number = 3",
        "DELETE FROM log WHERE number > 4",
        "DELETE FROM log",
        "UPDATE jobs SET request = '{' WHERE id = 2",
        "UPDATE jobs SET facts = '{' WHERE id = 2",
        "DELETE FROM jobs WHERE id = 2",
        "DELETE FROM tenants",
    ] {
        fs::write(&path, &whole).unwrap();
        connect(&path).execute(damage, []).unwrap();
        let damaged = fs::read(&path).unwrap();
        assert!(!goes_on(&mut cluster, &path, &damaged), "`{damage}` was not noticed");
    }
    assert!(goes_on(&mut cluster, &path, &whole));
}

/// The store as a database, in a mode in which every change is in the one file.
fn connect(path: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    connection
}

/// Whether a daemon serves from a file with these bytes; when not, it must say so clearly.
fn goes_on(cluster: &mut Cluster, path: &Path, bytes: &[u8]) -> bool {
    for extension in ["db-wal", "db-shm"] {
        let _ = fs::remove_file(path.with_extension(extension));
    }
    fs::write(path, bytes).unwrap();
    match cluster.try_serve() {
        Ok(()) => {
            cluster.kill_daemon();
            true
        }
        Err(words) => {
            assert_is_clear(&words);
            false
        }
    }
}

fn assert_is_clear(words: &str) {
    assert!(!words.contains("panicked"), "{words}");
    assert!(words.contains("error: ") && words.contains("the store `"), "{words}");
    let advice = ["restore a backup", "choose another place"];
    assert!(advice.iter().any(|advice| words.contains(advice)), "{words}");
}
