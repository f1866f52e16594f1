//! From tables to the scheduler's types: what a trace and a cluster file mean.
//!
//! Text becomes ids here and nowhere else. Jobs are made one by one as they arrive, so that a
//! trace of a million jobs is held once, in its compact form.

mod pools;
mod skew;
mod speeds;

use std::collections::BTreeMap;
use std::sync::Arc;

use hostler_core::cluster::{GpuModel, NodeSpec, Tenant};
use hostler_core::id::{
    Features, GroupId, JobId, ModelId, ModelSet, NodeId, ProfileKey, QueueId, TenantId,
};
use hostler_core::job::{
    Checkpoint, Demand, Elastic, Gang, JobKind, JobSpec, Locality, Models, Sharing,
};
use hostler_core::limits::{
    DEVICES_PER_NODE_MAX, GANGS_PER_JOB_MAX, MODELS_MAX, TASKS_PER_JOB_MAX,
};
use hostler_core::policy::Need;
use hostler_core::units::{Mib, Milli, Span, Time};
use hostler_core::window::StayBound;

use pools::Pools;
pub use speeds::Gaps;
use speeds::Speeds;

use crate::run::Estimates;
use crate::trace::cluster::Cluster;
use crate::trace::table::{JobRow, Link, NodeRow, TaskRow, Trace};
use crate::trace::text::TextId;
use crate::trace::throughputs::Throughputs;
use crate::world::{Arrivals, InjectedFault, Site, Truth, Use};

/// A node that does not say how much it has is taken to have this much: enough for any job.
const PLENTY: u32 = 1 << 30;

/// A trace on a cluster, ready to run.
pub struct Workload {
    /// The cluster, its physics and its faults.
    pub site: Site,
    /// True run times.
    pub truth: Truth,
    trace: Trace,
    tenants: Vec<TenantId>,
    /// GPU models that a text of the trace stands for.
    models: BTreeMap<TextId, ModelSet>,
    /// What jobs of a queue need of a node, where their queue is a pool.
    pools: BTreeMap<TextId, Features>,
    /// Profiles by the `model` of a task; the one for all others apart.
    profiles: BTreeMap<TextId, ProfileKey>,
    profile_of_others: Option<ProfileKey>,
    /// How much of a model its largest tensor is, by the `model` of a task.
    skews: BTreeMap<TextId, Milli>,
    speeds: Speeds,
    /// What the throughput table does not say.
    pub gaps: Gaps,
    /// Cost of saving that every job has.
    pub checkpoint: Checkpoint,
    /// Where estimates come from besides what a policy asks for.
    pub estimates: Estimates,
}

/// Why a trace cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// A job does not say how long it runs.
    #[error(
        "jobs.csv:{line}: job `{job}` has no run time; give `duration_ms` in tasks.csv, or \
         `--throughputs` with its workload"
    )]
    NoDuration {
        /// Its name.
        job: String,
        /// Its line.
        line: u32,
    },
    /// A job has no tasks or too many.
    #[error("jobs.csv:{line}: job `{job}` has {tasks} rows in tasks.csv; 1 to {max} are allowed")]
    Roles {
        /// Its name.
        job: String,
        /// Its line.
        line: u32,
        /// Rows in tasks.csv.
        tasks: usize,
        /// The limit.
        max: usize,
    },
    /// A task has no instances, or too many.
    #[error("tasks.csv:{line}: `count` of job `{job}`: {count}; 1 to {max} are allowed")]
    Count {
        /// Its job.
        job: String,
        /// Its line.
        line: u32,
        /// Instances.
        count: u32,
        /// The limit.
        max: u32,
    },
    /// A GPU demand is neither a fraction nor whole.
    #[error("tasks.csv:{line}: `gpu_milli` of job `{job}`: {gpu}; above 1000 only whole multiples")]
    Gpu {
        /// Its job.
        job: String,
        /// Its line.
        line: u32,
        /// The demand.
        gpu: u32,
    },
    /// A node has too many GPUs.
    #[error("node `{node}` has {gpus} GPUs; at most {max} are allowed")]
    Devices {
        /// Its name.
        node: String,
        /// Its GPUs.
        gpus: u32,
        /// The limit.
        max: usize,
    },
    /// A cluster has too many GPU models.
    #[error("the cluster has too many GPU models: {count}; at most {max} are allowed")]
    Models {
        /// Its models, or the number at which counting stopped.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// There is nothing to run on.
    #[error("the cluster has no nodes; give `--cluster` a file with at least one")]
    NoNodes,
}

impl Workload {
    /// Joins a trace and a cluster.
    pub fn new(trace: Trace, cluster: &Cluster) -> Result<Workload, LowerError> {
        Workload::with_throughputs(trace, cluster, None)
    }

