//! `hostler submit`.

use std::time::Duration;

use anyhow::Result;
use hostler_live::api::Accepted;
use hostler_live::client::{Ask, Client, Method, query};
use hostler_live::job::{HeldBy, Indices, JobRequest, JobState, JobView};

use crate::ExitWith;
use crate::chosen::word;
use crate::cli::Submit;
use crate::live::{client, ending, print_json};
use crate::say::{print, say};
use crate::submission::{self, Submission};

/// Time between two looks at jobs that are waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Submits, and waits where that is asked for.
pub fn run(args: &Submit) -> Result<()> {
    if args.schema {
        return print_json(&submission::schema::schema());
    }
    let mut job = submission::read(args)?;
    for note in &job.notes {
        say(format_args!("note: {note}"));
    }
    if args.print {
        return Ok(print(submission::text(&job.request)?.trim_end())?);
    }
    let mut client = client()?;
    submission::settle(&mut client, &mut job)?;
    let Submission { request, wait, .. } = job;
    let accepted = send(&mut client, args, &request)?;
    let Accepted { first, count, .. } = accepted;
    tell_of_mail(accepted);
    match args.json {
        true => print_json(&accepted)?,
        // The number of an array means all of it, in every command.
        false => print(first)?,
    }
    if request.array > 0 && !args.json {
        let indices = Indices::of(&request);
        let last = indices.at(count.saturating_sub(1));
        say(format_args!("{count} jobs, {first}_{} to {first}_{last}", indices.first));
    }
    tell_if_too_large(&mut client, first);
    if args.wait || wait { until_over(&mut client, accepted) } else { Ok(()) }
}

/// Says at once that a job waits for what no node has: it may be mistyped, and would wait for good.
fn tell_if_too_large(client: &mut Client, id: u32) {
    let Ok(job) = client.get::<JobView>(&format!("/jobs/{id}")) else { return };
    if job.held_by == Some(HeldBy::Nodes) {
        say(format_args!("job {}: {}", word(&job), job.reason));
    }
}

/// Sends a job.
pub fn send(client: &mut Client, args: &Submit, request: &JobRequest) -> Result<Accepted> {
    let path = query("/jobs", &[("tenant", args.tenant.clone())]);
    let key: Vec<(&str, &str)> =
        args.key.iter().map(|key| ("idempotency-key", key.as_str())).collect();
    let body = Some(serde_json::to_vec(request)?);
    Ok(client.call(&Ask { method: Method::POST, path: &path, headers: &key, body })?)
}

/// Says that nobody will hear what was asked to be told, or get the mail.
pub fn tell_of_mail(accepted: Accepted) {
    if accepted.untold && !accepted.no_mail {
        say("note: nobody will be told: this daemon calls no webhook, and no mail is asked for; \
             name an address with `--mail-to`, or its operator one with `hostler serve --webhook`");
    }
    if accepted.no_mail {
        say(
            "note: this daemon sends no mail; its operator says how: `hostler serve --mail-command`",
        );
    }
}

/// Looks until all are over; the first that did not finish well is the error.
pub fn until_over(client: &mut Client, accepted: Accepted) -> Result<()> {
    let Accepted { first, count, .. } = accepted;
    let mut bad = None;
    for id in first..first + count {
        let job = end_of(client, id)?;
        let word = word(&job);
        let why = if job.reason.is_empty() { "" } else { ": " };
        say(format_args!("job {word}: {}{why}{}", ending(&job), job.reason));
        if job.state != JobState::Finished {
            bad.get_or_insert(job);
        }
    }
    let Some(job) = bad else { return Ok(()) };
    let word = word(&job);
    let code = job.exit_code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code > 0);
    let words = match job.exit_code {
        // What never ran has printed nothing.
        None => format!("job {word} did not finish well"),
        Some(_) => format!("job {word} did not finish well; see `hostler logs {word} --stderr`"),
    };
    Err(ExitWith { code: code.unwrap_or(1), words }.into())
}

fn end_of(client: &mut Client, id: u32) -> Result<JobView> {
    let mut told = String::new();
    loop {
        let job: JobView = client.get(&format!("/jobs/{id}"))?;
        if job.ended.is_some() {
            return Ok(job);
        }
        // It may be tried for a minute: whoever mistyped need not wait for that.
        if job.held_by == Some(HeldBy::Start) && job.reason != told {
            say(format_args!("job {}: {}", word(&job), job.reason));
            told = job.reason;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}
