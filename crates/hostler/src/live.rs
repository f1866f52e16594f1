//! What commands that talk to a daemon have in common: the way to it, and how things are shown.

use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use hostler_live::client::{Access, Client, USUAL_SOCKET, credentials_file};
use hostler_live::job::{HeldBy, JobState, JobView};
use serde::Serialize;
use time::OffsetDateTime;

/// The daemon that the environment or `hostler login` names.
pub fn client() -> Result<Client> {
    Ok(Client::new(access()?)?)
}

/// Where that is, and what is shown there.
pub fn access() -> Result<Access> {
    let file = credentials_file(variable);
    Ok(Access::find(variable, file.as_deref(), Path::new(USUAL_SOCKET))?)
}

/// A variable of the environment.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Prints JSON.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string_pretty(value)?)?;
    Ok(())
}

/// Rows under headings, each column as wide as it must be.
pub fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: Vec<&str>| {
        let cells = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(heads.to_vec())];
    lines.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())));
    lines.join("\n")
}

/// A text as one field of CSV; one that a spreadsheet would take for a formula is none.
pub fn field(text: &str) -> String {
    let formula = text.len() > 1 && text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    let plain = !text.contains([',', '"', '\n', '\r']);
    if plain { text } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

/// Seconds since the epoch.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// Kilowatt hours: short jobs use little of one.
pub fn energy(kwh: f64) -> String {
    if kwh < 1.0 { format!("{kwh:.4}") } else { format!("{kwh:.2}") }
}

/// A length of time, to two units.
pub fn length(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        3600..86_400 => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
        _ => format!("{}d{:02}h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// A moment, in UTC.
pub fn moment(seconds: f64) -> String {
    let moment = OffsetDateTime::from_unix_timestamp(seconds.max(0.0) as i64);
    let moment = moment.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (day, (hour, minute, second)) = (moment.date(), moment.to_hms());
    format!("{day} {hour:02}:{minute:02}:{second:02} UTC")
}

/// A state, as it is written in the interface.
pub fn state_name(state: JobState) -> String {
    match serde_json::to_value(state) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// Where a job stands; what holds it, behind a colon.
pub fn standing(state: JobState, held_by: Option<HeldBy>) -> String {
    let by = match held_by {
        None => return state_name(state),
        Some(HeldBy::Person) => "person",
        Some(HeldBy::Jobs) => "jobs",
        Some(HeldBy::Start) => "start",
        Some(HeldBy::Nodes) => "nodes",
        Some(HeldBy::Array) => "array",
        Some(HeldBy::Quota) => "quota",
        Some(HeldBy::Budget) => "budget",
        Some(HeldBy::Reservation) => "reservation",
        Some(HeldBy::Engine) => "engine",
    };
    format!("{}:{by}", state_name(state))
}

/// How a job ended, with its code or the signal that killed it.
pub fn ending(job: &JobView) -> String {
    match job.exit_code.filter(|code| *code != 0) {
        Some(code) => {
            format!("{}, {}{}", state_name(job.state), exit_words(code), failed_task(job))
        }
        None => state_name(job.state),
    }
}

/// Which of several tasks failed first, and where; nothing where there is one task.
pub fn failed_task(job: &JobView) -> String {
    let rank = job.failed_rank.filter(|_| job.request.tasks > 1);
    task_words(rank, job.failed_node.as_deref())
}

/// A task and its node, behind what became of it.
pub fn task_words(rank: Option<u32>, node: Option<&str>) -> String {
    match (rank, node) {
        (Some(rank), Some(node)) => format!(" (task {rank} on {node})"),
        (Some(rank), None) => format!(" (task {rank})"),
        (None, _) => String::new(),
    }
}

/// An exit code with what it means by custom, or the name of the signal that it stands for.
pub fn exit_words(code: i32) -> String {
    match (code, signal_name(code - 128)) {
        (_, Some(name)) => format!("killed by {name}"),
        (126, None) => "exit 126, not executable".to_owned(),
        (127, None) => "exit 127, command not found".to_owned(),
        (code, None) => format!("exit {code}"),
    }
}

/// Signals that end jobs, by their numbers on Linux.
fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// GPUs that it asks for: of each task, times tasks.
pub fn asked(job: &JobView) -> String {
    match job.request.tasks {
        0 | 1 => job.request.gpus.to_string(),
        tasks => format!("{tasks}x{}", job.request.gpus),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        assert_eq!(moment(0.0), "1970-01-01 00:00:00 UTC");
        assert_eq!(moment(951_782_400.0), "2000-02-29 00:00:00 UTC");
        assert_eq!(moment(1_767_225_599.9), "2025-12-31 23:59:59 UTC");
    }

    #[test]
    fn lengths_have_two_units() {
        let lengths = [0.4, 61.0, 3725.0, 90_000.0].map(length);
        assert_eq!(lengths, ["0s", "1m01s", "1h02m", "1d01h"]);
    }
}
