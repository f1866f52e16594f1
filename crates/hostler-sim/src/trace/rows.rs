//! A CSV stream as rows of known columns: limits, header, fields and their faults.
//!
//! Every bad place becomes a [`Fault`] with file, line, column and value; the caller's row then
//! holds a default, and the read as a whole fails. Nothing here panics on any input.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use super::error::{Fault, Faults, Problem, quote};
use super::limits::{FIELD_BYTES_MAX, NUMBER_MAX, RECORD_BYTES_MAX, ROWS_MAX, TIME_MS_MAX};
use super::table::{OptU32, OptU64};
use super::text::{TextId, TextPool};

/// A column of a table.
pub(super) struct Column {
    pub(super) name: &'static str,
    /// Whether the header must have it.
    pub(super) required: bool,
}

pub(super) const fn required(name: &'static str) -> Column {
    Column { name, required: true }
}

pub(super) const fn optional(name: &'static str) -> Column {
    Column { name, required: false }
}

/// A table to read: columns, and what to do with others.
pub(super) struct Layout<'a> {
    pub(super) columns: &'a [Column],
    /// Native tables refuse columns they do not know; importers pass over them.
    pub(super) unknown_are_faults: bool,
}

/// Where one read puts what it finds, beside the rows.
pub(super) struct Sink<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a mut TextPool,
    pub(super) faults: &'a mut Faults,
}

impl Sink<'_> {
    pub(super) fn fault(&mut self, line: u64, column: &str, value: &[u8], problem: Problem) {
        let (file, column, value) = (self.file.to_owned(), column.to_owned(), quote(value));
        self.faults.push(Fault { file, line, column, value, problem });
    }
}

/// Reads every row and hands it over; returns the number of rows.
pub(super) fn each_row(
    input: &mut dyn Read,
    layout: &Layout<'_>,
    sink: &mut Sink<'_>,
    take: &mut dyn FnMut(&mut Row<'_, '_>),
) -> u64 {
    let mut records = Records::new(input);
    let mut record = csv::ByteRecord::new();
    let mut next = |record: &mut csv::ByteRecord, sink: &mut Sink<'_>| {
        records.next(record).unwrap_or_else(|(line, problem)| {
            sink.fault(line, "", b"", problem);
            false
        })
    };
    let before = sink.faults.list.len();
    if !next(&mut record, sink) {
        if sink.faults.list.len() == before {
            sink.fault(0, "", b"", Problem::EmptyFile);
        }
        return 0;
    }
    let Some(places) = places(&record, layout, sink) else {
        return 0;
    };
    let width = record.len();
    let mut rows = 0;
    while !sink.faults.is_full() && next(&mut record, sink) {
        let line = record.position().map_or(0, csv::Position::line);
        if rows as usize >= ROWS_MAX {
            sink.fault(line, "", b"", Problem::TooManyRows);
            break;
        }
        rows += 1;
        if record.len() != width {
            let found = record.len();
            sink.fault(line, "", b"", Problem::FieldCount { expected: width, found });
            continue;
        }
        let columns = layout.columns;
        take(&mut Row { record: &record, places: &places, columns, line, sink });
    }
    rows
}

const BUFFER_BYTES: usize = 1 << 16;

/// The records of a CSV stream, one by one, header or not.
pub(super) struct Records<'a> {
    reader: csv::Reader<Limited<'a>>,
    pending: Rc<Cell<u64>>,
}

impl<'a> Records<'a> {
    pub(super) fn new(input: &'a mut dyn Read) -> Records<'a> {
        let pending = Rc::new(Cell::new(0));
        let limited = Limited { input, pending: Rc::clone(&pending) };
        let mut builder = csv::ReaderBuilder::new();
        builder.has_headers(false).flexible(true).buffer_capacity(BUFFER_BYTES);
        Records { reader: builder.from_reader(limited), pending }
    }

    /// Reads the next record; false at the end, line and problem where reading cannot go on.
    pub(super) fn next(&mut self, record: &mut csv::ByteRecord) -> Result<bool, (u64, Problem)> {
        let line = self.reader.position().line();
        let more = self.reader.read_byte_record(record);
        self.pending.set(0);
        more.map_err(|error| (line, unreadable(&error)))
    }
}

/// Refuses to go on when too many bytes went by without a record being completed, so that no
/// input can make a parser collect without end.
pub(super) struct Limited<'a> {
    pub(super) input: &'a mut dyn Read,
    /// Bytes since the last complete record; the reader of records sets it back.
    pub(super) pending: Rc<Cell<u64>>,
}

#[derive(Debug, thiserror::Error)]
#[error("record too long")]
pub(super) struct RecordTooLong;

impl Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.pending.get() > RECORD_BYTES_MAX {
            return Err(io::Error::other(RecordTooLong));
        }
        let bytes = self.input.read(buffer)?;
        self.pending.set(self.pending.get() + bytes as u64);
        Ok(bytes)
    }
}

fn unreadable(error: &csv::Error) -> Problem {
    match error.kind() {
        csv::ErrorKind::Io(error) if error.get_ref().is_some_and(|e| e.is::<RecordTooLong>()) => {
            Problem::RecordTooLong
        }
        csv::ErrorKind::Io(error) => Problem::Unreadable(error.to_string()),
        _ => Problem::Unreadable(error.to_string()),
    }
}

const ABSENT: usize = usize::MAX;

