//! The store in one SQLite file, for a daemon that needs no database server.
//!
//! Write-ahead log with `synchronous=FULL`: when a commit returns, it survives a power cut. The
//! file is for the daemon's user alone, since jobs' environments are in it.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, params_from_iter};

use super::sql::{Database, Value};
use super::{Store, StoreError, mark};

pub(super) const FILE: &str = "hostler.db";
const LOCK: &str = "hostler.lock";

/// How long a start waits for who has the store, and between two looks.
const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_LOOK: Duration = Duration::from_millis(20);

/// How long a reader waits while the writer tidies the file up.
pub(super) const READER_PATIENCE: Duration = Duration::from_secs(10);

/// Opens the store of a data folder; makes it when the folder has none.
pub fn open(folder: &Path) -> Result<Box<dyn Store>, StoreError> {
    let lock = lock(folder)?;
    Ok(Box::new(mark::open(folder, || connect_locked(folder, lock), &super::cluster_name())?))
}

/// A store whose file can grow to so many pages only, as on a disk that is full then.
#[cfg(test)]
pub(super) fn open_small(folder: &Path, pages: u32) -> Result<Box<dyn Store>, StoreError> {
    let database = connect(folder)?;
    database.connection.pragma_update(None, "max_page_count", pages).unwrap();
    Ok(Box::new(super::sql::SqlStore::new(database, &super::cluster_name())?))
}

/// The database of a data folder, locked; an empty one when there is none.
pub(super) fn connect(folder: &Path) -> Result<Sqlite, StoreError> {
    connect_locked(folder, lock(folder)?)
}

fn connect_locked(folder: &Path, lock: File) -> Result<Sqlite, StoreError> {
    let path = folder.join(FILE);
    make_private(&path)?;
    let name = path.display().to_string();
    let connection = Connection::open(&path).map_err(|error| fault(&name, &error))?;
    let mut database = Sqlite { connection, name, path, _lock: Some(lock) };
    database.configure()?;
    Ok(database)
}

/// A connection to an SQLite file.
pub(super) struct Sqlite {
    connection: Connection,
    name: String,
    path: PathBuf,
    /// Held as long as the writer lives.
    _lock: Option<File>,
}

impl Sqlite {
    /// Whether somebody made it a store.
    pub(super) fn is_store(&mut self) -> Result<bool, StoreError> {
        self.has_table("meta")
    }

    fn configure(&mut self) -> Result<(), StoreError> {
        let name = self.name.clone();
        let fault = |error| fault(&name, &error);
        let mode: String = self
            .connection
            .query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))
            .map_err(fault)?;
        if mode != "wal" {
            let fault = format!("the file system has no write-ahead log, mode is {mode}");
            return Err(StoreError::Failed { store: name, fault });
        }
        self.connection.execute_batch("PRAGMA synchronous=FULL").map_err(fault)?;
        let check: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(fault)?;
        if check != "ok" {
            return Err(StoreError::Damaged { store: name, fault: check });
        }
        self.connection.set_prepared_statement_cache_capacity(64);
        Ok(())
    }
}

/// The files that the store of a data folder consists of, there or not.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    ["", "-wal", "-shm"].iter().map(|ending| folder.join(format!("{FILE}{ending}"))).collect()
}

/// Keeps everybody else from the store of a data folder.
pub(super) fn lock(folder: &Path) -> Result<File, StoreError> {
    let refused = |path: &Path, error: io::Error| StoreError::Folder {
        path: path.to_owned(),
        fault: error.to_string(),
    };
    std::fs::create_dir_all(folder).map_err(|error| refused(folder, error))?;
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(&path).map_err(|error| refused(&path, error))?;
    let until = Instant::now() + LOCK_WAIT;
    loop {
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            // A daemon that was killed is not gone at once.
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => {
                std::thread::sleep(LOCK_LOOK);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(StoreError::InUse { store: folder.join(FILE).display().to_string() });
            }
            Err(error) => return Err(refused(&path, error.into())),
        }
    }
}

/// SQLite gives its side files the permissions of the file itself.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path);
    file.and_then(|file| file.set_permissions(Permissions::from_mode(0o600)))
        .map_err(|error| StoreError::Folder { path: path.to_owned(), fault: error.to_string() })
}

pub(super) fn fault(store: &str, error: &rusqlite::Error) -> StoreError {
    let (store, fault) = (store.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { store, fault },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged { store, fault }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::InUse { store },
        _ => StoreError::Failed { store, fault },
    }
}

impl Database for Sqlite {
    fn name(&self) -> &str {
        &self.name
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        let statement = self.connection.prepare_cached(sql);
        let done = statement.and_then(|mut statement| statement.execute(params_from_iter(values)));
        done.map(|rows| rows as u64).map_err(|error| fault(&self.name, &error))
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Vec<Value>>, StoreError> {
        let rows = || -> rusqlite::Result<Vec<Vec<Value>>> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let columns = statement.column_count();
            let rows = statement.query_map(params_from_iter(values), |row| {
                (0..columns).map(|column| row.get_ref(column).map(value)).collect()
            })?;
            rows.collect()
        };
        rows().map_err(|error| fault(&self.name, &error))
    }

    fn has_table(&mut self, name: &str) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1";
        Ok(!self.query(sql, &[name.into()])?.is_empty())
    }

    /// The lock of a file goes only with the process.
    fn check_lock(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Brings the write-ahead log into the file. Otherwise that happens only when the last
    /// connection is closed, which is not the writer's when somebody has read.
    fn merge(&mut self) -> Result<(), StoreError> {
        let rows = self.query("PRAGMA wal_checkpoint(TRUNCATE)", &[])?;
        if rows.first().and_then(|row| row.first()) != Some(&Value::Int(0)) {
            tracing::warn!(
                store = self.name,
                "somebody reads the store; its newest part stays in the write-ahead log"
            );
        }
        Ok(())
    }

    fn second(&self) -> Result<Sqlite, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags);
        let connection = connection.map_err(|error| fault(&self.name, &error))?;
        let patience = connection.busy_timeout(READER_PATIENCE);
        patience.map_err(|error| fault(&self.name, &error))?;
        Ok(Sqlite { connection, name: self.name.clone(), path: self.path.clone(), _lock: None })
    }
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Value::Text(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Real(_) | ValueRef::Null => Value::Null,
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Null => ValueRef::Null,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Batch;

    #[test]
    fn a_full_disk_is_told_and_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open_small(folder.path(), 60).unwrap();
        let record = |number| vec![(number, "x".repeat(5_000))];
        let mut last = 0;
        let fault = loop {
            let batch = Batch { records: record(last + 1), ..Batch::default() };
            match store.commit(&batch) {
                Ok(()) => last += 1,
                Err(fault) => break fault,
            }
        };
        assert!(matches!(fault, StoreError::Full { .. }), "{fault:?}");
        assert!(last > 3, "{last} records fitted");
        drop(store);
        let mut store = open(folder.path()).unwrap();
        assert_eq!(store.records(0, 1_000).unwrap().len() as u64, last);
        store.commit(&Batch { records: record(last + 1), ..Batch::default() }).unwrap();
    }
}
