//! `cargo xtask bench-live` and `bench-slurm`: build the program as it is packaged and measure it.

use std::path::Path;

use anyhow::{Result, bail};

use crate::tools::{cargo, ensure_c_compiler, ensure_slurm, succeed};

/// Measures the live scheduler: the parts that are named, or all.
pub fn live(root: &Path, parts: &[&str]) -> Result<()> {
    run(root, "live", &["jobs", "submits", "decisions"], parts)
}

/// The same on top of a real Slurm.
pub fn slurm(root: &Path, parts: &[&str]) -> Result<()> {
    ensure_slurm(root);
    run(root, "slurm", &["starts", "latency", "decisions", "policies"], parts)
}

fn run(root: &Path, bench: &str, known: &[&str], parts: &[&str]) -> Result<()> {
    if let Some(unknown) = parts.iter().find(|part| !known.contains(part)) {
        bail!("unknown measurement `{unknown}`; known: {}", known.join(", "));
    }
    ensure_c_compiler(root)?;
    let mut words = vec!["bench", "-p", "hostler", "--bench", bench, "--"];
    words.extend(parts);
    succeed(&mut cargo(root, &words))
}
