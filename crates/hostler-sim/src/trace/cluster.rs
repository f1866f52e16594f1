//! Clusters: the machines a simulation runs on, from a TOML file with counts or a `nodes.csv`.
//!
//! Both give the same rows. The TOML form also knows facts of GPU models; for a `nodes.csv` these
//! come from a short table of well-known names. Placement and state of nodes are not here.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::check::each_finding;
use super::cluster_toml;
use super::error::{ClusterProblem, Fault, Faults, Problem, TraceError};
use super::limits::GPU_MODELS_MAX;
use super::read::read_nodes;
use super::source::{self, Meter};
use super::table::{Link, NodeRow, OptU32, Trace};
use super::text::{TextId, TextPool, TextPoolFull};

/// The published PAI cluster (2020) as a cluster file: 1,897 machines, 6,742 GPUs.
pub const PAI: &str = include_str!("../../../../examples/clusters/pai.toml");

/// One machine with two GPUs as a cluster file.
pub const LECTURE: &str = include_str!("../../../../examples/clusters/lecture.toml");

/// Machines and what is known of their GPU models.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Name for reports.
    pub name: String,
    /// Texts of the nodes.
    pub text: TextPool,
    /// GPU models, in the order of the file.
    pub gpu_models: Vec<GpuModel>,
    /// Machines, in the order of the file.
    pub nodes: Vec<NodeRow>,
}

/// Facts of a GPU model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuModel {
    /// Name that nodes and tasks use.
    pub name: String,
    /// Memory of one GPU, if known.
    pub mem_mib: Option<u32>,
    /// Class by speed; 0 = low end.
    pub tier: u32,
    /// Streaming multiprocessors.
    pub sms: Option<u32>,
    /// Whether GPUs of one node are joined by NVLink.
    pub nvlink: bool,
    /// Power without load.
    pub idle_watts: Option<u32>,
    /// Power under full load.
    pub peak_watts: Option<u32>,
}

/// Sums over a cluster; several intervals of one node count once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Machines.
    pub nodes: u64,
    /// GPUs.
    pub gpus: u64,
    /// Thousandths of CPU cores, where known.
    pub cpu_milli: u64,
    /// Main memory, where known.
    pub mem_mib: u64,
}

/// Reads a cluster file (`.toml`), a `nodes.csv` (packed or not), or a folder that holds a
/// `nodes.csv` or `cluster.toml`. Where nothing is called so, `32x8` is 32 machines of 8 GPUs.
pub fn read_cluster(path: &Path) -> Result<Cluster, TraceError> {
    if let Some((machines, gpus)) = sizes(path).filter(|_| !path.exists()) {
        return Cluster::of_machines(machines, gpus);
    }
    if path.is_dir() {
        let toml = path.join("cluster.toml");
        return match toml.is_file() {
            true => read_toml(&toml),
            false => read_csv(&source::need(path, "nodes.csv")?),
        };
    }
    match path.extension().is_some_and(|extension| extension == "toml") {
        true => read_toml(path),
        false => read_csv(path),
    }
}

/// Two whole numbers with an `x` between them.
fn sizes(path: &Path) -> Option<(u32, u32)> {
    let (machines, gpus) = path.to_str()?.split_once('x')?;
    Some((machines.parse().ok()?, gpus.parse().ok()?))
}

fn read_toml(path: &Path) -> Result<Cluster, TraceError> {
    Cluster::parse(&source::read_small(path)?, &source::file_name(path))
}

