//! `hostler progress`.

use std::path::Path;

use anyhow::{Context as _, Result};
use hostler_live::agent::progress::report;
use hostler_live::agent::shim;

use crate::cli::Progress;

/// Tells the shim of the job that this runs in.
pub fn run(args: &Progress) -> Result<()> {
    let socket = std::env::var_os("HOSTLER_SOCKET")
        .context("HOSTLER_SOCKET is not set; `hostler progress` is for use within a job")?;
    let Progress { step, total, saved } = *args;
    Ok(report(Path::new(&socket), shim::Progress { step, total, saved })?)
}
