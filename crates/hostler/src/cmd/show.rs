//! `hostler show` and `hostler explain`: one job.

use anyhow::Result;
use hostler_live::api::Explanation;
use hostler_live::host::NodeView;
use hostler_live::job::{JobState, JobView};

use crate::cli::{Explain, Show};
use crate::live::{asked, client, length, moment, now, print_json, standing};

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

/// Why it waits.
pub fn explain(args: &Explain) -> Result<()> {
    let mut client = client()?;
    let told: Explanation = client.get(&format!("/jobs/{}/explain", args.job))?;
    if args.json {
        return print_json(&told);
    }
    let state = standing(told.state, told.held_by);
    let since = length(now() - told.since);
    println!("job {} has been {state} for {since} (since {})", told.id, moment(told.since));
    if !told.reason.is_empty() {
        println!("because: {}", told.reason);
    }
    if told.state == JobState::Queued {
        println!("free now: {}", free_now(&client.get::<Vec<NodeView>>("/nodes")?));
    }
    if !told.waits_for.is_empty() {
        let jobs: Vec<String> = told.waits_for.iter().map(u32::to_string).collect();
        println!("waits for: job {}", jobs.join(", job "));
    }
    // What should have begun by now is no expectation any more.
    if let Some(start) = told.expected_start.filter(|start| *start > now()) {
        println!("expected start: {} (in {})", moment(start), length(start - now()));
    }
    Ok(())
}

/// What nodes that take jobs have left: it shows what is missing for a job that waits.
fn free_now(nodes: &[NodeView]) -> String {
    let open: Vec<&NodeView> = nodes.iter().filter(|node| node.health == "up").collect();
    if open.is_empty() {
        return match nodes.len() {
            0 => "there are no nodes".to_owned(),
            all => format!("nothing: none of {all} nodes takes jobs; see `hostler nodes`"),
        };
    }
    let sum = |value: fn(&NodeView) -> f64| open.iter().map(|node| value(node)).sum::<f64>();
    let (gpus, gpus_used) = (sum(|node| f64::from(node.gpus)), sum(|node| node.gpus_used));
    let (cores, cores_used) = (sum(|node| node.cpus), sum(|node| node.cpus_used));
    let gib = |mib: f64| mib / 1024.0;
    let mem = gib(sum(|node| f64::from(node.mem_mib)));
    let mem_used = gib(sum(|node| f64::from(node.mem_mib_used)));
    format!(
        "{:.1} of {gpus} GPUs, {:.1} of {cores} cores, {:.0} of {mem:.0} GiB; {} of {} nodes take \
         jobs",
        gpus - gpus_used,
        cores - cores_used,
        mem - mem_used,
        open.len(),
        nodes.len(),
    )
}
