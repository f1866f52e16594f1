//! `hostler explain`: why jobs stand where they stand.

use std::collections::BTreeMap;

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
        let nodes: Vec<NodeView> = client.get("/nodes")?;
        let guest_of = group.first().map_or("", |job| job.request.reservation.as_str());
        print(format_args!("free now: {}", free_now(&nodes, guest_of)))?;
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

/// What nodes that take jobs have left: it shows what is missing for a job that waits. Nodes that
/// are kept for a reservation are there for its guests only, and they for them.
fn free_now(nodes: &[NodeView], guest_of: &str) -> String {
    let is_open = |node: &&NodeView| {
        node.health == "up" && node.kept_for.as_deref().unwrap_or("") == guest_of
    };
    let open: Vec<&NodeView> = nodes.iter().filter(is_open).collect();
    let kept = kept_for_others(nodes, guest_of);
    if open.is_empty() {
        return match nodes.len() {
            0 => "there are no nodes".to_owned(),
            all => format!("nothing: none of {all} nodes takes it{kept}; see `hostler nodes`"),
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
         jobs{kept}",
        gpus - gpus_used,
        cores - cores_used,
        mem - mem_used,
        open.len(),
        nodes.len(),
    )
}

/// Which nodes are kept for which other reservations, behind what else is said.
fn kept_for_others(nodes: &[NodeView], guest_of: &str) -> String {
    let mut kept: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        if let Some(name) = node.kept_for.as_deref().filter(|name| *name != guest_of) {
            kept.entry(name).or_default().push(&node.name);
        }
    }
    let words = kept.iter().map(|(name, nodes)| {
        let more = nodes.len().saturating_sub(NAMED_MAX);
        let named = nodes[..nodes.len() - more].join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("; kept for `{name}`: {named}{more}")
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, kept_for: Option<&str>) -> NodeView {
        serde_json::from_value(json!({
            "name": name, "health": "up", "kept_for": kept_for, "connected": true,
            "silent_secs": 0.0, "cpus": 8.0, "cpus_used": 2.0, "mem_mib": 2048,
            "mem_mib_used": 1024, "gpu_model": "V100", "gpu_mem_mib": 16000, "gpus": 4,
            "gpus_used": 1.0, "gpu_use": [], "jobs": [],
        }))
        .expect("these are all that a node must have")
    }

    #[test]
    fn nodes_that_are_kept_are_free_for_guests_only() {
        let nodes = [node("n1", None), node("n2", Some("demo")), node("n3", Some("demo"))];
        let of_all = "3.0 of 4 GPUs, 6.0 of 8 cores, 1 of 2 GiB; 1 of 3 nodes take jobs; kept for \
                      `demo`: n2, n3";
        assert_eq!(free_now(&nodes, ""), of_all);
        let of_guests = "6.0 of 8 GPUs, 12.0 of 16 cores, 2 of 4 GiB; 2 of 3 nodes take jobs";
        assert_eq!(free_now(&nodes, "demo"), of_guests);
        let none =
            "nothing: none of 2 nodes takes it; kept for `demo`: n2, n3; see `hostler nodes`";
        assert_eq!(free_now(&nodes[1..], ""), none);
        assert_eq!(free_now(&[], ""), "there are no nodes");
    }
}
