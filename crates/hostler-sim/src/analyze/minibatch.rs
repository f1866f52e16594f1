//! Mini-batch times that were published beside the PAI trace (`minibatch_*_norm.csv`).

use std::path::Path;

use super::input::MiniBatches;
use crate::trace::TraceError;
use crate::trace::source::{self, Meter};

/// Most files and times that are read; the published ones are four of a few thousand rows.
const FILES_MAX: usize = 64;
const TIMES_MAX: usize = 1_000_000;

/// Reads every file of mini-batch times in a folder; lines without a time are passed over.
pub(super) fn read(folder: &Path) -> Result<Vec<MiniBatches>, TraceError> {
    let entries = std::fs::read_dir(folder).map_err(source::cannot("read", folder))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let is_job = |name: &str| name.starts_with("minibatch_job") && name.contains(".csv");
    paths.retain(|path| path.is_file() && is_job(&source::file_name(path)));
    paths.truncate(FILES_MAX);
    paths.iter().map(|path| read_file(path)).collect()
}

fn read_file(path: &Path) -> Result<MiniBatches, TraceError> {
    let mut silent = |_, _| {};
    let mut meter = Meter::new(0, &mut silent);
    let input = source::open(path, &mut meter)?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input);
    let header = reader.byte_headers().cloned().unwrap_or_default();
    let column = header.iter().position(|name| name == b"batch_time_norm").unwrap_or(usize::MAX);
    let times = reader.byte_records().take(TIMES_MAX).map_while(Result::ok).filter_map(|record| {
        let text = std::str::from_utf8(record.get(column)?).ok()?;
        text.parse().ok().filter(|time: &f64| time.is_finite() && *time > 0.0)
    });
    let mut batches = MiniBatches { name: source::file_name(path), times: times.collect() };
    let end = batches.name.find(".csv").unwrap_or(batches.name.len());
    batches.name.truncate(end);
    Ok(batches)
}
