//! The job simulator that Alibaba published with its PAI trace of 2020 ("MLaaS in the Wild",
//! NSDI'22; cluster-trace-gpu-v2020/simulator).
//!
//! A node there is two counters, idle GPUs and idle CPUs in per cent, and fractions never
//! fragment. Here the GPU counter is booked as the node's memory and CPUs as its CPU, so that the
//! same capacity, pipeline and policies decide. What else it repeats: arrivals in batches of a
//! minute, averages over instances, a makespan of one second more than the last end, requests cut
//! to the size of the cluster. It never preempts.

mod policy;
mod table;

use std::sync::Arc;

use hostler_core::cluster::{GpuModel, NodeSpec, Tenant};
use hostler_core::engine::Engine;
use hostler_core::executor;
use hostler_core::id::{ModelId, ModelSet, TenantId};
use hostler_core::job::{
    Checkpoint, Demand, Ending, Gang, Job, JobKind, JobSpec, Models, Phase, Sharing,
};
use hostler_core::predict::UserEstimate;
use hostler_core::state::ClusterState;
use hostler_core::units::{Mib, Milli, Span, Time};
use hostler_core::verify::Violation;
use hostler_core::watch::Watch;
pub use table::{Pai2020Job, read, read_from};

use policy::policy;

use hostler_sim::analyze::{JobSimulator, JobWait, PER_MINUTE, Rank, Simulated, SimulatedCluster};
use hostler_sim::trace::TraceError;
use hostler_sim::world::{Listed, Site, Truth, World};

/// Seed of the original's sample.
const SAMPLE_SEED: u32 = 42;
/// CPUs for each GPU of the single pool.
const CPUS_PER_GPU: f64 = 23.22;
/// Job numbers break ties in the lower bits of an estimate; more jobs than this do not fit.
const JOBS_MAX: usize = 1 << 24;
const V100: ModelId = ModelId(3);

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What ranks a job.
    pub rank: Rank,
    /// The cluster.
    pub cluster: SimulatedCluster,
    /// Whether nodes are filled in order; kept in balance otherwise.
    pub pack: bool,
    /// Jobs that arrive at each full minute; none keeps the table's times.
    pub per_minute: Option<u32>,
    /// Size of the sample; none takes all rows.
    pub sample: Option<usize>,
}

