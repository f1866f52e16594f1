//! `hostler completions`.

use anyhow::Result;
use clap::CommandFactory;

use crate::cli::{Cli, Completions};

/// Prints the completions.
pub fn run(args: &Completions) -> Result<()> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hostler", &mut out);
    std::io::Write::write_all(&mut std::io::stdout(), &out)?;
    Ok(())
}
