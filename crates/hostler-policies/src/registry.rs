//! Finding policies by name and building them from settings. Holds no policy itself.

use hostler_core::policy::{Policy, PolicyDef, PolicyError};
use toml::{Table, Value};

use crate::FAMILIES;

/// Names that differ by more letters than this are no slips of the pen.
const SLIPS_MAX: usize = 2;

/// Every policy, family by family.
pub fn all() -> impl Iterator<Item = &'static PolicyDef> {
    FAMILIES.iter().flat_map(|family| family.iter().copied())
}

/// The policy of this name.
pub fn find(kind: &str) -> Result<&'static PolicyDef, PolicyError> {
    all()
        .find(|def| def.kind == kind)
        .ok_or_else(|| PolicyError::Unknown { kind: kind.to_owned(), known: known() })
}

/// Makes a policy from its name and settings.
pub fn build(kind: &str, settings: &Table) -> Result<Box<dyn Policy>, PolicyError> {
    (find(kind)?.build)(settings)
}

/// Makes a policy from TOML: either a document with a table `[policy]`, or that table alone. The
/// key `kind` names the policy, the others are its settings.
pub fn from_toml(text: &str) -> Result<Box<dyn Policy>, PolicyError> {
    let document: Table = text.parse().map_err(|error: toml::de::Error| PolicyError::Syntax {
        fault: error.message().trim().replace('\n', " "),
    })?;
    let mut settings = match document.get("policy") {
        Some(Value::Table(policy)) => policy.clone(),
        Some(_) | None => document,
    };
    match settings.remove("kind") {
        Some(Value::String(kind)) => build(&kind, &settings),
        Some(_) | None => Err(PolicyError::NoKind { known: known() }),
    }
}

/// Reads settings as they are written on a command line: `preempt=true`, `depth=10`,
/// `estimate=oracle`. What is no TOML value is a string.
pub fn settings_from_pairs<'a>(
    pairs: impl IntoIterator<Item = &'a str>,
) -> Result<Table, PolicyError> {
    let mut table = Table::new();
    for pair in pairs {
        let named = pair
            .split_once('=')
            .filter(|(key, value)| !key.trim().is_empty() && !value.trim().is_empty());
        let Some((key, value)) = named else {
            return Err(PolicyError::Pair { text: pair.to_owned() });
        };
        table.insert(key.trim().to_owned(), value_of(value.trim()));
    }
    Ok(table)
}

/// The name that somebody who wrote `kind` may have meant.
pub fn suggestion(kind: &str) -> Option<&'static str> {
    let near = all().map(|def| (strsim::levenshtein(kind, def.kind), def.kind));
    near.filter(|(slips, _)| *slips <= SLIPS_MAX).min().map(|(_, name)| name)
}

fn known() -> String {
    let mut names: Vec<&str> = all().map(|def| def.kind).collect();
    names.sort_unstable();
    names.join(", ")
}

fn value_of(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>();
    let only = parsed.ok().filter(|table| table.len() == 1);
    only.and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}
