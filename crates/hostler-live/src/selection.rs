//! Which jobs are meant, as people write it: `17`, `12-40`, `12_3` or `12_3-7`.
//!
//! Only the words; which jobs there are is the host's business.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Digits of a number: those of the largest job.
pub const DIGITS_MAX: usize = 10;

/// Some jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Selection {
    /// A job; all jobs of the array that begins with it, if one does.
    Job(u64),
    /// All jobs from one number to another.
    Range {
        /// The first.
        first: u64,
        /// The last.
        last: u64,
    },
    /// Jobs of an array by their indices.
    Indices {
        /// Number of the array, which is that of its first job.
        array: u64,
        /// The first index.
        first: u64,
        /// The last.
        last: u64,
    },
}

/// A text that names no jobs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` names no jobs; write a number, a range as in 12-40, or parts of an array as in 12_3 \
     or 12_3-7"
)]
pub struct NoSelection {
    /// What was written.
    text: String,
}

impl FromStr for Selection {
    type Err = NoSelection;

    fn from_str(text: &str) -> Result<Selection, NoSelection> {
        read(text).ok_or_else(|| NoSelection { text: text.to_owned() })
    }
}

fn read(text: &str) -> Option<Selection> {
    let (array, rest) = match text.split_once('_') {
        Some((array, rest)) => (Some(number(array)?), rest),
        None => (None, text),
    };
    let (first, last) = match rest.split_once("..").or_else(|| rest.split_once('-')) {
        Some((first, last)) => (number(first)?, Some(number(last)?)),
        None => (number(rest)?, None),
    };
    Some(match (array, last) {
        (None, None) => Selection::Job(first),
        (None, Some(last)) => Selection::Range { first, last },
        (Some(array), last) => Selection::Indices { array, first, last: last.unwrap_or(first) },
    })
}

/// Digits and nothing else: a sign would be taken for part of a number, too. Numbers that no job
/// can have are numbers still.
fn number(text: &str) -> Option<u64> {
    let digits = text.len() <= DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

impl TryFrom<String> for Selection {
    type Error = NoSelection;

    fn try_from(text: String) -> Result<Selection, NoSelection> {
        text.parse()
    }
}

impl From<Selection> for String {
    fn from(selection: Selection) -> String {
        selection.to_string()
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Selection::Job(job) => write!(f, "{job}"),
            Selection::Range { first, last } => write!(f, "{first}-{last}"),
            Selection::Indices { array, first, last } if first == last => {
                write!(f, "{array}_{first}")
            }
            Selection::Indices { array, first, last } => write!(f, "{array}_{first}-{last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_the_rest_refused() {
        for text in ["17", "12-40", "12-12", "12_3", "12_3-7", "4294967296", "40-12"] {
            assert_eq!(text.parse::<Selection>().unwrap().to_string(), text);
        }
        assert_eq!("12..40".parse::<Selection>().unwrap().to_string(), "12-40");
        for text in [
            "",
            "x",
            "1..",
            "1...2",
            "1..2-3",
            "-3",
            "3-",
            "+3",
            "12_",
            "_3",
            "1_2_3",
            "1 2",
            "1-2-3",
            "12345678901",
        ] {
            assert!(text.parse::<Selection>().is_err(), "{text}");
        }
    }
}
