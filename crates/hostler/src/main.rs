//! The `hostler` program: reads the command line, calls one command, tells what went wrong.

#![warn(
    clippy::print_stdout,
    reason = "`println!` panics when the reader of a pipe has gone; see `say::print`"
)]

mod chosen;
mod cli;
mod cmd;
mod columns;
mod example;
mod input;
mod listing;
mod live;
mod memory;
mod pool;
mod progress;
mod say;
mod settings;
mod slurm;
mod submission;

use std::process::ExitCode;

use clap::Parser;
use hostler_core::policy::PolicyError;
use hostler_sim::trace::TraceError;

/// Exit code for a command line that makes no sense.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    // Two of these start with every job, so the command line of all others is not built first.
    let done = match (slurm::asked(), cmd::shim::asked()) {
        (Some((command, words)), _) => slurm::run(command, &words),
        (None, Some(words)) => cmd::shim::run(&words),
        (None, None) => cmd::execute(cli::Cli::parse(), hostler_policies::builtin()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let exit = error.downcast_ref::<ExitWith>();
            if exit.is_none_or(|exit| !exit.words.is_empty()) {
                say::say(format_args!("error: {}", words(&error)));
            }
            let code = exit.map(|exit| exit.code);
            ExitCode::from(code.unwrap_or(if is_usage(&error) { USAGE } else { 1 }))
        }
    }
}

/// An exit code of its own: that of a job that was waited for, or of results that are in doubt.
#[derive(Debug)]
pub struct ExitWith {
    /// The code.
    pub code: u8,
    /// What went wrong; empty when the code says it all.
    pub words: String,
}

impl std::fmt::Display for ExitWith {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for ExitWith {}

/// An error and what it comes from; a cause that the words before it end with is not told twice.
fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.ends_with(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

/// A reader that has seen enough (`hostler policies | head`) is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Whether the command line is at fault, and not what it names.
fn is_usage(error: &anyhow::Error) -> bool {
    let option = error.downcast_ref::<TraceError>().is_some_and(|error| {
        matches!(error, TraceError::Option { .. } | TraceError::UnknownFormat { .. })
    });
    option || error.is::<PolicyError>()
}
