//! Rules for the pure zone: no clock, file, socket, thread, environment, printing or hash order.
//!
//! Looks at words and paths only; `clippy.toml` in each crate of the zone catches by type what
//! words cannot. Folders of tests and benchmarks may read files and print, but use no hash maps.

use super::Report;
use super::lexer::{has_word, is_word};

/// The crates that must give the same answer everywhere.
pub const PURE_CRATES: &[&str] = &["hostler-core", "hostler-policies", "hostler-predict"];

const NO_CLOCK: &str = "take the time from the event";
const NO_WORLD: &str = "let the caller do it and hand the value in";
const NO_PRINT: &str = "return the text or a typed reason";
const NO_HASH: &str = "use `BTreeMap`, `BTreeSet` or a `Vec` by id";
const NO_FLOAT: &str = "use `libm`";

/// Paths that are refused, as consecutive parts of a longer one.
const PATHS: &[(&str, &str)] = &[
    ("time::Instant", NO_CLOCK),
    ("time::SystemTime", NO_CLOCK),
    ("std::env", NO_WORLD),
    ("std::fs", NO_WORLD),
    ("std::net", NO_WORLD),
    ("std::thread", NO_WORLD),
];

/// Words that are refused.
const WORDS: &[(&str, &str)] = &[
    ("println!", NO_PRINT),
    ("eprintln!", NO_PRINT),
    ("print!", NO_PRINT),
    ("eprint!", NO_PRINT),
    (".exp()", NO_FLOAT),
    (".ln()", NO_FLOAT),
    (".powf(", NO_FLOAT),
    (".powi(", NO_FLOAT),
];

const HASHES: &[(&str, &str)] = &[("HashMap", NO_HASH), ("HashSet", NO_HASH)];

/// Checks the code of one file, when it belongs to the pure zone.
pub fn check(path: &str, code: &str, report: &mut Report<'_>) {
    let parts: Vec<&str> = path.split('/').collect();
    let ["crates", name, rest @ ..] = parts.as_slice() else {
        return;
    };
    if !PURE_CRATES.contains(name) {
        return;
    }
    check_words(code, HASHES, report);
    if !rest.iter().any(|part| is_test_part(part)) {
        check_words(code, WORDS, report);
        check_paths(code, report);
    }
}

fn is_test_part(part: &str) -> bool {
    matches!(part, "tests" | "tests.rs" | "benches" | "examples")
}

fn check_words(code: &str, words: &[(&str, &str)], report: &mut Report<'_>) {
    for (index, line) in code.lines().enumerate() {
        for (word, advice) in words.iter().filter(|(word, _)| has_word(line, word)) {
            report.add(index + 1, format!("`{word}` in the pure zone"), *advice);
        }
    }
}

fn check_paths(code: &str, report: &mut Report<'_>) {
    for (line, path) in paths(code) {
        for (refused, advice) in PATHS.iter().filter(|(refused, _)| has_word(&path, refused)) {
            report.add(line, format!("`{refused}` in the pure zone"), *advice);
        }
    }
}

/// Every path in the code with its line; `use` trees are spread out.
fn paths(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let words = line.split(|char: char| !is_word(char) && char != ':');
        let paths = words.filter(|word| word.contains("::"));
        found.extend(paths.map(|path| (index + 1, path.to_string())));
    }
    for (at, _) in code.match_indices("use ") {
        let tree = code[at + 4..].split(';').next().unwrap_or_default();
        if tree.contains('{') && !code[..at].ends_with(is_word) {
            let line = code[..at].matches('\n').count() + 1;
            let tree: String = tree.chars().filter(|char| !char.is_whitespace()).collect();
            let mut spread = Vec::new();
            spread_out("", &tree, &mut spread);
            found.extend(spread.into_iter().map(|path| (line, path)));
        }
    }
    found
}

