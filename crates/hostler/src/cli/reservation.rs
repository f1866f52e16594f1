//! The command line of `hostler reservation`.

use clap::{Args, Subcommand};

use super::values;

/// Keep nodes for users, tenants or upkeep, for a time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler reservation list")]
pub struct ReservationArgs {
    #[command(subcommand)]
    pub command: ReservationCommand,
}

#[derive(Debug, Subcommand)]
pub enum ReservationCommand {
    /// Keep nodes for a time; for admins.
    ///
    /// Before it begins only jobs start on its nodes whose `--max-time` ends in time; those without
    /// one are taken to last two days. While it lasts, only jobs that were submitted with
    /// `--reservation NAME` by those whom it is for; where it is for nobody, none: people can work
    /// on the machines.
    #[command(after_help = "\
Examples:
  hostler reservation add course --gpus 8 --from 2026-11-20T09:00 --for 3h --tenant students
  hostler reservation add upkeep --nodes g1,g2 --from +2d --for 1d --stop-jobs --reason drivers
  hostler submit --reservation course --gpus 1 -- python lesson.py")]
    Add(Box<ReservationAdd>),
    /// List reservations that are not over.
    #[command(after_help = "\
Examples:
  hostler reservation list")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// End one before its time; for admins.
    #[command(after_help = "\
Examples:
  hostler reservation end course")]
    End {
        /// Its name.
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct ReservationAdd {
    /// Its name, for `hostler submit --reservation`.
    #[arg(value_parser = values::name)]
    pub name: String,
    /// The nodes, by their names.
    #[arg(long, value_name = "NODE,..", value_delimiter = ',')]
    #[arg(required_unless_present = "gpus", conflicts_with = "gpus")]
    pub nodes: Vec<String>,
    /// As many whole nodes as have so many GPUs, those that are believed to be free first.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub gpus: Option<u32>,
    /// When it begins: a day or a time in UTC, or `+2h` from now; now when left out.
    #[arg(long, value_name = "TIME", value_parser = values::moment_ahead)]
    pub from: Option<f64>,
    /// How long it lasts.
    #[arg(long = "for", value_name = "TIME", value_parser = values::seconds)]
    pub lasts: u64,
    /// Tenant whose jobs may run in it; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub tenant: Vec<String>,
    /// User whose jobs may run in it; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub user: Vec<String>,
    /// Stop other jobs that still run there when it begins; they wait again. Without it they end
    /// by themselves.
    #[arg(long)]
    pub stop_jobs: bool,
    /// Why, for those who look at nodes.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
