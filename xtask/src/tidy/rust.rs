//! Rules for Rust files: a purpose on top, short files, every test runs and none waits for a panic.
//!
//! Looks at lines only. What needs to know code from text is left to `clippy`: its settings say how
//! long a function may be and what is not to be used, and the tests here show that it obeys.

use super::Report;

const FILE_LINES_MAX: usize = 800;

/// Attributes that no test has, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("#[ignore", "make the test run, or remove it"),
    ("#[should_panic", "return an error and check it"),
];

/// Checks one Rust file.
pub fn check(text: &str, report: &mut Report<'_>) {
    if !text.starts_with("//!") {
        report.add(1, "no `//!` on top", "say what the file is for and what it is not for");
    }
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        let what = format!("file too long: {lines} lines, limit {FILE_LINES_MAX}");
        report.add(FILE_LINES_MAX + 1, what, "split it by purpose");
    }
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        for (start, advice) in REFUSED.iter().filter(|(start, _)| line.starts_with(start)) {
            report.add(index + 1, format!("`{start}` in code"), *advice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_text;
    use expect_test::expect;

    #[test]
    fn a_file_says_what_it_is_for() {
        check_text(
            "a.rs",
            "// A.\nfn a() {}\n",
            expect![[r#"
                a.rs:1: no `//!` on top; say what the file is for and what it is not for
            "#]],
        );
    }

    #[test]
    fn files_are_short() {
        let lines = |count: usize| format!("//! A.\n{}", "// b\n".repeat(count - 1));
        check_text("a.rs", &lines(800), expect![""]);
        check_text(
            "a.rs",
            &lines(801),
            expect![[r#"
                a.rs:801: file too long: 801 lines, limit 800; split it by purpose
            "#]],
        );
    }

    #[test]
    fn every_test_runs() {
        check_text(
            "a.rs",
            "//! A.\n#[test]\n#[ignore = \"slow\"]\n#[should_panic]\nfn a() {}\n",
            expect![[r#"
                a.rs:3: `#[ignore` in code; make the test run, or remove it
                a.rs:4: `#[should_panic` in code; return an error and check it
            "#]],
        );
    }
}
