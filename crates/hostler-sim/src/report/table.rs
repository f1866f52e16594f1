//! The comparison as an aligned table for a terminal.
//!
//! Headings wrap between words so that the usual columns fit a window of 120 characters.

use super::data::Report;
use super::format;

/// Between two columns, beside the place that every cell keeps free for the mark.
const GAP: &str = " ";
const BEST: char = '*';

/// Longer lines of words are hard to read.
const PARAGRAPH_WIDTH: usize = 100;

/// A table that is wider goes on below, with the policies named again.
const WIDTH_MAX: usize = 120;

/// Writes the comparison as text; with `colour` the best values are bold as well as marked.
pub fn text(report: &Report, colour: bool) -> String {
    if report.runs.is_empty() {
        return "no runs to compare\n".to_owned();
    }
    let labels: Vec<String> = report.labels().iter().map(|label| printable(label)).collect();
    let label_width = labels.iter().map(|label| width(label)).max().unwrap_or(0).max(6);
    let columns: Vec<TextColumn> =
        (0..report.columns.len()).map(|index| TextColumn::new(report, index)).collect();
    let labels: Vec<String> = labels.iter().map(|label| pad_right(label, label_width)).collect();
    let blocks = blocks(&columns, label_width);
    let blocks: Vec<String> =
        blocks.into_iter().map(|columns| block(columns, &labels, label_width, colour)).collect();
    let mut out = blocks.join("\n");
    if columns.iter().any(|column| column.best.contains(&true)) {
        out.push_str("\n* best of its column\n");
    }
    out
}

/// Cuts the columns where the next one would leave the window.
fn blocks(columns: &[TextColumn], label_width: usize) -> Vec<&[TextColumn]> {
    let mut blocks = Vec::new();
    let (mut start, mut used) = (0, label_width);
    for (index, column) in columns.iter().enumerate() {
        let needed = GAP.len() + column.width + 1;
        if used + needed > WIDTH_MAX && index > start {
            blocks.push(&columns[start..index]);
            (start, used) = (index, label_width);
        }
        used += needed;
    }
    blocks.push(&columns[start..]);
    blocks
}

fn block(columns: &[TextColumn], labels: &[String], label_width: usize, colour: bool) -> String {
    let mut out = String::new();
    let height = columns.iter().map(|column| column.heading.len()).max().unwrap_or(1);
    for line in 0..height {
        let first = if line + 1 == height { "policy" } else { "" };
        let cells = columns.iter().map(|column| column.heading_cell(line, height));
        push_line(&mut out, &pad_right(first, label_width), cells);
    }
    for (row, label) in labels.iter().enumerate() {
        push_line(&mut out, label, columns.iter().map(|column| column.cell(row, colour)));
    }
    out
}

struct TextColumn {
    heading: Vec<String>,
    values: Vec<String>,
    best: Vec<bool>,
    width: usize,
}

impl TextColumn {
    fn new(report: &Report, index: usize) -> TextColumn {
        let column = &report.columns[index];
        let values: Vec<Option<f64>> = report.runs.iter().map(|run| run.value(index)).collect();
        let values = format::column(&values, column.format);
        let widest_value = values.iter().map(|value| width(value)).max().unwrap_or(0);
        let widest_word = column.label.split_whitespace().map(width).max().unwrap_or(0);
        let width = widest_value.max(widest_word);
        let heading = wrap(&column.label, width);
        TextColumn { heading, values, best: report.best(index), width }
    }

    /// Short headings sit at the bottom, next to their values.
    fn heading_cell(&self, line: usize, height: usize) -> String {
        let blank = height - self.heading.len();
        let text = line.checked_sub(blank).map_or("", |own| self.heading[own].as_str());
        format!("{} ", pad_left(text, self.width))
    }

    fn cell(&self, row: usize, colour: bool) -> String {
        let padded = pad_left(&self.values[row], self.width);
        match (self.best[row], colour) {
            (false, _) => format!("{padded} "),
            (true, false) => format!("{padded}{BEST}"),
            (true, true) => format!("\x1b[1m{padded}{BEST}\x1b[0m"),
        }
    }
}

fn push_line(out: &mut String, first: &str, cells: impl Iterator<Item = String>) {
    let mut line = first.to_owned();
    for cell in cells {
        line.push_str(GAP);
        line.push_str(&cell);
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// A paragraph for the terminal.
pub fn paragraph(text: &str) -> String {
    wrap(&printable(text), PARAGRAPH_WIDTH).join("\n")
}

fn wrap(text: &str, limit: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A name must not move the cursor or change colours.
fn printable(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).collect()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn pad_right(text: &str, width_wanted: usize) -> String {
    format!("{text:<width_wanted$}")
}

fn pad_left(text: &str, width_wanted: usize) -> String {
    format!("{text:>width_wanted$}")
}
