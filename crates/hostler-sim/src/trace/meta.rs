//! `meta.toml`: where a trace comes from and what was done to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::TraceError;
use super::table::Trace;

/// Origin, licence and history of a trace. Unknown keys are errors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Meta {
    /// Where the data comes from.
    pub source: String,
    /// Under which terms.
    pub licence: String,
    /// What time 0 is: RFC 3339, or `relative`.
    pub time_origin: String,
    /// Zone in which days and hours of the source are meant.
    pub time_zone: String,
    /// Who made these tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importer: Option<Maker>,
    /// Options the importer or generator ran with.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Rows of each table as written.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rows: BTreeMap<String, u64>,
    /// Rows of each input as read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rows_read: BTreeMap<String, u64>,
    /// Rows left out, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rows_dropped: BTreeMap<String, u64>,
    /// Rows kept with a remark, by remark.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rows_noted: BTreeMap<String, u64>,
    /// Every input file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputFile>,
}

/// An importer or generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maker {
    /// Its name.
    pub name: String,
    /// Version of the program.
    pub version: String,
}

impl Maker {
    /// A part of this program.
    pub fn own(name: &str) -> Maker {
        Maker { name: name.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// A file that was read to make a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    /// File name without folder.
    pub file: String,
    /// Size as stored.
    pub bytes: u64,
    /// SHA-256 of the bytes as stored, in hex.
    pub sha256: String,
}

impl Meta {
    /// Reads the text of a `meta.toml`; `file` is only for messages.
    pub fn parse(text: &str, file: &str) -> Result<Meta, TraceError> {
        toml::from_str(text).map_err(|error| toml_error(&error, text, file))
    }

    /// The text of a `meta.toml`.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a struct of texts, numbers and maps is a TOML table")
    }
}

impl Trace {
    /// Sizes of the tables that hold anything, by name.
    pub fn row_counts(&self) -> BTreeMap<String, u64> {
        let tables = [
            ("nodes", self.nodes.len()),
            ("jobs", self.jobs.len()),
            ("tasks", self.tasks.len()),
            ("instances", self.instances.len()),
        ];
        let named = tables.map(|(name, rows)| (name.to_owned(), rows as u64));
        named.into_iter().filter(|(_, rows)| *rows > 0).collect()
    }
}

/// A parser's message with the line it speaks of.
pub(super) fn toml_error(error: &toml::de::Error, text: &str, file: &str) -> TraceError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = 1 + text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() as u32;
    let message = error.message().trim().replace('\n', "; ");
    TraceError::Toml { file: file.to_owned(), line, message }
}
