//! Rules for every text file: whitespace, width, open ends, paths of one machine.
//!
//! Recorded data (under `testdata/`) and minified assets keep their own form: only their size and
//! the paths in them are checked.

use super::Report;

const BYTES_MAX: u64 = 2 * 1024 * 1024;
const COLUMNS_MAX: usize = 100;

/// Folders that exist on some machine only, without the slashes around them so that this file
/// passes its own check.
const MACHINE_FOLDERS: &[&str] = &["work", "farm", "root"];

/// A folder of jobs of one machine, in two halves for the same reason.
const MACHINE_NAME: [&str; 2] = ["bash_", "jobs"];

/// Checks the size of a file, text or not.
pub fn check_size(bytes: u64, report: &mut Report<'_>) {
    if bytes > BYTES_MAX {
        let what = format!("file too large: {bytes} bytes, limit {BYTES_MAX}");
        report.add(1, what, "make the data smaller, or generate it");
    }
}

/// Checks the text of a file of any kind.
pub fn check(path: &str, text: &str, report: &mut Report<'_>) {
    check_machine_paths(text, report);
    if is_data(path) {
        return;
    }
    check_whitespace(text, report);
    check_open_ends(text, path.ends_with(".rs"), report);
    if path.ends_with(".rs") {
        // Code is broken by `rustfmt`, and recorded text is as wide as it is.
        check_width(text, |_, line| !line.trim_start().starts_with("//"), report);
    }
    if path.ends_with(".md") {
        let fenced = fenced_lines(text);
        check_width(text, |number, line| fenced[number] || is_unbreakable(line), report);
    }
}

fn is_data(path: &str) -> bool {
    path.split('/').any(|part| part == "testdata") || path.contains(".min.")
}

fn check_machine_paths(text: &str, report: &mut Report<'_>) {
    let advice = "write a relative path, or take it as an argument";
    for (number, line) in numbered(text) {
        if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| has_root_folder(line, folder)) {
            report.add(number, format!("path of one machine: `/{folder}`"), advice);
        }
        if line.contains(&MACHINE_NAME.concat()) {
            report.add(number, "path of one machine", advice);
        }
    }
}

/// Whether the line has a path that begins with the folder, right below the root.
fn has_root_folder(line: &str, folder: &str) -> bool {
    let wanted = format!("/{folder}/");
    line.match_indices(&wanted).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|char| is_word(char) || ".-~})*".contains(char))
    })
}

fn check_whitespace(text: &str, report: &mut Report<'_>) {
    for (index, line) in text.split('\n').enumerate() {
        let number = index + 1;
        let line = match line.strip_suffix('\r') {
            Some(line) => {
                report.add(number, "carriage return", "end lines with a line feed alone");
                line
            }
            None => line,
        };
        if line.contains('\t') {
            report.add(number, "tab", "indent with spaces");
        }
        if line.trim_end() != line {
            report.add(number, "trailing whitespace", "remove it");
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        report.add(text.lines().count(), "no line feed at the end of the file", "add one");
    }
}

fn check_width(text: &str, exempt: impl Fn(usize, &str) -> bool, report: &mut Report<'_>) {
    for (index, line) in text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX && !exempt(index, line) {
            let what = format!("line too wide: {columns} columns, limit {COLUMNS_MAX}");
            report.add(index + 1, what, "break it");
        }
    }
}

/// Whether a line of markdown cannot be broken: a row of a table, or one with a long address.
fn is_unbreakable(line: &str) -> bool {
    line.trim_start().starts_with('|') || line.contains("://")
}

/// For each line of markdown, whether it belongs to a fenced block.
fn fenced_lines(text: &str) -> Vec<bool> {
    let mut inside = false;
    let fenced = |line: &str| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        inside || fence
    };
    text.lines().map(fenced).collect()
}

