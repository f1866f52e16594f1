//! Tables as Parquet files: what data frames and databases read at once, with types and without
//! a parser of numbers.
//!
//! Flat tables only: texts, numbers and counts, with gaps where a column says so. Each column of a
//! group of rows is one page of plain values, packed with zstd.

mod thrift;

use std::io::{self, Write};

use thrift::{Thrift, varint};

/// Rows in a group: readers take a file in by groups, and the writer keeps one in memory.
const ROWS_PER_GROUP: u64 = 1 << 17;
/// A group ends with the row that makes it as large as this: a page must stay below 2 GiB.
const GROUP_BYTES_MAX: usize = 64 << 20;
const MAGIC: &[u8] = b"PAR1";

/// Numbers that the format gives to its words.
const DATA_PAGE: i32 = 0;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const ZSTD: i32 = 6;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const UTF8: i32 = 0;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Count,
}

impl Kind {
    fn code(self) -> i32 {
        match self {
            Kind::Count => 2,
            Kind::Number => 5,
            Kind::Text => 6,
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether cells may be empty.
    pub(crate) optional: bool,
}

/// A value of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Text(&'a str),
    Number(f64),
    Count(u32),
    Empty,
}

/// A file that rows are added to.
pub(crate) struct ParquetWriter<'c, Out> {
    out: Out,
    /// Bytes that were written.
    at: u64,
    columns: &'c [Column],
    pages: Vec<Page>,
    rows: u64,
    groups: Vec<Group>,
}

/// Values of a column in the group that is being gathered.
#[derive(Clone, Default)]
struct Page {
    values: Vec<u8>,
    /// Runs of cells that have a value, or have none.
    runs: Vec<(bool, u64)>,
}

/// A group that was written.
struct Group {
    rows: u64,
    chunks: Vec<Chunk>,
}

/// Where the values of a column in a group are.
struct Chunk {
    at: u64,
    size: u64,
    packed: u64,
}

impl<'c, Out: Write> ParquetWriter<'c, Out> {
    /// An empty table.
    pub(crate) fn new(mut out: Out, columns: &'c [Column]) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let (at, pages) = (MAGIC.len() as u64, vec![Page::default(); columns.len()]);
        Ok(ParquetWriter { out, at, columns, pages, rows: 0, groups: Vec::new() })
    }

