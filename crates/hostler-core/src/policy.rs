//! The interface of a policy, and how one is described, configured and built.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::Plan;
use crate::predict::EstimateSource;
use crate::solve::Solve;
use crate::units::Span;
use crate::view::View;

/// A function from a view to a plan.
///
/// Fields are settings and caches: a policy that is built anew before each question must give the
/// same schedule.
pub trait Policy: Send {
    /// When to ask.
    fn cadence(&self) -> Cadence {
        Cadence::EveryEvent
    }

    /// Whose run times it wants to see.
    fn estimates(&self) -> EstimateSource {
        EstimateSource::User
    }

    /// What answers its `Solve` decisions; none when it makes none.
    fn solver(&self) -> Option<Box<dyn Solve>> {
        None
    }

    /// Decides.
    fn decide(&mut self, view: &View<'_>, wake: Wake, plan: &mut Plan<'_>);
}

/// When a policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    /// At every instant at which something relevant happened.
    EveryEvent,
    /// At such instants too, and, while jobs run, when a round has lasted for the span.
    Rounds(Span),
}

/// Why a policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Something happened.
    Event,
    /// As well, and the next round may begin.
    Round,
}

/// An entry of the registry.
#[derive(Clone, Copy)]
pub struct PolicyDef {
    /// Its name in configuration files.
    pub kind: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What a workload must have for the policy to differ from simpler ones.
    pub needs: &'static [Need],
    /// Its settings.
    pub settings: &'static [Setting],
    /// The settings' defaults.
    pub defaults: fn() -> toml::Table,
    /// Makes one from its settings.
    pub build: fn(&toml::Table) -> Result<Box<dyn Policy>, PolicyError>,
}

/// Something that a policy goes by and that not every workload has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Jobs of different priority.
    Priorities,
    /// Jobs with deadlines.
    Deadlines,
    /// Jobs whose speed by GPU model is known.
    Speeds,
    /// Jobs of one GPU at most.
    SingleGpus,
}

impl fmt::Display for Need {
    /// What it means that the need is not met.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Need::Priorities => "every job has the same priority",
            Need::Deadlines => "no job has a deadline",
            Need::Speeds => "no table of speeds by GPU model",
            Need::SingleGpus => "some jobs ask for more than one GPU",
        })
    }
}

/// A setting of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its key.
    pub name: &'static str,
    /// What values it takes.
    pub takes: &'static str,
    /// What it means.
    pub help: &'static str,
}

/// Why a policy cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error("unknown policy `{kind}`; known: {known}")]
    Unknown {
        /// The name.
        kind: String,
        /// Names that exist.
        known: String,
    },
    /// The settings do not say which policy.
    #[error("the policy has no `kind`; known: {known}")]
    NoKind {
        /// Names that exist.
        known: String,
    },
    /// The text is not TOML.
    #[error("invalid TOML: {fault}")]
    Syntax {
        /// What is wrong with it.
        fault: String,
    },
    /// A setting on the command line is not `key=value`.
    #[error("invalid setting `{text}`; write `key=value`")]
    Pair {
        /// What was written.
        text: String,
    },
    /// A setting is unknown, or its value is out of place.
    #[error("invalid settings for policy `{kind}`: {fault}")]
    Settings {
        /// The policy.
        kind: String,
        /// What is wrong with them.
        fault: String,
    },
}

/// Something that a setting can be.
pub trait SettingType {
    /// What values it takes, for people.
    const TAKES: &'static str;
}

impl SettingType for bool {
    const TAKES: &'static str = "true | false";
}

impl SettingType for u32 {
    const TAKES: &'static str = "integer";
}

impl SettingType for u64 {
    const TAKES: &'static str = "integer";
}

impl SettingType for f64 {
    const TAKES: &'static str = "number";
}

/// Reads the settings of policy `kind`; unknown keys are errors.
pub fn settings<Config: DeserializeOwned>(
    kind: &str,
    table: &toml::Table,
) -> Result<Config, PolicyError> {
    read(table).map_err(|fault| {
        // Alone, the setting at fault fails too: then its name is known.
        let alone = table.iter().find_map(|(key, value)| {
            let one = toml::Table::from_iter([(key.clone(), value.clone())]);
            let fault = read::<Config>(&one).err()?;
            let named = fault.contains(&format!("`{key}`"));
            Some(if named { fault } else { format!("`{key}`: {fault}") })
        });
        PolicyError::Settings { kind: kind.to_owned(), fault: alone.unwrap_or(fault) }
    })
}

fn read<Config: DeserializeOwned>(table: &toml::Table) -> Result<Config, String> {
    let read = toml::Value::Table(table.clone()).try_into();
    read.map_err(|error: toml::de::Error| error.message().trim().replace('\n', " "))
}

/// The default settings as a table. Settings without a default are left out.
pub fn defaults<Config: Default + Serialize>() -> toml::Table {
    toml::Table::try_from(Config::default()).expect("settings are plain values")
}

/// Declares the settings of a policy: a struct that is read from TOML, its defaults, and the table
/// that `hostler policies` prints.
#[macro_export]
macro_rules! settings {
    ($(#[$meta:meta])* struct $name:ident {
        $($(#[doc = $help:literal])+ $field:ident: $type:ty = $default:expr,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct $name {
            $($(#[doc = $help])+ $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }

        impl $name {
            const SETTINGS: &'static [$crate::policy::Setting] = &[
                $($crate::policy::Setting {
                    name: stringify!($field),
                    takes: <$type as $crate::policy::SettingType>::TAKES,
                    help: concat!($($help),+),
                },)*
            ];
        }
    };
}
