//! The store on SQLite and on a real PostgreSQL: the same stories on both.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod server;

use std::path::Path;

use expect_test::{Expect, expect};
use hostler_live::job::{JobRequest, JobState};
use hostler_live::person::Person;
use hostler_live::store::memory::Disk;
use hostler_live::store::{
    self, Batch, HistoryFilter, JobFacts, JobOrigin, JobRow, KeyRow, NodeRow, Place, Role, Row,
    SCHEMA_VERSION, Store, StoreError, TenantQuota, TenantRow, TokenRow,
};
use hostler_live::wire::Machine;
use tempfile::tempdir;

use server::Server;

/// Plays a story on every kind of store; what it tells must be the same on all.
fn on_all(story: impl Fn(&mut dyn FnMut() -> Box<dyn Store>) -> String, expected: Expect) {
    let folder = tempdir().unwrap();
    let on_file = story(&mut || store::open(folder.path(), None).unwrap());
    let disk = Disk::default();
    assert_eq!(story(&mut || Box::new(disk.store())), on_file);
    if let Some(server) = Server::start() {
        let address = server.address();
        let on_server = story(&mut || store::open(folder.path(), Some(&address)).unwrap());
        assert_eq!(on_server, on_file);
    }
    expected.assert_eq(&on_file);
}

fn job(id: u32, tenant: &str, ended: Option<(u64, JobState)>) -> JobRow {
    let request = JobRequest { command: vec!["true".to_owned()], ..JobRequest::default() };
    JobRow {
        id,
        version: u64::from(id),
        tenant: tenant.to_owned(),
        user: "ada".to_owned(),
        state: ended.map_or(JobState::Queued, |(_, state)| state),
        submitted: 5,
        ended: ended.map(|(at, _)| at),
        array_of: None,
        request,
        facts: JobFacts::default(),
        origin: JobOrigin::Ours,
    }
}

fn found_job() -> JobRow {
    JobRow { origin: JobOrigin::Found { by: "slurm 7".to_owned() }, ..job(4, "physics", None) }
}

fn node(name: &str, id: u32, token: Option<u32>) -> NodeRow {
    let machine = Machine {
        name: "n1".to_owned(),
        version: String::new(),
        address: "10.0.0.1".to_owned(),
        cpu_milli: 1000,
        mem_mib: 2,
        gpu_model: String::new(),
        gpu_mem_mib: 0,
        gpus: 0,
        rack: 0,
        ..Machine::default()
    };
    NodeRow { name: name.to_owned(), id, token, draining: true, machine }
}

fn everything() -> Vec<Row> {
    let hash = "ab".repeat(32);
    let (name, tenant) = ("ada".to_owned(), "physics".to_owned());
    let (id, role, created, one_time) = (1, Role::User, 7, true);
    let person = Some(Person { name: "ada".to_owned(), uid: Some(1001) });
    let revoked = None;
    let token = TokenRow { id, hash, role, tenant, name, created, revoked, one_time, person };
    let quota = TenantQuota { gpus_max: Some(4), ..TenantQuota::default() };
    let tenant = TenantRow { id: 0, name: "physics".to_owned(), quota };
    let key = KeyRow {
        token: 1,
        key: "k".to_owned(),
        request: "digest".to_owned(),
        first_job: 1,
        jobs: 2,
        at: 9,
    };
    vec![
        Row::JobAdded(Box::new(job(1, "physics", None))),
        Row::JobAdded(Box::new(job(2, "physics", None))),
        Row::JobAdded(Box::new(found_job())),
        Row::Token(token.clone()),
        Row::Token(TokenRow { revoked: Some(8), ..token }),
        Row::Tenant(tenant),
        Row::Node(Box::new(node("n1", 0, Some(1)))),
        Row::Node(Box::new(node("n2", 1, None))),
        Row::Group("resnet".to_owned(), 0),
        Row::Key(key.clone()),
        Row::Key(KeyRow { key: "later".to_owned(), first_job: 3, ..key }),
        Row::Policy("kind = 'fifo'".to_owned()),
        Row::Fence(900_000_000),
    ]
}

