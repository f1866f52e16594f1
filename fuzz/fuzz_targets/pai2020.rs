//! Any bytes as a table of the parity world: rows that can be run, or an error with its place.
#![no_main]

use hostler_parity::pai2020::read_from;

/// Rows of one case; the rest of the bytes is left alone.
const ROWS_MAX: usize = 1000;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match read_from(bytes, "jobs.csv", ROWS_MAX) {
    Ok(rows) => {
        assert!(rows.len() <= ROWS_MAX);
        assert!(rows.iter().all(|row| row.instances > 0 && row.duration > 0));
    }
    Err(error) => assert!(error.to_string().contains("jobs.csv")),
});
