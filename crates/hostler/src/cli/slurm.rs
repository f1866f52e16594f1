//! The command line of what concerns a cluster that Slurm runs.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

/// What runs the jobs of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    /// Agents of Hostler.
    Agents,
    /// Slurm: users keep their commands, Hostler says who starts when and where.
    Slurm,
}

/// Look at a cluster that Slurm runs, prepare it for Hostler, or leave it to Slurm again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler slurm whatif
  hostler slurm setup --check --slurm slurm.toml
  hostler slurm release --slurm slurm.toml")]
pub struct SlurmArgs {
    #[command(subcommand)]
    pub command: SlurmCommand,
}

#[derive(Debug, Subcommand)]
pub enum SlurmCommand {
    Whatif(SlurmWhatif),
    Setup(SlurmSetup),
    Release(SlurmRelease),
}

/// Tell when jobs that wait would start, under which policy: a look without any change.
///
/// Reads `squeue` and `sinfo` once and plays on from there in the simulator; nothing is installed
/// and no privilege is needed. Jobs are taken to run as long as their time limits say. With
/// `--days`, also what these policies would have made of the past, which `sacct` lists.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler slurm whatif
  hostler slurm whatif --partition gpu --policies fifo,sjf,las
  hostler slurm whatif --days 7 --save week/")]
pub struct SlurmWhatif {
    #[command(flatten)]
    pub settings: SlurmSettingsArg,
    /// The partition; the one with the most jobs when left out.
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Policies, with settings after colons.
    #[arg(long, value_delimiter = ',', value_name = "KIND[:KEY=VALUE..]")]
    #[arg(default_value = "fifo,fifo-backfill,sjf")]
    pub policies: Vec<String>,
    /// Simulate the jobs of so many days as well, and compare with what was.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=366))]
    pub days: Option<u32>,
    /// Keep these jobs and the nodes as a trace, for `simulate`, `compare` and `analyze`.
    #[arg(long, value_name = "FOLDER", requires = "days")]
    pub save: Option<PathBuf>,
    /// Print JSON instead of the table.
    #[arg(long)]
    pub json: bool,
}

/// Say what a cluster lacks for Hostler to drive it, or print the lines for it.
///
/// Changes nothing by itself.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["check", "print"]).required(true)))]
#[command(after_help = "\
Examples:
  hostler slurm setup --check --slurm slurm.toml
  hostler slurm setup --print --slurm slurm.toml")]
pub struct SlurmSetup {
    #[command(flatten)]
    pub settings: SlurmSettingsArg,
    /// Look at the cluster; exit code 1 when something is missing.
    #[arg(long)]
    pub check: bool,
    /// Print lines for `slurm.conf` and `job_submit.lua`.
    #[arg(long)]
    pub print: bool,
}

/// Let Slurm go on by itself: it starts what waits, in its own order.
///
/// Puts the partition up in which jobs wait for Hostler, and takes back what was decided and has
/// not begun. What runs goes on. Stop the daemon first; it needs an operator of Slurm.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler slurm release --slurm slurm.toml
  hostler slurm release --slurm slurm.toml --undo")]
pub struct SlurmRelease {
    #[command(flatten)]
    pub settings: SlurmSettingsArg,
    /// Let jobs wait for Hostler again.
    #[arg(long)]
    pub undo: bool,
}

/// Where the settings are.
#[derive(Debug, Args)]
pub struct SlurmSettingsArg {
    /// How Slurm is driven (TOML; `docs/slurm.md` has the keys).
    #[arg(long, value_name = "FILE")]
    pub slurm: Option<PathBuf>,
}
