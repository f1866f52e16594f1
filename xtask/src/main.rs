//! Automation of the workspace: `cargo xtask <command>`.
//!
//! Holds what a person or a build machine runs around the code, never anything the product needs.

mod bench;
mod fuzz_api;
mod gpu_demo;
mod licences;
mod test;
mod tidy;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask <command>

commands:
  test          install what is missing and run every check
  test --quick  tidy, check and tests only
  tidy          check the house rules over all files
  bench-live    measure the live scheduler; add `jobs`, `submits`, `decisions` for parts
  bench-slurm   compare with a real Slurm, and measure its driver; `starts`, `latency`,
                `decisions`, `policies` for parts
  fuzz-api      check a daemon against its OpenAPI document; [--requests N] [--seed N]
  gpu-demo      suspend jobs on a real GPU: time slices and priority, and nothing is lost;
                [--program FILE] [--secs N] [--slices N,..] [--gib N] [--mem SIZE] [--pretend],
                and `slices`, `priority` for parts
  licences      check licences, duplicate versions and sources of dependencies
  help          show this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root();
    let result = match words.as_slice() {
        ["test"] => test::run(&root, test::Extent::Full),
        ["test", "--quick"] => test::run(&root, test::Extent::Quick),
        ["tidy"] => tidy::run(&root),
        ["bench-live", parts @ ..] => bench::live(&root, parts),
        ["bench-slurm", parts @ ..] => bench::slurm(&root, parts),
        ["fuzz-api", words @ ..] => fuzz_api::run(&root, words),
        ["gpu-demo", words @ ..] => gpu_demo::run(&root, words),
        ["licences"] => licences::run(&root),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => return usage(&words),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            tools::exit_code(&error)
        }
    }
}

fn usage(words: &[&str]) -> ExitCode {
    match words {
        [] => eprint!("{HELP}"),
        _ => eprint!("error: unknown command `{}`; see below\n\n{HELP}", words.join(" ")),
    }
    ExitCode::from(2)
}

/// The folder of the workspace, above this package.
///
/// Asked for at run time: checkouts that share a target folder overwrite each other's binary.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map(Path::to_path_buf).expect("the package lies in the workspace")
}
