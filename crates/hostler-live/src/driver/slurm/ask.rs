//! What a job of Slurm's asks for, in terms of what is scheduled here: so many nodes, and the same
//! on each of them.

use hostler_core::units::Time;

use super::SlurmDriver;
use super::read::{Asked, Memory, SlurmJob, SlurmNode};
use super::words::{self, Gpus};
use crate::job::JobRequest;
use crate::limits::{CPU_MILLI_MAX, NAME_CHARS_MAX, SECS_MAX, TASKS_MAX};

/// Cores or GPUs that may be asked of one node.
const UNITS_MAX: u32 = CPU_MILLI_MAX / 1000;

/// What is asked of each of some nodes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ask {
    /// How many nodes.
    pub(super) nodes: u32,
    /// GPUs of each.
    pub(super) gpus: u32,
    /// Their model, where one is named.
    pub(super) model: Option<String>,
    /// Cores of each.
    pub(super) cpus: u32,
    /// Memory of each in MiB.
    pub(super) mem_mib: u64,
}

impl SlurmDriver {
    /// What a job that waits asks for, or why it is not placed here.
    pub(super) fn ask(&self, job: &SlurmJob) -> Result<Ask, String> {
        if !job.beyond.is_empty() {
            return Err(words::sentence(&job.beyond));
        }
        let (gpus, on_each) = match &job.gpus {
            Asked::None => (Gpus::default(), true),
            Asked::OnEachNode(gpus) => (gpus.clone(), true),
            Asked::InAll(gpus) => (gpus.clone(), false),
            Asked::ForEachTask(gpus, tasks) => {
                (Gpus { count: gpus.count.saturating_mul(*tasks), ..gpus.clone() }, false)
            }
            Asked::Unclear(fault) => return Err(words::sentence(fault)),
        };
        let able: Vec<&SlurmNode> = self.nodes.values().filter(|node| has(node, &gpus)).collect();
        if let (Some(model), true) = (&gpus.model, able.is_empty()) {
            return Err(format!("no node of the partition has GPUs `{}`", clean(model)));
        }
        let threads = able.iter().map(|node| node.threads).max().unwrap_or(1);
        let least = job.nodes.max(1);
        // Who did not say how many nodes gets as few as can hold it.
        let most = if job.nodes_max.is_some() {
            least
        } else {
            TASKS_MAX.min(able.len() as u32).max(least)
        };
        let ask_of = |nodes: u32| {
            let each = match on_each {
                true => gpus.count,
                false if gpus.count.is_multiple_of(nodes) => gpus.count / nodes,
                false => return None,
            };
            let for_gpus = each.saturating_mul(job.cpus_per_gpu);
            let cpus = job.cpus.div_ceil(nodes).max(for_gpus).max(1);
            let cpus = cpus.checked_next_multiple_of(threads).unwrap_or(u32::MAX);
            let mem_mib = self.memory(job, cpus, each, &able);
            let model = gpus.model.clone().filter(|_| each > 0);
            Some(Ask { nodes, gpus: each, model, cpus, mem_mib })
        };
        if least > TASKS_MAX {
            return Err(format!("it asks for {least} nodes, and {TASKS_MAX} are the most"));
        }
        let mut asks = (least..=most).filter_map(ask_of);
        let first = asks.next();
        let first = first.ok_or_else(|| {
            format!("its {} GPUs cannot be divided by its {least} nodes", gpus.count)
        })?;
        if first.gpus.max(first.cpus) > UNITS_MAX {
            return Err(format!("it asks for more than {UNITS_MAX} cores or GPUs of a node"));
        }
        if able.iter().any(|node| holds(node, &first)) {
            return Ok(first);
        }
        Ok(asks.find(|ask| able.iter().any(|node| holds(node, ask))).unwrap_or(first))
    }

    /// Memory of each node. Where nobody asked for any, Slurm would give a job all that a node has,
    /// which differs from node to node.
    fn memory(&self, job: &SlurmJob, cpus: u32, gpus: u32, able: &[&SlurmNode]) -> u64 {
        match job.mem {
            _ if self.counts_memory == Some(false) => 0,
            Memory::OnEachNode(mem) => mem,
            Memory::ForEachCore(mem) => mem.saturating_mul(cpus.into()),
            Memory::ForEachGpu(mem) => mem.saturating_mul(gpus.into()),
            Memory::Unsaid => able.iter().map(|node| node.mem).min().unwrap_or(0),
        }
    }

    /// What a job that runs already holds on each of its nodes, as near as lists tell.
    pub(super) fn held(&self, job: &SlurmJob) -> Ask {
        let nodes = job.on.len().max(1) as u32;
        let given = words::gpus_of_tres(&job.given);
        let all = match (&job.gpus, given.count) {
            (_, 1..) => given,
            // A cluster that does not account for GPUs does not list them either.
            (Asked::OnEachNode(gpus), _) => {
                Gpus { count: gpus.count.saturating_mul(nodes), ..gpus.clone() }
            }
            (Asked::InAll(gpus), _) => gpus.clone(),
            (Asked::ForEachTask(gpus, tasks), _) => {
                Gpus { count: gpus.count.saturating_mul(*tasks), ..gpus.clone() }
            }
            (Asked::None | Asked::Unclear(_), _) => Gpus::default(),
        };
        let mem = match words::of_tres(&job.given, "mem") {
            Some(mem) if self.counts_memory == Some(true) => mem.div_ceil(nodes.into()),
            Some(_) | None => 0,
        };
        Ask {
            nodes,
            gpus: all.count.div_ceil(nodes),
            model: all.model.filter(|_| all.count > 0),
            cpus: job.cpus.div_ceil(nodes).max(1),
            mem_mib: mem,
        }
    }

