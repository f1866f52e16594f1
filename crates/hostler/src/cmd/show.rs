//! `hostler show`: all that is known about jobs.

use anyhow::Result;
use hostler_live::job::JobView;
use hostler_live::selection::Selection;

use crate::chosen::{self, folded, word, word_for};
use crate::cli::Show;
use crate::live::{asked, client, length, moment, print_json, standing};
use crate::say::{print, say};

/// All that is known.
pub fn run(args: &Show) -> Result<()> {
    let mut client = client()?;
    let mut jobs = chosen::jobs(&mut client, &args.jobs)?;
    if let [only] = jobs.as_mut_slice() {
        // Lists leave the environment out.
        *only = client.get(&format!("/jobs/{}", only.id))?;
        if args.json && is_one(&args.jobs, only) {
            return print_json(only);
        }
    }
    if args.json {
        return print_json(&jobs);
    }
    if jobs.is_empty() {
        say("none of these jobs is there");
    }
    let whole =
        |job: &JobView| args.jobs.contains(&Selection::Job(job.array_of.unwrap_or(job.id).into()));
    for (number, group) in
        folded(&jobs, |job| whole(job).then_some(()).ok_or(job.id)).iter().enumerate()
    {
        if number > 0 {
            print("")?;
        }
        let lines = if group.len() == 1 { lines(group[0]) } else { array_lines(group) };
        for (name, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
            print(format_args!("{name:15} {value}"))?;
        }
    }
    Ok(())
}

/// Whether the words can mean one job only.
fn is_one(words: &[Selection], job: &JobView) -> bool {
    match words {
        [Selection::Job(_)] => job.array_of != Some(job.id),
        [Selection::Indices { first, last, .. }] => first == last,
        _ => false,
    }
}

/// An array: what is the same for all of it, and where its jobs stand.
fn array_lines(jobs: &[&JobView]) -> Vec<(&'static str, String)> {
    let own =
        ["state", "reason", "started", "ended", "expected start", "expected end", "exit code"];
    let more = ["nodes", "restarts", "steps done", "array"];
    let mut lines = lines(jobs[0]);
    lines.retain(|(name, _)| !own.contains(name) && !more.contains(name));
    let array = jobs[0].array_of.unwrap_or(jobs[0].id);
    lines[0].1 = format!("{array}, an array of {}", jobs[0].request.array);
    let owned: Vec<JobView> = jobs.iter().map(|job| (*job).clone()).collect();
    let key = |job: &JobView| (job.state, job.reason.clone(), job.exit_code);
    for group in folded(&owned, key) {
        let word = word_for(&group).filter(|word| word.contains('_'));
        let word = word.unwrap_or_else(|| format!("{} of them", group.len()));
        let first = group[0];
        let mut words = format!("{word}: {}", standing(first.state, first.held_by));
        if let Some(code) = first.exit_code.filter(|_| first.ended.is_some()) {
            words += &format!(", exit {code}");
        }
        if !first.reason.is_empty() {
            words += &format!(", {}", first.reason);
        }
        lines.push(("jobs", words));
    }
    lines
}

fn lines(job: &JobView) -> Vec<(&'static str, String)> {
    let time = |time: Option<f64>| time.map(moment).unwrap_or_default();
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let request = &job.request;
    let array = match (job.array_of, job.array_index) {
        (Some(of), Some(index)) => format!("index {index} of array {of}; its number is {}", job.id),
        _ => String::new(),
    };
    let after: Vec<String> = request.after.iter().map(ToString::to_string).collect();
    vec![
        ("job", word(job)),
        ("name", job.name.clone()),
        ("tenant", job.tenant.clone()),
        ("user", job.user.clone()),
        ("state", standing(job.state, job.held_by)),
        ("reason", job.reason.clone()),
        ("submitted", moment(job.submitted)),
        ("started", time(job.started)),
        ("ended", time(job.ended)),
        ("expected start", time(job.expected_start)),
        ("expected end", time(job.expected_end)),
        ("exit code", job.exit_code.map(|code| code.to_string()).unwrap_or_default()),
        ("nodes", job.nodes.join(" ")),
        ("restarts", job.restarts.to_string()),
        ("steps done", number(job.steps_done)),
        ("array", array),
        ("command", request.command.join(" ")),
        ("gpus", asked(job)),
        ("gpu models", request.gpu_models.join(" ")),
        ("priority", request.priority.to_string()),
        ("after", after.join(" ")),
        ("max time", request.max_secs.map(|secs| length(secs as f64)).unwrap_or_default()),
    ]
}
