//! The TOML form of a cluster: models, and groups of equal machines with a count.
//!
//! ```toml
//! name = "example"
//!
//! [[gpu_models]]
//! name = "V100"        # as nodes and tasks call it
//! mem_mib = 16384
//! tier = 2             # 0 = low end
//! sms = 80             # optional, like nvlink, idle_watts, peak_watts
//!
//! [[nodes]]
//! count = 4
//! gpu_model = "V100"   # leave out for machines without GPUs
//! gpus = 8
//! cpu = 96             # cores, 0.5 is allowed
//! mem_gib = 512        # or mem_mib
//! link = "nvlink"      # none, pcie, nvlink
//! # optional: name, islands, rack, pool, labels = { key = "value" }, nic_mbps,
//! # idle_watts, peak_watts (machine without GPUs)
//! ```
//! Unknown keys are errors. Nodes are named `v100-0001`; groups of one name count on.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;

use super::cluster::{Cluster, GpuModel};
use super::error::{ClusterProblem, TraceError};
use super::limits::{GPU_MODELS_MAX, NODE_GPUS_MAX, NODES_MAX, NUMBER_MAX};
use super::meta::toml_error;
use super::table::{Link, NodeRow, OptU32};
use super::text::{TextId, TextPool};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    name: String,
    #[serde(default)]
    gpu_models: Vec<Model>,
    #[serde(default)]
    nodes: Vec<NodeGroup>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    name: String,
    mem_mib: u32,
    tier: u32,
    sms: Option<u32>,
    #[serde(default)]
    nvlink: bool,
    idle_watts: Option<u32>,
    peak_watts: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeGroup {
    count: u32,
    name: Option<String>,
    gpu_model: Option<String>,
    #[serde(default)]
    gpus: u32,
    cpu: f64,
    mem_mib: Option<u32>,
    mem_gib: Option<f64>,
    #[serde(default)]
    link: LinkWord,
    islands: Option<u32>,
    #[serde(default)]
    rack: String,
    #[serde(default)]
    pool: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    nic_mbps: Option<u32>,
    idle_watts: Option<u32>,
    peak_watts: Option<u32>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LinkWord {
    #[default]
    #[serde(skip)]
    Unsaid,
    None,
    Pcie,
    Nvlink,
}

impl LinkWord {
    fn link(self) -> Link {
        match self {
            LinkWord::Unsaid => Link::Unknown,
            LinkWord::None => Link::None,
            LinkWord::Pcie => Link::Pcie,
            LinkWord::Nvlink => Link::Nvlink,
        }
    }
}

/// Reads the text of a cluster file and writes every machine out as a row.
pub(super) fn parse(text: &str, file: &str) -> Result<Cluster, TraceError> {
    let parsed: File = toml::from_str(text).map_err(|error| toml_error(&error, text, file))?;
    let failed = |problem| TraceError::Cluster { file: file.to_owned(), problem };
    check_models(&parsed.gpu_models).map_err(failed)?;
    let total: u64 = parsed.nodes.iter().map(|group| u64::from(group.count)).sum();
    at_most("nodes", total, NODES_MAX as u64).map_err(failed)?;
    if total == 0 {
        return Err(failed(ClusterProblem::NoNodes));
    }
    let mut cluster = Cluster { name: parsed.name, ..Cluster::default() };
    let mut used = HashMap::new();
    for (index, group) in parsed.nodes.iter().enumerate() {
        let place = Place { group: index + 1 };
        let problem = place.expand(group, &parsed.gpu_models, &mut used, &mut cluster);
        problem?.map_err(failed)?;
    }
    cluster.gpu_models = parsed.gpu_models.into_iter().map(gpu_model).collect();
    Ok(cluster)
}

fn gpu_model(model: Model) -> GpuModel {
    GpuModel {
        name: model.name,
        mem_mib: Some(model.mem_mib),
        tier: model.tier,
        sms: model.sms,
        nvlink: model.nvlink,
        idle_watts: model.idle_watts,
        peak_watts: model.peak_watts,
    }
}

fn check_models(models: &[Model]) -> Result<(), ClusterProblem> {
    at_most("GPU models", models.len() as u64, GPU_MODELS_MAX as u64)?;
    let mut names = HashSet::new();
    for model in models {
        if !names.insert(model.name.as_str()) {
            return Err(ClusterProblem::DuplicateModel(model.name.clone()));
        }
        let place = || format!("GPU model `{}`", model.name);
        for (key, value) in [("mem_mib", model.mem_mib), ("tier", model.tier)] {
            within(key, place, f64::from(value), 0.0, NUMBER_MAX as f64)?;
        }
    }
    Ok(())
}

fn at_most(what: &'static str, count: u64, limit: u64) -> Result<(), ClusterProblem> {
    match count <= limit {
        true => Ok(()),
        false => Err(ClusterProblem::TooMany { what, count, limit }),
    }
}

/// Refuses values outside a range; NaN is outside of every range.
fn within(
    key: &'static str,
    place: impl Fn() -> String,
    value: f64,
    low: f64,
    high: f64,
) -> Result<(), ClusterProblem> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let (value, expected) = (value.to_string(), format!("{low} to {high}"));
    Err(ClusterProblem::Range { key, place: place(), value, expected })
}

/// A group by its number, for messages.
struct Place {
    group: usize,
}

