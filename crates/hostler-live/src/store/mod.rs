//! Where everything that must survive is kept: the log, its snapshots, and what only people and
//! agents need.
//!
//! One [`Store::commit`] is one durable transaction. A store decides nothing and keeps nothing in
//! memory; whoever holds it is the only writer, which a lock makes sure of.

mod backup;
mod copy;
mod mark;
pub mod memory;
pub mod postgres;
mod rows;
mod schema;
mod snapshots;
mod sql;
pub mod sqlite;
pub(crate) mod starts;
pub(crate) mod stays;
mod wal;

use std::path::PathBuf;

use data_encoding::HEXLOWER;

pub use backup::{BackupFacts, Restored, back_up, inspect, restore};
pub use copy::{Copied, Place, copy};
pub use rows::{
    Batch, JobFacts, JobOrigin, JobRow, KeyRow, Loaded, NodeRow, Role, Row, TenantQuota, TenantRow,
    TokenRow,
};
pub use schema::SCHEMA_VERSION;
pub use snapshots::{begin_anew, has_room, snapshot, store_bytes, with_way_back};
pub use starts::{Start, StartEnd};
pub use stays::{StayRow, gpu_micros};

use crate::job::JobState;

/// Keeps what must survive.
pub trait Store: Send {
    /// Everything but the log and jobs that are over.
    fn load(&mut self) -> Result<Loaded, StoreError>;

    /// Records of the log after number `after`, at most `most` of them, ascending.
    fn records(&mut self, after: u64, most: usize) -> Result<Vec<(u64, String)>, StoreError>;

    /// A job, over or not.
    fn job(&mut self, id: u32) -> Result<Option<JobRow>, StoreError>;

    /// The job that a driver found under this name, over or not.
    fn job_found(&mut self, by: &str) -> Result<Option<JobRow>, StoreError>;

    /// Writes all of it durably, or none.
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError>;

    /// Whether whoever holds it still is the only writer; a fault when another may be.
    fn check(&mut self) -> Result<(), StoreError>;

    /// Leaves everything where a copy of the store alone has it; nothing is written afterwards.
    fn close(&mut self) -> Result<(), StoreError>;

    /// A second view on the same store, for readers who must not disturb the writer.
    fn reader(&self) -> Result<Box<dyn Reader>, StoreError>;
}

/// Reads what is over.
pub trait Reader: Send {
    /// A job, over or not.
    fn job(&mut self, id: u32) -> Result<Option<JobRow>, StoreError>;

    /// Jobs that are over, newest first.
    fn history(&mut self, filter: &HistoryFilter) -> Result<Vec<JobRow>, StoreError>;

    /// Records of the log after number `after`, at most `most` of them, ascending.
    fn records(&mut self, after: u64, most: usize) -> Result<Vec<(u64, String)>, StoreError>;
}

/// Which jobs of the past to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryFilter {
    /// Only of this tenant.
    pub tenant: Option<String>,
    /// Only of this user.
    pub user: Option<String>,
    /// Only those that ended like this.
    pub state: Option<JobState>,
    /// Only those of this array.
    pub array_of: Option<u32>,
    /// Only those that ended at or after this time, in microseconds.
    pub ended_from: Option<u64>,
    /// Only those that ended before this time, in microseconds.
    pub ended_before: Option<u64>,
    /// Only those with this number or a larger one.
    pub from: Option<u32>,
    /// Only those with a smaller number: the last one of the page before.
    pub before: Option<u32>,
    /// Those that ended last first, and not by number; after the job that ended then and has this
    /// number, where one is named: the last one of the page before.
    pub by_end: Option<Option<(u64, u32)>>,
    /// At most this many; never more than a page holds.
    pub limit: usize,
}

/// Why the store cannot be used, or cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A later version of the program wrote it.
    #[error(
        "the store `{store}` has schema {found}, this program knows {known}; use the newer program \
         or restore a backup"
    )]
    Newer {
        /// Which.
        store: String,
        /// The version found.
        found: i64,
        /// The newest version known.
        known: i64,
    },
    /// It is no store of ours.
    #[error("`{store}` is no store of this program; choose another place")]
    Foreign {
        /// Which.
        store: String,
    },
    /// There is none.
    #[error("there is no store in `{store}`; name a data folder, or the address of a database")]
    Missing {
        /// Where.
        store: String,
    },
    /// There is one already.
    #[error("there is a store in `{store}` already; choose another place")]
    NotEmpty {
        /// Which.
        store: String,
    },
    /// There is one where another is to be.
    #[error(
        "there is a store in `{store}` already; choose another folder, or have it moved aside by \
         `--force`"
    )]
    Occupied {
        /// Which.
        store: String,
    },
    /// What is in it cannot be right.
    #[error("the store `{store}` is damaged: {fault}; restore a backup")]
    Damaged {
        /// Which.
        store: String,
        /// What is wrong.
        fault: String,
    },
    /// It is less than it was, or damaged, and there is a way back.
    #[error("the store `{store}` {fault}; {way}")]
    Gone {
        /// Which.
        store: String,
        /// What is wrong, after the name of the store.
        fault: String,
        /// What to do.
        way: String,
    },
    /// There is no room.
    #[error("no space left for the store `{store}`: {fault}; free some and start again")]
    Full {
        /// Which.
        store: String,
        /// What the database says.
        fault: String,
    },
    /// Another process uses it.
    #[error("the store `{store}` is in use by another process; stop that one first")]
    InUse {
        /// Which.
        store: String,
    },
    /// The database server is gone.
    #[error("lost the connection to the store `{store}`: {fault}; see to the database server")]
    Lost {
        /// Which.
        store: String,
        /// What the connection says.
        fault: String,
    },
    /// A folder or file cannot be used.
    #[error("could not use {path:?}: {fault}; check that it exists and its permissions")]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system says.
        fault: String,
    },
    /// The database refuses something that it should not.
    #[error("the store `{store}` failed: {fault}")]
    Failed {
        /// Which.
        store: String,
        /// What the database says.
        fault: String,
    },
}

/// Opens the store of a data folder, or the database server that an address names.
pub fn open(folder: &std::path::Path, address: Option<&str>) -> Result<Box<dyn Store>, StoreError> {
    match address {
        Some(address) => postgres::open(address),
        None => sqlite::open(folder),
    }
}

/// A name for a new cluster that no other has.
fn cluster_name() -> String {
    let mut bytes = [0; 16];
    // Only compared with itself: a system without randomness still gets a store.
    let _ = getrandom::fill(&mut bytes);
    HEXLOWER.encode(&bytes)
}