#[test]
fn what_is_committed_is_there_after_a_restart() {
    let story = |open: &mut dyn FnMut() -> Box<dyn Store>| {
        let records = vec![(1, "first".to_owned()), (2, "\u{fc}n\u{ef}code \u{1F980}".to_owned())];
        let snapshot = Some((1, "state".to_owned()));
        let batch = Batch { records: records.clone(), snapshot, rows: everything() };
        open().commit(&batch).unwrap();
        let mut store = open();
        let mut loaded = store.load().unwrap();
        loaded.cluster.clear();
        assert_eq!(store.job_found("slurm 7").unwrap(), Some(found_job()));
        assert_eq!(store.job_found("slurm 8").unwrap(), None);
        assert_eq!(store.records(0, 10).unwrap(), records);
        assert_eq!(store.records(1, 10).unwrap(), records[1..]);
        let other = Row::KeyGone { token: 2, key: "k".to_owned() };
        store.commit(&Batch { rows: vec![other], ..Batch::default() }).unwrap();
        assert_eq!(store.load().unwrap().keys.len(), 2);
        let one = Row::KeyGone { token: 1, key: "k".to_owned() };
        store.commit(&Batch { rows: vec![one], ..Batch::default() }).unwrap();
        let kept: Vec<String> = store.load().unwrap().keys.into_iter().map(|key| key.key).collect();
        assert_eq!(kept, ["later"]);
        let rows = vec![Row::KeysGone(10)];
        store.commit(&Batch { rows, ..Batch::default() }).unwrap();
        assert_eq!(store.load().unwrap().keys.len(), 0);
        loaded
    };
    let disk = Disk::default();
    let expected = story(&mut || Box::new(disk.store()));
    assert_eq!(expected.jobs, [job(1, "physics", None), job(2, "physics", None), found_job()]);
    assert_eq!(expected.tokens[0].revoked, Some(8));
    assert_eq!(expected.fence, Some(900_000_000));
    let folder = tempdir().unwrap();
    assert_eq!(story(&mut || store::open(folder.path(), None).unwrap()), expected);
    if let Some(server) = Server::start() {
        let address = server.address();
        let opened = story(&mut || store::open(folder.path(), Some(&address)).unwrap());
        assert_eq!(opened, expected);
    }
}

#[test]
fn a_batch_that_fails_leaves_nothing_behind() {
    let tell = |open: &mut dyn FnMut() -> Box<dyn Store>| {
        let row = Row::JobAdded(Box::new(job(1, "physics", None)));
        let twice = Batch {
            records: vec![(1, "first".to_owned())],
            rows: vec![row.clone(), row],
            ..Batch::default()
        };
        let mut store = open();
        let refused = store.commit(&twice).is_err();
        drop(store);
        let mut store = open();
        let loaded = store.load().unwrap();
        format!("refused {refused}, {} jobs, record {}\n", loaded.jobs.len(), loaded.last_record)
    };
    let folder = tempdir().unwrap();
    let expected = "refused true, 0 jobs, record 0\n";
    assert_eq!(tell(&mut || store::open(folder.path(), None).unwrap()), expected);
    if let Some(server) = Server::start() {
        let address = server.address();
        let told = tell(&mut || store::open(folder.path(), Some(&address)).unwrap());
        assert_eq!(told, expected);
    }
}

