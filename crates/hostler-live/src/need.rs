//! What a job waits for, as people write it: `17`, `over:12_3-7`, `failed:17`, `started:12`.
//!
//! Only the words; which jobs there are, and how they ended, is the host's business.

use std::fmt;
use std::str::FromStr;

use hostler_core::gate::AfterWhen;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::selection::Selection;

/// Jobs, and how far each of them must have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// How far.
    pub when: AfterWhen,
    /// Which jobs. The number of an array means all of it.
    pub jobs: Selection,
}

/// Every kind with its name.
const KINDS: [(&str, AfterWhen); 4] = [
    ("finished", AfterWhen::Finished),
    ("over", AfterWhen::Over),
    ("failed", AfterWhen::Failed),
    ("started", AfterWhen::Started),
];

/// A text that names nothing to wait for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoNeed {
    /// No such kind.
    #[error("`{kind}` is no kind to wait for; use finished, over, failed or started")]
    Kind {
        /// What was written.
        kind: String,
    },
    /// No jobs.
    #[error(transparent)]
    Jobs(#[from] crate::selection::NoSelection),
}

impl Need {
    /// That these jobs finish well.
    pub fn finished(jobs: Selection) -> Need {
        Need { when: AfterWhen::Finished, jobs }
    }
}

impl FromStr for Need {
    type Err = NoNeed;

    fn from_str(text: &str) -> Result<Need, NoNeed> {
        let Some((kind, jobs)) = text.split_once(':') else {
            return Ok(Need::finished(text.parse()?));
        };
        let known = KINDS.iter().find(|(name, _)| *name == kind);
        let (_, when) = known.ok_or_else(|| NoNeed::Kind { kind: kind.to_owned() })?;
        Ok(Need { when: *when, jobs: jobs.parse()? })
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match KINDS.iter().find(|(_, when)| *when == self.when) {
            Some((name, when)) if *when != AfterWhen::Finished => write!(f, "{name}:{}", self.jobs),
            Some(_) | None => self.jobs.fmt(f),
        }
    }
}

/// A plain number where one job is waited for in the plain way, a text elsewhere.
impl Serialize for Need {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.when, self.jobs) {
            (AfterWhen::Finished, Selection::Job(job)) => serializer.serialize_u64(job),
            _ => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Need {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Need, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected the number of a job, or a text as in `over:12_3`")]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(job) if u32::try_from(job).is_ok() => {
                Ok(Need::finished(Selection::Job(job)))
            }
            Written::Number(job) => {
                Err(D::Error::invalid_value(Unexpected::Unsigned(job), &"the number of a job"))
            }
            Written::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_the_rest_refused() {
        for text in ["17", "12-40", "over:12_3", "failed:12_3-7", "started:9"] {
            assert_eq!(text.parse::<Need>().unwrap().to_string(), text);
        }
        assert_eq!("finished:17".parse::<Need>().unwrap().to_string(), "17");
        let fault = "any:17".parse::<Need>().unwrap_err().to_string();
        assert_eq!(fault, "`any` is no kind to wait for; use finished, over, failed or started");
        assert!("over:".parse::<Need>().is_err());
    }

    #[test]
    fn numbers_and_texts_are_both_read() {
        let needs: Vec<Need> = serde_json::from_str(r#"[17, "18", "over:12_3-7"]"#).unwrap();
        assert_eq!(serde_json::to_string(&needs).unwrap(), r#"[17,18,"over:12_3-7"]"#);
        assert!(serde_json::from_str::<Need>("4294967296").is_err());
        assert!(serde_json::from_str::<Need>("-1").is_err());
        assert!(serde_json::from_str::<Need>("[]").is_err());
    }
}
