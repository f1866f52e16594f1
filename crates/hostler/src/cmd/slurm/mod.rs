//! `hostler slurm`: what an operator does with a cluster that Slurm runs.

mod past;
mod release;
mod setup;
mod whatif;

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use hostler_core::registry::Registry;
use hostler_live::driver::SlurmSettings;

use crate::cli::SlurmCommand;

/// Does what was asked for.
pub fn run(command: &SlurmCommand, registry: &Registry) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start a thread")?;
    match command {
        SlurmCommand::Whatif(args) => runtime.block_on(whatif::run(args, registry)),
        SlurmCommand::Setup(args) => runtime.block_on(setup::run(args)),
        SlurmCommand::Release(args) => runtime.block_on(release::run(args)),
    }
}

/// How Slurm is driven, as a file says, or as it is without one.
pub fn settings(file: Option<&Path>) -> Result<SlurmSettings> {
    let Some(file) = file else { return Ok(SlurmSettings::default()) };
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read `{}`", file.display()))?;
    SlurmSettings::read(&text).map_err(|fault| anyhow!("{}: {fault}", file.display()))
}
