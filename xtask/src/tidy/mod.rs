//! `cargo xtask tidy`: the house rules that a machine can check.
//!
//! Reads every file of the project and reports each broken rule as `path:line: what; what to do`.
//! Formatting and anything that needs types is left to `rustfmt` and `clippy`.

mod architecture;
pub mod files;
mod layout;
mod names;
mod rust;
mod text;

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

use files::File;

/// A broken rule, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    path: String,
    line: usize,
    what: String,
    advice: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}; {}", self.path, self.line, self.what, self.advice)
    }
}

/// Collects the violations of one file.
pub struct Report<'a> {
    path: &'a str,
    violations: &'a mut Vec<Violation>,
}

impl Report<'_> {
    /// Adds a violation at a line, counted from 1.
    fn add(&mut self, line: usize, what: impl Into<String>, advice: impl Into<String>) {
        let path = self.path.to_string();
        self.violations.push(Violation { path, line, what: what.into(), advice: advice.into() });
    }
}

/// Checks the workspace and prints what is wrong.
pub fn run(root: &Path) -> Result<()> {
    let files = files::read(root)?;
    let violations = check(&files);
    for violation in &violations {
        eprintln!("{violation}");
    }
    if !violations.is_empty() {
        bail!("broken rules: {}; see above", violations.len());
    }
    eprintln!("tidy: {} files", files.len());
    Ok(())
}

/// All violations, by path and line.
fn check(files: &[File]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files {
        let path = file.path.as_str();
        let mut report = Report { path, violations: &mut violations };
        text::check_size(file.bytes, &mut report);
        let Some(text) = &file.text else {
            continue;
        };
        text::check(path, text, &mut report);
        if path.ends_with(".rs") {
            rust::check(text, &mut report);
        }
    }
    layout::check(files, &mut violations);
    names::check(files, &mut violations);
    violations.sort();
    violations.dedup();
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// Checks one file given as text; lines of the expectation are violations.
    pub(super) fn check_text(path: &str, text: &str, expected: Expect) {
        check_files(&[(path, text)], expected);
    }

    /// Checks several files given as text.
    pub(super) fn check_files(files: &[(&str, &str)], expected: Expect) {
        let file = |(path, text): &(&str, &str)| File {
            path: path.to_string(),
            bytes: text.len() as u64,
            text: Some(text.to_string()),
        };
        let files: Vec<File> = files.iter().map(file).collect();
        let lines = check(&files).into_iter().map(|violation| format!("{violation}\n"));
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn the_workspace_is_tidy() {
        let violations = check(&files::read(&crate::root()).unwrap());
        let lines: Vec<String> = violations.iter().map(Violation::to_string).collect();
        assert!(lines.is_empty(), "run `cargo xtask tidy`:\n{}", lines.join("\n"));
    }

    #[test]
    fn the_files_of_the_workspace_are_found() {
        let files = files::read(&crate::root()).unwrap();
        let found = |path: &str| files.iter().any(|file| file.path == path && file.text.is_some());
        assert!(found("Cargo.toml"));
        assert!(found("xtask/src/main.rs"));
    }

    #[test]
    fn a_clean_file_passes() {
        check_text("crates/hostler-core/src/job.rs", "//! Jobs.\n\nfn a() {}\n", expect![""]);
    }

    #[test]
    fn violations_come_by_path_and_line() {
        // With `?` for a slash, so that this file passes its own check.
        let long = "/?! A.\n\n#[ignore]\nfn a() {}\n/? FIXME\n".replace('?', "/");
        check_files(
            &[("b.rs", &long), ("a.rs", "fn a() {}\n")],
            expect![[r#"
                a.rs:1: no `//!` on top; say what the file is for and what it is not for
                b.rs:3: `#[ignore` in code; make the test run, or remove it
                b.rs:5: `FIXME` without a name; write `TODO(name): what`, or do it
            "#]],
        );
    }
}
