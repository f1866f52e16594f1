//! Native tables as a source: to repack them, move their times or drop what is wrong.

use std::path::Path;

use super::{ImportOptions, Imported, Importer};
use crate::trace::error::TraceError;
use crate::trace::read::{ReadOptions, read};
use crate::trace::source::{self, Progress};

/// The importer of native tables.
pub(super) const DEF: Importer = Importer {
    name: "native",
    summary: "a folder of native tables (jobs.csv, tasks.csv, ..)",
    detect: |path| path.is_dir() && source::find(path, "jobs.csv").is_ok_and(|file| file.is_some()),
    takes: &[],
    import,
};

fn import(path: &Path, _: &ImportOptions, progress: Progress<'_>) -> Result<Imported, TraceError> {
    let options = ReadOptions { progress: Some(progress), ..ReadOptions::default() };
    let trace = read(path, options)?;
    let meta = path.join("meta.toml");
    let mut files: Vec<_> = Some(meta).filter(|meta| meta.is_file()).into_iter().collect();
    for table in ["nodes.csv", "jobs.csv", "tasks.csv", "instances.csv"] {
        files.extend(source::find(path, table)?);
    }
    let rows_read = trace.row_counts();
    Ok(Imported { trace, files, rows_read, ..Imported::default() })
}
