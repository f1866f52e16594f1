//! Whether a single instance of a task could run on some empty node.
//!
//! Only for the validator: gangs, free capacity and time play no part.

use std::collections::{HashMap, HashSet};

use super::limits::FIT_COMPARISONS_MAX;
use super::table::{NodeRow, OptU32, TaskRow, Trace};
use super::text::TextId;

/// Answers by comparing distinct demands with distinct node shapes, each pair once.
pub(super) struct Fit<'a> {
    trace: &'a Trace,
    shapes: Vec<MachineShape>,
    models: HashSet<&'a str>,
    known: HashMap<Demand, bool>,
    comparisons_left: u64,
    gave_up: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct MachineShape {
    model: TextId,
    gpus: u32,
    gpu_mem_mib: OptU32,
    cpu_milli: OptU32,
    mem_mib: OptU32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Demand {
    models: TextId,
    gpu_milli: u32,
    gpu_mem_mib: u32,
    cpu_milli: u32,
    mem_mib: u32,
}

impl<'a> Fit<'a> {
    pub(super) fn new(trace: &'a Trace) -> Fit<'a> {
        let distinct: HashSet<MachineShape> = trace.nodes.iter().map(MachineShape::of).collect();
        let gpu_nodes = trace.nodes.iter().filter(|node| node.gpu_count > 0);
        Fit {
            trace,
            shapes: distinct.into_iter().collect(),
            models: gpu_nodes.map(|node| trace.str(node.gpu_model)).collect(),
            known: HashMap::new(),
            comparisons_left: FIT_COMPARISONS_MAX,
            gave_up: false,
        }
    }

    /// Whether no node has this model, given that nodes are known.
    pub(super) fn lacks_model(&self, model: &str) -> bool {
        !self.shapes.is_empty() && !self.models.contains(model)
    }

    /// Whether the task fits; `None` once, when the work allowed is spent (from then on "yes").
    pub(super) fn fits(&mut self, task: &TaskRow) -> Option<bool> {
        if self.shapes.is_empty() || self.gave_up {
            return Some(true);
        }
        let demand = Demand::of(task);
        if let Some(answer) = self.known.get(&demand) {
            return Some(*answer);
        }
        let cost = self.shapes.len() as u64;
        if cost > self.comparisons_left {
            self.gave_up = true;
            return None;
        }
        self.comparisons_left -= cost;
        let models: Vec<&str> = self.trace.list(demand.models, '|').collect();
        let answer = self.shapes.iter().any(|shape| shape.holds(&demand, &models, self.trace));
        self.known.insert(demand, answer);
        Some(answer)
    }
}

impl MachineShape {
    fn of(node: &NodeRow) -> MachineShape {
        MachineShape {
            model: node.gpu_model,
            gpus: node.gpu_count,
            gpu_mem_mib: node.gpu_mem_mib,
            cpu_milli: node.cpu_milli,
            mem_mib: node.mem_mib,
        }
    }

    /// What the node does not say does not limit.
    fn holds(&self, demand: &Demand, models: &[&str], trace: &Trace) -> bool {
        let enough = |have: OptU32, want: u32| have.or(u32::MAX) >= want;
        let gpu_ok = demand.gpu_milli == 0
            || (self.gpus >= demand.gpu_milli.div_ceil(1000)
                && enough(self.gpu_mem_mib, demand.gpu_mem_mib)
                && (models.is_empty() || models.contains(&trace.str(self.model))));
        gpu_ok && enough(self.cpu_milli, demand.cpu_milli) && enough(self.mem_mib, demand.mem_mib)
    }
}

impl Demand {
    fn of(task: &TaskRow) -> Demand {
        Demand {
            models: task.gpu_models,
            gpu_milli: task.gpu_milli.or(0),
            gpu_mem_mib: task.gpu_mem_mib.or(0),
            cpu_milli: task.cpu_milli.or(0),
            mem_mib: task.mem_mib.or(0),
        }
    }
}
