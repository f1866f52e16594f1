//! Checks licences, duplicate versions and sources of everything the workspace depends on.
//!
//! The rules stand in `deny.toml`; `cargo-deny` judges. Where it is missing it is installed from
//! source into the target folder (three minutes on two cores, once). Advisories are left out: they
//! change without a change here, so they belong to no test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tools::{cargo, command, on_path, succeed};

/// The version that is installed when none is found.
const VERSION: &str = "0.20.2";

/// Runs the check, installing `cargo-deny` first where needed.
pub fn run(root: &Path) -> Result<()> {
    let program = match on_path("cargo-deny") {
        Some(program) => program,
        None => own_copy(root)?,
    };
    succeed(&mut command(root, program, &["check", "licenses", "bans", "sources"])).context(
        "see above; the rules, and the exceptions with their reasons, stand in `deny.toml`",
    )
}

/// The copy in the target folder, installed on first use.
fn own_copy(root: &Path) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let tools = root.join(target).join(format!("tools/cargo-deny-{VERSION}"));
    let program = tools.join("bin/cargo-deny");
    if !program.is_file() {
        eprintln!("installing cargo-deny {VERSION} from source; this takes minutes, once");
        let mut install = cargo(root, &["install", "cargo-deny", "--locked", "--quiet"]);
        install.args(["--version", VERSION, "--root"]).arg(&tools);
        // Its build outputs are of no use afterwards: without the variable they are removed.
        install.env_remove("CARGO_TARGET_DIR");
        succeed(&mut install).context("`cargo-deny` is missing; install it and run again")?;
    }
    Ok(program)
}
