//! A note beside the store of a data folder: whose store was there, and how far it was.
//!
//! SQLite cannot tell a store that lost its file or its write-ahead log from one that is new. The
//! note is written after what it tells of, about once a second, so that a sound store is never
//! behind it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::backup::write_private;
use super::snapshots;
use super::sql::SqlStore;
use super::sqlite::{self, Sqlite};
use super::wal::{self, WalLook};
use super::{Batch, JobRow, Loaded, Reader, Store, StoreError};

/// Name of the note.
const FILE: &str = "hostler.mark";

/// Time between two notes: what a loss may cost without being noticed, while the disk is asked for
/// one more write.
const EVERY: Duration = Duration::from_secs(1);

/// Files that a daemon leaves in a folder whose store was good once.
const TRACES: [&str; 4] = ["tls-cert.pem", "tls-key.pem", "admin-token", "agent-token"];

/// What the note says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Whose store.
    cluster: String,
    /// Number of the last record.
    record: u64,
    /// The same of the note before: at least the newest commit came after it.
    before: u64,
}

impl Mark {
    /// That a store is here.
    pub(super) fn at(cluster: String, record: u64) -> Mark {
        Mark { cluster, record, before: record }
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), StoreError> {
        let text = serde_json::to_string(self).expect("a note is plain data");
        write_private(&path(folder), text.as_bytes())
    }

    /// Writes it if that works: what it would tell of is safe, and an older note is true.
    fn try_write(&self, folder: &Path) -> bool {
        let written = self.write(folder);
        written
            .inspect_err(|fault| tracing::warn!(%fault, "cannot note how far the store is"))
            .is_ok()
    }

    fn read(folder: &Path) -> Option<Mark> {
        let text = fs::read_to_string(path(folder)).ok()?;
        let mark = serde_json::from_str(&text);
        mark.inspect_err(|fault| tracing::warn!(%fault, "cannot read {FILE}; going on without it"))
            .ok()
    }
}

/// Where the note of a data folder is.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Everything that a daemon with a store of its own leaves in a folder, but for snapshots.
pub(super) fn remains(folder: &Path) -> Vec<PathBuf> {
    let traces = TRACES.iter().map(|name| folder.join(name));
    let all = sqlite::files(folder).into_iter().chain([path(folder)]).chain(traces);
    all.filter(|file| file.exists()).collect()
}

/// Opens the store of a locked folder, and refuses one that is less than was there before.
pub(super) fn open(
    folder: &Path,
    connect: impl FnOnce() -> Result<Sqlite, StoreError>,
    new_name: &str,
) -> Result<MarkedStore, StoreError> {
    let mark = Mark::read(folder);
    let lived = mark.is_some() || TRACES.iter().any(|name| folder.join(name).exists());
    let tail = look(folder, lived)?;
    let mut database = connect()?;
    if lived && !database.is_store()? {
        return Err(lost(folder, "nothing is in it, although a daemon was served from here"));
    }
    let mut store = SqlStore::new(database, new_name)?;
    let (cluster, record) = store.position()?;
    if let Some(mark) = mark {
        compare(folder, &mark, &cluster, record, tail)?;
    }
    let mark = Mark::at(cluster, record);
    mark.try_write(folder);
    let folder = folder.to_owned();
    Ok(MarkedStore { store, folder, newest: record, mark, written: Instant::now() })
}

/// Looks at the files before the database does, which would tidy traces of a loss away.
fn look(folder: &Path, lived: bool) -> Result<WalLook, StoreError> {
    let [file, log, _] = &sqlite::files(folder)[..] else {
        unreachable!("a store has three files")
    };
    let unusable = |path: &Path, error: &io::Error| StoreError::Folder {
        path: path.to_owned(),
        fault: error.to_string(),
    };
    let head = match fs::File::open(file) {
        Ok(opened) => {
            let mut head = Vec::new();
            let read = io::Read::read_to_end(&mut io::Read::take(opened, 18), &mut head);
            read.map_err(|error| unusable(file, &error))?;
            head
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && lived => {
            return Err(lost(folder, "the file is gone"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(unusable(file, &error)),
    };
    if head.is_empty() {
        return if lived { Err(lost(folder, "the file is empty")) } else { Ok(WalLook::default()) };
    }
    // A page of 65,536 bytes is written as 1.
    let page = match head.get(16..18) {
        Some([0, 1]) => 65_536,
        Some([high, low]) => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    };
    let tail = wal::look(log, page).map_err(|error| unusable(log, &error))?;
    if tail.broken {
        let fault = "its write-ahead log cannot be read in the middle, and commits follow";
        return Err(lost(folder, fault));
    }
    Ok(tail)
}

/// Whether a store is where the note says that it was, or beyond.
fn compare(
    folder: &Path,
    mark: &Mark,
    cluster: &str,
    record: u64,
    tail: WalLook,
) -> Result<(), StoreError> {
    if mark.cluster != cluster {
        return Err(lost(folder, "it is the store of another cluster than the one before"));
    }
    if record >= mark.record {
        return Ok(());
    }
    // The last commit can be torn by a loss of power under a disk that says too early that it has
    // written: that is told, and costs only itself.
    if tail.torn && record >= mark.before {
        let lost = mark.record - record;
        tracing::error!(lost, "the last records were torn; what they told is lost");
        return Ok(());
    }
    let fault = format!(
        "it ends with record {record}, and record {} was acknowledged; the write-ahead log may \
         have been lost",
        mark.record
    );
    Err(lost(folder, &fault))
}

fn lost(folder: &Path, fault: &str) -> StoreError {
    let store = folder.join(sqlite::FILE).display().to_string();
    let fault = format!("has lost data: {fault}");
    StoreError::Gone { store, fault, way: snapshots::way_back(folder) }
}

/// A store that leaves notes beside it.
pub(super) struct MarkedStore {
    store: SqlStore<Sqlite>,
    folder: PathBuf,
    /// Number of the last record.
    newest: u64,
    mark: Mark,
    written: Instant,
}

impl MarkedStore {
    fn note(&mut self, every: Duration) {
        if self.newest == self.mark.record || self.written.elapsed() < every {
            return;
        }
        let (cluster, before) = (self.mark.cluster.clone(), self.mark.record);
        let mark = Mark { cluster, record: self.newest, before };
        self.written = Instant::now();
        if mark.try_write(&self.folder) {
            self.mark = mark;
        }
    }
}

impl Store for MarkedStore {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        self.store.load()
    }

    fn records(&mut self, after: u64, most: usize) -> Result<Vec<(u64, String)>, StoreError> {
        self.store.records(after, most)
    }

    fn job(&mut self, id: u32) -> Result<Option<JobRow>, StoreError> {
        self.store.job(id)
    }

    fn job_found(&mut self, by: &str) -> Result<Option<JobRow>, StoreError> {
        self.store.job_found(by)
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.store.commit(batch)?;
        self.newest = batch.records.last().map_or(self.newest, |(number, _)| *number);
        self.note(EVERY);
        Ok(())
    }

    fn check(&mut self) -> Result<(), StoreError> {
        self.note(EVERY);
        self.store.check()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.store.close()?;
        self.note(Duration::ZERO);
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        self.store.reader()
    }
}
