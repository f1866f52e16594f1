//! Runs other programs, and installs those that are missing.
//!
//! Installs only what a check needs: toolchain components through `rustup`, packages through
//! `apt-get` (as root, or by `sudo` when it asks for no password), cargo plug-ins from source.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

/// A program that ran and did not succeed.
#[derive(Debug)]
pub struct Failed {
    command: String,
    code: Option<i32>,
}

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(out, "`{}` failed: exit code {code}", self.command),
            None => write!(out, "`{}` was killed by a signal", self.command),
        }
    }
}

impl std::error::Error for Failed {}

/// The exit code to leave with: that of the program that failed, else 1.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    let failed = error.downcast_ref::<Failed>();
    let code = failed.and_then(|failed| failed.code).and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}

/// A `cargo` command in the workspace.
pub fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    command(root, program, arguments)
}

/// A command in the workspace, without the variables that belong to this package.
pub fn command(root: &Path, program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root).stdin(Stdio::null());
    // Build scripts watch these: left in place, each step would rebuild what the last one built.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command to its end; anything but success is an error.
pub fn succeed(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("could not run `{shown}`"))?;
    if !status.success() {
        bail!(Failed { command: shown, code: status.code() });
    }
    Ok(())
}

/// Like [`succeed`], and counts the lines on standard error that begin so.
pub fn succeed_counting(begin: &str, command: &mut Command) -> Result<usize> {
    let shown = shown(command);
    let could_not = || format!("could not run `{shown}`");
    let mut child = command.stderr(Stdio::piped()).spawn().with_context(could_not)?;
    let told = child.stderr.take().expect("it was asked for");
    let mut count = 0;
    for line in BufReader::new(told).lines() {
        let line = line.with_context(could_not)?;
        count += usize::from(line.starts_with(begin));
        eprintln!("{line}");
    }
    let status = child.wait().with_context(could_not)?;
    if !status.success() {
        bail!(Failed { command: shown, code: status.code() });
    }
    Ok(count)
}

/// The command as a person would type it.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Makes sure a component of the toolchain is there, such as `clippy` for `cargo clippy`.
pub fn ensure_component(root: &Path, subcommand: &str, component: &str) -> Result<()> {
    let probe = cargo(root, &[subcommand, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if probe.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    eprintln!("installing the toolchain component `{component}`");
    let mut rustup = command(root, "rustup", &["component", "add", component]);
    succeed(&mut rustup).with_context(|| {
        format!("`cargo {subcommand}` is missing; install the `{component}` of this toolchain")
    })
}

/// Makes sure a C compiler is there, for the C libraries that some dependencies compile.
pub fn ensure_c_compiler(root: &Path) -> Result<()> {
    if std::env::var_os("CC").is_some() || on_path("cc").is_some() {
        return Ok(());
    }
    install_packages(root, &["gcc", "libc6-dev"])
        .context("`cc` is missing; run `apt-get install gcc libc6-dev` as root")
}

/// Installs what some tests need; without it they are skipped by name.
pub fn ensure_test_packages(root: &Path) {
    let postgresql = Path::new("/usr/lib/postgresql").is_dir();
    let runs_images = ["podman", "apptainer", "singularity"].iter().any(|it| on_path(it).is_some());
    let wanted = [
        ("iproute2", on_path("ip").is_some()),
        ("postgresql", postgresql),
        ("podman", runs_images),
        ("busybox-static", on_path("busybox").is_some()),
    ];
    let missing: Vec<&str> =
        wanted.iter().filter(|(_, found)| !found).map(|(package, _)| *package).collect();
    if missing.is_empty() {
        return;
    }
    if let Err(error) = install_packages(root, &missing) {
        eprintln!(
            "cannot install {}: {error:#}; tests that need them are skipped",
            missing.join(", ")
        );
    }
}

/// Installs Slurm and what keeps its accounts; without it tests that need it are skipped by name.
pub fn ensure_slurm(root: &Path) {
    let found = |program: &str| {
        on_path(program).is_some() || Path::new("/usr/sbin").join(program).is_file()
    };
    if ["slurmctld", "slurmd", "slurmdbd", "sbatch", "munged", "mariadbd"].into_iter().all(found) {
        return;
    }
    let packages = [
        "slurmctld",
        "slurmd",
        "slurmdbd",
        "slurm-client",
        "slurm-wlm-basic-plugins",
        "slurm-wlm-mysql-plugin",
        "munge",
        "mariadb-server",
    ];
    if let Err(error) = install_packages(root, &packages) {
        eprintln!("cannot install Slurm: {error:#}; tests that need it are skipped");
    }
}

/// Installs Debian packages, as root or by `sudo`.
fn install_packages(root: &Path, packages: &[&str]) -> Result<()> {
    eprintln!("installing the packages {}", packages.join(", "));
    let script = r#"
        export DEBIAN_FRONTEND=noninteractive
        elevate=; [ "$(id -u)" = 0 ] || elevate='sudo -n'
        $elevate apt-get update -qq && $elevate apt-get install -y -qq "$@"
    "#;
    let arguments = [&["-c", script, "sh"], packages].concat();
    succeed(&mut command(root, "sh", &arguments))
}

/// The file that a program name stands for, if it is installed.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|file| file.is_file())
}
