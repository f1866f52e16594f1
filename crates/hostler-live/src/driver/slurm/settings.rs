//! How Slurm is driven, as its operator writes it down in TOML.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hostler_core::units::Span;
use serde::Deserialize;

/// How Slurm is driven.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmSettings {
    /// The partition that jobs wait in; it is down, so that Slurm starts none of them.
    pub waiting_room: String,
    /// The partition that they are moved to when they start.
    pub partition: String,
    /// Whose jobs are whose.
    pub tenant_by: TenantBy,
    /// Names of tenants for accounts or users; those that are not named keep theirs.
    pub tenants: BTreeMap<String, String>,
    /// Whether jobs that Slurm may requeue may be stopped in favour of others: they save their work
    /// when they are told to end, or can do without.
    pub preempt_requeueable: bool,
    /// Changes that Slurm is asked for at a time.
    pub calls_max: usize,
    /// Seconds after which a call of a command of Slurm's is given up.
    pub call_secs: u64,
    /// Seconds that Slurm may take to start a job that was moved; then it is moved back.
    pub start_secs: u64,
    /// Seconds between two looks at the queue.
    pub look_secs: u64,
    /// Seconds between two looks at everything.
    pub full_secs: u64,
    /// Whether jobs that wait are told why, in their `AdminComment`.
    pub comments: bool,
    /// Slurm's configuration file, where it is not where the commands look for it.
    pub conf: Option<PathBuf>,
    /// Folder of Slurm's commands, where they are not in the path.
    pub bin: Option<PathBuf>,
}

/// What decides whose a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TenantBy {
    /// The account that it is charged to; the user's name where it has none.
    #[default]
    Account,
    /// The user.
    User,
}

impl Default for SlurmSettings {
    fn default() -> SlurmSettings {
        SlurmSettings {
            waiting_room: "hostler".to_owned(),
            partition: "normal".to_owned(),
            tenant_by: TenantBy::Account,
            tenants: BTreeMap::new(),
            preempt_requeueable: false,
            calls_max: 4,
            call_secs: 20,
            start_secs: 10,
            look_secs: 1,
            full_secs: 10,
            comments: true,
            conf: None,
            bin: None,
        }
    }
}

impl SlurmSettings {
    /// Reads them, or says what is wrong.
    pub fn read(text: &str) -> Result<SlurmSettings, String> {
        let settings: SlurmSettings =
            toml::from_str(text).map_err(|fault| fault.to_string().trim_end().to_owned())?;
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), String> {
        let partitions = [("waiting_room", &self.waiting_room), ("partition", &self.partition)];
        for (key, name) in partitions {
            if !is_name(name) {
                return Err(format!("`{key}` is `{name}`; use the name of one partition"));
            }
        }
        if self.waiting_room == self.partition {
            let name = &self.partition;
            return Err(format!("`waiting_room` and `partition` are both `{name}`; use two"));
        }
        let numbers = [
            ("calls_max", self.calls_max as u64, 64),
            ("call_secs", self.call_secs, 600),
            ("start_secs", self.start_secs, 3600),
            ("look_secs", self.look_secs, 60),
            ("full_secs", self.full_secs, 600),
        ];
        for (key, value, most) in numbers {
            if value == 0 || value > most {
                return Err(format!("`{key}` is {value}; use 1 to {most}"));
            }
        }
        Ok(())
    }

    /// The tenant that pays for a job.
    pub fn tenant(&self, account: &str, user: &str) -> String {
        let name = match self.tenant_by {
            TenantBy::Account if !account.is_empty() => account,
            TenantBy::Account | TenantBy::User => user,
        };
        self.tenants.get(name).map_or(name, String::as_str).to_owned()
    }

    /// Time that Slurm may take to start a job.
    pub fn patience(&self) -> Span {
        Span::from_secs(self.start_secs)
    }
}

/// Whether a word can be handed to a command of Slurm's as the name of one thing.
fn is_name(name: &str) -> bool {
    let sane = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(sane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_checked() {
        let text = "waiting_room = 'ext'\ntenant_by = 'user'\n[tenants]\nada = 'physics'";
        let settings = SlurmSettings::read(text).unwrap();
        assert_eq!((settings.waiting_room.as_str(), settings.calls_max), ("ext", 4));
        assert_eq!(settings.tenant("bio", "ada"), "physics");
        assert_eq!(settings.tenant("bio", "bob"), "bob");
        let by_account = SlurmSettings::default();
        assert_eq!(by_account.tenant("bio", "ada"), "bio");
        assert_eq!(by_account.tenant("", "ada"), "ada");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_name() {
        let says = |text: &str| SlurmSettings::read(text).unwrap_err();
        assert!(says("waitingroom = 'ext'").contains("unknown field `waitingroom`"));
        assert_eq!(says("calls_max = 0"), "`calls_max` is 0; use 1 to 64");
        assert_eq!(
            says("partition = 'a,b'"),
            "`partition` is `a,b`; use the name of one partition"
        );
        assert_eq!(
            says("partition = 'x'\nwaiting_room = 'x'"),
            "`waiting_room` and `partition` are both `x`; use two"
        );
        assert!(says("tenant_by = 'group'").contains("unknown variant `group`"));
    }
}
