//! The command line of `hostler store`.

use clap::{Args, Subcommand};

/// See to the store of a daemon that does not run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler store copy /var/lib/hostler postgres://hostler@db/hostler")]
pub struct StoreArgs {
    #[command(subcommand)]
    pub command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    Copy(StoreCopy),
}

/// Copy a whole store into an empty place, to move from SQLite to PostgreSQL or back.
///
/// Both sides are locked meanwhile. The target gets everything or nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler store copy /var/lib/hostler postgres://hostler@db/hostler
  hostler store copy postgres://hostler@db/hostler new-folder")]
pub struct StoreCopy {
    /// Data folder, or address of a PostgreSQL database.
    pub from: String,
    /// Data folder, or address of an empty PostgreSQL database.
    pub to: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
