//! How importers recognise files: by the first line, and by what lies beside them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::trace::error::TraceError;
use crate::trace::source::{self, Compression, Meter};

/// The first bytes of a file, unpacked. Any failure gives nothing.
pub(super) fn head(path: &Path) -> Vec<u8> {
    let mut silent = |_, _| {};
    let mut meter = Meter::new(0, &mut silent);
    let mut head = Vec::new();
    const HEAD_BYTES: u64 = 4096;
    let is_file = File::open(path).is_ok_and(|file| file.metadata().is_ok_and(|at| at.is_file()));
    let read = is_file
        && source::open(path, &mut meter)
            .is_ok_and(|input| input.take(HEAD_BYTES).read_to_end(&mut head).is_ok());
    if read { head } else { Vec::new() }
}

/// Whether the first line of a file names all these columns.
pub(super) fn has_columns(path: &Path, separator: u8, names: &[&str]) -> bool {
    let head = head(path);
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let columns: Vec<_> = line.split(|byte| *byte == separator || *byte == b'\r').collect();
    names.iter().all(|name| columns.contains(&name.as_bytes()))
}

/// Files of a folder whose name, without packing, is accepted; sorted.
pub(super) fn files(
    folder: &Path,
    accept: &dyn Fn(&str) -> bool,
) -> Result<Vec<PathBuf>, TraceError> {
    let entries = std::fs::read_dir(folder).map_err(source::cannot("read", folder))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(source::cannot("read", folder))?.path();
        if path.is_file() && accept(plain_name(&source::file_name(&path))) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file name without the suffix of its packing.
pub(super) fn plain_name(name: &str) -> &str {
    let packed = Compression::SUFFIXES.iter().filter(|(_, suffix)| !suffix.is_empty());
    packed.filter_map(|(_, suffix)| name.strip_suffix(suffix)).next().unwrap_or(name)
}

/// The one file of a list; two are an error, because nothing says which is meant.
pub(super) fn only(files: Vec<PathBuf>) -> Result<Option<PathBuf>, TraceError> {
    let mut files = files.into_iter();
    match (files.next(), files.next()) {
        (Some(first), Some(second)) => Err(TraceError::Ambiguous { first, second }),
        (first, _) => Ok(first),
    }
}
