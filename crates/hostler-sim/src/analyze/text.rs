//! The analysis in words for a terminal: findings, facts, what is missing.

use std::fmt::Write;

use super::Analysis;
use super::figure::Fact;
use crate::report::format;

/// Findings that a terminal shows; the report has them all.
const FINDINGS_MAX: usize = 12;
/// Facts of one figure that a terminal shows.
const FACTS_MAX: usize = 12;

/// Writes the summary.
pub fn text(analysis: &Analysis) -> String {
    let mut out = String::new();
    summary(analysis, &mut out).expect("writing to a string does not fail");
    out
}

fn summary(analysis: &Analysis, out: &mut String) -> std::fmt::Result {
    writeln!(out, "{}\n", printable(&analysis.subtitle))?;
    if !analysis.findings.is_empty() {
        writeln!(out, "Findings, the most important first:")?;
    }
    for finding in analysis.findings.iter().take(FINDINGS_MAX) {
        writeln!(out, "- {}", printable(&finding.text))?;
    }
    for figure in &analysis.figures {
        writeln!(out, "\n{} ({})", figure.title, figure.key)?;
        let shown = figure.facts.iter().filter(|fact| fact.value.is_finite());
        for Fact { words, value, format, .. } in shown.take(FACTS_MAX) {
            writeln!(out, "  {:<58} {:>12}", printable(words), format::value(*value, *format))?;
        }
        for note in &figure.notes {
            writeln!(out, "  {}", printable(note))?;
        }
        if !figure.published.is_empty() {
            writeln!(out, "  published for the full PAI trace: {}", figure.published)?;
        }
    }
    if !analysis.not_computed.is_empty() {
        writeln!(out)?;
    }
    for missing in &analysis.not_computed {
        writeln!(out, "{}: not computed: needs {}", missing.key, missing.needs.join("; "))?;
    }
    for (reason, rows) in &analysis.left_out {
        writeln!(out, "left out {rows} rows: {}", printable(reason))?;
    }
    Ok(())
}

/// A name must not move the cursor or change colours.
fn printable(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).collect()
}
