//! Names of policies: only the registry knows them.
//!
//! A string that is a policy's name, or TOML that names one, belongs to `hostler-policies`; others
//! take the name from whoever starts them. Tests and what repeats other simulators may name them,
//! and so may help texts and comments.

use super::files::File;
use super::{Report, Violation};

/// The crate whose files are the policies, each named like its kind.
const POLICIES: &str = "crates/hostler-policies/src/";

/// Names that are also words for other things.
const ORDINARY: &[&str] = &["makespan", "priority"];

/// Folders and files that repeat other simulators, under the names that these have.
const REPEATED: &[&str] = &["parity", "figures/simulator.rs"];

/// Finds names of policies in the code of other crates.
pub fn check(files: &[File], violations: &mut Vec<Violation>) {
    let names: Vec<String> = files.iter().filter_map(policy).collect();
    for file in files.iter().filter(|file| is_code_of_others(&file.path)) {
        let text = file.text.as_deref().unwrap_or_default();
        let mut report = Report { path: &file.path, violations };
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (index, line) in code.lines().enumerate() {
            // What an interface is documented with is no choice.
            if !line.contains("//") && !line.contains("example = ") {
                for name in names.iter().filter(|name| is_named(line, name)) {
                    let what = format!("policy `{name}` is named outside the registry");
                    report.add(index + 1, what, "let the caller say which policy it is");
                }
            }
        }
    }
}

/// The policy that a file defines.
fn policy(file: &File) -> Option<String> {
    let (_, name) = file.path.strip_prefix(POLICIES)?.rsplit_once('/')?;
    let defines = file.text.as_ref()?.contains("pub fn def() -> PolicyDef");
    defines.then(|| name.trim_end_matches(".rs").replace('_', "-"))
}

fn is_code_of_others(path: &str) -> bool {
    let of_others = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    let repeats = REPEATED.iter().any(|part| path.contains(part));
    of_others && !is_test && !repeats && !path.starts_with(POLICIES)
}

fn is_named(line: &str, name: &str) -> bool {
    let in_toml =
        ["\\\"", "'"].iter().any(|quote| line.contains(&format!("kind = {quote}{name}{quote}")));
    in_toml || !ORDINARY.contains(&name) && line.contains(&format!("\"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_files;
    use expect_test::expect;

    const POLICY: (&str, &str) = (
        "crates/hostler-policies/src/order/most_first.rs",
        "//! A.\npub fn def() -> PolicyDef {}\n",
    );

    #[test]
    fn a_policy_is_named_by_the_registry_alone() {
        let text = "//! A \"most-first\".\nfn a() {\n    b(\"most-first\");\n    \
                    b(\"the most-first\");\n    \
                    b(\"kind = 'most-first'\\nc = 1\");\n    b(\"kind = \\\"most-first\\\"\");\n}\n";
        check_files(
            &[POLICY, ("crates/hostler-live/src/a.rs", text)],
            expect![[r#"
                crates/hostler-live/src/a.rs:3: policy `most-first` is named outside the registry; let the caller say which policy it is
                crates/hostler-live/src/a.rs:5: policy `most-first` is named outside the registry; let the caller say which policy it is
                crates/hostler-live/src/a.rs:6: policy `most-first` is named outside the registry; let the caller say which policy it is
            "#]],
        );
    }

    #[test]
    fn tests_parity_and_examples_may_name_policies() {
        let text = "//! A.\nconst A: &str = \"most-first\";\n";
        let example = "//! A.\n#[schema(example = \"kind = 'most-first'\")]\nstruct A;\n\
                       #[cfg(test)]\nmod tests {\n    const A: &str = \"most-first\";\n}\n";
        check_files(
            &[
                POLICY,
                ("crates/hostler-sim/src/parity/a.rs", text),
                ("crates/hostler-sim/src/report/tests.rs", text),
                ("crates/hostler-sim/tests/a.rs", text),
                ("crates/hostler-policies/src/order/a.rs", text),
                ("crates/hostler-live/src/a.rs", example),
            ],
            expect![""],
        );
    }
}
