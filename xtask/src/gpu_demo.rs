//! `cargo xtask gpu-demo`: jobs on one GPU that do not help to be suspended, by a real daemon and
//! agent. They take turns by time slices, and give way to one that is more important; each must end
//! with the very loss of a run that nobody disturbed, by the process that began it.
//!
//! Needs a GPU, so that it is no part of `cargo xtask test`; with `--pretend` all but the GPU is
//! real. Says how it goes on standard error, and what came of it on standard output.

mod cluster;
mod job;
mod log;
mod needs;
mod parts;
mod report;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::tools::{cargo, ensure_c_compiler, succeed};
use needs::Machine;
use parts::Demo;

/// What can be shown; the undisturbed runs that it is compared with always are.
const PARTS: &[&str] = &["slices", "priority"];

/// What was asked for.
#[derive(Debug, PartialEq)]
struct Options {
    /// The program to show; built when there is none.
    program: Option<PathBuf>,
    /// Seconds that each job works, when alone.
    secs: u32,
    /// Lengths of slices to try, in seconds.
    slices: Vec<u32>,
    /// GPU memory of large jobs.
    gib: u32,
    /// Main memory that the agent offers, for those that are suspended; all when not given.
    mem: Option<String>,
    /// Whether the GPU is made up.
    pretend: bool,
    parts: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            program: None,
            secs: 40,
            slices: vec![10, 30],
            gib: 20,
            mem: None,
            pretend: false,
            parts: Vec::new(),
        }
    }
}

/// Shows the parts that are named, or all.
pub fn run(root: &Path, words: &[&str]) -> Result<()> {
    let options = options(words)?;
    let machine = Machine::look(options.pretend)?;
    let program = match &options.program {
        Some(program) => std::path::absolute(program)?,
        None => build(root)?,
    };
    let mut demo = Demo::start(&program, machine, &options)?;
    let wants = |part: &str| options.parts.is_empty() || options.parts.iter().any(|it| it == part);
    let mut report = demo.alone(&options)?;
    if wants("slices") {
        for secs in &options.slices {
            report.slices.push(demo.sliced(&report, *secs)?);
        }
    }
    if wants("priority") {
        for gib in [parts::SMALL_GIB, options.gib] {
            report.priorities.push(demo.priority(&report, gib)?);
        }
    }
    demo.end()?;
    print!("{}", report.text());
    Ok(())
}

fn options(words: &[&str]) -> Result<Options> {
    let mut options = Options::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().with_context(|| format!("`{word}` needs a value"));
        match *word {
            "--program" => options.program = Some(PathBuf::from(value()?)),
            "--secs" => options.secs = number(value()?)?,
            "--gib" => options.gib = number(value()?)?,
            "--mem" => options.mem = Some((*value()?).to_owned()),
            "--slices" => {
                options.slices = value()?.split(',').map(number).collect::<Result<_>>()?
            }
            "--pretend" => options.pretend = true,
            part if PARTS.contains(&part) => options.parts.push(part.to_owned()),
            _ => bail!(
                "unknown argument `{word}`; known: {}, --program FILE, --secs N, --slices N,.., \
                 --gib N, --mem SIZE, --pretend",
                PARTS.join(", ")
            ),
        }
    }
    Ok(options)
}

/// A number of at least one.
fn number(word: &str) -> Result<u32> {
    match word.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => bail!("invalid number `{word}`"),
    }
}

/// Builds the program as it is packaged.
fn build(root: &Path) -> Result<PathBuf> {
    ensure_c_compiler(root)?;
    succeed(&mut cargo(root, &["build", "--profile", "dist", "-p", "hostler"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    Ok(target.unwrap_or_else(|| root.join("target")).join("dist/hostler"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_parts_are_known() {
        let words = ["--program", "a/b", "--slices", "5,15", "--secs", "7", "slices", "--pretend"];
        let wanted = Options {
            program: Some("a/b".into()),
            secs: 7,
            slices: vec![5, 15],
            pretend: true,
            parts: vec!["slices".to_owned()],
            ..Options::default()
        };
        assert_eq!(options(&words).unwrap(), wanted);
        for wrong in [&["slice"][..], &["--secs"], &["--secs", "0"], &["--slices", "5,"]] {
            assert!(options(wrong).is_err(), "{wrong:?}");
        }
    }
}
