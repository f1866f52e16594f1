//! Carrying a whole store from one database to another: from SQLite to PostgreSQL and back.
//!
//! Rows go as they are, in one transaction of the target: it holds everything or nothing. Both
//! stores are locked meanwhile, so no daemon can run on either.

use std::path::{Path, PathBuf};

use super::sql::{Database, Value, in_transaction, migrate};
use super::{StoreError, postgres, schema, sqlite};

/// Rows that are in memory at a time.
const ROWS_MAX: u64 = 1_000;

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a data folder.
    Folder(PathBuf),
    /// On a PostgreSQL server.
    Server(String),
}

impl Place {
    /// A folder, or the address of a server.
    pub fn parse(text: &str) -> Place {
        let server = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
        if server { Place::Server(text.to_owned()) } else { Place::Folder(PathBuf::from(text)) }
    }
}

/// Rows that were carried over, by table.
pub type Copied = Vec<(&'static str, u64)>;

/// Copies a store into an empty database.
pub fn copy(from: &Place, to: &Place) -> Result<Copied, StoreError> {
    match from {
        Place::Folder(folder) => onward(sqlite::connect(existing(folder)?)?, to),
        Place::Server(address) => onward(postgres::connect(address)?, to),
    }
}

/// A folder that has a store: to look for one must not make one.
fn existing(folder: &Path) -> Result<&Path, StoreError> {
    let found = folder.join(sqlite::FILE).exists();
    let store = || folder.display().to_string();
    if found { Ok(folder) } else { Err(StoreError::Missing { store: store() }) }
}

fn onward(mut from: impl Database, to: &Place) -> Result<Copied, StoreError> {
    if !from.has_table("meta")? {
        return Err(StoreError::Missing { store: from.name().to_owned() });
    }
    migrate(&mut from)?;
    match to {
        Place::Folder(folder) => fill(&mut from, &mut sqlite::connect(folder)?),
        Place::Server(address) => fill(&mut from, &mut postgres::connect(address)?),
    }
}

fn fill(from: &mut impl Database, to: &mut impl Database) -> Result<Copied, StoreError> {
    for table in schema::TABLES {
        if to.has_table(table.name)? {
            return Err(StoreError::NotEmpty { store: to.name().to_owned() });
        }
    }
    in_transaction(to, |to| {
        schema::CREATE.iter().try_for_each(|statement| to.execute(statement, &[]).map(|_| ()))?;
        let copied = schema::TABLES.iter().map(|table| Ok((table.name, carry(from, to, table)?)));
        copied.collect()
    })
}

/// Copies one table and tells how many rows it has.
fn carry(
    from: &mut impl Database,
    to: &mut impl Database,
    table: &schema::SchemaTable,
) -> Result<u64, StoreError> {
    let schema::SchemaTable { name, columns, key } = table;
    let places: Vec<String> =
        (1..=columns.split(", ").count()).map(|at| format!("${at}")).collect();
    let insert = format!("INSERT INTO {name} ({columns}) VALUES ({})", places.join(", "));
    let mut copied = 0;
    let mut last = Some(Value::Int(i64::MIN));
    while let Some(after) = last.take() {
        let rows = match key {
            schema::Key::Number(column) => {
                let page = format!(
                    "SELECT {columns} FROM {name} WHERE {column} > $1 ORDER BY {column} LIMIT $2"
                );
                from.query(&page, &[after, ROWS_MAX.into()])?
            }
            schema::Key::Words => from.query(&format!("SELECT {columns} FROM {name}"), &[])?,
        };
        rows.iter().try_for_each(|row| to.execute(&insert, row).map(|_| ()))?;
        copied += rows.len() as u64;
        let more = matches!(key, schema::Key::Number(_)) && rows.len() as u64 == ROWS_MAX;
        last = rows.last().filter(|_| more).and_then(|row| row.first().cloned());
    }
    let counted = to.query(&format!("SELECT COUNT(*) FROM {name}"), &[])?;
    assert_eq!(counted, [[Value::from(copied)]], "the database holds what was put into it");
    Ok(copied)
}
