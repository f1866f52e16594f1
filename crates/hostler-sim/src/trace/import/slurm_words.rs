//! How Slurm writes times, states, resources and lists of nodes; other logs made from it, too.

use super::values::Reason;
use super::wall_clock::{Zone, parse_time};
use crate::trace::limits::{COUNT_MAX, NUMBER_MAX};
use crate::trace::table::Status;

/// A local time as milliseconds since 1970; nothing for the words that mean "not yet".
pub(super) fn when(text: &str, zone: Zone) -> Result<Option<u64>, Reason> {
    let never = ["", "unknown", "none", "null", "n/a", "nan", "nat"];
    if never.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Ok(None);
    }
    parse_time(text, zone).map(Some).ok_or("a time cannot be read")
}

const STATES: [(&str, Status); 18] = [
    ("COMPLETED", Status::Completed),
    ("FAILED", Status::Failed),
    ("OUT_OF_MEMORY", Status::Failed),
    ("CANCELLED", Status::Cancelled),
    ("REVOKED", Status::Cancelled),
    ("TIMEOUT", Status::Timeout),
    ("DEADLINE", Status::Timeout),
    ("NODE_FAIL", Status::NodeFail),
    ("BOOT_FAIL", Status::NodeFail),
    ("PREEMPTED", Status::Interrupted),
    ("STOPPED", Status::Interrupted),
    ("RUNNING", Status::Running),
    ("COMPLETING", Status::Running),
    ("RESIZING", Status::Running),
    ("SUSPENDED", Status::Running),
    ("PENDING", Status::Waiting),
    ("CONFIGURING", Status::Waiting),
    ("REQUEUED", Status::Waiting),
];

/// A state by its first word; `Unknown` for words that are not known.
pub(super) fn state(text: &str) -> Status {
    let word = text.split_whitespace().next().unwrap_or_default();
    // A column that was cut to its width ends so.
    let word = word.strip_suffix('+').unwrap_or(word);
    STATES.iter().find(|(name, _)| *name == word).map_or(Status::Unknown, |(_, status)| *status)
}

/// What a job asks in all, over its nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Resources<'a> {
    pub(super) gpus: u64,
    /// Model of the GPUs, if one is named.
    pub(super) model: &'a str,
    pub(super) cpus: Option<u64>,
    pub(super) mem_mib: Option<u64>,
}

/// Reads a list such as `cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1`.
pub(super) fn resources(text: &str) -> Result<Resources<'_>, Reason> {
    let mut found = Resources::default();
    let mut plain_gpus = 0;
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').ok_or("resources cannot be read")?;
        match key {
            "cpu" => found.cpus = Some(amount(value)?),
            "mem" => found.mem_mib = Some(mebibytes(value)?),
            "gres/gpu" => plain_gpus = amount(value)?,
            key => {
                let Some(model) = key.strip_prefix("gres/gpu:") else { continue };
                if !found.model.is_empty() && found.model != model {
                    return Err("asks several GPU models at once");
                }
                (found.model, found.gpus) = (model, amount(value)?);
            }
        }
    }
    if found.model.is_empty() {
        found.gpus = plain_gpus;
    }
    Ok(found)
}

fn amount(text: &str) -> Result<u64, Reason> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value: Option<u64> = digits.then(|| text.parse().ok()).flatten();
    match value {
        Some(value) if value > NUMBER_MAX => Err("a number is too large"),
        Some(value) => Ok(value),
        None => Err("resources cannot be read"),
    }
}

/// Memory with a binary suffix, a number alone being mebibytes; rounded up.
fn mebibytes(text: &str) -> Result<u64, Reason> {
    let (number, factor) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 1.0 / 1024.0),
        Some(b'M') => (&text[..text.len() - 1], 1.0),
        Some(b'G') => (&text[..text.len() - 1], 1024.0),
        Some(b'T') => (&text[..text.len() - 1], 1024.0 * 1024.0),
        Some(b'P') => (&text[..text.len() - 1], 1024.0 * 1024.0 * 1024.0),
        _ => (text, 1.0),
    };
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value: Option<f64> = plain.then(|| number.parse().ok()).flatten();
    let mib = (value.ok_or("resources cannot be read")? * factor).ceil();
    match mib > NUMBER_MAX as f64 {
        true => Err("a number is too large"),
        false => Ok(mib as u64),
    }
}

/// Nodes of a list such as `gpu[01-03,7],login1`; `None` when it cannot be read.
pub(super) fn node_names(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for part in outer_parts(text) {
        let Some((prefix, rest)) = part.split_once('[') else {
            names.push(part.to_owned());
            continue;
        };
        let (ranges, suffix) = rest.split_once(']')?;
        if suffix.contains('[') {
            return None;
        }
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (low, high) = (amount(first).ok()?, amount(last).ok()?);
            if high < low || high - low + names.len() as u64 >= COUNT_MAX {
                return None;
            }
            let width = first.len();
            names.extend((low..=high).map(|number| format!("{prefix}{number:0width$}{suffix}")));
        }
    }
    Some(names)
}

/// Parts between commas that are not inside brackets.
fn outer_parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = text.split(move |letter| {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.filter(|part| !part.is_empty())
}
