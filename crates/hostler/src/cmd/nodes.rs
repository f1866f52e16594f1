//! `hostler nodes`, `drain` and `undrain`.

use std::collections::BTreeMap;

use anyhow::Result;
use hostler_live::client::escaped;
use hostler_live::host::NodeView;
use hostler_live::reservation::DrainRequest;
use serde::Serialize;

use crate::cli::{Drain, Node, Nodes};
use crate::live::{client, print_json, table};
use crate::say::print;

/// Lists nodes.
pub fn run(args: &Nodes) -> Result<()> {
    let nodes: Vec<NodeView> = client()?.get("/nodes")?;
    if args.json {
        return print_json(&nodes);
    }
    print(nodes_table(&nodes))?;
    for (images, names) in by_images(&nodes) {
        print(format!("images are run by {images} on {}", names.join(", ")))?;
    }
    for node in &nodes {
        for why in &node.images_unusable {
            print(format!("{} does not run images by {why}", node.name))?;
        }
    }
    for node in nodes.iter().filter(|node| !node.cannot_suspend.is_empty()) {
        print(format!("{} does not suspend jobs: {}", node.name, node.cannot_suspend))?;
    }
    for node in nodes.iter().filter(|node| !node.reason.is_empty()) {
        let what = if node.health == "up" { "" } else { " gets no jobs" };
        print(format!("{}{what}: {}", node.name, node.reason))?;
    }
    for node in nodes.iter().filter(|node| node.outdated) {
        let version = match node.version.as_str() {
            "" => String::new(),
            version => format!(" ({version})"),
        };
        print(format!(
            "{} has an agent of an earlier release{version}; upgrade it, its jobs go on",
            node.name
        ))?;
    }
    Ok(())
}

/// What runs images, and where; nodes with the same are told together.
fn by_images(nodes: &[NodeView]) -> BTreeMap<String, Vec<&str>> {
    let mut by_images: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for node in nodes.iter().filter(|node| !node.images.is_empty()) {
        by_images.entry(node.images.join(" and ")).or_default().push(&node.name);
    }
    by_images
}

/// Nodes as a table.
pub fn nodes_table(nodes: &[NodeView]) -> String {
    let rows: Vec<_> = nodes.iter().map(row).collect();
    table(["NODE", "STATE", "MODEL", "GPUS", "CPUS", "MEMORY", "GPU USE", "JOBS", "AGENT"], &rows)
}

/// A node as a row of that table.
pub fn row(node: &NodeView) -> [String; 9] {
    let percents: Vec<String> = node.gpu_use.iter().map(|used| format!("{used}%")).collect();
    [
        node.name.clone(),
        node.health.clone(),
        node.gpu_model.clone(),
        format!("{}/{}", node.gpus_used, node.gpus),
        format!("{}/{}", node.cpus_used, node.cpus),
        format!("{}/{} GiB", node.mem_mib_used / 1024, node.mem_mib / 1024),
        percents.join(" "),
        node.jobs.len().to_string(),
        node.version.clone(),
    ]
}

/// Lets a node take nothing new.
pub fn drain(args: &Drain) -> Result<()> {
    let reason = args.reason.clone().unwrap_or_default();
    set(&args.node, "drain", &DrainRequest { reason, deadline_secs: args.deadline })
}

/// Lets a node take nothing new, or lets it again.
pub fn set(args: &Node, what: &str, how: &impl Serialize) -> Result<()> {
    let path = format!("/nodes/{}/{what}", escaped(&args.node));
    let node: NodeView = client()?.post(&path, how)?;
    if args.json {
        return print_json(&node);
    }
    Ok(print(format_args!("{} is {}", node.name, node.health))?)
}