    /// Joins a trace and a cluster on which jobs are as fast as a table says. Steps then give run
    /// times, in place of those in the trace.
    pub fn with_throughputs(
        mut trace: Trace,
        cluster: &Cluster,
        table: Option<&Throughputs>,
    ) -> Result<Workload, LowerError> {
        let (count, max) = (cluster.gpu_models.len(), MODELS_MAX);
        if count > max {
            return Err(LowerError::Models { count, max });
        }
        let models = cluster.gpu_models.iter().map(gpu_model).collect();
        let mut site = Site { models, ..Site::default() };
        let pools = Pools::new(&trace, cluster);
        lower_nodes(cluster, &pools, &mut site)?;
        if site.nodes.is_empty() {
            return Err(LowerError::NoNodes);
        }
        let models = &site.models;
        let speeds = table.map(|table| Speeds::new(&trace, models, table)).unwrap_or_default();
        let gaps = table.map(|table| speeds.gaps(&trace, models, table)).unwrap_or_default();
        speeds.fill_in(&mut trace);
        site.physics.profiles = speeds.used();
        let mut runs = Vec::with_capacity(trace.jobs.len());
        for job in &trace.jobs {
            let recorded = check_job(&trace, job)?;
            runs.push(speeds.run(trace.tasks_of(job)).map_or(recorded, |(_, run)| run));
        }
        let truth = Truth::new(runs).with_uses(uses(&trace));
        let mut workload = Workload {
            site,
            truth,
            tenants: Vec::new(),
            models: BTreeMap::new(),
            pools: pools.needs(&trace),
            skews: skew::published(&trace),
            trace,
            profiles: speeds.keys().clone(),
            profile_of_others: None,
            speeds,
            gaps,
            checkpoint: Checkpoint::default(),
            estimates: Estimates::default(),
        };
        workload.number_tenants();
        workload.resolve_models();
        Ok(workload)
    }

    /// The tables.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Number of jobs.
    pub fn job_count(&self) -> usize {
        self.trace.jobs.len()
    }

    /// Jobs whose tasks need not start together, by the word of the trace. They do all the same.
    pub fn jobs_without_gang(&self) -> usize {
        let apart = |task: &TaskRow| task.count > 1 && !task.is_gang();
        let jobs = self.trace.jobs.iter();
        jobs.filter(|job| self.trace.tasks[job.tasks()].iter().any(apart)).count()
    }

    /// What policies may go by and this workload does not have.
    pub fn lacks(&self) -> Vec<Need> {
        let jobs = &self.trace.jobs;
        let one_priority = jobs.windows(2).all(|pair| pair[0].priority == pair[1].priority);
        let lacks = [
            (one_priority, Need::Priorities),
            (self.site.physics.profiles.is_empty(), Need::Speeds),
            (self.has_gangs(), Need::SingleGpus),
        ];
        lacks.into_iter().filter(|(lacking, _)| *lacking).map(|(_, need)| need).collect()
    }

    fn has_gangs(&self) -> bool {
        let gpus = |task: &TaskRow| u64::from(task.gpu_milli.or(0)) * u64::from(task.count);
        let milli = |job: &JobRow| self.trace.tasks[job.tasks()].iter().map(gpus).sum::<u64>();
        self.trace.jobs.iter().any(|job| milli(job) > 1000)
    }

