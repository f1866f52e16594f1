//! `hostler explain`: why jobs stand where they stand.

use anyhow::Result;
use hostler_live::api::Explanation;
use hostler_live::client::Client;
use hostler_live::host::NodeView;
use hostler_live::job::{JobState, JobView};
use serde::Serialize;

use crate::chosen::{self, folded, word, word_for};
use crate::cli::Explain;
use crate::live::{client, length, moment, now, print_json, standing};
use crate::say::{print, say};

/// Jobs that a line names one by one; of more only the number is told.
const NAMED_MAX: usize = 8;

/// Why some jobs of an array stand where they stand.
#[derive(Serialize)]
struct Part {
    /// How many there are.
    count: usize,
    #[serde(flatten)]
    first: Explanation,
}

/// Why they wait. Jobs of an array for which the same holds are told together.
pub fn run(args: &Explain) -> Result<()> {
    let mut client = client()?;
    let jobs = chosen::jobs(&mut client, &args.jobs)?;
    let groups = folded(&jobs, |job| (job.state, job.held_by.is_some(), job.reason.clone()));
    let mut parts = Vec::new();
    for group in &groups {
        let first: Explanation = client.get(&format!("/jobs/{}/explain", group[0].id))?;
        parts.push(Part { count: group.len(), first });
    }
    match (args.json, parts.as_slice()) {
        (true, [Part { count: 1, first }]) => return print_json(first),
        (true, parts) => return print_json(&parts),
        (false, []) => say("none of these jobs is there"),
        (false, _) => {}
    }
    for (number, (part, group)) in parts.iter().zip(&groups).enumerate() {
        if number > 0 {
            print("")?;
        }
        tell(&mut client, &part.first, group)?;
    }
    Ok(())
}

fn tell(client: &mut Client, told: &Explanation, group: &[&JobView]) -> Result<()> {
    let state = standing(told.state, told.held_by);
    let since = format!("{} (since {})", length(now() - told.since), moment(told.since));
    match (group, word_for(group)) {
        ([job], _) => print(format_args!("job {} has been {state} for {since}", word(job)))?,
        (_, Some(word)) => print(format_args!("jobs {word} are {state}, the first for {since}"))?,
        (jobs, None) => {
            let array = told_array(jobs);
            print(format_args!(
                "{} jobs of {array} are {state}, the first for {since}",
                jobs.len()
            ))?;
        }
    }
    if !told.reason.is_empty() {
        print(format_args!("because: {}", told.reason))?;
    }
    if told.state == JobState::Queued {
        print(format_args!("free now: {}", free_now(&client.get::<Vec<NodeView>>("/nodes")?)))?;
    }
    if !told.waits_for.is_empty() {
        let named = told.waits_for.iter().take(NAMED_MAX).map(u32::to_string);
        let mut jobs = format!("job {}", named.collect::<Vec<_>>().join(", job "));
        if told.waits_for.len() > NAMED_MAX {
            jobs += &format!(" and {} more", told.waits_for.len() - NAMED_MAX);
        }
        print(format_args!("waits for: {jobs}"))?;
    }
    // What should have begun by now is no expectation any more.
    if let Some(start) = told.expected_start.filter(|start| *start > now()) {
        print(format_args!("expected start: {} (in {})", moment(start), length(start - now())))?;
    }
    Ok(())
}

fn told_array(jobs: &[&JobView]) -> String {
    jobs.first()
        .and_then(|job| job.array_of)
        .map_or(String::new(), |array| format!("array {array}"))
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
