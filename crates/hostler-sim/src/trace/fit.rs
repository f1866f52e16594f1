//! How many instances of a task the empty nodes hold, each node on its own.
//!
//! For the validator and for the load: several roles of a job, free capacity and time play no part.
//! A node that moves between pools counts in each of them.

use std::collections::{HashMap, HashSet};

use super::limits::FIT_COMPARISONS_MAX;
use super::table::{JobRow, NodeRow, OptU32, TaskRow, Trace};
use super::text::{TextId, TextPool};

/// Answers by comparing distinct demands with distinct node shapes, each pair once.
pub(super) struct Fit<'a> {
    trace: &'a Trace,
    shapes: Shapes<'a>,
    /// Those of the nodes of each pool.
    pools: HashMap<&'a str, Shapes<'a>>,
    models: HashSet<&'a str>,
    known: HashMap<Demand, u64>,
    comparisons_left: u64,
    gave_up: bool,
}

/// Shapes of nodes, and how many nodes have each.
type Shapes<'a> = HashMap<MachineShape<'a>, u64>;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct MachineShape<'a> {
    model: &'a str,
    gpus: u32,
    gpu_mem_mib: OptU32,
    cpu_milli: OptU32,
    mem_mib: OptU32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Demand {
    /// The pool that it keeps to, as a text of the trace; empty where it keeps to none.
    pool: TextId,
    models: TextId,
    gpu_milli: u32,
    gpu_mem_mib: u32,
    cpu_milli: u32,
    mem_mib: u32,
}

impl<'a> Fit<'a> {
    /// On the nodes of the trace.
    pub(super) fn new(trace: &'a Trace) -> Fit<'a> {
        Fit::on(trace, &trace.nodes, &trace.text)
    }

    /// On nodes whose texts are in `text`.
    pub(super) fn on(trace: &'a Trace, nodes: &'a [NodeRow], text: &'a TextPool) -> Fit<'a> {
        let (mut seen, mut shapes) = (HashSet::new(), Shapes::new());
        for node in nodes.iter().filter(|node| seen.insert(node.node_id)) {
            *shapes.entry(MachineShape::of(node, text)).or_default() += 1;
        }
        let (mut seen, mut pools) = (HashSet::new(), HashMap::<&str, Shapes<'_>>::new());
        let in_pools = nodes.iter().filter(|node| !node.pool.is_empty());
        for node in in_pools.filter(|node| seen.insert((node.node_id, node.pool))) {
            let pool = pools.entry(text.get(node.pool)).or_default();
            *pool.entry(MachineShape::of(node, text)).or_default() += 1;
        }
        let gpu_nodes = nodes.iter().filter(|node| node.gpu_count > 0);
        Fit {
            trace,
            shapes,
            pools,
            models: gpu_nodes.map(|node| text.get(node.gpu_model)).collect(),
            known: HashMap::new(),
            comparisons_left: FIT_COMPARISONS_MAX,
            gave_up: false,
        }
    }

    /// Whether no node has this model, given that nodes are known.
    pub(super) fn lacks_model(&self, model: &str) -> bool {
        !self.shapes.is_empty() && !self.models.contains(model)
    }

    /// Whether an instance fits some node; `None` once, when the work allowed is spent (from then
    /// on "yes").
    pub(super) fn fits(&mut self, task: &TaskRow) -> Option<bool> {
        self.slots(task, TextId::EMPTY).map(|slots| slots > 0)
    }

    /// Whether all instances of every task of a job fit at once into its pool, each task on its
    /// own.
    pub(super) fn holds(&mut self, job: &JobRow) -> bool {
        let is_pool = self.pools.contains_key(self.trace.str(job.queue));
        let pool = if is_pool { job.queue } else { TextId::EMPTY };
        let mut tasks = self.trace.tasks_of(job).iter();
        tasks.all(|task| self.slots(task, pool).is_none_or(|slots| slots >= task.count.into()))
    }

    fn slots(&mut self, task: &TaskRow, pool: TextId) -> Option<u64> {
        if self.shapes.is_empty() || self.gave_up {
            return Some(u64::MAX);
        }
        let demand = Demand::of(task, pool);
        if let Some(answer) = self.known.get(&demand) {
            return Some(*answer);
        }
        let shapes = self.pools.get(self.trace.str(pool)).unwrap_or(&self.shapes);
        let cost = shapes.len() as u64;
        if cost > self.comparisons_left {
            self.gave_up = true;
            return None;
        }
        self.comparisons_left -= cost;
        let models: Vec<&str> = self.trace.list(demand.models, '|').collect();
        let answer =
            shapes.iter().map(|(shape, nodes)| shape.slots(&demand, &models) * nodes).sum();
        self.known.insert(demand, answer);
        Some(answer)
    }
}

impl<'a> MachineShape<'a> {
    fn of(node: &NodeRow, text: &'a TextPool) -> MachineShape<'a> {
        MachineShape {
            model: text.get(node.gpu_model),
            gpus: node.gpu_count,
            gpu_mem_mib: node.gpu_mem_mib,
            cpu_milli: node.cpu_milli,
            mem_mib: node.mem_mib,
        }
    }

    /// Instances that an empty node holds; what the node does not say does not limit.
    fn slots(&self, demand: &Demand, models: &[&str]) -> u64 {
        let per = |have: OptU32, want: u32| have.get().and_then(|have| have.checked_div(want));
        let limits = [per(self.cpu_milli, demand.cpu_milli), per(self.mem_mib, demand.mem_mib)];
        let most = limits.into_iter().flatten().min().unwrap_or(u32::MAX);
        if demand.gpu_milli == 0 {
            return most.into();
        }
        let memory_fits = self.gpu_mem_mib.or(u32::MAX) >= demand.gpu_mem_mib;
        if !memory_fits || !(models.is_empty() || models.contains(&self.model)) {
            return 0;
        }
        let by_gpu = match demand.gpu_milli {
            part @ 1..1000 => self.gpus.saturating_mul(1000 / part),
            whole => self.gpus / whole.div_ceil(1000),
        };
        most.min(by_gpu).into()
    }
}

impl Demand {
    fn of(task: &TaskRow, pool: TextId) -> Demand {
        Demand {
            pool,
            models: task.gpu_models,
            gpu_milli: task.gpu_milli.or(0),
            gpu_mem_mib: task.gpu_mem_mib.or(0),
            cpu_milli: task.cpu_milli.or(0),
            mem_mib: task.mem_mib.or(0),
        }
    }
}
