//! `hostler log`.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use hostler_live::api::LogPage;
use hostler_live::client::{Client, query};

use super::simulate::create;
use crate::cli::LogCommand;
use crate::live::client;

/// Takes the log of the daemon elsewhere.
pub fn run(command: &LogCommand) -> Result<()> {
    match command {
        LogCommand::Export { out, force } => export(out.as_deref(), *force),
    }
}

/// Writes the log as far as it goes when its end is reached.
fn export(path: Option<&Path>, force: bool) -> Result<()> {
    let mut client = client()?;
    // Who may not read it leaves no empty file.
    let first = page(&mut client, 0)?;
    match path {
        Some(path) => {
            let out = BufWriter::new(create(path, force)?);
            let written = write(&mut client, first, out);
            written.with_context(|| format!("cannot write `{}`", path.display()))
        }
        None => write(&mut client, first, BufWriter::new(std::io::stdout().lock())),
    }
}

fn write(client: &mut Client, mut part: LogPage, mut out: impl Write) -> Result<()> {
    loop {
        for record in &part.records {
            writeln!(out, "{record}")?;
        }
        match part.next {
            Some(next) => part = page(client, next)?,
            None => return Ok(out.flush()?),
        }
    }
}

fn page(client: &mut Client, after: u64) -> Result<LogPage> {
    Ok(client.get(&query("/log", &[("after", Some(after.to_string()))]))?)
}
