//! `hostler policies`.

use std::io::Write;

use anyhow::Result;
use hostler_core::policy::PolicyDef;
use hostler_core::registry::Registry;
use serde_json::json;

use crate::cli::Policies;

/// Lists the policies, or shows one.
pub fn run(args: &Policies, registry: &Registry) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match (&args.kind, args.json) {
        (None, false) => list(&mut out, registry),
        (None, true) => {
            let all: Vec<_> = registry.all().map(as_json).collect();
            writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
            Ok(())
        }
        (Some(kind), false) => show(&mut out, registry.find(kind)?),
        (Some(kind), true) => {
            let def = as_json(registry.find(kind)?);
            writeln!(out, "{}", serde_json::to_string_pretty(&def)?)?;
            Ok(())
        }
    }
}

fn list(out: &mut impl Write, registry: &Registry) -> Result<()> {
    let width = registry.all().map(|def| def.kind.len()).max().unwrap_or(0);
    for def in registry.all() {
        writeln!(out, "{:width$}  {}", def.kind, def.summary)?;
    }
    Ok(())
}

fn show(out: &mut impl Write, def: &PolicyDef) -> Result<()> {
    writeln!(out, "{}: {}", def.kind, def.summary)?;
    for setting in def.settings.iter() {
        let default = def.defaults.get(&*setting.name).map(toml::Value::to_string);
        let default = default.as_deref().unwrap_or("none");
        writeln!(out, "\n  {} = {default}    ({})", setting.name, setting.takes)?;
        writeln!(out, "    {}", setting.help.trim())?;
    }
    Ok(())
}

fn as_json(def: &PolicyDef) -> serde_json::Value {
    let settings = def.settings.iter().map(|setting| {
        json!({
            "name": setting.name,
            "takes": setting.takes,
            "default": def.defaults.get(&*setting.name),
            "help": setting.help.trim(),
        })
    });
    let settings: Vec<_> = settings.collect();
    json!({ "kind": def.kind, "summary": def.summary, "settings": settings })
}
