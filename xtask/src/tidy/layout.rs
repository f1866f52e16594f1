//! Rules between files: which crate may use which, and what the documents must name.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::files::File;
use super::{Report, Violation, architecture};

/// What each of our crates may depend on among ours. A crate that is not listed may use all.
const MAY_USE: &[(&str, &[&str])] = &[
    ("hostler-core", &[]),
    ("hostler-cuda", &[]),
    ("hostler-predict", &["hostler-core"]),
    ("hostler-policies", &["hostler-core", "hostler-predict"]),
    ("hostler-sim", &["hostler-core", "hostler-predict"]),
    ("hostler-parity", &["hostler-core", "hostler-predict", "hostler-policies", "hostler-sim"]),
    ("hostler-live", &["hostler-core", "hostler-cuda", "hostler-predict"]),
];

/// What each may use in its tests besides.
const MAY_TEST_WITH: &[(&str, &[&str])] =
    &[("hostler-policies", &["hostler-sim"]), ("hostler-live", &["hostler-policies"])];

/// The crates that must give the same answer everywhere; the settings of `clippy` that see to it
/// are kept in the first.
const PURE_CRATES: &[&str] = &["hostler-core", "hostler-policies", "hostler-predict"];

/// Documents that every checkout has.
const REQUIRED: &[&str] = &["CHANGELOG.md", "CONTRIBUTING.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Commands that the first page must show.
const README_SHOWS: &[&str] = &["cargo run --release -- compare", "cargo xtask test"];

/// Checks the files against each other.
pub fn check(files: &[File], violations: &mut Vec<Violation>) {
    for file in files {
        let Some(text) = &file.text else {
            continue;
        };
        let mut report = Report { path: &file.path, violations };
        match file.path.as_str() {
            "README.md" => check_readme(text, &mut report),
            "ARCHITECTURE.md" => {
                check_code_map(text, files, &mut report);
                architecture::check(text, files, &mut report);
            }
            path => {
                if let Some(name) = crate_of(path, "Cargo.toml") {
                    check_manifest(name, text, &mut report);
                }
            }
        }
    }
    check_pure_lints(files, violations);
    check_pure_code(files, violations);
    // Fixtures of a single file are no checkout.
    if text_of(files, "Cargo.toml").is_some() {
        for path in REQUIRED.iter().filter(|path| text_of(files, path).is_none()) {
            Report { path, violations }.add(1, "file is missing", "write it");
        }
    }
}

fn check_readme(text: &str, report: &mut Report<'_>) {
    for command in README_SHOWS.iter().filter(|command| !text.contains(**command)) {
        report.add(1, format!("`{command}` is not shown"), "show it to newcomers");
    }
}

fn check_code_map(text: &str, files: &[File], report: &mut Report<'_>) {
    let names: BTreeSet<&str> =
        files.iter().filter_map(|file| crate_of(&file.path, "Cargo.toml")).collect();
    for name in names {
        if !text.contains(&format!("`{name}`")) {
            report.add(1, format!("crate `{name}` is not in the code map"), "say what it holds");
        }
    }
}

/// The crate that a file belongs to, if it is the named file in the top folder of the crate.
fn crate_of<'a>(path: &'a str, file: &str) -> Option<&'a str> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    (rest == file).then_some(name)
}

fn check_manifest(name: &str, text: &str, report: &mut Report<'_>) {
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            let line = text[..at].matches('\n').count() + 1;
            return report.add(line, format!("not readable: {}", error.message()), "correct it");
        }
    };
    let declared = manifest.get("package").and_then(|package| package.get("name"));
    if declared.and_then(Value::as_str) != Some(name) {
        report.add(1, format!("crate is not called `{name}`"), "name it as its folder");
    }
    let Some(may_use) = listed(MAY_USE, name) else {
        return;
    };
    let may_test_with = listed(MAY_TEST_WITH, name).unwrap_or_default();
    for (section, used) in our_dependencies(&manifest) {
        let in_tests = section == "dev-dependencies" && may_test_with.contains(&used.as_str());
        if !may_use.contains(&used.as_str()) && !in_tests {
            let line = text.lines().position(|line| line.contains(&used)).map_or(1, |at| at + 1);
            let what = format!("`{name}` depends on `{used}` in `{section}`");
            report.add(line, what, "turn it around: dependencies point towards `hostler-core`");
        }
    }
}

fn listed<'a>(table: &[(&str, &'a [&'a str])], name: &str) -> Option<&'a [&'a str]> {
    table.iter().find(|(listed, _)| *listed == name).map(|(_, names)| *names)
}

/// Section and name of every dependency on one of our crates.
fn our_dependencies(manifest: &Table) -> Vec<(&'static str, String)> {
    let platforms = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let platforms = platforms.filter_map(|(_, platform)| platform.as_table());
    let tables: Vec<&Table> = std::iter::once(manifest).chain(platforms).collect();
    let mut found = Vec::new();
    for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
        for table in &tables {
            let entries = table.get(section).and_then(Value::as_table).into_iter().flatten();
            for (key, entry) in entries {
                let name = entry.get("package").and_then(Value::as_str).unwrap_or(key);
                if name == "hostler" || name.starts_with("hostler-") {
                    found.push((section, name.to_string()));
                }
            }
        }
    }
    found
}

/// The crates of the pure zone share one set of lints.
fn check_pure_lints(files: &[File], violations: &mut Vec<Violation>) {
    let lints = |name: &str| text_of(files, &format!("crates/{name}/clippy.toml"));
    let [first, others @ ..] = PURE_CRATES else {
        return;
    };
    for other in others.iter().filter(|other| lints(other) != lints(first)) {
        let path = format!("crates/{other}/clippy.toml");
        let what = format!("differs from that of `{first}`");
        Report { path: &path, violations }.add(1, what, "keep the pure zone under equal lints");
    }
}

