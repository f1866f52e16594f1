//! `hostler policy`.

use std::io::Read;

use anyhow::{Context, Result};
use hostler_live::api::PolicyText;

use crate::cli::PolicyCommand;
use crate::live::{client, print_json};

/// Shows or changes the policy.
pub fn run(command: &PolicyCommand) -> Result<()> {
    let (policy, json): (PolicyText, bool) = match command {
        PolicyCommand::Show { json } => (client()?.get("/policy")?, *json),
        PolicyCommand::Set { file, json } => {
            let name = file.display();
            let text = match file.as_os_str() == "-" {
                true => {
                    let mut text = String::new();
                    std::io::stdin().read_to_string(&mut text).map(|_| text)
                }
                false => std::fs::read_to_string(file),
            };
            let toml = text.with_context(|| format!("cannot read `{name}`"))?;
            (client()?.put("/policy", &PolicyText { toml })?, *json)
        }
    };
    if json {
        return print_json(&policy);
    }
    println!("{}", policy.toml.trim_end());
    Ok(())
}
