//! The traces of the original.

use std::io::Read;
use std::path::Path;

use hostler_sim::trace::source;

use super::BloxError;

/// Bytes of a file: far more than a trace that can be looked at.
const BYTES_MAX: u64 = 1 << 30;

/// A job of a trace; times in seconds.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct BloxJob {
    /// When it arrives.
    #[serde(rename = "arrival_s")]
    pub arrival: u64,
    /// How long it runs.
    #[serde(rename = "duration_s")]
    pub duration: u64,
    /// GPUs that it asks for.
    pub gpus: u32,
}

/// Reads a trace, packed or not.
pub fn read(path: &Path) -> Result<Vec<BloxJob>, BloxError> {
    let mut table = csv::Reader::from_reader(source::unpacked(path)?.take(BYTES_MAX));
    let fault = |row: usize, fault: String| BloxError::Row {
        file: path.display().to_string(),
        line: row as u64 + 2,
        fault,
    };
    let mut jobs = Vec::new();
    for row in table.deserialize::<BloxJob>() {
        let job = row.map_err(|error| fault(jobs.len(), error.to_string()))?;
        if job.gpus == 0 {
            return Err(fault(jobs.len(), "a job asks for at least one GPU".to_owned()));
        }
        jobs.push(job);
    }
    Ok(jobs)
}
