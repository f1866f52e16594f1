//! Policies by name, and how one is built from settings. Holds no policy of its own: who starts the
//! program registers them.

use toml::{Table, Value};

use crate::policy::{Policy, PolicyDef, PolicyError};

/// The policies that can be named.
#[derive(Clone, Default)]
pub struct Registry {
    /// In the order in which they were registered.
    defs: Vec<PolicyDef>,
}

impl Registry {
    /// Adds a policy, unless its name is taken.
    pub fn register(&mut self, def: PolicyDef) -> Result<(), PolicyError> {
        if self.find(&def.kind).is_ok() {
            return Err(PolicyError::Taken { kind: def.kind.into_owned() });
        }
        self.defs.push(def);
        Ok(())
    }

    /// Every policy, in the order in which they were registered.
    pub fn all(&self) -> impl Iterator<Item = &PolicyDef> {
        self.defs.iter()
    }

    /// The policy of this name.
    pub fn find(&self, kind: &str) -> Result<&PolicyDef, PolicyError> {
        let found = self.all().find(|def| def.kind == kind);
        found.ok_or_else(|| PolicyError::Unknown { kind: kind.to_owned(), known: self.known() })
    }

    /// Makes a policy from its name and settings.
    pub fn build(&self, kind: &str, settings: &Table) -> Result<Box<dyn Policy>, PolicyError> {
        self.find(kind)?.build(settings)
    }

    /// Makes a policy from TOML: either a document with a table `[policy]` and nothing else, or
    /// that table alone. The key `kind` names the policy, the others are its settings.
    pub fn from_toml(&self, text: &str) -> Result<Box<dyn Policy>, PolicyError> {
        let document: Table = text.parse().map_err(|error: toml::de::Error| {
            PolicyError::Syntax { fault: error.message().trim().replace('\n', " ") }
        })?;
        let mut settings = match document.get("policy") {
            Some(Value::Table(policy)) => match document.keys().find(|key| *key != "policy") {
                Some(key) => return Err(PolicyError::Stray { key: key.clone() }),
                None => policy.clone(),
            },
            Some(_) | None => document,
        };
        match settings.remove("kind") {
            Some(Value::String(kind)) => self.build(&kind, &settings),
            Some(_) | None => Err(PolicyError::NoKind { known: self.known() }),
        }
    }

    fn known(&self) -> String {
        let mut names: Vec<&str> = self.all().map(|def| &*def.kind).collect();
        names.sort_unstable();
        names.join(", ")
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

fn value_of(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>();
    let only = parsed.ok().filter(|table| table.len() == 1);
    only.and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::policy::Wake;
    use crate::predict::EstimateSource;
    use crate::view::View;

    crate::settings! {
        struct Config {
            estimate: EstimateSource = EstimateSource::Median,
            /// How many.
            count: u32 = 3,
        }
    }

    struct Idle(EstimateSource);

    impl Policy for Idle {
        fn estimates(&self) -> EstimateSource {
            self.0
        }

        fn decide(&mut self, _: &View<'_>, _: Wake, _: &mut Plan<'_>) {}
    }

    /// A policy that takes counts up to `most`.
    fn idle(most: u32) -> PolicyDef {
        PolicyDef::new(format!("idle-{most}"), "does nothing", move |config: Config| {
            if config.count > most {
                return Err(format!("`count`: {}; at most {most}", config.count));
            }
            Ok(Box::new(Idle(config.estimate)))
        })
    }

    fn registry() -> Registry {
        let mut registry = Registry::default();
        registry.register(idle(7)).expect("the name is free");
        registry.register(idle(9)).expect("the name is free");
        registry
    }

    fn fault(text: &str) -> String {
        registry().from_toml(text).err().map_or("built".to_owned(), |error| error.to_string())
    }

    #[test]
    fn policies_are_kept_in_order_and_names_are_taken_once() {
        let mut registry = registry();
        let taken = registry.register(idle(7));
        assert_eq!(taken, Err(PolicyError::Taken { kind: "idle-7".to_owned() }));
        let names: Vec<&str> = registry.all().map(|def| &*def.kind).collect();
        assert_eq!(names, ["idle-7", "idle-9"]);
    }

    #[test]
    fn a_policy_is_built_from_its_table_or_from_a_document_with_nothing_else() {
        assert_eq!(fault("kind = 'idle-7'\ncount = 7"), "built");
        assert_eq!(fault("[policy]\nkind = 'idle-7'"), "built");
        let stray = "unknown key `other` beside `[policy]`; settings go into that table";
        assert_eq!(fault("[policy]\nkind = 'idle-7'\n[other]"), stray);
        assert_eq!(fault("count = 7"), "the policy has no `kind`; known: idle-7, idle-9");
        assert_eq!(fault("kind = 'busy'"), "unknown policy `busy`; known: idle-7, idle-9");
    }

    #[test]
    fn what_the_policy_refuses_is_told_with_its_name() {
        let words = "invalid settings for policy `idle-7`: `count`: 8; at most 7";
        assert_eq!(fault("kind = 'idle-7'\ncount = 8"), words);
        assert_eq!(fault("kind = 'idle-9'\ncount = 8"), "built");
        let policy = registry().from_toml("kind = 'idle-9'\nestimate = 'cart'").expect("valid");
        assert_eq!(policy.estimates(), EstimateSource::Cart);
    }

    #[test]
    fn a_setting_means_what_is_said_of_it_or_what_its_type_says() {
        let def = idle(1);
        let [estimate, count] = &*def.settings else { panic!("two settings are declared") };
        assert!(estimate.help.starts_with("Whose run times count."), "{}", estimate.help);
        assert_eq!((count.help.trim(), &*count.takes), ("How many.", "integer"));
        assert_eq!(def.defaults.to_string(), "count = 3\nestimate = \"median\"\n");
    }
}
