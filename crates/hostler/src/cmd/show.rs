//! `hostler show` and `hostler explain`: one job.

use anyhow::Result;
use hostler_live::api::Explanation;
use hostler_live::job::JobView;

use crate::cli::{Explain, Show};
use crate::live::{asked, client, length, moment, now, print_json, state_name};

/// All that is known.
pub fn run(args: &Show) -> Result<()> {
    let job: JobView = client()?.get(&format!("/jobs/{}", args.job))?;
    if args.json {
        return print_json(&job);
    }
    for (name, value) in lines(&job) {
        if !value.is_empty() {
            println!("{name:15} {value}");
        }
    }
    Ok(())
}

fn lines(job: &JobView) -> Vec<(&'static str, String)> {
    let time = |time: Option<f64>| time.map(moment).unwrap_or_default();
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let request = &job.request;
    let array = match (job.array_of, job.array_index) {
        (Some(of), Some(index)) => format!("index {index} of the array that begins with job {of}"),
        _ => String::new(),
    };
    let after: Vec<String> = request.after.iter().map(u32::to_string).collect();
    vec![
        ("job", job.id.to_string()),
        ("name", job.name.clone()),
        ("tenant", job.tenant.clone()),
        ("user", job.user.clone()),
        ("state", state_name(job.state)),
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

/// Why it waits.
pub fn explain(args: &Explain) -> Result<()> {
    let told: Explanation = client()?.get(&format!("/jobs/{}/explain", args.job))?;
    if args.json {
        return print_json(&told);
    }
    let state = state_name(told.state);
    let since = length(now() - told.since);
    println!("job {} is {state} since {since} ({})", told.id, moment(told.since));
    if !told.reason.is_empty() {
        println!("because: {}", told.reason);
    }
    if !told.waits_for.is_empty() {
        let jobs: Vec<String> = told.waits_for.iter().map(u32::to_string).collect();
        println!("waits for: job {}", jobs.join(", job "));
    }
    if let Some(start) = told.expected_start {
        println!("expected start: {} (in {})", moment(start), length(start - now()));
    }
    Ok(())
}
