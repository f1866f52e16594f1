//! `hostler policy`.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use hostler_core::policy::ESTIMATE_SETTING;
use hostler_core::registry::Registry;
use hostler_live::api::PolicyText;
use serde::Serialize;

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
            (
                client()?
                    .put("/policy", &PolicyText { toml, violation: None, nobody_decides: false })?,
                *json,
            )
        }
    };
    let settings = settings(&policy.toml, registry);
    if json {
        return print_json(&Shown { policy: &policy, settings });
    }
    match settings {
        Some(settings) => settings.iter().try_for_each(|setting| print(setting.line()))?,
        // A daemon of another version may have a policy that this program does not know.
        None => print(policy.toml.trim_end())?,
    }
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

/// A policy with all of its settings.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    policy: &'a PolicyText,
    /// None where this program does not know the policy.
    settings: Option<Vec<SettingNow>>,
}

/// A setting as it is.
#[derive(Serialize)]
struct SettingNow {
    name: String,
    /// None where it is not set and has no default.
    value: Option<toml::Value>,
    /// Whether nobody chose it.
    default: bool,
    /// Whether it is what a daemon goes by where the policy's own default is of no use to it.
    #[serde(skip)]
    for_real: bool,
}

impl SettingNow {
    fn line(&self) -> String {
        let SettingNow { name, value, default, for_real } = self;
        match value {
            Some(value) if *for_real => {
                format!("{name} = {value}  # default where jobs run for real")
            }
            Some(value) if *default => format!("{name} = {value}  # default"),
            Some(value) => format!("{name} = {value}"),
            None => format!("# {name} is not set"),
        }
    }
}

/// All settings of a policy, those included that nobody named.
fn settings(toml: &str, registry: &Registry) -> Option<Vec<SettingNow>> {
    let chosen: toml::Table = toml.parse().ok()?;
    let def = registry.find(chosen.get("kind")?.as_str()?).ok()?;
    let kind = chosen.get("kind").cloned();
    let (name, default, for_real) = ("kind".to_owned(), false, false);
    let mut settings = vec![SettingNow { name, value: kind, default, for_real }];
    for setting in def.settings.iter() {
        let given = chosen.get(&*setting.name).cloned();
        let default = given.is_none();
        let own = def.defaults.get(&*setting.name).cloned();
        let is = |value: &Option<toml::Value>, word| {
            value.as_ref().and_then(toml::Value::as_str) == Some(word)
        };
        let for_real =
            &*setting.name == ESTIMATE_SETTING && is(&given, "user") && is(&own, "oracle");
        let (name, value) = (setting.name.to_string(), given.or(own));
        settings.push(SettingNow { name, value, default, for_real });
    }
    Some(settings)
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
