//! Importers: one file per source, each turns it into a native [`Trace`].
//!
//! An importer never invents: a row without a needed value is dropped, counted under its reason
//! and told. Writing, checking and moving times is the same for all and lives in `convert`.

mod detect;
mod gavel;
mod helios;
mod helios_gpus;
mod native;
mod openb;
pub(crate) mod pai;
mod pai_sim;
pub mod pai_tables;
mod philly;
mod philly_table;
mod sacct;
mod separated;
mod slurm_words;
mod tiresias;
mod values;
mod wall_clock;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use gavel::read_gavel;
pub use helios::read_helios;
pub use helios_gpus::read_helios_gpus;
pub use openb::{read_openb_nodes, read_openb_pods};
pub use pai_sim::{Flavour, read_pai_sim};
pub use philly::read_philly;
pub use philly_table::read_philly_table;
pub use sacct::read_sacct;
pub use tiresias::read_tiresias;
pub use wall_clock::Zone;
pub(super) use wall_clock::moved_origin;
pub(crate) use wall_clock::parse_origin;

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
    /// Options it has a meaning for, as on the command line.
    pub takes: &'static [&'static str],
    /// Reads it.
    pub import: fn(&Path, &ImportOptions, Progress<'_>) -> Result<Imported, TraceError>,
}

/// What only some sources can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Run time from first start to last end, instead of the sum over attempts.
    pub span: bool,
    /// Zone of times that do not say it.
    pub time_zone: Option<Zone>,
}

impl ImportOptions {
    /// Refuses an option that the importer has no meaning for.
    pub fn check(&self, importer: &Importer) -> Result<(), TraceError> {
        let given = [("span", self.span), ("time-zone", self.time_zone.is_some())];
        let lost = given.into_iter().find(|(name, set)| *set && !importer.takes.contains(name));
        match lost {
            Some((name, _)) => Err(TraceError::NotTaken { name, format: importer.name }),
            None => Ok(()),
        }
    }
}

/// How the meta tells the zone of a source.
fn zone_words(options: &ImportOptions) -> String {
    let unknown = || "not stated, read as UTC".to_owned();
    options.time_zone.map_or_else(unknown, |zone| zone.to_string())
}

/// Every importer; detection asks them in this order.
pub const IMPORTERS: [&Importer; 11] = [
    &native::DEF,
    &pai::DEF,
    &pai_sim::ESTIMATE,
    &pai_sim::GANG,
    &openb::DEF,
    &philly::DEF,
    &philly_table::DEF,
    &helios::DEF,
    &sacct::DEF,
    &gavel::DEF,
    &tiresias::DEF,
];

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
    /// Rows kept with a remark, by remark.
    pub noted: BTreeMap<String, u64>,
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
        None if !path.exists() => TraceError::NotThere { path: path.to_owned() },
        None => TraceError::Undetected { path: path.to_owned(), known: known() },
    })
}
