//! Rules for Rust files: a purpose on top, short functions and files, nothing left unfinished.

use super::Report;
use super::functions::functions;
use super::lexer::{Source, has_word};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

/// Code that is not to be handed in, and what to do instead.
const UNFINISHED: &[(&str, &str)] = &[
    ("todo!", "finish it"),
    ("unimplemented!", "finish it"),
    ("dbg!", "remove it"),
    ("#[ignore", "make the test run, or remove it"),
    ("should_panic", "return an error and check it"),
];

/// Checks one Rust file.
pub fn check(text: &str, source: &Source, report: &mut Report<'_>) {
    if !text.starts_with("//!") {
        report.add(1, "no `//!` on top", "say what the file is for and what it is not for");
    }
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        let what = format!("file too long: {lines} lines, limit {FILE_LINES_MAX}");
        report.add(FILE_LINES_MAX + 1, what, "split it by purpose");
    }
    for function in functions(source).iter().filter(|found| found.lines > FUNCTION_LINES_MAX) {
        let (name, lines) = (&function.name, function.lines);
        let what = format!("function `{name}` too long: {lines} lines, limit {FUNCTION_LINES_MAX}");
        report.add(function.line, what, "move a part with a name of its own below");
    }
    for (index, line) in source.code.lines().enumerate() {
        for (word, advice) in UNFINISHED.iter().filter(|(word, _)| has_word(line, word)) {
            report.add(index + 1, format!("`{word}` in code"), *advice);
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
    fn functions_are_short() {
        let function =
            |lines: usize| format!("//! A.\n\nfn a() {{\n{}}}\n", "b();\n".repeat(lines - 2));
        check_text("a.rs", &function(70), expect![""]);
        check_text(
            "a.rs",
            &function(71),
            expect![[r#"
                a.rs:3: function `a` too long: 71 lines, limit 70; move a part with a name of its own below
            "#]],
        );
    }

    #[test]
    fn nothing_is_left_unfinished() {
        check_text(
            "a.rs",
            "//! A: todo!()\nfn a() {\n    todo!();\n    unimplemented!(\"b\");\n    let c = dbg!(d);\n    e(\"todo!()\");\n}\n",
            expect![[r#"
                a.rs:3: `todo!` in code; finish it
                a.rs:4: `unimplemented!` in code; finish it
                a.rs:5: `dbg!` in code; remove it
            "#]],
        );
        check_text(
            "a.rs",
            "//! A.\n#[test]\n#[ignore = \"slow\"]\n#[should_panic]\nfn a() {}\n",
            expect![[r#"
                a.rs:3: `#[ignore` in code; make the test run, or remove it
                a.rs:4: `should_panic` in code; return an error and check it
            "#]],
        );
    }
}