/// For each column of the layout its field; `None` after a fault in the header.
fn places(
    header: &csv::ByteRecord,
    layout: &Layout<'_>,
    sink: &mut Sink<'_>,
) -> Option<Vec<usize>> {
    let before = sink.faults.list.len();
    let mut places = vec![ABSENT; layout.columns.len()];
    for (field, name) in header.iter().enumerate() {
        let known = layout.columns.iter().position(|column| column.name.as_bytes() == name);
        match known {
            Some(column) if places[column] == ABSENT => places[column] = field,
            Some(column) => {
                sink.fault(1, layout.columns[column].name, b"", Problem::DuplicatedColumn);
            }
            None if layout.unknown_are_faults => {
                let names: Vec<_> = layout.columns.iter().map(|column| column.name).collect();
                sink.fault(1, "", name, Problem::UnknownColumn(names.join(", ")));
            }
            None => {}
        }
        if sink.faults.is_full() {
            return None;
        }
    }
    for (column, place) in layout.columns.iter().zip(&places) {
        if column.required && *place == ABSENT {
            sink.fault(1, column.name, b"", Problem::MissingColumn);
        }
    }
    (sink.faults.list.len() == before).then_some(places)
}

/// One row; columns are named by their position in the layout.
pub(super) struct Row<'r, 's> {
    record: &'r csv::ByteRecord,
    places: &'r [usize],
    columns: &'r [Column],
    line: u64,
    sink: &'r mut Sink<'s>,
}

impl<'r> Row<'r, '_> {
    /// Line in the file, as rows store it.
    pub(super) fn line(&self) -> u32 {
        u32::try_from(self.line).unwrap_or(u32::MAX)
    }

    /// The bytes of a field; empty when the file has no such column.
    pub(super) fn bytes(&self, column: usize) -> &'r [u8] {
        self.record.get(self.places[column]).unwrap_or_default()
    }

    /// Reports a field.
    pub(super) fn fault(&mut self, column: usize, problem: Problem) {
        let value = self.bytes(column);
        self.sink.fault(self.line, self.columns[column].name, value, problem);
    }

    /// A field as text.
    pub(super) fn str(&mut self, column: usize) -> &'r str {
        let bytes = self.bytes(column);
        if bytes.len() > FIELD_BYTES_MAX {
            self.fault(column, Problem::FieldTooLong);
            return "";
        }
        std::str::from_utf8(bytes).unwrap_or_else(|_| {
            self.fault(column, Problem::NotUtf8);
            ""
        })
    }

    /// A field as stored text.
    pub(super) fn text(&mut self, column: usize) -> TextId {
        let text = self.str(column);
        self.intern(column, text)
    }

    /// Stores a text that was made from a field.
    pub(super) fn intern(&mut self, column: usize, text: &str) -> TextId {
        self.sink.text.intern(text).unwrap_or_else(|full| {
            self.fault(column, full.into());
            TextId::EMPTY
        })
    }

    /// A field that must not be empty, as stored text.
    pub(super) fn name(&mut self, column: usize) -> TextId {
        if self.bytes(column).is_empty() {
            self.fault(column, Problem::Empty);
        }
        self.text(column)
    }

    /// A whole number up to `max`.
    pub(super) fn integer(&mut self, column: usize, max: u64) -> Option<u64> {
        parse_integer(self.bytes(column), max).unwrap_or_else(|problem| {
            self.fault(column, problem);
            None
        })
    }

    /// A whole number up to `max` that must be there.
    pub(super) fn needed(&mut self, column: usize, max: u64) -> u64 {
        if self.bytes(column).is_empty() {
            self.fault(column, Problem::Empty);
        }
        self.integer(column, max).unwrap_or(0)
    }

    /// A time, a length of time or an amount of work.
    pub(super) fn long(&mut self, column: usize) -> OptU64 {
        self.integer(column, TIME_MS_MAX).map_or(OptU64::NONE, OptU64::some)
    }

    /// A number of the 32-bit columns.
    pub(super) fn number(&mut self, column: usize) -> OptU32 {
        let number = self.integer(column, NUMBER_MAX);
        number.map_or(OptU32::NONE, |value| OptU32::some(value as u32))
    }

    /// One of a closed set of words.
    pub(super) fn word<T: Copy + Default>(
        &mut self,
        column: usize,
        names: &[(T, &'static str)],
    ) -> T {
        let bytes = self.bytes(column);
        if let Some((value, _)) = names.iter().find(|(_, name)| name.as_bytes() == bytes) {
            return *value;
        }
        let known = names.iter().map(|(_, name)| *name).filter(|name| !name.is_empty());
        self.fault(column, Problem::UnknownWord(known.collect::<Vec<_>>().join(", ")));
        T::default()
    }
}

/// A whole number without sign, or nothing.
pub(super) fn parse_integer(bytes: &[u8], max: u64) -> Result<Option<u64>, Problem> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Problem::NotInteger);
    }
    if digits.len() < bytes.len() {
        return Err(Problem::Negative);
    }
    let mut value: u64 = 0;
    for digit in digits {
        let next = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit - b'0')));
        value = next.filter(|value| *value <= max).ok_or(Problem::TooLarge(max))?;
    }
    Ok(Some(value))
}

/// A finite decimal number of at least 0, or nothing.
pub(super) fn parse_decimal(text: &str) -> Result<Option<f64>, Problem> {
    if text.is_empty() {
        return Ok(None);
    }
    let value: f64 = text.parse().map_err(|_| Problem::NotNumber)?;
    if !value.is_finite() {
        return Err(Problem::NotNumber);
    }
    if value < 0.0 {
        return Err(Problem::Negative);
    }
    Ok(Some(value))
}
