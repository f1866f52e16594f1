//! Importers: one file per source, each turns it into a native [`Trace`].
//!
//! An importer never invents: a row without a needed value is dropped, counted under its reason
//! and told. Writing, checking and moving times is the same for all and lives in `convert`.

mod native;
pub(crate) mod pai;
mod pai_sim;
pub mod pai_tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use pai_sim::{Flavour, read_pai_sim};

use super::error::TraceError;
use super::source::Progress;
use super::table::Trace;

/// A source that can be imported.
pub struct Importer {
    /// Name on the command line.
    pub name: &'static str,
    /// One line for the help.
    pub summary: &'static str,
    /// Whether a file or folder looks like this source.
    pub detect: fn(&Path) -> bool,
    /// Reads it.
    pub import: fn(&Path, Progress<'_>) -> Result<Imported, TraceError>,
}

/// Every importer; detection asks them in this order.
pub const IMPORTERS: [&Importer; 4] = [&native::DEF, &pai::DEF, &pai_sim::ESTIMATE, &pai_sim::GANG];

/// What an importer hands over.
#[derive(Debug, Default)]
pub struct Imported {
    /// The trace; its meta names source and licence.
    pub trace: Trace,
    /// Files that were read.
    pub files: Vec<PathBuf>,
    /// Rows of each input.
    pub rows_read: BTreeMap<String, u64>,
    /// Rows left out, by reason.
    pub dropped: BTreeMap<String, u64>,
}

/// The importer of a name, or the first that knows the files.
pub fn importer(name: Option<&str>, path: &Path) -> Result<&'static Importer, TraceError> {
    let known = || IMPORTERS.map(|importer| importer.name).join(", ");
    let found = match name {
        Some(name) => IMPORTERS.iter().find(|importer| importer.name == name),
        None => IMPORTERS.iter().find(|importer| (importer.detect)(path)),
    };
    found.copied().ok_or_else(|| match name {
        Some(name) => TraceError::UnknownFormat { name: name.to_owned(), known: known() },
        None => TraceError::Undetected { path: path.to_owned(), known: known() },
    })
}