    /// Whether a node has what is asked of each.
    pub(super) fn some_node_holds(&self, asked: &JobRequest) -> bool {
        let holds = |node: &SlurmNode| {
            let gpus = node.gpus.as_ref().map_or(0, |gpus| gpus.count);
            f64::from(gpus) >= asked.gpus
                && f64::from(node.cpus) >= asked.cpus
                && node.mem >= asked.mem_mib.into()
        };
        self.nodes.values().any(holds)
    }

    /// The same as a request, for everybody who looks at jobs.
    pub(super) fn request(&self, job: &SlurmJob, ask: &Ask, is_ours: bool) -> JobRequest {
        let secs = job.limit_secs.map(|secs| secs.clamp(1, SECS_MAX));
        let known = |model: &&String| {
            self.nodes.values().any(|node| node.gpu_model() == Some(model.as_str()))
        };
        JobRequest {
            name: clean(&job.name),
            // What runs with more than can be asked for here is booked by what it holds.
            gpus: ask.gpus.min(UNITS_MAX).into(),
            gpu_models: ask.model.iter().filter(known).cloned().collect(),
            cpus: ask.cpus.min(UNITS_MAX).into(),
            mem_mib: u32::try_from(ask.mem_mib).unwrap_or(u32::MAX),
            tasks: ask.nodes.clamp(1, TASKS_MAX),
            apart: ask.nodes > 1,
            // Slurm keeps the limit itself, by its own clock, and an operator may change it.
            max_secs: None,
            estimate_secs: secs,
            checkpoints: is_ours && job.requeues && self.settings.preempt_requeueable,
            ..JobRequest::default()
        }
    }
}

/// What a job was listed with, whatever nodes there are. It is kept: a release that words it
/// otherwise would take no job for changed, since what follows from it is compared then.
pub(super) fn listed(job: &SlurmJob) -> String {
    let of = |gpus: &Gpus| format!("{}:{}", gpus.count, gpus.model.as_deref().unwrap_or("any"));
    let gpus = match &job.gpus {
        Asked::None => "none".to_owned(),
        Asked::OnEachNode(gpus) => format!("node:{}", of(gpus)),
        Asked::InAll(gpus) => format!("job:{}", of(gpus)),
        Asked::ForEachTask(gpus, tasks) => format!("{tasks}-tasks:{}", of(gpus)),
        Asked::Unclear(_) => "unclear".to_owned(),
    };
    let mem = match job.mem {
        Memory::Unsaid => "none".to_owned(),
        Memory::OnEachNode(mem) => format!("node:{mem}"),
        Memory::ForEachCore(mem) => format!("core:{mem}"),
        Memory::ForEachGpu(mem) => format!("gpu:{mem}"),
    };
    let (nodes, most, cpus) = (job.nodes, job.nodes_max.unwrap_or(0), job.cpus);
    let (for_gpu, secs) = (job.cpus_per_gpu, job.limit_secs.unwrap_or(0));
    format!("gpus={gpus} nodes={nodes}-{most} cpus={cpus}+{for_gpu} mem={mem} secs={secs}")
}

fn has(node: &SlurmNode, gpus: &Gpus) -> bool {
    match (&gpus.model, gpus.count) {
        (_, 0) => node.gpus.is_ok(),
        (None, _) => node.gpu_model().is_some(),
        (Some(model), _) => node.gpu_model() == Some(model),
    }
}

fn holds(node: &SlurmNode, ask: &Ask) -> bool {
    let gpus = node.gpus.as_ref().map_or(0, |gpus| gpus.count);
    gpus >= ask.gpus && node.cpus >= ask.cpus && node.mem >= ask.mem_mib
}

/// A name as it may be shown on a line.
pub(super) fn clean(name: &str) -> String {
    let sane = |letter: char| if letter.is_control() || letter == '/' { '_' } else { letter };
    let clean: String = name.chars().map(sane).take(NAME_CHARS_MAX).collect();
    if clean.is_empty() { "job".to_owned() } else { clean }
}

/// A time of Slurm's, which counts seconds.
pub(super) fn moment(secs: u64) -> Time {
    Time::from_secs(secs)
}

/// What keeps Slurm from starting a job wherever it waits, in words; nothing where nothing does.
pub(super) fn kept_by(job: &SlurmJob, now: Time) -> Option<String> {
    if job.priority == 0 || job.reason.starts_with("JobHeld") {
        let who = if job.reason == "JobHeldAdmin" { "an operator" } else { "its user" };
        return Some(format!("{who} holds it in Slurm (`scontrol release`)"));
    }
    if !job.after.is_empty() {
        return Some(format!("it comes after other jobs in Slurm: {}", clean(&job.after)));
    }
    // One that was requeued is not for a while, which is no wish of its user's.
    let begins = moment(job.eligible);
    (begins > now && job.restarts == 0).then(|| "it begins at a later time (`--begin`)".to_owned())
}
