//! `hostler store`.

use anyhow::Result;
use hostler_live::store::{Place, copy};
use serde_json::{Map, Value};

use crate::cli::{StoreCommand, StoreCopy};
use crate::live::{print_json, table};
use crate::say::print;

/// Sees to a store.
pub fn run(command: &StoreCommand) -> Result<()> {
    let StoreCommand::Copy(StoreCopy { from, to, json }) = command;
    let copied = copy(&Place::parse(from), &Place::parse(to))?;
    if *json {
        let rows = copied.iter().map(|(name, rows)| ((*name).to_owned(), Value::from(*rows)));
        return print_json(&Value::Object(rows.collect::<Map<_, _>>()));
    }
    let rows: Vec<_> =
        copied.iter().map(|(name, rows)| [(*name).to_owned(), rows.to_string()]).collect();
    Ok(print(table(["TABLE", "ROWS"], &rows))?)
}