    /// Adds a row, a cell for each column.
    pub(crate) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        for ((column, page), cell) in self.columns.iter().zip(&mut self.pages).zip(cells) {
            page.push(column, *cell)?;
        }
        self.rows += 1;
        let bytes: usize = self.pages.iter().map(|page| page.values.len()).sum();
        match self.rows == ROWS_PER_GROUP || bytes >= GROUP_BYTES_MAX {
            true => self.end_group(),
            false => Ok(()),
        }
    }

    /// Writes what is left, and what is where.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.end_group()?;
        }
        let footer = Thrift::of(|file| self.describe(file));
        self.out.write_all(&footer)?;
        self.out.write_all(&short(footer.len())?.to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.flush()
    }

    fn end_group(&mut self) -> io::Result<()> {
        let mut chunks = Vec::new();
        for (column, page) in self.columns.iter().zip(&mut self.pages) {
            let plain = page.take(column)?;
            let packed = zstd::bulk::compress(&plain, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            let header = page_header(short(plain.len())?, short(packed.len())?, self.rows as i32);
            self.out.write_all(&header)?;
            self.out.write_all(&packed)?;
            let (head, size) = (header.len() as u64, plain.len() as u64);
            let chunk =
                Chunk { at: self.at, size: head + size, packed: head + packed.len() as u64 };
            self.at += chunk.packed;
            chunks.push(chunk);
        }
        self.groups.push(Group { rows: std::mem::take(&mut self.rows), chunks });
        Ok(())
    }

    fn describe(&self, file: &mut Thrift) {
        const VERSION: i32 = 1;
        file.i32(1, VERSION);
        file.parts(2, 1 + self.columns.len());
        file.element(|root| {
            root.text(4, "table");
            root.i32(5, self.columns.len() as i32);
        });
        for column in self.columns {
            file.element(|field| {
                field.i32(1, column.kind.code());
                field.i32(3, if column.optional { OPTIONAL } else { REQUIRED });
                field.text(4, column.name);
                if column.kind == Kind::Text {
                    field.i32(6, UTF8);
                    field.part(10, |logical| logical.part(1, |_| {}));
                }
            });
        }
        file.i64(3, self.groups.iter().map(|group| group.rows as i64).sum());
        file.parts(4, self.groups.len());
        self.groups.iter().for_each(|group| file.element(|it| self.describe_group(it, group)));
        file.text(6, concat!("hostler version ", env!("CARGO_PKG_VERSION")));
    }

    fn describe_group(&self, described: &mut Thrift, group: &Group) {
        described.parts(1, group.chunks.len());
        for (column, chunk) in self.columns.iter().zip(&group.chunks) {
            described.element(|it| {
                it.i64(2, chunk.at as i64);
                it.part(3, |values| {
                    values.i32(1, column.kind.code());
                    values.integers(2, &[PLAIN, RLE]);
                    values.one_text(3, column.name);
                    values.i32(4, ZSTD);
                    values.i64(5, group.rows as i64);
                    values.i64(6, chunk.size as i64);
                    values.i64(7, chunk.packed as i64);
                    values.i64(9, chunk.at as i64);
                });
            });
        }
        described.i64(2, group.chunks.iter().map(|chunk| chunk.size as i64).sum());
        described.i64(3, group.rows as i64);
    }
}

impl Page {
    fn push(&mut self, column: &Column, cell: Cell<'_>) -> io::Result<()> {
        match (column.kind, cell) {
            (Kind::Text, Cell::Text(text)) => {
                self.values.extend_from_slice(&short(text.len())?.to_le_bytes());
                self.values.extend_from_slice(text.as_bytes());
            }
            (Kind::Number, Cell::Number(number)) => {
                self.values.extend_from_slice(&number.to_le_bytes());
            }
            (Kind::Count, Cell::Count(count)) => {
                self.values.extend_from_slice(&i64::from(count).to_le_bytes());
            }
            (_, Cell::Empty) if column.optional => {}
            (kind, cell) => panic!("column `{}` of {kind:?} gets {cell:?}", column.name),
        }
        let has_value = cell != Cell::Empty;
        match self.runs.last_mut().filter(|(known, _)| *known == has_value) {
            Some((_, length)) => *length += 1,
            None => self.runs.push((has_value, 1)),
        }
        Ok(())
    }

    /// The page as it stands in the file before it is packed; the next one begins empty.
    fn take(&mut self, column: &Column) -> io::Result<Vec<u8>> {
        let Page { values, runs } = std::mem::take(self);
        if !column.optional {
            return Ok(values);
        }
        let mut levels = Vec::new();
        for (has_value, length) in runs {
            varint(&mut levels, length << 1);
            levels.push(u8::from(has_value));
        }
        let mut plain = short(levels.len())?.to_le_bytes().to_vec();
        plain.extend(levels);
        plain.extend(values);
        Ok(plain)
    }
}

fn page_header(plain: i32, packed: i32, rows: i32) -> Vec<u8> {
    Thrift::of(|page| {
        page.i32(1, DATA_PAGE);
        page.i32(2, plain);
        page.i32(3, packed);
        page.part(5, |data| {
            data.i32(1, rows);
            data.i32(2, PLAIN);
            data.i32(3, RLE);
            data.i32(4, RLE);
        });
    })
}

/// A length as the format has it.
fn short(length: usize) -> io::Result<i32> {
    i32::try_from(length).map_err(|_| io::Error::other("a value is too long for a Parquet file"))
}

#[cfg(test)]
pub(crate) mod tests;
