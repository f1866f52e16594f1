//! The command line of what sees to a store: `hostler store`, `backup` and `restore`.

use std::path::PathBuf;

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

/// Take a backup of everything that the daemon keeps, while it runs or not.
///
/// The file holds the store as it is at one moment and the certificate of the daemon with its key:
/// keep it as secret as the store. A store on PostgreSQL is saved by `pg_dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler backup /backup/hostler-monday.db
  hostler backup /backup/hostler-monday.db --data /var/lib/hostler")]
pub struct Backup {
    /// Where to; refused when it is there.
    pub file: PathBuf,
    /// Data folder to read, with or without a daemon; the daemon is asked when left out.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Take the place of a file that is there, once the backup is whole.
    #[arg(long)]
    pub force: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Make a backup the store of a daemon that does not run.
///
/// Jobs that were submitted after the backup are not in it; their numbers are not given out again.
/// A folder that a daemon uses is refused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler restore /backup/hostler-monday.db --data /var/lib/hostler
  hostler restore /backup/hostler-monday.db --data /var/lib/hostler --force")]
pub struct Restore {
    /// The backup.
    pub file: PathBuf,
    /// Data folder of the daemon.
    #[arg(long, value_name = "DIR", default_value = "hostler-data")]
    pub data: PathBuf,
    /// Move a store that is there aside, into the folder `before-restore-N` beside it.
    #[arg(long)]
    pub force: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
