//! What a command prints, without all that differs from one run to the next.

/// Columns whose values depend on the clock.
const VOLATILE: &[&str] =
    &["TIME", "RAN", "ENDED (UTC)", "CREATED", "GPU-H", "FAILED-H", "LOST-H", "WAITED-H", "KWH"];

/// What stands for a value that differs.
const OPEN: &str = "..";

/// Replaces secrets, places and times.
#[derive(Default)]
pub struct Record {
    /// Text and what stands for it, in this order.
    replaced: Vec<(String, String)>,
}

impl Record {
    /// From now on one text stands for another.
    pub fn replace(&mut self, text: &str, by: &str) {
        self.replaced.push((text.to_owned(), by.to_owned()));
        // What contains another comes before it.
        self.replaced.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    }

    /// The text as it is written down.
    pub fn plain(&self, text: &str) -> String {
        let mut text = tables(text);
        for (found, by) in &self.replaced {
            text = text.replace(found, by);
        }
        counts(&moments(&text))
    }
}

/// The same text, with tables that do not depend on the clock; one at most.
fn tables(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let Some(head) = lines.iter().position(|line| is_head(line)) else { return text.to_owned() };
    let end = lines[head..].iter().position(|line| line.is_empty());
    let end = end.map_or(lines.len(), |end| head + end);
    let mut plain: Vec<String> = lines[..head].iter().map(|line| (*line).to_owned()).collect();
    plain.extend(table(&lines[head..end]));
    plain.extend(lines[end..].iter().map(|line| (*line).to_owned()));
    plain.join("\n") + "\n"
}

/// The same text, without numbers that count what passed or was written meanwhile.
fn counts(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let is_number = |word: &str| word.starts_with(|char: char| char.is_ascii_digit());
        let unit = |at: usize| words.get(at + 1).map(|word| word.trim_end_matches([',', ';', ':']));
        let counts = |at: usize| {
            let before = at.checked_sub(1).map(|at| words[at]);
            let seconds = before == Some("for")
                && (unit(at) == Some("s") || words[at].trim_end_matches(',').ends_with('s'));
            seconds || unit(at) == Some("records") || unit(at) == Some("MiB")
        };
        let word = |(at, word): (usize, &&str)| match is_number(word) && counts(at) {
            true => OPEN.to_owned(),
            false => (*word).to_owned(),
        };
        words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Whether a line names columns of which any depends on the clock.
fn is_head(line: &str) -> bool {
    columns(line).iter().any(|(_, name)| VOLATILE.contains(name))
}

/// Where columns begin, and their names.
fn columns(line: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    for part in line.split("  ") {
        let name = part.trim();
        if !name.is_empty() {
            found.push((at + part.len() - part.trim_start().len(), name));
        }
        at += part.len() + 2;
    }
    found
}

/// A table without the values of columns that depend on the clock, laid out anew.
fn table(lines: &[&str]) -> Vec<String> {
    let heads = columns(lines[0]);
    let cells = |line: &&str| -> Vec<String> {
        let chars: Vec<char> = line.chars().collect();
        let cell = |(number, (start, name)): (usize, &(usize, &str))| {
            let end = heads.get(number + 1).map_or(chars.len(), |(next, _)| *next);
            let (start, end) = ((*start).min(chars.len()), end.min(chars.len()));
            let cell: String = chars[start..end].iter().collect();
            // What is measured each second may miss a short job.
            let empty = cell.trim() == "-" && *name != "KWH";
            match VOLATILE.contains(name) && !empty && cell.trim() != *name {
                true => OPEN.to_owned(),
                false => cell.trim().to_owned(),
            }
        };
        heads.iter().enumerate().map(cell).collect()
    };
    let mut rows: Vec<Vec<String>> = lines.iter().map(cells).collect();
    if heads.iter().any(|(_, name)| *name == "GPU-H") && rows.len() > 2 {
        // The largest comes first, and the sum last.
        let last = rows.len() - 1;
        rows[1..last].sort();
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..heads.len()).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The same text, with words for moments as in `2026-11-16 09:12:30`.
fn moments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = String::new();
    let mut at = 0;
    while at < text.len() {
        let length = ["0000-00-00 00:00:00", "0000-00-00 00:00"].iter().find_map(|shape| {
            let found = bytes.get(at..at + shape.len())?;
            let same = |(byte, shape): (&u8, u8)| match shape {
                b'0' => byte.is_ascii_digit(),
                other => *byte == other,
            };
            found.iter().zip(shape.bytes()).all(same).then_some(shape.len())
        });
        if let Some(length) = length {
            plain.push_str("DAY TIME");
            at += length;
            continue;
        }
        let char = text[at..].chars().next().expect("there is a rest");
        plain.push(char);
        at += char.len_utf8();
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_the_clock_is_left_open_and_tables_keep_their_form() {
        let mut record = Record::default();
        record.replace("127.0.0.1:43210", "HOST:7717");
        let table = "JOB  STATE      TIME    NODES  NOTE\n1    running    1m 12s  g1     half\n\
                     12   queued x2  3s             waits\n";
        let head =
            "at 127.0.0.1:43210 since 2026-11-16 09:12:30, held for 12s, 9 records, 3 of 4\n";
        let plain = record.plain(&format!("{head}{table}"));
        assert_eq!(
            plain,
            "at HOST:7717 since DAY TIME, held for .. .. records, 3 of 4\nJOB  STATE      TIME  NODES  NOTE\n\
             1    running    ..    g1     half\n12   queued x2  ..           waits\n"
        );
    }
}
