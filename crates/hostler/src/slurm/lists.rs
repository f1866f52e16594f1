//! `squeue`, `scancel` and `sinfo`.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use hostler_live::api::{JobPage, JobsChange, JobsChanged};
use hostler_live::client::{Client, query};
use hostler_live::host::NodeView;
use hostler_live::job::{JobAction, JobState, JobView};
use hostler_live::selection::Selection;

use super::options;
use crate::chosen::{PAGE, folded, word, word_for};
use crate::live::{client, now};
use crate::say::{print, say};

/// Which jobs are meant.
#[derive(Default)]
struct Wanted {
    user: Option<String>,
    states: Vec<JobState>,
    name: Option<String>,
    jobs: Vec<Selection>,
}

impl Wanted {
    fn take(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "--me" => self.user = Some("me".to_owned()),
            "--user" => self.user = Some(value.to_owned()),
            "--name" => self.name = Some(value.to_owned()),
            "--states" | "--state" => {
                for state in value.split(',') {
                    self.states.extend(states(state)?);
                }
            }
            "--jobs" | "--job" => {
                for job in value.split(',') {
                    self.jobs.push(selection(job)?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Jobs that are not over.
    fn list(&self, client: &mut Client) -> Result<Vec<JobView>> {
        let mut jobs = Vec::new();
        let words: Vec<Option<Selection>> = match self.jobs.as_slice() {
            [] => vec![None],
            jobs => jobs.iter().copied().map(Some).collect(),
        };
        for word in words {
            let mut cursor: Option<u32> = None;
            loop {
                let page: JobPage = client.get(&query(
                    "/jobs",
                    &[
                        ("user", self.user.clone()),
                        ("jobs", word.map(|word| word.to_string())),
                        ("cursor", cursor.map(|cursor| cursor.to_string())),
                        ("limit", Some(PAGE.to_string())),
                    ],
                ))?;
                jobs.extend(page.jobs.into_iter().filter(|job| self.takes(job)));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(jobs)
    }

    fn takes(&self, job: &JobView) -> bool {
        (self.states.is_empty() || self.states.contains(&job.state))
            && self.name.as_ref().is_none_or(|name| *name == job.name)
    }
}

/// `12_[3-7]` is Slurm's way to write parts of an array.
fn selection(text: &str) -> Result<Selection> {
    Ok(text.replace(['[', ']'], "").parse()?)
}

/// The states that Slurm's word stands for.
fn states(word: &str) -> Result<Vec<JobState>> {
    Ok(match word.to_ascii_uppercase().as_str() {
        "PD" | "PENDING" => vec![JobState::Held, JobState::Queued],
        "R" | "RUNNING" => vec![JobState::Running],
        "CF" | "CONFIGURING" => vec![JobState::Starting],
        "CG" | "COMPLETING" => vec![JobState::Stopping],
        "ALL" => Vec::new(),
        _ => bail!("`{word}` is no state of a job in the queue; use PD, R, CF or CG"),
    })
}

fn short(state: JobState) -> &'static str {
    match state {
        JobState::Held | JobState::Queued => "PD",
        JobState::Starting => "CF",
        JobState::Running => "R",
        JobState::Stopping => "CG",
        JobState::Finished => "CD",
        JobState::Failed | JobState::Rejected => "F",
        JobState::Cancelled => "CA",
        JobState::TimedOut => "TO",
    }
}

/// Lists jobs that are not over.
pub fn queue(words: &[String]) -> Result<()> {
    let bare = [("-h", "--noheader"), ("", "--me"), ("-l", "--long"), ("-r", "--array")];
    let valued = [
        ("-u", "--user"),
        ("-j", "--jobs"),
        ("", "--job"),
        ("-t", "--states"),
        ("", "--state"),
        ("-n", "--name"),
    ];
    let (options, rest) = options(words, &bare, &valued)?;
    if let Some(word) = rest.first() {
        bail!("`{word}`: jobs are named by `-j`");
    }
    let mut wanted = Wanted::default();
    for (name, value) in &options {
        wanted.take(name, value)?;
    }
    let given = |wanted: &str| options.iter().any(|(name, _)| name == wanted);
    let jobs = wanted.list(&mut client()?)?;
    let head = ["JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES"];
    if !given("--noheader") {
        print(format_args!("{} NODELIST(REASON)", columns(&head.map(str::to_owned))))?;
    }
    let each = given("--array");
    for group in folded(&jobs, |job| (short(job.state), each.then_some(job.id))) {
        let job = group[0];
        let array = job.array_of.map(|array| format!("{array}_[..]"));
        let named = word_for(&group).or(array).unwrap_or_else(|| word(job));
        let time = job.started.map_or(0.0, |started| now() - started);
        let count = job.nodes.len().max(1).to_string();
        let partition = "all".to_owned();
        let state = short(job.state).to_owned();
        let line = columns(&[
            named,
            partition,
            job.name.clone(),
            job.user.clone(),
            state,
            clock(time),
            count,
        ]);
        let place = match job.state {
            JobState::Held | JobState::Queued => format!("({})", job.reason),
            _ => job.nodes.join(","),
        };
        print(format_args!("{line} {place}"))?;
    }
    Ok(())
}

/// Cells to the right, as wide as Slurm has them.
fn columns(cells: &[String; 7]) -> String {
    let widths = [18, 9, 8, 8, 2, 10, 6];
    let cell = |(cell, width): (&String, usize)| {
        let text: String = cell.chars().take(width.max(18)).collect();
        let text = if width == 8 { text.chars().take(8).collect() } else { text };
        format!("{text:>width$}")
    };
    cells.iter().zip(widths).map(cell).collect::<Vec<_>>().join(" ")
}

/// A length of time as Slurm writes it.
fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let (days, hours) = (whole / 86_400, whole / 3600 % 24);
    let (minutes, seconds) = (whole / 60 % 60, whole % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        (_, _) => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// Ends jobs.
pub fn cancel(words: &[String]) -> Result<()> {
    let bare = [("", "--me"), ("-Q", "--quiet"), ("-v", "--verbose")];
    let valued = [("-u", "--user"), ("-t", "--state"), ("-n", "--name"), ("", "--jobname")];
    let (options, rest) = options(words, &bare, &valued)?;
    let mut wanted = Wanted::default();
    for (name, value) in &options {
        wanted.take(if name == "--jobname" { "--name" } else { name }, value)?;
    }
    for word in rest {
        wanted.jobs.push(selection(&word)?);
    }
    let filtered = wanted.user.is_some() || wanted.name.is_some() || !wanted.states.is_empty();
    if !filtered && wanted.jobs.is_empty() {
        bail!("no job; name jobs, or `-u`, `-t`, `-n` or `--me`");
    }
    let mut client = client()?;
    let jobs = match filtered {
        false => std::mem::take(&mut wanted.jobs),
        true => wanted.list(&mut client)?.iter().map(one).collect(),
    };
    let mut refused = 0;
    for jobs in jobs.chunks(1000) {
        let change = JobsChange { action: JobAction::Cancel, jobs: jobs.to_vec() };
        let changed: JobsChanged = client.post("/jobs/change", &change)?;
        for fault in &changed.refused {
            say(format_args!("scancel: error: {}", fault.error));
        }
        refused += changed.refused.len();
    }
    if refused > 0 { bail!("{refused} of them were not cancelled") } else { Ok(()) }
}

/// The word for one job alone, also for the first of an array.
fn one(job: &JobView) -> Selection {
    match (job.array_of, job.array_index) {
        (Some(array), Some(index)) => {
            let index = u64::from(index);
            Selection::Indices { array: array.into(), first: index, last: index }
        }
        _ => Selection::Job(job.id.into()),
    }
}

/// Lists nodes by what they do.
pub fn info(words: &[String]) -> Result<()> {
    let bare = [("-h", "--noheader"), ("-N", "--Node"), ("-l", "--long")];
    let (options, _) = options(words, &bare, &[])?;
    let given = |wanted: &str| options.iter().any(|(name, _)| name == wanted);
    let nodes: Vec<NodeView> = client()?.get("/nodes")?;
    let mut groups: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    for node in &nodes {
        let alone = if given("--Node") { node.name.clone() } else { String::new() };
        groups.entry((state_of(node).to_owned(), alone)).or_default().push(&node.name);
    }
    if !given("--noheader") {
        print("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST")?;
    }
    for ((state, _), names) in groups {
        let (count, names) = (names.len(), names.join(","));
        print(format_args!("all*      up      infinite {count:>6} {state:>6} {names}"))?;
    }
    Ok(())
}

fn state_of(node: &NodeView) -> &'static str {
    let whole = f64::from(node.gpus);
    match node.health.as_str() {
        "up" if node.jobs.is_empty() => "idle",
        "up" if node.gpus > 0 && node.gpus_used >= whole => "alloc",
        "up" => "mix",
        "draining" if node.jobs.is_empty() => "drain",
        "draining" => "drng",
        _ => "down",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_parts_of_arrays_are_written_as_slurm_does() {
        let clocks = [5.0, 65.0, 3_665.0, 90_061.0].map(clock);
        assert_eq!(clocks, ["0:05", "1:05", "1:01:05", "1-01:01:01"]);
        assert_eq!(selection("12_[3-7]").unwrap().to_string(), "12_3-7");
        assert!(states("CD").is_err());
    }
}
