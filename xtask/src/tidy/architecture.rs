//! What `ARCHITECTURE.md` promises about the code: that the ways of a job are short and their files
//! are there, and that every invariant names what holds it.

use std::collections::BTreeSet;

use super::Report;
use super::files::File;

/// Steps of one way of a job: more, and nobody reads along.
const STEPS_MAX: usize = 15;

/// Checks the chapters that have a promise in them.
pub fn check(text: &str, files: &[File], report: &mut Report<'_>) {
    check_ways(text, files, report);
    check_invariants(text, files, report);
}

/// Each step of a numbered list is a file below `crates/`, and there are not too many.
fn check_ways(text: &str, files: &[File], report: &mut Report<'_>) {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    for (line, step) in chapter(text, "## The way of a job") {
        let Some((number, words)) = step.split_once(". ") else { continue };
        let Ok(number) = number.parse::<usize>() else { continue };
        if number > STEPS_MAX {
            let what = format!("step {number} of a way, limit {STEPS_MAX}");
            report.add(line, what, "leave out what only carries the job");
        }
        let path = format!("crates/{}", quoted(words).next().unwrap_or_default());
        if !paths.contains(path.as_str()) {
            report.add(line, format!("no file `{path}`"), "follow the code");
        }
    }
}

/// Each point says behind `Held by` which functions or files see to it.
fn check_invariants(text: &str, files: &[File], report: &mut Report<'_>) {
    for (line, point) in points(text, "## Invariants") {
        // The words may be broken by the end of a line.
        let Some((_, holders)) = point.split_once("Held by ") else {
            report.add(line, "an invariant that nothing holds", "name a test behind `Held by`");
            continue;
        };
        for holder in quoted(holders).filter(|holder| !is_there(holder, files)) {
            report.add(line, format!("no test or file `{holder}`"), "name one that is there");
        }
    }
}

fn is_there(holder: &str, files: &[File]) -> bool {
    let function = format!("fn {holder}(");
    let has = |file: &File| {
        let text = file.text.as_deref().unwrap_or_default();
        file.path == holder || (file.path.ends_with(".rs") && text.contains(&function))
    };
    files.iter().any(has)
}

/// The lines of a chapter, with their numbers.
fn chapter<'a>(text: &'a str, title: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let mut lines = lines.skip_while(move |(_, line)| *line != title);
    lines.next();
    lines.take_while(|(_, line)| !line.starts_with("## "))
}

/// The points of a list, each on one line and with the number of its first.
fn points(text: &str, title: &str) -> Vec<(usize, String)> {
    let mut points: Vec<(usize, String)> = Vec::new();
    for (number, line) in chapter(text, title) {
        match (line.strip_prefix("- "), points.last_mut()) {
            (Some(first), _) => points.push((number, first.to_owned())),
            (None, Some((_, point))) if line.starts_with("  ") => {
                point.push(' ');
                point.push_str(line.trim());
            }
            (None, _) => {}
        }
    }
    points
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_files;
    use expect_test::expect;

    #[test]
    fn the_way_of_a_job_is_short_and_its_files_are_there() {
        let text = "## The way of a job\n\n1. `a/src/run.rs`, and more\n16. `a/src/gone.rs`\n\n## B\n\n\
                    99. `c`\n";
        check_files(
            &[("ARCHITECTURE.md", text), ("crates/a/src/run.rs", "//! Runs.\n")],
            expect![[r#"
                ARCHITECTURE.md:4: no file `crates/a/src/gone.rs`; follow the code
                ARCHITECTURE.md:4: step 16 of a way, limit 15; leave out what only carries the job
            "#]],
        );
    }

    #[test]
    fn every_invariant_names_a_test_or_a_file_that_is_there() {
        let text = "## Invariants\n\n- One. Held\n  by `one_holds`,\n  `src/one.rs`.\n- Two.\n- Three. \
                    Held by\n  `gone`.\n\n## B\n\n- No invariant.\n";
        check_files(
            &[("ARCHITECTURE.md", text), ("src/one.rs", "//! One.\n\nfn one_holds() {}\n")],
            expect![[r#"
                ARCHITECTURE.md:6: an invariant that nothing holds; name a test behind `Held by`
                ARCHITECTURE.md:7: no test or file `gone`; name one that is there
            "#]],
        );
    }
}
