//! Policies as they are named on the command line.

use anyhow::Result;
use hostler_core::policy::{ESTIMATE_SETTING, Policy, PolicyDef};
use hostler_core::registry::{Registry, settings_from_pairs};

/// A policy with its settings.
#[derive(Clone)]
pub struct Chosen {
    /// Its entry in the registry.
    pub def: PolicyDef,
    /// Settings that differ from the defaults.
    pub settings: toml::Table,
    /// What tells it apart in tables: the settings that the user gave, in short.
    pub given: String,
    /// Whether it knows what no real scheduler does: shown as a bound, and never called best.
    pub is_bound: bool,
}

impl Chosen {
    /// A policy with `KEY=VALUE` settings, checked.
    pub fn new<'a>(
        registry: &Registry,
        kind: &str,
        pairs: impl Iterator<Item = &'a str>,
    ) -> Result<Chosen> {
        let def = registry.find(kind)?.clone();
        let settings = settings_from_pairs(pairs)?;
        def.build(&settings)?;
        let given = short(&settings);
        Ok(Chosen { def, settings, given, is_bound: false })
    }

    /// Reads `KIND[:KEY=VALUE..]`.
    pub fn parse(registry: &Registry, text: &str) -> Result<Chosen> {
        let mut parts = text.split(':');
        Chosen::new(registry, parts.next().unwrap_or_default(), parts)
    }

    /// The same policy, which learns run times from jobs that are over.
    pub fn learning(self) -> Chosen {
        self.estimating("blend")
    }

    /// The same policy, with run times from this source.
    pub fn estimating(self, source: &str) -> Chosen {
        let mut settings = self.settings;
        settings.insert(ESTIMATE_SETTING.to_owned(), source.into());
        Chosen { settings, ..self }
    }

    /// The same policy as a bound, which knows run times before jobs have run.
    pub fn bound(self) -> Chosen {
        Chosen { given: "true run times".to_owned(), is_bound: true, ..self }
    }

    /// Makes the policy.
    pub fn build(&self) -> Box<dyn Policy> {
        self.def.build(&self.settings).expect("the settings were checked when they were read")
    }

    /// The settings in short: `preempt=true`.
    pub fn short(&self) -> String {
        short(&self.settings)
    }

    /// The policy as TOML, for the log.
    pub fn toml(&self) -> String {
        toml::Table::from_iter([("policy".to_owned(), self.table().into())]).to_string()
    }

    /// The policy as TOML, as a file for the daemon has it.
    pub fn bare_toml(&self) -> String {
        self.table().to_string()
    }

    fn table(&self) -> toml::Table {
        let mut table = self.settings.clone();
        table.insert("kind".to_owned(), self.def.kind.to_string().into());
        table
    }
}

fn short(settings: &toml::Table) -> String {
    let pairs = settings.iter().map(|(key, value)| match value.as_str() {
        Some(text) => format!("{key}={text}"),
        None => format!("{key}={value}"),
    });
    pairs.collect::<Vec<_>>().join(" ")
}