/// What the original prints. All but `jobs` and `clipped` count instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Pai2020Outcome {
    /// Mean seconds from submission to end.
    pub avg_jct_s: f64,
    /// Mean seconds of waiting.
    pub avg_wait_s: f64,
    /// Last end plus one.
    pub makespan_s: u64,
    /// Instances that ended.
    pub done: u64,
    /// Jobs that ended.
    pub jobs_done: u64,
    /// Jobs whose request was cut to the size of the cluster.
    pub clipped: u64,
    /// Facts taken in.
    pub events: u64,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Pai2020Error {
    /// The file cannot be read.
    #[error(transparent)]
    Source(#[from] TraceError),
    /// A row cannot be read.
    #[error("{file}:{line}: {fault}")]
    Pai2020Job {
        /// The file.
        file: String,
        /// The line.
        line: u64,
        /// What is wrong.
        fault: String,
    },
    /// The policy ranks by a column that is missing or empty.
    #[error("job {job}: column `{column}` is empty; another policy does not need it")]
    NoEstimate {
        /// The job.
        job: i64,
        /// The column.
        column: &'static str,
    },
    /// A job asks for nothing: the original may never start it.
    #[error("job {job} asks for neither GPU nor CPU; remove it")]
    NoDemand {
        /// The job.
        job: i64,
    },
    /// The policy breaks a rule of the cluster.
    #[error("the policy breaks a rule of the cluster: {0}")]
    Violation(#[from] Violation),
    /// More jobs than ties can be broken for.
    #[error("{0} jobs; at most {JOBS_MAX} are supported")]
    TooMany(usize),
    /// Jobs that can never run: the original idles for ever.
    #[error("{count} jobs can never run on this cluster, among them {jobs}")]
    NeverRun {
        /// How many.
        count: usize,
        /// Some of them.
        jobs: String,
    },
}

/// Runs the jobs.
pub fn run(rows: &[Pai2020Job], options: &Options) -> Result<Pai2020Outcome, Pai2020Error> {
    run_with_waits(rows, options).map(|(outcome, _)| outcome)
}

/// A table, as figures ask for it: with arrivals as the published program has them by default.
pub struct Table(pub Vec<Pai2020Job>);

impl JobSimulator for Table {
    fn jobs(&self) -> usize {
        self.0.len()
    }

    fn run(&self, rank: Rank, cluster: SimulatedCluster, pack: bool) -> Result<Simulated, String> {
        let options = Options { rank, cluster, pack, per_minute: Some(PER_MINUTE), sample: None };
        let (outcome, waits) =
            run_with_waits(&self.0, &options).map_err(|error| error.to_string())?;
        let Pai2020Outcome { avg_jct_s, avg_wait_s, .. } = outcome;
        Ok(Simulated { avg_jct_s, avg_wait_s, waits })
    }
}

/// Like [`run`], with the waiting time of every job in the order of their ends.
fn run_with_waits(
    rows: &[Pai2020Job],
    options: &Options,
) -> Result<(Pai2020Outcome, Vec<JobWait>), Pai2020Error> {
    let mut rows = sample(rows, options.sample);
    if rows.len() > JOBS_MAX {
        return Err(Pai2020Error::TooMany(rows.len()));
    }
    batch_arrivals(&mut rows, options.per_minute);
    let site = site(options.cluster);
    let clipped = clip(&mut rows, &site);
    // Among jobs of equal key the original takes the one with the lowest number.
    rows.sort_by_key(|row| (row.submit, row.job_id));
    let mut by_number: Vec<usize> = (0..rows.len()).collect();
    by_number.sort_by_key(|at| rows[*at].job_id);
    let mut ties = vec![0u64; rows.len()];
    for (tie, at) in by_number.into_iter().enumerate() {
        ties[at] = tie as u64;
    }
    let mut jobs = Vec::with_capacity(rows.len());
    for (row, tie) in rows.iter().zip(ties) {
        let at = Time::from_secs(u64::try_from(row.submit).unwrap_or(0));
        jobs.push((at, Arc::new(spec(row, options.rank, tie)?)));
    }
    let truth = Truth::new(rows.iter().map(|row| Span::from_secs(row.duration)));
    let policy = policy(options.rank, options.pack);
    let mut engine = Engine::new(policy, Tally::default()).with_predictor(Box::new(UserEstimate));
    executor::run(&mut World::new(site, Listed::new(jobs), truth), &mut engine)?;
    let events = engine.events();
    let (_, mut tally) = engine.into_parts();
    let waits = std::mem::take(&mut tally.waits);
    Ok((tally.outcome(rows.len(), clipped, events)?, waits))
}

fn sample(rows: &[Pai2020Job], size: Option<usize>) -> Vec<Pai2020Job> {
    let mut rows = rows.to_vec();
    if let Some(size) = size.filter(|size| *size <= rows.len()) {
        crate::twister::Twister::new(SAMPLE_SEED).shuffle(&mut rows);
        rows.truncate(size);
    }
    rows
}

fn batch_arrivals(rows: &mut [Pai2020Job], per_minute: Option<u32>) {
    let Some(per_minute) = per_minute else { return };
    rows.sort_by_key(|row| (row.submit, row.job_id));
    for (at, row) in rows.iter_mut().enumerate() {
        row.submit = (at / per_minute.max(1) as usize) as i64 * 60;
    }
}

/// Cuts requests to the size of the whole cluster, as the original does without a word.
fn clip(rows: &mut [Pai2020Job], site: &Site) -> u64 {
    let gpu: u64 = site.nodes.iter().map(|node| u64::from(node.mem.0)).sum();
    let cpu: u64 = site.nodes.iter().map(|node| u64::from(node.cpu.0)).sum();
    let mut clipped = 0;
    for row in rows {
        clipped += u64::from(row.gpu > gpu || row.cpu > cpu);
        row.gpu = row.gpu.min(gpu);
        row.cpu = row.cpu.min(cpu);
    }
    clipped
}

fn spec(row: &Pai2020Job, rank: Rank, tie: u64) -> Result<JobSpec, Pai2020Error> {
    if row.gpu == 0 && row.cpu == 0 {
        return Err(Pai2020Error::NoDemand { job: row.job_id });
    }
    let estimate = |at: usize, column| {
        row.estimates[at].ok_or(Pai2020Error::NoEstimate { job: row.job_id, column })
    };
    let key = match rank {
        Rank::Submit => None,
        Rank::Duration => Some(row.duration as f64),
        Rank::User => Some(estimate(0, "user_dur")?),
        Rank::Group => Some(estimate(1, "group_dur")?),
        Rank::GroupGpu => Some(estimate(2, "group_gpu_dur")?),
    };
    // Milliseconds in the upper bits, the job's number in the lower ones.
    let key = key.map(|secs| Span((secs.max(0.0) * 1000.0).round() as u64 * JOBS_MAX as u64 + tie));
    let models = if row.v100 { Models::OneOf(ModelSet::one(V100)) } else { Models::Any };
    let demand = Demand {
        cpu: Milli(row.cpu as u32),
        mem: Mib(row.gpu as u32),
        models,
        ..Demand::default()
    };
    let count = row.instances;
    Ok(JobSpec {
        name: row.job_id.to_string().into(),
        tenant: TenantId(0),
        group: None,
        kind: JobKind::Training,
        gangs: Box::new([Gang { count, demand }]),
        priority: 0,
        deadline: None,
        time_limit: None,
        user_estimate: key,
        elastic: None,
        checkpoint: Checkpoint::default(),
        sharing: Sharing::Never,
        profile: None,
        work: None,
        ..JobSpec::default()
    })
}

/// Nodes of the real cluster at one fifth: how many, GPUs, CPUs, model.
const HETERO: [(u32, u32, u32, Option<u32>); 5] = [
    (16, 0, 96, None),
    (56, 8, 96, Some(0)),
    (100, 2, 96, Some(1)),
    (160, 2, 64, Some(2)),
    (48, 8, 96, Some(3)),
];

fn site(cluster: SimulatedCluster) -> Site {
    let node = |gpus: u32, cpus: u32, model: Option<u32>| NodeSpec {
        name: "node".into(),
        cpu: Milli(cpus.saturating_mul(100)),
        mem: Mib(gpus.saturating_mul(100)),
        gpu_model: model.map(ModelId),
        // Devices only tell the model: GPUs are booked as memory.
        gpus: u32::from(model.is_some()),
        ..NodeSpec::default()
    };
    let nodes = match cluster {
        SimulatedCluster::Single(gpus) => {
            let cpus = (CPUS_PER_GPU * f64::from(gpus)).round_ties_even() as u32;
            vec![NodeSpec { gpu_model: Some(V100), gpus: 1, ..node(gpus, cpus, None) }]
        }
        SimulatedCluster::Hetero => {
            let groups = HETERO.into_iter();
            let nodes = groups.flat_map(|(count, gpus, cpus, model)| {
                std::iter::repeat_n(node(gpus, cpus, model), count as usize)
            });
            nodes.collect()
        }
    };
    let models = ["MISC", "T4", "P100", "V100"].map(|name| GpuModel {
        name: name.into(),
        mem: Mib(0),
        tier: 0,
        mig_slices: 0,
        idle_watts: 0,
        busy_watts: 0,
    });
    let tenants = vec![Tenant::named("all")];
    Site { models: models.into(), tenants, nodes, ..Site::default() }
}

/// Sums over instances.
#[derive(Default)]
struct Tally {
    jct: u128,
    wait: u128,
    done: u64,
    jobs_done: u64,
    last: Time,
    rejected: Vec<Box<str>>,
    waits: Vec<JobWait>,
}

impl Watch for Tally {
    fn retired(&mut self, at: Time, _: &ClusterState, job: &Job) {
        if job.phase != Phase::Done(Ending::Finished) {
            self.rejected.push(job.spec.name.clone());
            return;
        }
        let instances = u64::from(job.spec.tasks());
        self.jct += u128::from(at.since(job.submitted).0) * u128::from(instances);
        self.wait += u128::from(job.ledger.waited.0) * u128::from(instances);
        self.done += instances;
        self.jobs_done += 1;
        self.last = at;
        let v100 = job.spec.gangs.iter().any(|gang| gang.demand.models != Models::Any);
        self.waits.push(JobWait { wait_s: job.ledger.waited.0 as f64 / 1e6, v100 });
    }
}

impl Tally {
    fn outcome(
        self,
        jobs: usize,
        clipped: u64,
        events: u64,
    ) -> Result<Pai2020Outcome, Pai2020Error> {
        let left = jobs - self.jobs_done as usize;
        if left > 0 {
            let named = self.rejected.iter().take(5).map(|name| &**name);
            let jobs = named.collect::<Vec<_>>().join(", ");
            return Err(Pai2020Error::NeverRun { count: left, jobs });
        }
        let mean = |sum: u128| sum as f64 / 1e6 / (self.done.max(1)) as f64;
        Ok(Pai2020Outcome {
            avg_jct_s: mean(self.jct),
            avg_wait_s: mean(self.wait),
            makespan_s: self.last.0 / 1_000_000 + 1,
            done: self.done,
            jobs_done: self.jobs_done,
            clipped,
            events,
        })
    }
}