    /// The jobs, in order of submission.
    pub fn arrivals(&self) -> TraceArrivals<'_> {
        TraceArrivals { workload: self, next: 0 }
    }

    /// Gives jobs whose tasks name `model` a profile; `*` stands for all others.
    pub(crate) fn assign_profile(&mut self, model: &str, key: ProfileKey) {
        if model == "*" {
            self.profile_of_others = Some(key);
        } else if let Some(text) = self.trace.text.find(model) {
            self.profiles.insert(text, key);
        }
    }

    /// Users become tenants in order of appearance.
    fn number_tenants(&mut self) {
        let mut known: BTreeMap<TextId, TenantId> = BTreeMap::new();
        for job in &self.trace.jobs {
            let tenants = &mut self.site.tenants;
            let tenant = *known.entry(job.user).or_insert_with(|| {
                let name = match self.trace.text.get(job.user) {
                    "" => "(unknown)",
                    name => name,
                };
                tenants.push(Tenant::named(name));
                TenantId(tenants.len() as u32 - 1)
            });
            self.tenants.push(tenant);
        }
    }

    fn resolve_models(&mut self) {
        for task in &self.trace.tasks {
            if task.gpu_models.is_empty() || self.models.contains_key(&task.gpu_models) {
                continue;
            }
            let names = self.trace.text.get(task.gpu_models).split('|');
            let known = |name: &str| {
                let at = self.site.models.iter().position(|model| &*model.name == name)?;
                Some(ModelSet::one(ModelId(at as u32)))
            };
            // A model that the cluster lacks adds nothing; a job left with none is rejected.
            let set = names.filter_map(known).fold(ModelSet::NONE, ModelSet::with);
            self.models.insert(task.gpu_models, set);
        }
    }

    /// What the job at this place of the trace asks for.
    pub fn spec(&self, at: usize) -> JobSpec {
        let job = &self.trace.jobs[at];
        let tasks = &self.trace.tasks[job.tasks()];
        let gangs: Box<[Gang]> = tasks.iter().map(|task| self.gang(job, tasks, task)).collect();
        let on_gpus = gangs.iter().any(|gang| gang.demand.gpu.0 > 0);
        JobSpec {
            name: self.trace.text.get(job.job_id).into(),
            tenant: self.tenants[at],
            group: (!job.group_tag.is_empty()).then_some(GroupId(job.group_tag.0)),
            queue: (!job.queue.is_empty()).then_some(QueueId(job.queue.0)),
            kind: if on_gpus { JobKind::Training } else { JobKind::Batch },
            elastic: elastic(tasks),
            gangs,
            priority: job.priority,
            deadline: job.deadline_ms.get().map(Time::from_millis),
            time_limit: job.time_limit_ms.get().map(Span::from_millis),
            user_estimate: job.est_ms.get().map(Span::from_millis),
            checkpoint: self.checkpoint,
            sharing: job.sharing.unwrap_or(Sharing::Never),
            profile: tasks
                .iter()
                .find_map(|task| self.profiles.get(&task.model).copied())
                .or(self.profile_of_others),
            work: self.speeds.run(tasks).map(|(steps, _)| steps),
            skew: tasks.iter().find_map(|task| self.skews.get(&task.model).copied()),
            ..JobSpec::default()
        }
    }

    fn gang(&self, job: &JobRow, tasks: &[TaskRow], task: &TaskRow) -> Gang {
        let models = match self.models.get(&task.gpu_models) {
            Some(set) => Models::OneOf(*set),
            None => Models::Any,
        };
        let on_gpus = task.gpu_milli.or(0) > 0;
        let models = if on_gpus { self.speeds.fitting(tasks, models) } else { models };
        let demand = Demand {
            gpu: Milli(task.gpu_milli.or(0)),
            gpu_mem: Mib(task.gpu_mem_mib.or(0)),
            packed_from: Milli::ZERO,
            cpu: Milli(task.cpu_milli.or(0)),
            mem: Mib(task.mem_mib.or(0)),
            models,
            locality: Locality::Any,
            window: None,
            // Limits tell jobs apart, which costs time: only where it matters.
            stay: match self.site.windows.is_empty() {
                true => StayBound::NONE,
                false => StayBound::of_limit(job.time_limit_ms.get().map(Span::from_millis)),
            },
            needs: self.pools.get(&job.queue).copied().unwrap_or_default(),
            pinned: None,
        };
        Gang { count: task.count, demand }
    }
}

fn elastic(tasks: &[TaskRow]) -> Option<Elastic> {
    let [task] = tasks else { return None };
    let (min, max) = (task.min_count.or(task.count), task.max_count.or(task.count));
    (min < task.count || max > task.count).then_some(Elastic { min, max: max.max(task.count) })
}

/// What jobs really use of their GPUs; nothing where the trace does not tell.
fn uses(trace: &Trace) -> Vec<Use> {
    if trace.tasks.iter().all(|task| task.gpu_use_milli.get().is_none()) {
        return Vec::new();
    }
    trace.jobs.iter().map(|job| use_of(&trace.tasks[job.tasks()])).collect()
}

/// The most that a role uses of each of its devices. One that does not say uses what it asks for.
fn use_of(tasks: &[TaskRow]) -> Use {
    let mut most = Use::default();
    for task in tasks.iter().filter(|task| task.gpu_milli.or(0) > 0) {
        let asked = task.gpu_milli.or(0);
        let gpu = task.gpu_use_milli.or(asked) / asked.div_ceil(1000);
        most.gpu = most.gpu.max(Milli(gpu.min(1000)));
        most.mem = most.mem.max(Mib(task.gpu_mem_use_mib.or(0)));
    }
    most
}

/// Refuses what the simulator cannot run; the answer is the job's run time.
fn check_job(trace: &Trace, job: &JobRow) -> Result<Span, LowerError> {
    let name = || trace.text.get(job.job_id).to_owned();
    let tasks = &trace.tasks[job.tasks()];
    if tasks.is_empty() || tasks.len() > GANGS_PER_JOB_MAX {
        let (tasks, max) = (tasks.len(), GANGS_PER_JOB_MAX);
        return Err(LowerError::Roles { job: name(), line: job.line, tasks, max });
    }
    for task in tasks {
        if task.count == 0 || task.count > TASKS_PER_JOB_MAX {
            let (line, count, max) = (task.line, task.count, TASKS_PER_JOB_MAX);
            return Err(LowerError::Count { job: name(), line, count, max });
        }
        let gpu = task.gpu_milli.or(0);
        if gpu > 1000 && !gpu.is_multiple_of(1000) {
            return Err(LowerError::Gpu { job: name(), line: task.line, gpu });
        }
    }
    let longest = tasks.iter().filter_map(TaskRow::run_ms).max();
    let longest = longest.ok_or_else(|| LowerError::NoDuration { job: name(), line: job.line })?;
    Ok(Span::from_millis(longest).max(Span(1)))
}

