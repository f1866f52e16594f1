//! `hostler policy`.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use hostler_core::registry::Registry;
use hostler_live::api::PolicyText;

use crate::cli::PolicyCommand;
use crate::live::{client, print_json};
use crate::say::{print, say};
use crate::settings::Chosen;

/// Shows or changes the policy.
pub fn run(command: &PolicyCommand, registry: &Registry) -> Result<()> {
    let (policy, json): (PolicyText, bool) = match command {
        PolicyCommand::Show { json } => (client()?.get("/policy")?, *json),
        PolicyCommand::Set { policy, json } => {
            let toml = text(policy, registry)?;
            (client()?.put("/policy", &PolicyText { toml, violation: None })?, *json)
        }
    };
    if json {
        return print_json(&policy);
    }
    print(policy.toml.trim_end())?;
    if let Some(violation) = &policy.violation {
        say(format_args!("warning: it took over because another policy broke a rule: {violation}"));
    }
    Ok(())
}

/// The settings of a policy, as TOML: of a file, of standard input, or of `KIND[:KEY=VALUE..]`. A
/// file of that name comes first.
pub fn text(policy: &str, registry: &Registry) -> Result<String> {
    let mut text = String::new();
    let read = match policy {
        "-" => std::io::stdin().read_to_string(&mut text).map(|_| text),
        _ if Path::new(policy).is_file() || is_path(policy) => std::fs::read_to_string(policy),
        _ => return Ok(Chosen::parse(registry, policy)?.bare_toml()),
    };
    read.with_context(|| format!("cannot read `{policy}`"))
}

/// Whether a file is meant, also one that is not there. No policy has such a name.
fn is_path(policy: &str) -> bool {
    let name = policy.split_once(':').map_or(policy, |(kind, _)| kind);
    name.contains(['/', '.'])
}
