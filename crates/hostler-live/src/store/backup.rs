//! Whole copies of a store in a data folder, and the way back from one.
//!
//! A backup is one SQLite file with everything that a daemon needs elsewhere: the store as it was
//! at one moment, and beside it, in a table of its own, the small files of the data folder by which
//! clients and agents know the daemon. It is taken while a daemon runs or not; a file that has its
//! name is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::mark::{self, Mark};
use super::schema::{META_PUT, SCHEMA_VERSION};
use super::sql::RESTORED;
use super::{StoreError, sqlite};

/// Small files of the data folder that clients and agents know the daemon by. The token of an admin
/// is not among them: the store knows it by its hash, and its owner keeps it.
const KEPT: [&str; 3] = ["tls-key.pem", "tls-cert.pem", "agent-token"];

/// Row of a backup that tells when it was made.
const MADE: &str = "made";

/// Folders for what was moved aside: more than anybody restores in vain.
const ASIDE_MAX: u32 = 10_000;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFacts {
    /// The cluster whose store it is.
    pub cluster: String,
    /// Jobs, over or not.
    pub jobs: u64,
    /// Number of the last record of the log.
    pub last_record: u64,
    /// When it was made, in microseconds; none where another program made it.
    pub made: Option<u64>,
    /// Its size.
    pub bytes: u64,
    /// Names of the small files in it.
    pub files: Vec<String>,
}

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// What is in the data folder now.
    pub facts: BackupFacts,
    /// Where the files that were there before are.
    pub aside: Option<PathBuf>,
}

/// Copies the store of a data folder, as it is at one moment, into a new file.
pub fn back_up(folder: &Path, file: &Path) -> Result<BackupFacts, StoreError> {
    let store = folder.join(sqlite::FILE);
    if !store.exists() {
        return Err(StoreError::Missing { store: folder.display().to_string() });
    }
    let draft = Draft::new(with_ending(file, ".draft"))?;
    copy(&store, &draft.0)?;
    pack(&draft.0, folder)?;
    let facts = inspect(&draft.0)?;
    draft.keep(file)?;
    Ok(facts)
}

/// Takes a file for a backup only when a daemon can go on from it.
pub fn inspect(file: &Path) -> Result<BackupFacts, StoreError> {
    let bytes = fs::metadata(file).map_err(|error| unusable(file, &error))?.len();
    let connection = reading(file)?;
    let fault = |error| fault(file, &error);
    let store = || file.display().to_string();
    let check: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(fault)?;
    if check != "ok" {
        return Err(StoreError::Damaged { store: store(), fault: check });
    }
    let meta = |name: &str| text(&connection, "SELECT value FROM meta WHERE name = ?1", name);
    let has_meta = has_table(&connection, "meta").map_err(fault)?;
    let version = if has_meta { meta("schema").map_err(fault)? } else { None };
    let Some(found) = version.and_then(|version| version.parse::<i64>().ok()) else {
        return Err(StoreError::Foreign { store: store() });
    };
    if found > SCHEMA_VERSION {
        return Err(StoreError::Newer { store: store(), found, known: SCHEMA_VERSION });
    }
    let number = |sql: &str| {
        let number = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        number.map(|number| u64::try_from(number).unwrap_or(0))
    };
    let last_record = number("SELECT COALESCE(MAX(number), 0) FROM log").map_err(fault)?;
    let records = number("SELECT COUNT(*) FROM log").map_err(fault)?;
    if records != last_record {
        let fault = format!("{records} of {last_record} records are there");
        return Err(StoreError::Damaged { store: store(), fault });
    }
    let packed = packed(&connection).map_err(fault)?;
    let made = packed.iter().find(|(name, _)| name == MADE);
    Ok(BackupFacts {
        cluster: meta("cluster").map_err(fault)?.unwrap_or_default(),
        jobs: number("SELECT COUNT(*) FROM jobs").map_err(fault)?,
        last_record,
        made: made.and_then(|(_, at)| at.parse().ok()),
        bytes,
        files: packed.into_iter().map(|(name, _)| name).filter(|name| name != MADE).collect(),
    })
}

/// Makes a backup the store of a data folder that no daemon uses. What is there already is refused,
/// or moved aside.
///
/// Killed at any point, it leaves a folder with the store of before, with the one of the backup, or
/// with none; then it is to be run again.
pub fn restore(file: &Path, folder: &Path, force: bool) -> Result<Restored, StoreError> {
    let facts = inspect(file)?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o711)
        .create(folder)
        .map_err(|error| unusable(folder, &error))?;
    let _lock = sqlite::lock(folder)?;
    let found: Vec<PathBuf> = sqlite::files(folder).into_iter().filter(|at| at.exists()).collect();
    if (!found.is_empty() || mark::path(folder).exists()) && !force {
        return Err(StoreError::Occupied { store: folder.display().to_string() });
    }
    let target = folder.join(sqlite::FILE);
    let draft = Draft::new(with_ending(&target, ".draft"))?;
    copy(file, &draft.0)?;
    let packed = unpack(&draft.0)?;
    inspect(&draft.0)?;
    let replaced = packed.iter().map(|(name, _)| folder.join(name)).filter(|at| at.exists());
    let moved: Vec<PathBuf> = found.into_iter().chain(replaced).collect();
    let aside = set_aside(folder, "before-restore", &moved)?;
    for (name, content) in &packed {
        write_private(&folder.join(name), content.as_bytes())?;
    }
    draft.keep(&target)?;
    // The note of before stays until here: a folder with nothing but it is none of a first start.
    Mark::at(facts.cluster.clone(), facts.last_record).write(folder)?;
    Ok(Restored { facts, aside })
}

