//! One file per command.

mod analyze;
mod compare;
mod completions;
mod parity;
mod policies;
mod predict;
mod replay;
mod simulate;
mod trace;

use anyhow::Result;
pub use simulate::RunJson;

use crate::cli::{Cli, Command};

/// Runs the command.
pub fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Command::Compare(args) => compare::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Analyze(args) => analyze::run(&args),
        Command::Policies(args) => policies::run(&args),
        Command::Trace(args) => trace::run(&args.command),
        Command::Predict(args) => predict::run(&args.command),
        Command::Replay(args) => replay::run(&args),
        Command::Parity(args) => parity::run(&args.command),
        Command::Completions(args) => completions::run(&args),
    }
}