fn read_csv(path: &Path) -> Result<Cluster, TraceError> {
    let (mut trace, mut faults) = (Trace::default(), Faults::default());
    let mut silent = |_, _| {};
    let mut meter = Meter::new(source::size(path), &mut silent);
    let name = source::file_name(path);
    read_nodes(&mut *source::open(path, &mut meter)?, &name, &mut trace, &mut faults);
    each_finding(&trace, &mut |finding| {
        faults.push(Fault {
            file: name.clone(),
            line: u64::from(finding.line),
            column: finding.column.to_owned(),
            value: finding.value,
            problem: Problem::Rule(finding.rule),
        });
    });
    let trace = faults.or(trace)?;
    let problem = |problem| TraceError::Cluster { file: name.clone(), problem };
    let cluster = trace.cluster(name.split('.').next().unwrap_or_default());
    if cluster.nodes.is_empty() {
        return Err(problem(ClusterProblem::NoNodes));
    }
    let (count, limit) = (cluster.gpu_models.len() as u64, GPU_MODELS_MAX as u64);
    if count > limit {
        return Err(problem(ClusterProblem::TooMany { what: "GPU models", count, limit }));
    }
    Ok(cluster)
}

impl Cluster {
    /// Equal machines in which nothing but GPUs is scarce, for questions about GPUs alone.
    pub fn of_machines(machines: u32, gpus: u32) -> Result<Cluster, TraceError> {
        let name = format!("{machines}x{gpus}");
        let text = format!(
            "name = '{name}'\ngpu_models = [{{ name = 'GPU', mem_mib = 81920, tier = 0 }}]\n\
             [[nodes]]\ncount = {machines}\ngpu_model = 'GPU'\ngpus = {gpus}\ncpu = 1024\n\
             mem_gib = 8192\n"
        );
        Cluster::parse(&text, &name)
    }

    /// Reads the text of a cluster file; `file` is only for messages.
    pub fn parse(text: &str, file: &str) -> Result<Cluster, TraceError> {
        cluster_toml::parse(text, file)
    }

    /// The embedded PAI cluster.
    pub fn pai() -> Cluster {
        Cluster::parse(PAI, "pai.toml").expect("the embedded cluster file is valid")
    }

    /// The embedded two-GPU cluster.
    pub fn lecture() -> Cluster {
        Cluster::parse(LECTURE, "lecture.toml").expect("the embedded cluster file is valid")
    }

    /// Sums over all machines.
    pub fn capacity(&self) -> Capacity {
        capacity(&self.nodes)
    }
}

/// Sums over all machines of a table.
pub fn capacity(nodes: &[NodeRow]) -> Capacity {
    let mut seen = HashSet::new();
    let mut sum = Capacity::default();
    for node in nodes.iter().filter(|node| seen.insert(node.node_id)) {
        sum.nodes += 1;
        sum.gpus += u64::from(node.gpu_count);
        sum.cpu_milli += u64::from(node.cpu_milli.or(0));
        sum.mem_mib += u64::from(node.mem_mib.or(0));
    }
    sum
}

/// A smaller cluster of the same mix: of each group of equal machines the first `1/divisor`,
/// rounded to nearest (halves up), at least one.
pub fn scaled(cluster: &Cluster, divisor: u32) -> Cluster {
    let divisor = divisor.max(1) as usize;
    let mut groups: HashMap<Kind, usize> = HashMap::new();
    let mut seen = HashSet::new();
    for node in cluster.nodes.iter().filter(|node| seen.insert(node.node_id)) {
        *groups.entry(Kind::of(node)).or_default() += 1;
    }
    for count in groups.values_mut() {
        *count = ((*count + divisor / 2) / divisor).max(1);
    }
    let mut kept = HashSet::new();
    let mut keep = |node: &&NodeRow| {
        if kept.contains(&node.node_id) {
            return true;
        }
        // Only the first interval of a node may open it, or later ones could stand alone.
        let opens = seen.remove(&node.node_id);
        let left = groups.get_mut(&Kind::of(node)).filter(|left| opens && **left > 0);
        left.is_some_and(|left| {
            *left -= 1;
            kept.insert(node.node_id)
        })
    };
    let nodes = cluster.nodes.iter().filter(&mut keep).copied().collect();
    Cluster { nodes, ..cluster.clone() }
}

