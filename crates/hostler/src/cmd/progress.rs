//! `hostler progress`.

use std::path::Path;

use anyhow::{Context as _, Result};
use hostler_live::agent::progress::report;
use hostler_live::agent::shim::{self, JobWord};

use crate::cli::Progress;

/// Tells the shim of the job that this runs in.
pub fn run(args: &Progress) -> Result<()> {
    let socket = std::env::var_os("HOSTLER_SOCKET")
        .context("HOSTLER_SOCKET is not set; `hostler progress` is for use within a job")?;
    let Progress { step, total, saved, gpu_use } = *args;
    let step = step.map(|step| JobWord::Step(shim::Progress { step, total, saved }));
    for word in gpu_use.map(JobWord::GpuUse).into_iter().chain(step) {
        report(Path::new(&socket), word)?;
    }
    Ok(())
}
