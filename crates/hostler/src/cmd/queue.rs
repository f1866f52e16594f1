//! `hostler queue` and `hostler history`: lists of jobs.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::Result;
use hostler_live::api::JobPage;
use hostler_live::client::{Client, ClientError, query};
use hostler_live::job::JobView;
use hostler_live::selection::Selection;

use crate::chosen::PAGE;
use crate::cli::{Filter, History, Queue, State};
use crate::listing::{self, Look};
use crate::live::{client, print_json};
use crate::say::{print, say};

/// Jobs that are read for one list at most: ten of the largest arrays.
const JOBS_MAX: usize = 100_000;

/// What begins a fresh screen.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// What a list is of.
struct Asked<'a> {
    path: &'static str,
    words: &'a [Selection],
    filter: &'a Filter,
    since: Option<f64>,
    until: Option<f64>,
}

/// Jobs that are not over.
pub fn run(args: &Queue) -> Result<()> {
    let (words, filter) = (args.jobs.as_slice(), &args.filter);
    let asked = Asked { path: "/jobs", words, filter, since: None, until: None };
    let Some(every) = args.watch else { return show(&asked, args.json, listing::queue) };
    let mut client = client()?;
    let clears = std::io::stdout().is_terminal();
    loop {
        let look = Look::of_stdout(!filter.each);
        let text = match asked.list(&mut client, look) {
            Ok((jobs, _)) => listing::queue(&jobs, look),
            // A daemon that is started again is looked at again.
            Err(fault) if is_away(&fault) => format!("{fault}"),
            Err(fault) => return Err(fault),
        };
        if clears {
            let mut out = std::io::stdout().lock();
            out.write_all(CLEAR.as_bytes())?;
        }
        print(text)?;
        if !clears {
            print("")?;
        }
        std::thread::sleep(Duration::from_secs(every));
    }
}

fn is_away(fault: &anyhow::Error) -> bool {
    matches!(fault.downcast_ref(), Some(ClientError::Unreachable { .. }))
}

/// Jobs that are over.
pub fn history(args: &History) -> Result<()> {
    let (words, filter) = (args.jobs.as_slice(), &args.filter);
    let asked = Asked { path: "/history", words, filter, since: args.since, until: args.until };
    if args.csv {
        return table_of(&asked);
    }
    show(&asked, args.json, listing::history)
}

fn show(asked: &Asked<'_>, json: bool, lines: fn(&[JobView], Look) -> String) -> Result<()> {
    let mut client = client()?;
    let look = Look::of_stdout(!asked.filter.each && !json);
    let (jobs, more) = asked.list(&mut client, look)?;
    if json {
        return print_json(&jobs);
    }
    print(lines(&jobs, look))?;
    if more {
        say(format_args!("there are more than {}; see --limit", asked.filter.limit));
    }
    Ok(())
}

/// Jobs for spreadsheets, each on a line of its own.
fn table_of(asked: &Asked<'_>) -> Result<()> {
    let look = Look { width: None, colours: false, folds: false };
    let (jobs, more) = asked.list(&mut client()?, look)?;
    let mut out = std::io::stdout().lock();
    out.write_all(listing::csv(&jobs).as_bytes())?;
    if more {
        say(format_args!("there are more than {}; see --limit", asked.filter.limit));
    }
    Ok(())
}

impl Asked<'_> {
    /// As many lines as asked for, and whether there are more.
    fn list(&self, client: &mut Client, look: Look) -> Result<(Vec<JobView>, bool)> {
        let mut all = Vec::new();
        if self.words.is_empty() {
            return self.some(client, look, None);
        }
        let mut more = false;
        for word in self.words {
            let (jobs, left) = self.some(client, look, Some(*word))?;
            all.extend(jobs);
            more |= left;
        }
        Ok((all, more))
    }

    fn some(
        &self,
        client: &mut Client,
        look: Look,
        word: Option<Selection>,
    ) -> Result<(Vec<JobView>, bool)> {
        let most = self.filter.limit as usize;
        let mut jobs: Vec<JobView> = Vec::new();
        let mut cursor = None;
        loop {
            // How many jobs are one line shows when they are there.
            let left = if look.folds { PAGE } else { (most - jobs.len()) as u32 };
            let page: JobPage = client.get(&self.path(word, cursor, left.min(PAGE)))?;
            jobs.extend(page.jobs);
            cursor = page.next;
            let full = listing::lines_of(&jobs, look) >= most && !goes_on(&jobs, look);
            if cursor.is_none() || full || jobs.len() >= JOBS_MAX {
                // A page may hold more lines than were asked for.
                let lines = |count: &usize| listing::lines_of(&jobs[..*count], look) <= most;
                let counts: Vec<usize> = (0..=jobs.len()).collect();
                let fit = counts.partition_point(lines).saturating_sub(1);
                let more = cursor.is_some() || fit < jobs.len();
                jobs.truncate(fit);
                return Ok((jobs, more));
            }
        }
    }

    fn path(&self, word: Option<Selection>, cursor: Option<u32>, limit: u32) -> String {
        let filter = self.filter;
        query(
            self.path,
            &[
                ("state", filter.state.map(|state| state_of(state).to_owned())),
                ("tenant", filter.tenant.clone()),
                ("user", filter.user.clone()),
                ("jobs", word.map(|word| word.to_string())),
                ("since", self.since.map(|since| since.to_string())),
                ("until", self.until.map(|until| until.to_string())),
                ("cursor", cursor.map(|cursor| cursor.to_string())),
                ("limit", Some(limit.to_string())),
            ],
        )
    }
}

/// Whether the last line is one of an array of which more may come.
fn goes_on(jobs: &[JobView], look: Look) -> bool {
    look.folds && jobs.last().is_some_and(|job| job.array_of.is_some())
}

fn state_of(state: State) -> &'static str {
    match state {
        State::Held => "held",
        State::Queued => "queued",
        State::Starting => "starting",
        State::Running => "running",
        State::Stopping => "stopping",
        State::Finished => "finished",
        State::Failed => "failed",
        State::Cancelled => "cancelled",
        State::TimedOut => "timed-out",
        State::Rejected => "rejected",
    }
}