/// What makes machines equal for scaling: everything but name, rack and times.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    texts: [TextId; 3],
    gpus: u32,
    numbers: [OptU32; 5],
    link: Link,
}

impl Kind {
    fn of(node: &NodeRow) -> Kind {
        let NodeRow { gpu_mem_mib, cpu_milli, mem_mib, nic_mbps, islands, .. } = *node;
        Kind {
            texts: [node.pool, node.gpu_model, node.labels],
            gpus: node.gpu_count,
            numbers: [gpu_mem_mib, cpu_milli, mem_mib, nic_mbps, islands],
            link: node.link,
        }
    }
}

/// Tiers of well-known models, for tables that do not say: 0 = low end.
const TIERS: [(&str, u32); 22] = [
    ("K40m", 0),
    ("K80", 0),
    ("M60", 0),
    ("MISC", 0),
    ("P4", 0),
    ("A10", 1),
    ("G1", 1),
    ("G2", 1),
    ("L4", 1),
    ("P100", 1),
    ("T4", 1),
    ("RTX2080Ti", 1),
    ("A30", 2),
    ("G3", 2),
    ("L40S", 2),
    ("V100", 2),
    ("V100M16", 2),
    ("V100M32", 2),
    ("A100", 3),
    ("H100", 4),
    ("H200", 4),
    ("B200", 5),
];

/// Tier of a well-known model.
pub fn known_tier(model: &str) -> Option<u32> {
    TIERS.iter().find(|(name, _)| name.eq_ignore_ascii_case(model)).map(|(_, tier)| *tier)
}

impl Trace {
    /// The machines of the trace as a cluster. Models that are not well known get tier 0.
    pub fn cluster(&self, name: &str) -> Cluster {
        let mut models: Vec<(TextId, GpuModel)> = Vec::new();
        for node in self.nodes.iter().filter(|node| node.gpu_count > 0) {
            if let Some((_, known)) = models.iter_mut().find(|(id, _)| *id == node.gpu_model) {
                // One row that knows the memory speaks for those that do not.
                known.mem_mib = known.mem_mib.or(node.gpu_mem_mib.get());
                continue;
            }
            let name = self.str(node.gpu_model);
            let model = GpuModel {
                name: name.to_owned(),
                mem_mib: node.gpu_mem_mib.get(),
                tier: known_tier(name).unwrap_or(0),
                nvlink: node.link == Link::Nvlink,
                ..GpuModel::default()
            };
            models.push((node.gpu_model, model));
            // One beyond the limit is enough for the caller to see that it is broken.
            if models.len() > GPU_MODELS_MAX {
                break;
            }
        }
        let mut text = TextPool::default();
        let nodes = adopt(&self.nodes, &self.text, &mut text).expect("a part of a pool fits one");
        let gpu_models = models.into_iter().map(|(_, model)| model).collect();
        Cluster { name: name.to_owned(), text, gpu_models, nodes }
    }

    /// Puts the machines of a cluster in place of those of the trace.
    pub fn set_nodes(&mut self, cluster: &Cluster) -> Result<(), TraceError> {
        self.nodes = adopt(&cluster.nodes, &cluster.text, &mut self.text)?;
        Ok(())
    }
}

/// Rows whose texts are in one pool, with their texts in another.
fn adopt(
    nodes: &[NodeRow],
    from: &TextPool,
    into: &mut TextPool,
) -> Result<Vec<NodeRow>, TextPoolFull> {
    let mut own = |id| into.intern(from.get(id));
    let mut adopt_one = |node: &NodeRow| {
        Ok(NodeRow {
            node_id: own(node.node_id)?,
            pool: own(node.pool)?,
            gpu_model: own(node.gpu_model)?,
            rack: own(node.rack)?,
            labels: own(node.labels)?,
            ..*node
        })
    };
    nodes.iter().map(&mut adopt_one).collect()
}
