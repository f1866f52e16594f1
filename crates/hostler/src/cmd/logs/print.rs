//! Printing pieces of output: as they are, behind marks, behind the numbers of tasks, or as JSON.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use hostler_live::api::JobOutput;
use hostler_live::wire::Stream;
use serde::Serialize;

use super::read::Source;
use crate::say::say;

/// Before each line of standard error, where both streams are shown.
const MARK: &str = "err| ";

/// Bytes of a line that are held back for its end.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Prints pieces of streams as they come.
#[derive(Default)]
pub(super) struct Printer {
    job: u32,
    json: bool,
    /// Whether both streams are shown.
    both: bool,
    /// Digits of the largest number of a task, where more than one is shown.
    label: Option<usize>,
    pub printed: bool,
    /// How the last piece of standard error ended.
    before: Before,
    /// Lines of tasks that have not ended yet.
    begun: BTreeMap<Source, Vec<u8>>,
    /// The start that the last piece is of.
    start: Option<u32>,
}

/// What stands before the next piece of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    /// Nothing, or the end of a line.
    #[default]
    Line,
    /// A return to the beginning of the line.
    Return,
    /// A part of a line.
    Part,
}

/// A piece for machines.
#[derive(Serialize)]
struct PieceJson {
    job: u32,
    rank: u32,
    stream: Stream,
    #[serde(flatten)]
    output: JobOutput,
}

impl Printer {
    pub fn new(job: u32, json: bool, both: bool, label: Option<usize>) -> Printer {
        Printer { job, json, both, label, ..Printer::default() }
    }

    pub fn print(&mut self, source: Source, output: JobOutput) -> Result<()> {
        self.printed |= output.piece.bytes > 0;
        let Source { rank, stream } = source;
        if self.json {
            let piece = PieceJson { job: self.job, rank, stream, output };
            writeln!(std::io::stdout().lock(), "{}", serde_json::to_string(&piece)?)?;
            return Ok(());
        }
        if self.start.replace(output.restart).is_some_and(|before| before < output.restart) {
            say(format_args!("start {} begins here", output.restart + 1));
        }
        let mut out = std::io::stdout().lock();
        if self.label.is_some() {
            let lines = lines(self.begun.entry(source).or_default(), &output.piece.raw());
            self.write_lines(source, &lines)?;
        } else if self.both && stream == Stream::Stderr {
            let marked = marked(&mut self.before, &output.piece.text);
            std::io::stderr().write_all(marked.as_bytes())?;
        } else {
            out.write_all(&output.piece.raw())?;
        }
        out.flush()?;
        Ok(())
    }

    /// Writes whole lines of a task, each behind its number.
    fn write_lines(&self, source: Source, lines: &[Vec<u8>]) -> Result<()> {
        let to_stderr = self.both && source.stream == Stream::Stderr;
        let mark = if to_stderr { MARK } else { "| " };
        let label = format!("{:>width$} {mark}", source.rank, width = self.label.unwrap_or(1));
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(label.as_bytes());
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        match to_stderr {
            true => std::io::stderr().write_all(&text)?,
            false => std::io::stdout().write_all(&text)?,
        }
        Ok(())
    }

    /// Ends lines that have not ended.
    pub fn finish(&mut self) -> Result<()> {
        for (source, line) in std::mem::take(&mut self.begun) {
            if !line.is_empty() {
                self.write_lines(source, &[line])?;
            }
        }
        if std::mem::take(&mut self.before) != Before::Line {
            writeln!(std::io::stderr())?;
        }
        Ok(())
    }
}

/// The whole lines of a stream, with a piece of it added to what has begun. A bar that is drawn
/// over itself is a line each time; a line that is too long is cut.
fn lines(begun: &mut Vec<u8>, piece: &[u8]) -> Vec<Vec<u8>> {
    begun.extend_from_slice(piece);
    let mut lines = Vec::new();
    let mut from = 0;
    while let Some(at) = begun[from..].iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        let end = from + at;
        let is_pair = begun[end] == b'\r' && begun.get(end + 1) == Some(&b'\n');
        if begun[end] == b'\n' || at > 0 {
            lines.push(begun[from..end].to_vec());
        }
        from = end + 1 + usize::from(is_pair);
    }
    begun.drain(..from);
    if begun.len() > LINE_BYTES_MAX {
        lines.push(std::mem::take(begun));
    }
    lines
}

/// The text with a mark before each line. A bar that is drawn over itself has one each time.
fn marked(before: &mut Before, text: &str) -> String {
    let mut marked = String::with_capacity(text.len() + MARK.len());
    for part in text.split_inclusive(['\n', '\r']) {
        let goes_on = *before == Before::Part || (*before == Before::Return && part == "\n");
        if !goes_on {
            marked.push_str(MARK);
        }
        marked.push_str(part);
        *before = match part.as_bytes().last() {
            Some(b'\n') => Before::Line,
            Some(b'\r') => Before::Return,
            _ => Before::Part,
        };
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_marked_once_however_they_come() {
        let mut before = Before::Line;
        let pieces = ["one\nt", "wo\n10 %\r", "20 %\r", "\n", "\n", "end"];
        let marked: String = pieces.iter().map(|piece| marked(&mut before, piece)).collect();
        let expected = "err| one\nerr| two\nerr| 10 %\rerr| 20 %\r\nerr| \nerr| end";
        assert_eq!((marked.as_str(), before), (expected, Before::Part));
    }

    #[test]
    fn lines_of_tasks_are_whole() {
        let mut begun = Vec::new();
        let mut whole = |piece: &str| {
            let lines = lines(&mut begun, piece.as_bytes()).into_iter();
            lines.map(|line| String::from_utf8(line).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(whole("one\nt"), ["one"]);
        assert_eq!(whole("wo\n\n10 %\r20 %\r\nen"), ["two", "", "10 %", "20 %"]);
        assert_eq!(whole("d"), [""; 0]);
        assert_eq!(whole(&"x".repeat(LINE_BYTES_MAX))[0].len(), LINE_BYTES_MAX + 3);
    }
}
