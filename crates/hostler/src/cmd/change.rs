//! `hostler cancel`, `hold` and `release`: what people do to jobs.

use anyhow::{Result, bail};
use hostler_live::api::{JobNow, JobsChange, JobsChanged};
use hostler_live::job::JobAction;

use crate::cli::Jobs;
use crate::live::{client, print_json, state_name};
use crate::say::{print, say};

/// Does the same to each job; those that refuse keep no others from it.
pub fn run(args: &Jobs, action: JobAction) -> Result<()> {
    let change = JobsChange { action, jobs: args.jobs.clone() };
    let changed: JobsChanged = client()?.post("/jobs/change", &change)?;
    if args.json {
        print_json(&changed)?;
    } else {
        lines(&changed.jobs).iter().try_for_each(print)?;
        if changed.jobs.is_empty() && changed.refused.is_empty() {
            say("nothing to do: none of these jobs is there, or all are over");
        }
    }
    for refused in &changed.refused {
        say(format_args!("error: {}", refused.error));
    }
    if changed.refused.iter().any(|refused| refused.error.starts_with("no ")) {
        say("`hostler queue` and `hostler history` list jobs");
    }
    match changed.refused.len() {
        0 => Ok(()),
        1 => bail!("1 job was not changed"),
        count => bail!("{count} jobs were not changed"),
    }
}

/// Jobs side by side that stand at the same place, in one line.
fn lines(jobs: &[JobNow]) -> Vec<String> {
    let adjacent = |one: &JobNow, next: &JobNow| one.id + 1 == next.id && one.state == next.state;
    let line = |jobs: &[JobNow]| match jobs {
        [first, .., last] => {
            format!("jobs {}-{} are {}", first.id, last.id, state_name(first.state))
        }
        [only] => format!("job {} is {}", only.id, state_name(only.state)),
        [] => String::new(),
    };
    jobs.chunk_by(adjacent).map(line).collect()
}
