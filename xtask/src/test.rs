//! `cargo xtask test`: every check of the project, one after the other.
//!
//! Stops at the first failure and leaves with the exit code of what failed. Installs what a step
//! needs and lacks; builds into the one target folder that plain `cargo` uses.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::tools::{
    cargo, ensure_c_compiler, ensure_component, ensure_slurm, ensure_test_packages, succeed,
    succeed_counting,
};
use crate::{licences, tidy};

/// How much to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What must hold before a change is handed in.
    Full,
    /// What is worth running between two edits.
    Quick,
}

/// One check.
struct Step {
    name: &'static str,
    run: fn(&Path) -> Result<()>,
}

const FULL: &[Step] = &[
    Step { name: "tidy", run: tidy::run },
    Step { name: "format", run: format },
    Step { name: "lint", run: lint },
    Step { name: "test", run: tests },
    Step { name: "lab week", run: week },
    Step { name: "slurm", run: slurm },
    Step { name: "documentation", run: documentation },
    Step { name: "licences", run: licences::run },
];

const QUICK: &[Step] = &[
    Step { name: "tidy", run: tidy::run },
    Step { name: "check", run: check },
    Step { name: "test", run: tests },
];

/// Runs the steps of the extent.
pub fn run(root: &Path, extent: Extent) -> Result<()> {
    let steps = match extent {
        Extent::Full => FULL,
        Extent::Quick => QUICK,
    };
    ensure_c_compiler(root)?;
    run_steps(root, steps)
}

fn run_steps(root: &Path, steps: &[Step]) -> Result<()> {
    for (passed, step) in steps.iter().enumerate() {
        eprintln!("\n=== {} ({} of {})", step.name, passed + 1, steps.len());
        let started = Instant::now();
        let result = (step.run)(root);
        let seconds = started.elapsed().as_secs_f64();
        if let Err(error) = result {
            let skipped = steps.len() - passed - 1;
            eprintln!("=== {} failed after {seconds:.1} s", step.name);
            println!("steps: {passed} passed, 1 failed, {skipped} not run");
            return Err(error).with_context(|| format!("step `{}`", step.name));
        }
        eprintln!("=== {} passed in {seconds:.1} s", step.name);
    }
    println!("steps: {} passed, 0 failed", steps.len());
    Ok(())
}

/// Every file on its own: `cargo fmt` does not see modules that macros declare, and all policies
/// are such.
fn format(root: &Path) -> Result<()> {
    ensure_component(root, "fmt", "rustfmt")?;
    let files = tidy::files::read(root)?;
    let sources = files.iter().map(|file| &file.path).filter(|path| path.ends_with(".rs"));
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024", "--check"]).args(sources).current_dir(root);
    succeed(&mut rustfmt)
        .context("the code is not formatted; run `rustfmt --edition 2024` on the files named above")
}

fn lint(root: &Path) -> Result<()> {
    ensure_component(root, "clippy", "clippy")?;
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    succeed(&mut cargo(root, &arguments))
}

fn check(root: &Path) -> Result<()> {
    succeed(&mut cargo(root, &["check", "--workspace", "--all-targets"]))
}

fn tests(root: &Path) -> Result<()> {
    ensure_test_packages(root);
    let skipped = succeed_counting("skipped: ", &mut cargo(root, &["test", "--workspace"]))?;
    if skipped > 0 {
        eprintln!("{skipped} tests were skipped for want of data; see CONTRIBUTING.md");
    }
    // Benchmarks that nobody runs break unseen.
    succeed(&mut cargo(root, &["test", "--workspace", "--bench", "live", "--", "short"]))
}

/// The first week of a lab, as `docs/tour.md` has it. By itself: faults are waited for by the
/// clock, which would be late beside all other tests.
fn week(root: &Path) -> Result<()> {
    succeed(&mut cargo(root, &["test", "--workspace", "--test", "week"]))
}

/// The driver of Slurm against a real one. By itself: a cluster is slow beside all other tests.
fn slurm(root: &Path) -> Result<()> {
    ensure_slurm(root);
    let test = ["test", "--workspace", "--test", "slurm", "--", "--test-threads=1"];
    let skipped = succeed_counting("skipped: ", &mut cargo(root, &test))?;
    if skipped > 0 {
        eprintln!("{skipped} tests were skipped: there is no Slurm to be had here");
    }
    succeed(&mut cargo(root, &["test", "--workspace", "--bench", "slurm", "--", "short"]))
}

fn documentation(root: &Path) -> Result<()> {
    let mut command = cargo(root, &["doc", "--workspace", "--no-deps"]);
    succeed(command.env("RUSTDOCFLAGS", "-D warnings"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn the_first_failure_ends_the_run() {
        let steps = [
            Step { name: "good", run: |_| Ok(()) },
            Step { name: "bad", run: |_| bail!("no") },
            Step { name: "late", run: |_| bail!("this step must not run") },
        ];
        let error = run_steps(Path::new(""), &steps).unwrap_err();
        assert_eq!(format!("{error:#}"), "step `bad`: no");
        run_steps(Path::new(""), &steps[..1]).unwrap();
    }
}
