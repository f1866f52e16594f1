//! `hostler policy`.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use hostler_core::registry::Registry;
use hostler_live::api::PolicyText;

use crate::cli::PolicyCommand;
use crate::live::{client, print_json};
use crate::say::say;
use crate::settings::Chosen;

/// Shows or changes the policy.
pub fn run(command: &PolicyCommand, registry: &Registry) -> Result<()> {
    let (policy, json): (PolicyText, bool) = match command {
        PolicyCommand::Show { json } => (client()?.get("/policy")?, *json),
        PolicyCommand::Set { policy, json } => {
            let toml = text(policy, registry)?;
            (
                client()?
                    .put("/policy", &PolicyText { toml, violation: None, nobody_decides: false })?,
                *json,
            )
        }
    };
    if json {
        return print_json(&policy);
    }
    println!("{}", policy.toml.trim_end());
    match &policy.violation {
        Some(fault) if policy.nobody_decides => say(format_args!(
            "warning: nobody decides: it broke a rule and there is no other to take over: {fault}; \
             set another with `hostler policy set`"
        )),
        Some(fault) => {
            say(format_args!("warning: it took over because another policy broke a rule: {fault}"));
        }
        None => {}
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