impl Place {
    /// Appends the machines of a group. The outer error is a full text pool.
    fn expand(
        &self,
        group: &NodeGroup,
        models: &[Model],
        used: &mut HashMap<String, u32>,
        cluster: &mut Cluster,
    ) -> Result<Result<(), ClusterProblem>, TraceError> {
        let template = match self.row(group, models) {
            Ok(row) => row,
            Err(problem) => return Ok(Err(problem)),
        };
        let prefix = prefix(group);
        let template = with_texts(template, group, &mut cluster.text)?;
        let number = used.entry(prefix.clone()).or_default();
        for _ in 0..group.count {
            *number += 1;
            let node_id = cluster.text.intern(&format!("{prefix}-{number:04}"))?;
            cluster.nodes.push(NodeRow { node_id, ..template });
        }
        Ok(Ok(()))
    }

    fn row(&self, group: &NodeGroup, models: &[Model]) -> Result<NodeRow, ClusterProblem> {
        let named = |model: &&Model| Some(&model.name) == group.gpu_model.as_ref();
        let model = models.iter().find(named);
        match (&group.gpu_model, model) {
            (Some(name), None) => {
                let (group, model) = (self.group, name.clone());
                return Err(ClusterProblem::UnknownModel { group, model });
            }
            (None, _) if group.gpus > 0 => {
                return Err(ClusterProblem::NoModel { group: self.group, gpus: group.gpus });
            }
            _ => {}
        }
        self.check_ranges(group)?;
        Ok(NodeRow {
            gpu_count: group.gpus,
            gpu_mem_mib: OptU32::from(model.map(|model| model.mem_mib)),
            cpu_milli: OptU32::some((group.cpu * 1000.0).round() as u32),
            mem_mib: OptU32::some(self.memory(group)?),
            nic_mbps: OptU32::from(group.nic_mbps),
            link: group.link.link(),
            islands: OptU32::from(group.islands),
            idle_watts: OptU32::from(group.idle_watts),
            peak_watts: OptU32::from(group.peak_watts),
            ..NodeRow::default()
        })
    }

    fn check_ranges(&self, group: &NodeGroup) -> Result<(), ClusterProblem> {
        let place = || format!("node group {}", self.group);
        let most = NUMBER_MAX as f64;
        within("gpus", place, f64::from(group.gpus), 0.0, f64::from(NODE_GPUS_MAX))?;
        within("cpu", place, group.cpu, 0.0, 1_000_000.0)?;
        let islands = f64::from(group.islands.unwrap_or(1));
        within("islands", place, islands, 1.0, f64::from(group.gpus.max(1)))?;
        let parts = group.islands.filter(|islands| !group.gpus.is_multiple_of(*islands));
        if let Some(islands) = parts {
            let (value, expected) =
                (islands.to_string(), format!("a divisor of `gpus`, {}", group.gpus));
            return Err(ClusterProblem::Range { key: "islands", place: place(), value, expected });
        }
        for (key, value) in [
            ("nic_mbps", group.nic_mbps),
            ("idle_watts", group.idle_watts),
            ("peak_watts", group.peak_watts),
        ] {
            within(key, place, f64::from(value.unwrap_or(0)), 0.0, most)?;
        }
        let is_bad = |text: &String| text.is_empty() || text.contains(['=', ';']);
        if let Some(key) = group.labels.keys().find(|key| is_bad(key)) {
            let (value, expected) = (key.clone(), "keys without `=` and `;`".to_owned());
            return Err(ClusterProblem::Range { key: "labels", place: place(), value, expected });
        }
        if let Some(text) = group.labels.values().find(|text| text.contains(';')) {
            let (value, expected) = (text.clone(), "values without `;`".to_owned());
            return Err(ClusterProblem::Range { key: "labels", place: place(), value, expected });
        }
        Ok(())
    }

    fn memory(&self, group: &NodeGroup) -> Result<u32, ClusterProblem> {
        let place = || format!("node group {}", self.group);
        let most = NUMBER_MAX as f64;
        match (group.mem_mib, group.mem_gib) {
            (Some(mib), None) => {
                within("mem_mib", place, f64::from(mib), 0.0, most)?;
                Ok(mib)
            }
            (None, Some(gib)) => {
                within("mem_gib", place, gib, 0.0, (most / 1024.0).floor())?;
                Ok((gib * 1024.0).round() as u32)
            }
            _ => Err(ClusterProblem::Memory { group: self.group }),
        }
    }
}

fn with_texts(row: NodeRow, group: &NodeGroup, text: &mut TextPool) -> Result<NodeRow, TraceError> {
    let labels: Vec<String> =
        group.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let model = group.gpu_model.as_deref().unwrap_or_default();
    Ok(NodeRow {
        pool: text.intern(&group.pool)?,
        gpu_model: if group.gpus > 0 { text.intern(model)? } else { TextId::EMPTY },
        rack: text.intern(&group.rack)?,
        labels: text.intern(&labels.join(";"))?,
        ..row
    })
}

/// What the names of a group's nodes begin with.
fn prefix(group: &NodeGroup) -> String {
    let model = || group.gpu_model.as_deref().filter(|_| group.gpus > 0).unwrap_or("cpu");
    match &group.name {
        Some(name) => name.clone(),
        None => {
            let keep = |letter: char| {
                if letter.is_alphanumeric() { letter } else { '-' }
            };
            model().chars().map(keep).collect::<String>().to_lowercase()
        }
    }
}
