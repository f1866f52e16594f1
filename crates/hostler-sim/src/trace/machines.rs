//! Rules over the rows of `nodes.csv` that say what machines are: a part of `trace check`.
//!
//! What a simulation takes from one row must not be said otherwise in another. When machines are
//! up is checked with the other rules.

use std::collections::HashMap;

use super::check::Rule;
use super::table::{NodeRow, Trace};
use super::text::TextId;

/// Tells of rule, row, column and value.
type Report<'a> = &'a mut dyn FnMut(Rule, u32, &'static str, String);

/// Finds machines that cannot be as their rows say.
pub(super) fn check_machines(trace: &Trace, report: Report<'_>) {
    let mut first_of_node: HashMap<TextId, &NodeRow> = HashMap::new();
    let mut first_of_model: HashMap<TextId, &NodeRow> = HashMap::new();
    for (row, node) in (0..).zip(&trace.nodes) {
        if let Some(islands) = node.islands.get().filter(|count| !divides(*count, node)) {
            let value = format!("{islands} islands of {} GPUs", node.gpu_count);
            report(Rule::Islands, row, "islands", value);
        }
        let first = *first_of_node.entry(node.node_id).or_insert(node);
        if let Some(column) = difference(first, node) {
            let value = format!("{}, see line {}", trace.str(node.node_id), first.line);
            report(Rule::NodeDiffers, row, column, value);
        }
        let Some(memory) = node.gpu_mem_mib.get().filter(|_| node.gpu_count > 0) else {
            continue;
        };
        let first = *first_of_model.entry(node.gpu_model).or_insert(node);
        let known = first.gpu_mem_mib.or(memory);
        if memory != known {
            let model = trace.str(node.gpu_model);
            let value = format!("{memory} for {model}, but {known} in line {}", first.line);
            report(Rule::GpuMemory, row, "gpu_mem_mib", value);
        }
    }
}

/// Whether the GPUs of a node can be parted into so many equal islands.
fn divides(islands: u32, node: &NodeRow) -> bool {
    match node.gpu_count {
        0 => islands <= 1,
        gpus => (1..=gpus).contains(&islands) && gpus.is_multiple_of(islands),
    }
}

/// The first column, but for the times and the pool, in which two rows of one machine differ.
fn difference(one: &NodeRow, other: &NodeRow) -> Option<&'static str> {
    let columns = [
        ("gpu_model", one.gpu_model == other.gpu_model),
        ("gpu_count", one.gpu_count == other.gpu_count),
        ("gpu_mem_mib", one.gpu_mem_mib == other.gpu_mem_mib),
        ("cpu_milli", one.cpu_milli == other.cpu_milli),
        ("mem_mib", one.mem_mib == other.mem_mib),
        ("nic_mbps", one.nic_mbps == other.nic_mbps),
        ("link", one.link == other.link),
        ("rack", one.rack == other.rack),
        ("labels", one.labels == other.labels),
        ("islands", one.islands == other.islands),
        ("idle_watts", one.idle_watts == other.idle_watts),
        ("peak_watts", one.peak_watts == other.peak_watts),
    ];
    columns.into_iter().find(|(_, same)| !same).map(|(column, _)| column)
}
