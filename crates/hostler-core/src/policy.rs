//! The interface of a policy, and how one is described, configured and built.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

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

/// A policy as the registry knows it: its name, what is to be known of it, and how to make one.
#[derive(Clone)]
pub struct PolicyDef {
    /// Its name in configuration files.
    pub kind: Cow<'static, str>,
    /// What it does, in one line.
    pub summary: Cow<'static, str>,
    /// What a workload must have for the policy to differ from simpler ones.
    pub needs: Vec<Need>,
    /// Of a policy that decides `Solve`: the setting that holds the least seconds between two
    /// solutions.
    pub solve_gap: Option<Cow<'static, str>>,
    /// Its settings.
    pub settings: Cow<'static, [Setting]>,
    /// The settings' defaults; those without one are left out.
    pub defaults: toml::Table,
    /// Makes one from its settings.
    pub build: BuildPolicy,
}

/// Makes a policy from its settings.
pub type BuildPolicy =
    Arc<dyn Fn(&toml::Table) -> Result<Box<dyn Policy>, PolicyError> + Send + Sync>;

impl PolicyDef {
    /// A policy with settings that `settings!` declared. `make` says what is wrong with them where
    /// their types cannot.
    pub fn new<Config: PolicySettings>(
        kind: impl Into<Cow<'static, str>>,
        summary: impl Into<Cow<'static, str>>,
        make: impl Fn(Config) -> Result<Box<dyn Policy>, String> + Send + Sync + 'static,
    ) -> PolicyDef {
        let kind = kind.into();
        let name = kind.clone();
        let build = move |table: &toml::Table| {
            let made = settings(table).and_then(&make);
            made.map_err(|fault| PolicyError::Settings { kind: name.to_string(), fault })
        };
        PolicyDef {
            kind,
            summary: summary.into(),
            needs: Vec::new(),
            solve_gap: None,
            settings: Config::SETTINGS.into(),
            defaults: toml::Table::try_from(Config::default()).expect("settings are plain values"),
            build: Arc::new(build),
        }
    }

    /// Makes the policy from its settings.
    pub fn build(&self, settings: &toml::Table) -> Result<Box<dyn Policy>, PolicyError> {
        (self.build)(settings)
    }
}

/// The setting that says whose run times a policy goes by, an `EstimateSource`. All policies that
/// go by run times call it so; one that has it can be told to learn them.
pub const ESTIMATE_SETTING: &str = "estimate";

/// Something that a policy goes by and that not every workload has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Jobs of different priority.
    Priorities,
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
            Need::Speeds => "no table of speeds by GPU model",
            Need::SingleGpus => "some jobs ask for more than one GPU",
        })
    }
}

/// A setting of a policy.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its key.
    pub name: Cow<'static, str>,
    /// What values it takes.
    pub takes: Cow<'static, str>,
    /// What it means.
    pub help: Cow<'static, str>,
}

impl Setting {
    /// A setting of a type; where `help` is empty, the type says what it means.
    pub const fn declared<Type: SettingType>(name: &'static str, help: &'static str) -> Setting {
        let help = if help.is_empty() { Type::HELP } else { help };
        Setting {
            name: Cow::Borrowed(name),
            takes: Cow::Borrowed(Type::TAKES),
            help: Cow::Borrowed(help),
        }
    }
}

/// Why a policy cannot be built or registered.
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
    /// A policy of this name is registered already.
    #[error("there is a policy `{kind}` already; choose another name")]
    Taken {
        /// The name.
        kind: String,
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
    /// Something stands beside the table of the policy, where nobody reads it.
    #[error("unknown key `{key}` beside `[policy]`; settings go into that table")]
    Stray {
        /// What stands there.
        key: String,
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

    /// What a setting of this type means where a policy does not say it.
    const HELP: &'static str = "";
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

/// The settings of a policy; `settings!` declares them.
pub trait PolicySettings: Default + Serialize + DeserializeOwned {
    /// Each of them, as people see it.
    const SETTINGS: &'static [Setting];
}

/// Reads settings; unknown keys are errors.
fn settings<Config: DeserializeOwned>(table: &toml::Table) -> Result<Config, String> {
    read(table).map_err(|fault| {
        // Alone, the setting at fault fails too: then its name is known.
        let alone = table.iter().find_map(|(key, value)| {
            let one = toml::Table::from_iter([(key.clone(), value.clone())]);
            let fault = read::<Config>(&one).err()?;
            let named = fault.contains(&format!("`{key}`"));
            Some(if named { fault } else { format!("`{key}`: {fault}") })
        });
        alone.unwrap_or(fault)
    })
}

fn read<Config: DeserializeOwned>(table: &toml::Table) -> Result<Config, String> {
    let read = toml::Value::Table(table.clone()).try_into();
    read.map_err(|error: toml::de::Error| error.message().trim().replace('\n', " "))
}

/// Declares the settings of a policy: a struct that is read from TOML, its defaults, and the table
/// that `hostler policies` prints. A setting without a comment means what its type says.
#[macro_export]
macro_rules! settings {
    ($(#[$meta:meta])* struct $name:ident {
        $($(#[doc = $help:literal])* $field:ident: $type:ty = $default:expr,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct $name {
            $($(#[doc = $help])* $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }

        impl $crate::policy::PolicySettings for $name {
            const SETTINGS: &'static [$crate::policy::Setting] = &[
                $($crate::policy::Setting::declared::<$type>(
                    stringify!($field),
                    concat!($($help),*),
                ),)*
            ];
        }
    };
}
