//! Files are read back by another implementation of the format.

use std::fs::File;
use std::io::Write;

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;

use super::*;

const COLUMNS: [Column; 4] = [
    Column { name: "who", kind: Kind::Text, optional: false },
    Column { name: "where", kind: Kind::Text, optional: true },
    Column { name: "seconds", kind: Kind::Number, optional: true },
    Column { name: "times", kind: Kind::Count, optional: false },
];

/// The rows of a file, and how many groups they are in.
pub(crate) fn read(file: File) -> (Vec<Vec<Field>>, usize) {
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect::<Vec<Field>>()
    });
    (rows.collect(), reader.num_row_groups())
}

fn written(rows: &[[Cell<'_>; 4]]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    let mut table = ParquetWriter::new(&mut file as &mut dyn Write, &COLUMNS).unwrap();
    rows.iter().for_each(|row| table.row(row).unwrap());
    table.finish().unwrap();
    file
}

fn field(cell: &Cell<'_>) -> Field {
    match *cell {
        Cell::Text(text) => Field::Str(text.to_owned()),
        Cell::Number(number) => Field::Double(number),
        Cell::Count(count) => Field::Long(count.into()),
        Cell::Empty => Field::Null,
    }
}

fn fields(rows: &[[Cell<'_>; 4]]) -> Vec<Vec<Field>> {
    rows.iter().map(|row| row.iter().map(field).collect()).collect()
}

#[test]
fn another_reader_finds_what_was_written() {
    let rows = [
        [Cell::Text("ada"), Cell::Text("süd"), Cell::Number(0.1), Cell::Count(0)],
        [Cell::Text(""), Cell::Empty, Cell::Empty, Cell::Count(7)],
        [Cell::Text("bo, \"b\"\n"), Cell::Text(""), Cell::Number(-1e300), Cell::Count(u32::MAX)],
        [Cell::Text("cy"), Cell::Empty, Cell::Number(0.0), Cell::Count(1)],
    ];
    assert_eq!(read(written(&rows)), (fields(&rows), 1));
}

#[test]
fn a_table_may_be_empty_and_a_column_too() {
    assert_eq!(read(written(&[])), (Vec::new(), 0));
    let row = [Cell::Text("ada"), Cell::Empty, Cell::Empty, Cell::Count(3)];
    assert_eq!(read(written(&[row; 3])), (fields(&[row; 3]), 1));
}

#[test]
fn long_tables_are_written_in_groups_and_none_is_lost() {
    let rows: Vec<[Cell<'_>; 4]> = (0..ROWS_PER_GROUP as u32 + 300)
        .map(|at| {
            let seconds = if at % 3 == 0 { Cell::Empty } else { Cell::Number(f64::from(at) / 8.0) };
            [Cell::Text("ada"), Cell::Text("here"), seconds, Cell::Count(at)]
        })
        .collect();
    let (read, groups) = read(written(&rows));
    assert_eq!(groups, 2);
    assert!(read == fields(&rows), "rows differ");
}

#[test]
fn the_schema_says_what_is_text_and_what_may_be_missing() {
    let reader = SerializedFileReader::new(written(&[])).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let columns = schema.columns().iter().map(|column| {
        let (kind, text) = (column.physical_type(), column.converted_type());
        format!("{} {kind} {text} {}", column.name(), column.max_def_level())
    });
    let columns: Vec<String> = columns.collect();
    let expected = [
        "who BYTE_ARRAY UTF8 0",
        "where BYTE_ARRAY UTF8 1",
        "seconds DOUBLE NONE 1",
        "times INT64 NONE 0",
    ];
    assert_eq!(columns, expected);
}