/// `a::{b, c::{d, e}}` becomes `a::b`, `a::c::d` and `a::c::e`.
fn spread_out(prefix: &str, tree: &str, found: &mut Vec<String>) {
    let Some((head, group)) = tree.split_once('{') else {
        found.push(format!("{prefix}{tree}"));
        return;
    };
    let prefix = format!("{prefix}{head}");
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                spread_out(&prefix, &group[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_text;
    use expect_test::expect;

    const PATH: &str = "crates/hostler-core/src/a.rs";

    #[test]
    fn the_pure_zone_knows_no_world() {
        check_text(
            PATH,
            "//! A: std::fs\nuse std::fs;\nfn a() {\n    std::thread::sleep(b);\n    std::env::var(\"c\");\n}\n",
            expect![[r#"
                crates/hostler-core/src/a.rs:2: `std::fs` in the pure zone; let the caller do it and hand the value in
                crates/hostler-core/src/a.rs:4: `std::thread` in the pure zone; let the caller do it and hand the value in
                crates/hostler-core/src/a.rs:5: `std::env` in the pure zone; let the caller do it and hand the value in
            "#]],
        );
    }

    #[test]
    fn grouped_imports_are_seen() {
        check_text(
            PATH,
            "//! A.\nuse std::{\n    collections::BTreeMap,\n    net,\n    time::{Duration, Instant},\n};\n",
            expect![[r#"
                crates/hostler-core/src/a.rs:2: `std::net` in the pure zone; let the caller do it and hand the value in
                crates/hostler-core/src/a.rs:2: `time::Instant` in the pure zone; take the time from the event
            "#]],
        );
    }

    #[test]
    fn the_pure_zone_has_no_clock_but_may_speak_of_instants() {
        check_text(
            PATH,
            "//! A.\nuse std::time;\nfn a() {\n    time::Instant::now();\n    Event::Instant;\n}\n",
            expect![[r#"
                crates/hostler-core/src/a.rs:4: `time::Instant` in the pure zone; take the time from the event
            "#]],
        );
    }

    #[test]
    fn the_pure_zone_does_not_print_or_hash() {
        check_text(
            PATH,
            "//! A.\nfn a(b: HashMap<u8, u8>) {\n    println!(\"HashSet\");\n    eprint!(\"c\");\n}\n",
            expect![[r#"
                crates/hostler-core/src/a.rs:2: `HashMap` in the pure zone; use `BTreeMap`, `BTreeSet` or a `Vec` by id
                crates/hostler-core/src/a.rs:3: `println!` in the pure zone; return the text or a typed reason
                crates/hostler-core/src/a.rs:4: `eprint!` in the pure zone; return the text or a typed reason
            "#]],
        );
    }

    #[test]
    fn floats_go_through_libm() {
        check_text(
            PATH,
            "//! A.\nfn a(b: f64) {\n    b.exp() + b.powi(2) + b.sqrt() + libm::exp(b) + b.exponent();\n}\n",
            expect![[r#"
                crates/hostler-core/src/a.rs:3: `.exp()` in the pure zone; use `libm`
                crates/hostler-core/src/a.rs:3: `.powi(` in the pure zone; use `libm`
            "#]],
        );
    }

    #[test]
    fn tests_may_read_files_but_not_hash() {
        let text = "//! A.\nuse std::fs;\nfn a(b: HashSet<u8>) {}\n";
        check_text(
            "crates/hostler-policies/tests/a.rs",
            text,
            expect![[r#"
                crates/hostler-policies/tests/a.rs:3: `HashSet` in the pure zone; use `BTreeMap`, `BTreeSet` or a `Vec` by id
            "#]],
        );
        check_text(
            "crates/hostler-policies/src/order/tests.rs",
            text,
            expect![[r#"
                crates/hostler-policies/src/order/tests.rs:3: `HashSet` in the pure zone; use `BTreeMap`, `BTreeSet` or a `Vec` by id
            "#]],
        );
    }

    #[test]
    fn other_crates_may_do_as_they_like() {
        let text = "//! A.\nuse std::{collections::HashMap, fs};\n";
        check_text("crates/hostler-sim/src/a.rs", text, expect![""]);
    }
}