/// Moves files into a new folder beside them; none when there is nothing to move.
pub(super) fn set_aside(
    folder: &Path,
    name: &str,
    files: &[PathBuf],
) -> Result<Option<PathBuf>, StoreError> {
    if files.is_empty() {
        return Ok(None);
    }
    for number in 1..=ASIDE_MAX {
        let aside = folder.join(format!("{name}-{number}"));
        match fs::DirBuilder::new().mode(0o700).create(&aside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(unusable(&aside, &error)),
        }
        for file in files {
            let name = file.file_name().expect("files of a folder have names");
            fs::rename(file, aside.join(name)).map_err(|error| unusable(file, &error))?;
        }
        return Ok(Some(aside));
    }
    let fault = io::Error::other(format!("{ASIDE_MAX} folders `{name}-N` are there already"));
    Err(unusable(folder, &fault))
}

/// A file that goes away with its owner unless it is kept.
struct Draft(PathBuf);

impl Draft {
    /// Empty, and for its owner alone: what is written to it is as secret as the store.
    fn new(path: PathBuf) -> Result<Draft, StoreError> {
        let _ = fs::remove_file(&path);
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        made.map_err(|error| unusable(&path, &error))?;
        Ok(Draft(path))
    }

    /// Makes it durable and gives it its name.
    fn keep(self, name: &Path) -> Result<(), StoreError> {
        let durable = File::open(&self.0).and_then(|file| file.sync_all());
        durable.map_err(|error| unusable(&self.0, &error))?;
        fs::rename(&self.0, name).map_err(|error| unusable(name, &error))?;
        sync_folder_of(name)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // When it was kept there is nothing under this name.
        let _ = fs::remove_file(&self.0);
    }
}

/// Copies a database as it is at one moment; whoever writes to it meanwhile goes on.
fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    let connection = reading(from)?;
    let target = to.to_string_lossy().into_owned();
    let copied = connection.execute("VACUUM INTO ?1", [target]);
    copied.map(|_| ()).map_err(|error| fault(from, &error))
}

/// Adds the small files of a data folder, and the time.
fn pack(draft: &Path, folder: &Path) -> Result<(), StoreError> {
    let mut rows = vec![(MADE, now().to_string())];
    for name in KEPT {
        match fs::read_to_string(folder.join(name)) {
            Ok(content) => rows.push((name, content)),
            // Who brings a certificate of their own, or none, has none here.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unusable(&folder.join(name), &error)),
        }
    }
    let packed = || -> rusqlite::Result<()> {
        let connection = changing(draft)?;
        connection.execute_batch(
            "DROP TABLE IF EXISTS packed; \
             CREATE TABLE packed (name TEXT PRIMARY KEY, content TEXT NOT NULL)",
        )?;
        for (name, content) in &rows {
            let sql = "INSERT INTO packed (name, content) VALUES (?1, ?2)";
            connection.execute(sql, params![name, content])?;
        }
        Ok(())
    };
    packed().map_err(|error| fault(draft, &error))
}

/// Takes the small files out of what is to become a store, and has the daemon told at its next
/// start that it is not where it was.
fn unpack(draft: &Path) -> Result<Vec<(String, String)>, StoreError> {
    let unpacked = || -> rusqlite::Result<Vec<(String, String)>> {
        let connection = changing(draft)?;
        let mut rows = packed(&connection)?;
        rows.retain(|(name, _)| KEPT.contains(&name.as_str()));
        connection.execute_batch("DROP TABLE IF EXISTS packed")?;
        connection.execute(META_PUT, [RESTORED, "yes"])?;
        Ok(rows)
    };
    unpacked().map_err(|error| fault(draft, &error))
}

fn packed(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    if !has_table(connection, "packed")? {
        return Ok(Vec::new());
    }
    // The key before the certificate: where the certificate is, the key is complete.
    let sql = "SELECT name, content FROM packed ORDER BY name DESC";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?1";
    Ok(text(connection, sql, name)?.is_some())
}

fn text(connection: &Connection, sql: &str, name: &str) -> rusqlite::Result<Option<String>> {
    connection.query_row(sql, [name], |row| row.get(0)).optional()
}

fn reading(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags);
    let patient = connection.and_then(|connection| {
        connection.busy_timeout(sqlite::READER_PATIENCE)?;
        Ok(connection)
    });
    patient.map_err(|error| fault(path, &error))
}

/// A connection to a file that nobody else knows yet and that is made durable as a whole later.
fn changing(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.query_row("PRAGMA journal_mode=MEMORY", [], |_| Ok(()))?;
    connection.execute_batch("PRAGMA synchronous=OFF")?;
    Ok(connection)
}

/// Writes a file that only its owner reads, whole or not at all.
pub(super) fn write_private(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let draft = Draft::new(with_ending(path, ".draft"))?;
    fs::write(&draft.0, content).map_err(|error| unusable(&draft.0, &error))?;
    draft.keep(path)
}

fn sync_folder_of(path: &Path) -> Result<(), StoreError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // Without this the name may be gone after a loss of power, and what it held with it.
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| unusable(folder, &error))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn fault(path: &Path, error: &rusqlite::Error) -> StoreError {
    sqlite::fault(&path.display().to_string(), error)
}

fn unusable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Folder { path: path.to_owned(), fault: error.to_string() }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
