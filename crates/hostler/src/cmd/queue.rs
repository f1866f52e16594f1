//! `hostler queue` and `hostler history`: lists of jobs.

use anyhow::Result;
use hostler_live::api::JobPage;
use hostler_live::client::{Client, query};
use hostler_live::job::JobView;
use hostler_live::selection::Selection;

use crate::chosen::PAGE;
use crate::cli::{Filter, History, Queue, State};
use crate::live::{client, jobs_table, print_json};
use crate::say::{print, say};

/// Jobs that are not over.
pub fn run(args: &Queue) -> Result<()> {
    show(&args.jobs, &args.filter, "/jobs", args.json)
}

/// Jobs that are over.
pub fn history(args: &History) -> Result<()> {
    show(&args.jobs, &args.filter, "/history", args.json)
}

fn show(words: &[Selection], filter: &Filter, path: &str, json: bool) -> Result<()> {
    let mut client = client()?;
    let (mut jobs, mut more) = (Vec::new(), false);
    if words.is_empty() {
        (jobs, more) = list(&mut client, path, filter, None)?;
    }
    for word in words {
        let (found, left) = list(&mut client, path, filter, Some(*word))?;
        jobs.extend(found);
        more |= left;
    }
    if json {
        return print_json(&jobs);
    }
    print(jobs_table(&jobs))?;
    if more {
        say(format_args!("there are more than {}; see --limit", filter.limit));
    }
    Ok(())
}

/// As many as asked for, and whether there are more.
fn list(
    client: &mut Client,
    path: &str,
    filter: &Filter,
    word: Option<Selection>,
) -> Result<(Vec<JobView>, bool)> {
    let mut jobs: Vec<JobView> = Vec::new();
    let mut cursor = None;
    loop {
        let left = filter.limit - jobs.len() as u32;
        let path = query(
            path,
            &[
                ("state", filter.state.map(|state| state_of(state).to_owned())),
                ("tenant", filter.tenant.clone()),
                ("user", filter.user.clone()),
                ("jobs", word.map(|word| word.to_string())),
                ("cursor", cursor.map(|cursor: u32| cursor.to_string())),
                ("limit", Some(left.min(PAGE).to_string())),
            ],
        );
        let page: JobPage = client.get(&path)?;
        jobs.extend(page.jobs);
        cursor = page.next;
        if cursor.is_none() || jobs.len() as u32 >= filter.limit {
            return Ok((jobs, cursor.is_some()));
        }
    }
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
