//! Lines of fields between separators, without quotes: what Slurm and Gavel write.
//!
//! Not for CSV with quotes; that is `rows`. Nothing here panics on any input.

use std::io::{BufRead, BufReader, Read};

use crate::trace::error::Problem;
use crate::trace::limits::{FIELD_BYTES_MAX, RECORD_BYTES_MAX, ROWS_MAX};
use crate::trace::rows::Sink;

/// Hands over the number and the fields of every line that is not empty, until `take` says no.
/// Without a separator the first line tells it: what follows its first word.
pub(super) fn each_line(
    input: &mut dyn Read,
    separator: Option<char>,
    sink: &mut Sink<'_>,
    take: &mut dyn FnMut(u64, &[&str], &mut Sink<'_>) -> bool,
) {
    let mut reader = BufReader::with_capacity(1 << 16, input);
    let mut line = Vec::new();
    let mut number = 0;
    let mut separator = separator;
    while !sink.faults.is_full() {
        line.clear();
        number += 1;
        match (&mut reader).take(RECORD_BYTES_MAX + 1).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.len() as u64 <= RECORD_BYTES_MAX && number as usize <= ROWS_MAX => {}
            Ok(_) if number as usize > ROWS_MAX => {
                return sink.fault(number, "", b"", Problem::TooManyRows);
            }
            Ok(_) => return sink.fault(number, "", b"", Problem::RecordTooLong),
            Err(error) => {
                return sink.fault(number, "", b"", Problem::Unreadable(error.to_string()));
            }
        }
        let Ok(text) = std::str::from_utf8(&line) else {
            sink.fault(number, "", &line, Problem::NotUtf8);
            continue;
        };
        let text = text.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            continue;
        }
        let between = *separator.get_or_insert_with(|| after_word(text));
        let fields: Vec<&str> = text.split(between).collect();
        if fields.iter().any(|field| field.len() > FIELD_BYTES_MAX) {
            sink.fault(number, "", b"", Problem::FieldTooLong);
        } else if !take(number, &fields, sink) {
            return;
        }
    }
}

/// The first character that is no part of a word; `|` if there is none.
pub(super) fn after_word(text: &str) -> char {
    text.chars().find(|letter| !letter.is_alphanumeric() && *letter != '_').unwrap_or('|')
}