#[test]
fn history_is_filtered_and_comes_in_pages() {
    on_all(
        |open| {
            let ends = [
                (1, "physics", Some((10, JobState::Finished))),
                (2, "physics", Some((20, JobState::Failed))),
                (3, "biology", Some((30, JobState::Finished))),
                (4, "physics", None),
                (5, "physics", Some((15, JobState::Finished))),
            ];
            let rows = ends.into_iter().map(|(id, tenant, _)| job(id, tenant, None));
            let mut rows: Vec<Row> = rows.map(|job| Row::JobAdded(Box::new(job))).collect();
            let over = ends.into_iter().filter(|(_, _, ended)| ended.is_some());
            rows.extend(
                over.map(|(id, tenant, ended)| Row::JobChanged(Box::new(job(id, tenant, ended)))),
            );
            let mut store = open();
            store.commit(&Batch { rows, ..Batch::default() }).unwrap();
            let mut reader = store.reader().unwrap();
            let mut show = |name: &str, filter: HistoryFilter| {
                let ids: Vec<u32> =
                    reader.history(&filter).unwrap().iter().map(|job| job.id).collect();
                format!("{name} {ids:?}\n")
            };
            let all = HistoryFilter { limit: 100, ..HistoryFilter::default() };
            let physics = Some("physics".to_owned());
            let mut text = show("all", all.clone());
            text += &show("physics", HistoryFilter { tenant: physics, ..all.clone() });
            text +=
                &show("finished", HistoryFilter { state: Some(JobState::Finished), ..all.clone() });
            text += &show("of bob", HistoryFilter { user: Some("bob".to_owned()), ..all.clone() });
            let (from, before) = (Some(15), Some(30));
            text += &show(
                "from 15 to 30",
                HistoryFilter { ended_from: from, ended_before: before, ..all.clone() },
            );
            text += &show("first page", HistoryFilter { limit: 2, ..all.clone() });
            let second = HistoryFilter { limit: 2, before: Some(3), ..all.clone() };
            text += &show("second page", second);
            let by_end = |last| HistoryFilter { by_end: Some(last), limit: 2, ..all.clone() };
            text += &show("by end", by_end(None));
            text += &show("after 2 at 20", by_end(Some((20, 2))));
            text += &show("from 2 on", HistoryFilter { from: Some(2), ..all.clone() });
            let known = reader.job(4).unwrap().map(|job| job.state);
            text + &format!("job 4 {known:?}, job 6 {:?}\n", reader.job(6).unwrap())
        },
        expect![[r#"
            all [5, 3, 2, 1]
            physics [5, 2, 1]
            finished [5, 3, 1]
            of bob []
            from 15 to 30 [5, 2]
            first page [5, 3]
            second page [2, 1]
            by end [3, 2]
            after 2 at 20 [5, 1]
            from 2 on [5, 3, 2]
            job 4 Some(Queued), job 6 None
        "#]],
    );
}

#[test]
fn a_second_process_is_kept_out() {
    let folder = tempdir().unwrap();
    let first = store::open(folder.path(), None).unwrap();
    let second = store::open(folder.path(), None).err();
    assert!(matches!(second, Some(StoreError::InUse { .. })), "{second:?}");
    drop(first);
    store::open(folder.path(), None).unwrap();
    let Some(server) = Server::start() else { return };
    let first = store::open(folder.path(), Some(&server.address())).unwrap();
    let second = store::open(folder.path(), Some(&server.address())).err();
    assert!(matches!(second, Some(StoreError::InUse { .. })), "{second:?}");
    drop(first);
}

#[test]
fn a_writer_notices_that_it_lost_its_lock_without_writing() {
    let folder = tempdir().unwrap();
    store::open(folder.path(), None).unwrap().check().unwrap();
    let Some(server) = Server::start() else { return };
    let mut first = store::open(folder.path(), Some(&server.address())).unwrap();
    first.check().unwrap();
    server.run(
        "SELECT pg_terminate_backend(pid) FROM pg_locks \
         WHERE locktype = 'advisory' AND pid <> pg_backend_pid()",
    );
    let mut second = store::open(folder.path(), Some(&server.address())).unwrap();
    second.check().unwrap();
    let fault = first.check().err();
    assert!(matches!(fault, Some(StoreError::Lost { .. })), "{fault:?}");
}

#[test]
fn a_newer_schema_is_refused() {
    let folder = tempdir().unwrap();
    drop(store::open(folder.path(), None).unwrap());
    let change = "UPDATE meta SET value = '99' WHERE name = 'schema'";
    let file = rusqlite::Connection::open(folder.path().join("hostler.db")).unwrap();
    file.execute_batch(change).unwrap();
    drop(file);
    let newer = |refused: Option<StoreError>| match refused {
        Some(StoreError::Newer { found, known, .. }) => {
            assert_eq!((found, known), (99, SCHEMA_VERSION))
        }
        other => panic!("{other:?}"),
    };
    newer(store::open(folder.path(), None).err());
    let Some(server) = Server::start() else { return };
    drop(store::open(folder.path(), Some(&server.address())).unwrap());
    server.run(change);
    newer(store::open(folder.path(), Some(&server.address())).err());
}

/// What a store of the first version had otherwise.
const FIRST_VERSION: &str = "
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    INSERT INTO meta VALUES ('schema', '1'), ('cluster', 'old');
    CREATE TABLE log (number BIGINT PRIMARY KEY, record TEXT NOT NULL, digest TEXT NOT NULL);
    CREATE TABLE snapshot (number BIGINT NOT NULL, part BIGINT NOT NULL, state TEXT NOT NULL,
        digest TEXT NOT NULL, PRIMARY KEY (number, part));
    CREATE TABLE jobs (id BIGINT PRIMARY KEY, version BIGINT NOT NULL, tenant TEXT NOT NULL,
        owner TEXT NOT NULL, state TEXT NOT NULL, submitted BIGINT NOT NULL, ended BIGINT,
        array_of BIGINT, request TEXT NOT NULL, facts TEXT NOT NULL);
    INSERT INTO jobs VALUES (1, 1, 'physics', 'ada', 'queued', 5, NULL, NULL,
        '{\"command\": [\"true\"]}', '{}');
    CREATE TABLE dependencies (job BIGINT NOT NULL, needs BIGINT NOT NULL,
        PRIMARY KEY (job, needs));
    CREATE TABLE tokens (id BIGINT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, role TEXT NOT NULL,
        tenant TEXT NOT NULL, name TEXT NOT NULL, created BIGINT NOT NULL, revoked BIGINT,
        one_time BIGINT NOT NULL);
    INSERT INTO tokens VALUES (1, 'of a secret', 'user', 'physics', 'ada', 7, NULL, 0);
    CREATE TABLE tenants (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, quota TEXT NOT NULL);
    CREATE TABLE nodes (name TEXT PRIMARY KEY, id BIGINT NOT NULL, token BIGINT NOT NULL,
        draining BIGINT NOT NULL, machine TEXT NOT NULL);
    INSERT INTO nodes VALUES ('n1', 0, 1, 1, '{\"name\": \"n1\", \"address\": \"10.0.0.1\",
        \"cpu_milli\": 1000, \"mem_mib\": 2, \"gpu_model\": \"\", \"gpu_mem_mib\": 0,
        \"gpus\": 0, \"rack\": 0}');
    CREATE TABLE groups_known (name TEXT PRIMARY KEY, id BIGINT NOT NULL);
    CREATE TABLE idempotency (token BIGINT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL,
        first_job BIGINT NOT NULL, jobs BIGINT NOT NULL, used BIGINT NOT NULL,
        PRIMARY KEY (token, key));
";

#[test]
fn a_store_of_the_first_version_gets_room_for_what_drivers_find() {
    let check = |open: &dyn Fn() -> Box<dyn Store>| {
        let mut store = open();
        let rows = vec![
            Row::JobAdded(Box::new(found_job())),
            Row::Node(Box::new(node("n2", 1, None))),
            Row::Node(Box::new(node("n1", 0, None))),
        ];
        let before = store.load().unwrap();
        assert_eq!(before.tokens[0].person, None, "nobody said anything about people then");
        assert_eq!(
            (before.jobs, before.nodes),
            (vec![job(1, "physics", None)], vec![node("n1", 0, Some(1))])
        );
        store.commit(&Batch { rows, ..Batch::default() }).unwrap();
        let again = Row::JobAdded(Box::new(JobRow { id: 5, ..found_job() }));
        let twice = store.commit(&Batch { rows: vec![again], ..Batch::default() });
        assert!(twice.is_err(), "no two jobs are called the same by the driver");
        drop(store);
        let after = open().load().unwrap();
        assert_eq!(after.jobs, [job(1, "physics", None), found_job()]);
        assert_eq!(after.nodes, [node("n1", 0, None), node("n2", 1, None)]);
    };
    let folder = tempdir().unwrap();
    let file = rusqlite::Connection::open(folder.path().join("hostler.db")).unwrap();
    file.execute_batch(FIRST_VERSION).unwrap();
    drop(file);
    check(&|| store::open(folder.path(), None).unwrap());
    let Some(server) = Server::start() else { return };
    server.run(FIRST_VERSION);
    check(&|| store::open(folder.path(), Some(&server.address())).unwrap());
}

#[test]
fn a_file_that_was_torn_is_found_out() {
    let folder = tempdir().unwrap();
    let mut store = store::open(folder.path(), None).unwrap();
    for number in 1..200 {
        let records = vec![(number, format!("record {number} {}", "x".repeat(300)))];
        store.commit(&Batch { records, ..Batch::default() }).unwrap();
    }
    drop(store);
    let path = folder.path().join("hostler.db");
    let bytes = std::fs::read(&path).unwrap();
    let check = |how: &str, torn: &[u8]| {
        std::fs::write(&path, torn).unwrap();
        let fault = match store::open(folder.path(), None) {
            Ok(mut store) => store.load().and_then(|_| store.records(0, 1_000)).err(),
            Err(fault) => Some(fault),
        };
        assert!(matches!(fault, Some(StoreError::Damaged { .. })), "{how}: {fault:?}");
    };
    check("half", &bytes[..bytes.len() / 2]);
    // Half a page that never reached the disk.
    let at = bytes.windows(10).position(|window| window == b"record 150").unwrap();
    let mut torn = bytes.clone();
    torn[at / 2048 * 2048..][..2048].fill(0);
    check("zeroes", &torn);
    // One letter of a record: the page is sound, the digest is not.
    let mut torn = bytes.clone();
    torn[at] = b'R';
    check("letter", &torn);
    check("text", b"this is no database at all, but a text of some length");
}

#[test]
fn secrets_of_jobs_are_for_the_daemon_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempdir().unwrap();
    let mut store = store::open(folder.path(), None).unwrap();
    let row = Row::JobAdded(Box::new(job(1, "physics", None)));
    store.commit(&Batch { rows: vec![row], ..Batch::default() }).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let open: Vec<_> = files.filter(|path| mode(path) != 0o600).collect();
    assert!(open.is_empty(), "{open:?} can be read by others");
}

#[test]
fn a_lost_connection_is_told_from_other_faults() {
    let Some(server) = Server::start() else { return };
    let folder = tempdir().unwrap();
    let mut store = store::open(folder.path(), Some(&server.address())).unwrap();
    server.stop();
    let records = vec![(1, "first".to_owned())];
    let fault = store.commit(&Batch { records, ..Batch::default() }).err();
    assert!(matches!(fault, Some(StoreError::Lost { .. })), "{fault:?}");
    assert!(!fault.unwrap().to_string().contains("password"), "no secrets in messages");
}

#[test]
fn a_store_is_copied_to_a_server_and_back_whole() {
    let (old, new) = (tempdir().unwrap(), tempdir().unwrap());
    let (from, back) = (Place::Folder(old.path().into()), Place::Folder(new.path().into()));
    assert!(matches!(store::copy(&from, &back), Err(StoreError::Missing { .. })));
    // More records than are read at a time.
    let records =
        (1..=2_500).map(|number| (number, format!("record {number} \u{1F980}"))).collect();
    // A state that takes several parts, and a letter that lies across the end of one.
    let state = format!("x{}", "\u{1F980}".repeat(600_000));
    let batch = Batch { records, snapshot: Some((7, state)), rows: everything() };
    let mut source = store::open(old.path(), None).unwrap();
    source.commit(&batch).unwrap();
    let ended = vec![Row::JobAdded(Box::new(job(3, "physics", Some((9, JobState::Failed)))))];
    source.commit(&Batch { rows: ended, ..Batch::default() }).unwrap();
    assert!(matches!(store::copy(&from, &back), Err(StoreError::InUse { .. })));
    let told = |store: &mut dyn Store| {
        let parts =
            (store.load().unwrap(), store.records(0, 5_000).unwrap(), store.job(3).unwrap());
        format!("{parts:?}")
    };
    let expected = told(&mut *source);
    drop(source);
    if let Some(server) = Server::start() {
        let there = Place::parse(&server.address());
        let copied = store::copy(&from, &there).unwrap();
        assert!(copied.contains(&("log", 2_500)), "{copied:?}");
        assert!(matches!(store::copy(&from, &there), Err(StoreError::NotEmpty { .. })));
        let mut opened = store::open(old.path(), Some(&server.address())).unwrap();
        assert_eq!(told(&mut *opened), expected);
        drop(opened);
        store::copy(&there, &back).unwrap();
    } else {
        store::copy(&from, &back).unwrap();
    }
    assert!(matches!(store::copy(&from, &back), Err(StoreError::NotEmpty { .. })));
    assert_eq!(told(&mut *store::open(new.path(), None).unwrap()), expected);
}

#[test]
fn a_reader_connects_again_and_the_writer_does_not() {
    let Some(server) = Server::start() else { return };
    let folder = tempdir().unwrap();
    let mut store = store::open(folder.path(), Some(&server.address())).unwrap();
    let first = Batch { records: vec![(1, "first".to_owned())], ..Batch::default() };
    store.commit(&first).unwrap();
    let mut reader = store.reader().unwrap();
    assert_eq!(reader.records(0, 10).unwrap().len(), 1);
    server.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
    );
    assert_eq!(reader.records(0, 10).unwrap(), first.records);
    let second = Batch { records: vec![(2, "second".to_owned())], ..Batch::default() };
    let fault = store.commit(&second).err();
    assert!(matches!(fault, Some(StoreError::Lost { .. })), "{fault:?}");
}