fn check_open_ends(text: &str, in_comments: bool, report: &mut Report<'_>) {
    for (number, line) in numbered(text) {
        let line = if in_comments { line.find("//").map_or("", |at| &line[at..]) } else { line };
        for mark in ["TODO", "FIXME"] {
            if line.match_indices(mark).any(|(at, _)| is_open_end(line, at, mark)) {
                let advice = "write `TODO(name): what`, or do it";
                report.add(number, format!("`{mark}` without a name"), advice);
            }
        }
    }
}

/// Whether the mark at `at` stands alone and nobody has put a name to it.
fn is_open_end(line: &str, at: usize, mark: &str) -> bool {
    let after = &line[at + mark.len()..];
    let before = line[..at].chars().next_back();
    if before.is_some_and(is_word) || after.chars().next().is_some_and(is_word) {
        return false;
    }
    let owner = after.strip_prefix('(').and_then(|rest| rest.split_once("):"));
    let named = owner.is_some_and(|(name, _)| !name.is_empty() && !name.contains(' '));
    mark != "TODO" || !named
}

/// Whether a character may be part of a name.
fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_text;
    use expect_test::expect;

    #[test]
    fn whitespace_is_plain() {
        check_text(
            "a.toml",
            "a = 1 \n\tb = 2\r\nc",
            expect![[r#"
                a.toml:1: trailing whitespace; remove it
                a.toml:2: carriage return; end lines with a line feed alone
                a.toml:2: tab; indent with spaces
                a.toml:3: no line feed at the end of the file; add one
            "#]],
        );
    }

    #[test]
    fn lines_have_a_width() {
        let wide = "a ".repeat(50) + "bc";
        let rust = format!("//! A.\n// {wide}\nconst A: &str = \"\n{wide}\n\";\n");
        check_text(
            "a.rs",
            &rust,
            expect![[r#"
                a.rs:2: line too wide: 105 columns, limit 100; break it
            "#]],
        );
        let markdown = format!("{wide}\n| {wide} |\n```\n{wide}\n```\nsee http://{wide}\n");
        check_text(
            "a.md",
            &markdown,
            expect![[r#"
                a.md:1: line too wide: 102 columns, limit 100; break it
            "#]],
        );
        check_text("a.csv", &format!("{wide}\n"), expect![""]);
    }

    #[test]
    fn an_open_end_has_a_name() {
        // With `?` for a slash, so that this file passes its own check.
        let lines = [
            "/?! A.",
            "/? TODO later",
            "/? TODO(ada): now",
            "a(); /? FIXME(ada): now",
            "const TODO: u8 = 1;\n",
        ];
        check_text(
            "a.rs",
            &lines.join("\n").replace('?', "/"),
            expect![[r#"
                a.rs:2: `TODO` without a name; write `TODO(name): what`, or do it
                a.rs:4: `FIXME` without a name; write `TODO(name): what`, or do it
            "#]],
        );
        check_text(
            "a.md",
            "TODO\nTODOS\n",
            expect![[r#"
                a.md:1: `TODO` without a name; write `TODO(name): what`, or do it
            "#]],
        );
    }

    #[test]
    fn no_path_belongs_to_one_machine() {
        let (work, jobs) = (["/wo", "rk/x"].concat(), ["bash", "_jobs"].concat());
        let text = format!("{work}\n\"{work}\"\n../a{work}\n$HOME{work}\n{jobs}\n");
        check_text(
            "a.md",
            &text,
            expect![[r#"
                a.md:1: path of one machine: `/work`; write a relative path, or take it as an argument
                a.md:2: path of one machine: `/work`; write a relative path, or take it as an argument
                a.md:5: path of one machine; write a relative path, or take it as an argument
            "#]],
        );
        check_text(
            "testdata/a.csv",
            &format!("a \n{work}"),
            expect![[r#"
                testdata/a.csv:2: path of one machine: `/work`; write a relative path, or take it as an argument
            "#]],
        );
    }

    #[test]
    fn files_are_small() {
        check_text(
            "testdata/a.csv",
            &"a\n".repeat(1024 * 1024 + 1),
            expect![[r#"
                testdata/a.csv:1: file too large: 2097154 bytes, limit 2097152; make the data smaller, or generate it
            "#]],
        );
    }
}