fn gpu_model(model: &crate::trace::cluster::GpuModel) -> GpuModel {
    GpuModel {
        name: model.name.as_str().into(),
        mem: Mib(model.mem_mib.unwrap_or(PLENTY)),
        tier: model.tier,
        mig_slices: 0,
        idle_watts: model.idle_watts.unwrap_or(0),
        busy_watts: model.peak_watts.unwrap_or(0),
    }
}

/// Rows of one machine are the intervals of its life; the gaps between them are failures.
fn lower_nodes(cluster: &Cluster, pools: &Pools, site: &mut Site) -> Result<(), LowerError> {
    let mut intervals: BTreeMap<TextId, (NodeId, Vec<NodeRow>)> = BTreeMap::new();
    let mut racks: BTreeMap<TextId, u32> = BTreeMap::new();
    for row in &cluster.nodes {
        let next = NodeId(site.nodes.len() as u32);
        let (id, lives) = intervals.entry(row.node_id).or_insert((next, Vec::new()));
        lives.push(*row);
        if *id == next {
            let rack = racks.len() as u32;
            let rack = *racks.entry(row.rack).or_insert(rack);
            site.nodes.push(node_spec(cluster, row, rack, &site.models)?);
        }
    }
    for (node, mut lives) in intervals.into_values() {
        lives.sort_by_key(|row| (row.up_from_s.or(0), row.up_to_s.or(u64::MAX)));
        pools.mark(cluster, node, &lives, site);
        let mut gap_from = Some(0);
        for row in lives {
            let from = row.up_from_s.or(0);
            if let Some(start) = gap_from
                && from > start
            {
                let lasts = Some(Span::from_secs(from - start));
                site.faults.push(InjectedFault::NodeDown {
                    node,
                    at: Time::from_secs(start),
                    lasts,
                });
            }
            gap_from = row.up_to_s.get();
        }
        if let Some(end) = gap_from.filter(|end| *end > 0) {
            site.faults.push(InjectedFault::NodeDown {
                node,
                at: Time::from_secs(end),
                lasts: None,
            });
        }
    }
    Ok(())
}

fn node_spec(
    cluster: &Cluster,
    row: &NodeRow,
    rack: u32,
    models: &[GpuModel],
) -> Result<NodeSpec, LowerError> {
    let name = cluster.text.get(row.node_id);
    if row.gpu_count as usize > DEVICES_PER_NODE_MAX {
        let (node, gpus, max) = (name.to_owned(), row.gpu_count, DEVICES_PER_NODE_MAX);
        return Err(LowerError::Devices { node, gpus, max });
    }
    let model = cluster.text.get(row.gpu_model);
    let model = models.iter().position(|known| &*known.name == model);
    let gpu_model = model.filter(|_| row.gpu_count > 0).map(|at| ModelId(at as u32));
    let islands = match (row.islands.get(), row.link) {
        (Some(islands), _) => islands,
        // Without fast links each GPU is an island of its own.
        (None, Link::Pcie | Link::None) => row.gpu_count,
        (None, Link::Nvlink | Link::Unknown) => 1,
    };
    Ok(NodeSpec {
        name: name.into(),
        cpu: Milli(row.cpu_milli.or(PLENTY)),
        mem: Mib(row.mem_mib.or(PLENTY)),
        gpu_model,
        gpus: if gpu_model.is_some() { row.gpu_count } else { 0 },
        // Islands of a checked row divide its GPUs; a node without GPUs has none.
        island_gpus: row.gpu_count.checked_div(islands).unwrap_or(0),
        rack,
        base_watts: row.idle_watts.or(0),
        features: Features::default(),
    })
}

/// Jobs of a trace as they arrive.
pub struct TraceArrivals<'a> {
    workload: &'a Workload,
    next: usize,
}

impl Arrivals for TraceArrivals<'_> {
    fn next_at(&self) -> Option<Time> {
        self.workload.trace.jobs.get(self.next).map(|job| Time::from_millis(job.submit_ms))
    }

    fn take(&mut self) -> Option<(JobId, Arc<JobSpec>)> {
        self.workload.trace.jobs.get(self.next)?;
        let id = JobId(self.next as u32);
        let spec = Arc::new(self.workload.spec(self.next));
        self.next += 1;
        Some((id, spec))
    }
}
