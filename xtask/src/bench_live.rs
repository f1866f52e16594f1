//! `cargo xtask bench-live`: builds daemon and agent as they are packaged and measures them.

use std::path::Path;

use anyhow::{Result, bail};

use crate::tools::{cargo, ensure_c_compiler, succeed};

/// What can be measured.
const PARTS: &[&str] = &["jobs", "submits", "decisions"];

/// Runs the measurements that are named, or all.
pub fn run(root: &Path, parts: &[&str]) -> Result<()> {
    if let Some(unknown) = parts.iter().find(|part| !PARTS.contains(part)) {
        bail!("unknown measurement `{unknown}`; known: {}", PARTS.join(", "));
    }
    ensure_c_compiler(root)?;
    let mut words = vec!["bench", "-p", "hostler", "--bench", "live", "--"];
    words.extend(parts);
    succeed(&mut cargo(root, &words))
}
