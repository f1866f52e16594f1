//! The command line of users of the daemon's machine.

use clap::{Args, Subcommand};

use super::live::RoleName;

/// Say which users of the daemon's machine come in by its socket, without a token.
///
/// They are who the kernel says. Jobs that they submit belong to them, and nodes with
/// `--job-user person` run these as them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler user add ada --tenant vision
  hostler user list
  hostler user remove ada")]
pub struct UserArgs {
    #[command(subcommand)]
    pub command: UserCommand,
}

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    Add(UserAdd),
    /// List those who were added.
    #[command(after_help = "Examples:\n  hostler user list")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let a user in no more.
    #[command(after_help = "Examples:\n  hostler user remove ada")]
    Remove {
        /// Name of the account.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Let a user in, or say otherwise what one may do.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler user add ada --tenant vision --new-tenant
  hostler user add root --role admin")]
pub struct UserAdd {
    /// Name of the account on the daemon's machine.
    pub name: String,
    #[command(flatten)]
    pub standing: Standing,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What somebody may do, and whose jobs that is about.
#[derive(Debug, Args)]
pub struct Standing {
    /// What it may do.
    #[arg(long, value_enum, default_value = "user")]
    pub role: RoleName,
    /// Whose jobs it sees.
    #[arg(long, default_value = "default")]
    pub tenant: String,
    /// Add the tenant if it is not there.
    #[arg(long)]
    pub new_tenant: bool,
}