/// What the pure zone must not use, it must not allow itself either; tests may.
fn check_pure_code(files: &[File], violations: &mut Vec<Violation>) {
    let is_pure = |path: &str| {
        PURE_CRATES.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")))
    };
    for file in files.iter().filter(|file| is_pure(&file.path)) {
        for (index, line) in file.text.iter().flat_map(|text| text.lines()).enumerate() {
            if line.contains("clippy::disallowed") {
                let mut report = Report { path: &file.path, violations };
                report.add(index + 1, "an exception in the pure zone", "let the caller do it");
            }
        }
    }
}

fn text_of<'a>(files: &'a [File], path: &str) -> Option<&'a str> {
    files.iter().find(|file| file.path == path)?.text.as_deref()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check_files, check_text};
    use super::*;
    use expect_test::expect;

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{rest}\n")
    }

    #[test]
    fn the_core_uses_none_of_ours() {
        check_text(
            "crates/hostler-core/Cargo.toml",
            &manifest(
                "hostler-core",
                "[dependencies]\nserde = \"1\"\nhostler-sim.workspace = true",
            ),
            expect![[r#"
                crates/hostler-core/Cargo.toml:5: `hostler-core` depends on `hostler-sim` in `dependencies`; turn it around: dependencies point towards `hostler-core`
            "#]],
        );
    }

    #[test]
    fn policies_use_the_simulator_in_tests_only() {
        let path = "crates/hostler-policies/Cargo.toml";
        let tests =
            manifest("hostler-policies", "[dev-dependencies]\nhostler-sim.workspace = true");
        check_text(path, &tests, expect![""]);
        let code = tests.replace("dev-dependencies", "dependencies");
        check_text(
            path,
            &code,
            expect![[r#"
                crates/hostler-policies/Cargo.toml:4: `hostler-policies` depends on `hostler-sim` in `dependencies`; turn it around: dependencies point towards `hostler-core`
            "#]],
        );
    }

    #[test]
    fn production_does_not_use_parity() {
        for name in ["hostler-core", "hostler-policies", "hostler-sim", "hostler-live"] {
            let mut violations = Vec::new();
            let path = format!("crates/{name}/Cargo.toml");
            let text = manifest(name, "[dev-dependencies]\nhostler-parity.workspace = true");
            let mut report = Report { path: &path, violations: &mut violations };
            check_manifest(name, &text, &mut report);
            assert_eq!(violations.len(), 1, "{name}");
        }
    }

    #[test]
    fn renamed_and_platform_dependencies_count() {
        check_text(
            "crates/hostler-sim/Cargo.toml",
            &manifest(
                "hostler-sim",
                "[target.'cfg(unix)'.dependencies]\nrules = { package = \"hostler-policies\" }",
            ),
            expect![[r#"
                crates/hostler-sim/Cargo.toml:4: `hostler-sim` depends on `hostler-policies` in `dependencies`; turn it around: dependencies point towards `hostler-core`
            "#]],
        );
    }

    #[test]
    fn a_folder_is_named_like_its_crate() {
        check_text(
            "crates/a/Cargo.toml",
            &manifest("b", ""),
            expect![[r#"
                crates/a/Cargo.toml:1: crate is not called `a`; name it as its folder
            "#]],
        );
        check_text(
            "crates/a/Cargo.toml",
            "[package]\nname =\n",
            expect![[r#"
                crates/a/Cargo.toml:2: not readable: string values must be quoted, expected literal string; correct it
            "#]],
        );
    }

    #[test]
    fn documents_name_what_newcomers_need() {
        check_text(
            "README.md",
            "# Hostler\n\n    cargo xtask test\n",
            expect![[r#"
                README.md:1: `cargo run --release -- compare` is not shown; show it to newcomers
            "#]],
        );
        check_files(
            &[
                ("ARCHITECTURE.md", "`a` holds all.\n"),
                ("crates/a/Cargo.toml", &manifest("a", "")),
                ("crates/b/Cargo.toml", &manifest("b", "")),
            ],
            expect![[r#"
                ARCHITECTURE.md:1: crate `b` is not in the code map; say what it holds
            "#]],
        );
    }

    #[test]
    fn a_checkout_has_its_documents() {
        check_files(
            &[("Cargo.toml", "\n"), ("CHANGELOG.md", "\n")],
            expect![[r#"
                CONTRIBUTING.md:1: file is missing; write it
                LICENSE-APACHE:1: file is missing; write it
                LICENSE-MIT:1: file is missing; write it
            "#]],
        );
    }

    #[test]
    fn the_pure_zone_allows_itself_nothing() {
        let text = "//! A.\n#![allow(clippy::disallowed_types, reason = \"b\")]\n";
        check_text("crates/hostler-policies/tests/a.rs", text, expect![""]);
        check_text(
            "crates/hostler-policies/src/a.rs",
            text,
            expect![[r#"
                crates/hostler-policies/src/a.rs:2: an exception in the pure zone; let the caller do it
            "#]],
        );
    }

    #[test]
    fn the_pure_zone_has_equal_lints() {
        check_files(
            &[
                ("crates/hostler-core/clippy.toml", "a = 1\n"),
                ("crates/hostler-policies/clippy.toml", "a = 1\n"),
            ],
            expect![[r#"
                crates/hostler-predict/clippy.toml:1: differs from that of `hostler-core`; keep the pure zone under equal lints
            "#]],
        );
    }
}
