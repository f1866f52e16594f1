//! The simulator that was published with Gavel ("Heterogeneity-Aware Cluster Scheduling Policies
//! for Deep Learning Workloads", OSDI'20; stanford-futuredata/gavel).
//!
//! Time goes in rounds there: whoever has a turn does as many whole steps as fit into it, the round
//! ends with the last of them, and GPUs of a job that is done idle until then. Saving, loading and
//! spreading over servers cost nothing. What it shares out, and how, is the policy's business.

mod allocate;
mod exact;
mod policies;
mod rounds;
mod table;
mod world;

use std::path::Path;
use std::sync::Arc;

use hostler_core::cluster::{GpuModel, NodeSpec, Tenant};
use hostler_core::engine::Engine;
use hostler_core::executor;
use hostler_core::id::{ModelId, TenantId};
use hostler_core::job::{Checkpoint, Demand, Gang, JobKind, JobSpec, Locality, Models, Sharing};
use hostler_core::profile::Profile;
use hostler_core::units::{Mib, Milli, Span, Time};
use hostler_core::verify::Violation;
pub use policies::{GavelPolicyDef, POLICIES, find};
pub use table::{GavelJob, read, read_from};

use exact::Exact;
use hostler_sim::physics::Physics;
use hostler_sim::trace::{Throughputs, TraceError, read_throughputs};
use hostler_sim::world::{Site, Truth};
use world::RoundWorld;

/// GPU types of the original, in its order.
pub const TYPES: [&str; 3] = ["v100", "p100", "k80"];
/// Length of a round in seconds.
pub const ROUND_SECS: f64 = 360.0;
/// Memory of every GPU: pairs get half each, and the original asks for none.
const GPU_MEM: Mib = Mib(16384);
/// Deadlines beyond this are none: thirty thousand years.
const SECS_MAX: f64 = 1e12;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Options {
    /// GPUs of each type, one to a server.
    pub gpus: [u32; 3],
    /// Dollars for a GPU hour of each type.
    pub prices: [f64; 3],
    /// Seed of the order in which agnostic policies deal out GPU types.
    pub seed: u64,
}

/// What the original reports.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct GavelOutcome {
    /// Mean seconds from arrival to completion.
    pub avg_jct_s: f64,
    /// Their median.
    pub p50_jct_s: f64,
    /// Their 99th percentile.
    pub p99_jct_s: f64,
    /// When the last job was done.
    pub makespan_s: f64,
    /// Mean part of the time that a GPU was busy.
    pub util: f64,
    /// Per cent of continued turns that stayed on the same GPUs.
    pub lease_ext_pct: f64,
    /// Rounds in which somebody ran.
    pub rounds: u64,
    /// Solutions for at least one job.
    pub solves: u64,
    /// Solutions that were not optimal.
    pub fallbacks: u64,
    /// Dollars.
    pub cost: f64,
    /// Jobs that were done.
    pub done: u64,
    /// Seconds from arrival to completion, by line of the trace.
    pub jcts_s: Vec<f64>,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum GavelError {
    /// A file cannot be read.
    #[error(transparent)]
    Source(#[from] TraceError),
    /// A row cannot be read.
    #[error("{file}:{line}: {fault}")]
    GavelJob {
        /// The file.
        file: String,
        /// The line.
        line: u64,
        /// What is wrong.
        fault: String,
    },
    /// A policy that the original does not have, or that is not repeated.
    #[error("unknown policy `{name}`; known: {known}")]
    Policy {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A job of a kind that nobody measured.
    #[error("job {job}: no throughput of `{kind}`; add it to the table")]
    Unknown {
        /// Line of the trace, from zero.
        job: usize,
        /// The kind.
        kind: String,
    },
    /// A job on GPUs on which nobody measured it.
    #[error("job {job}: no throughput of `{kind}` at scale {gpus} on {model}; add it to the table")]
    Unmeasured {
        /// Line of the trace, from zero.
        job: usize,
        /// The kind.
        kind: String,
        /// GPUs that it asks for.
        gpus: u32,
        /// The GPU type.
        model: &'static str,
    },
    /// A job with more GPUs than any type that it runs on has: the original loops for ever.
    #[error("job {job}: `{kind}` asks for {gpus} GPUs of one type; no type it runs on has as many")]
    TooLarge {
        /// Line of the trace, from zero.
        job: usize,
        /// The kind.
        kind: String,
        /// GPUs that it asks for.
        gpus: u32,
    },
    /// The policy breaks a rule of the cluster.
    #[error("the policy breaks a rule of the cluster: {0}")]
    Violation(#[from] Violation),
    /// Jobs that can never run: the original loops for ever.
    #[error("{count} jobs were never done, among them {jobs}; check throughputs and cluster")]
    NeverDone {
        /// How many.
        count: usize,
        /// Some of them.
        jobs: String,
    },
}

/// Reads a table of throughputs.
pub fn read_speeds(path: &Path) -> Result<Throughputs, GavelError> {
    Ok(read_throughputs(path)?)
}

/// The cluster, jobs and true run times, for any world.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The cluster, with speeds.
    pub site: Site,
    /// Jobs by arrival.
    pub jobs: Vec<(Time, Arc<JobSpec>)>,
    /// True run times at reference speed.
    pub truth: Truth,
}

/// Makes a workload of a trace and its throughputs.
pub fn workload(
    rows: &[GavelJob],
    speeds: &Throughputs,
    options: &Options,
) -> Result<Workload, GavelError> {
    measured(rows, speeds, options).map(|(workload, _)| workload)
}

/// The workload, and steps per second of each job on each type as the table has it.
fn measured(
    rows: &[GavelJob],
    speeds: &Throughputs,
    options: &Options,
) -> Result<(Workload, Vec<Vec<f64>>), GavelError> {
    let site = site(speeds, options);
    let mut jobs = Vec::with_capacity(rows.len());
    let mut runs = Vec::with_capacity(rows.len());
    let mut rates = Vec::with_capacity(rows.len());
    for (job, row) in rows.iter().enumerate() {
        let key = speeds.key(&row.kind);
        let unknown = || GavelError::Unknown { job, kind: row.kind.clone() };
        let key = key.ok_or_else(unknown)?;
        let reference = site.physics.profiles[&key].reference(row.gpus).steps_per_sec();
        if reference <= 0.0 {
            return Err(unknown());
        }
        runs.push(Span((row.steps as f64 / reference * 1e6).round() as u64));
        let deadline = row.slo.and_then(|slo| deadline(row, slo, &site.physics.profiles[&key]));
        let rate = exact_rates(job, row, speeds, options)?;
        let mut types = rate.iter().zip(options.gpus);
        if !types.any(|(rate, gpus)| *rate > 0.0 && gpus >= row.gpus) {
            return Err(GavelError::TooLarge { job, kind: row.kind.clone(), gpus: row.gpus });
        }
        rates.push(rate);
        let at = Time((row.arrival * 1e6).round() as u64);
        jobs.push((at, Arc::new(JobSpec { profile: Some(key), deadline, ..spec(job, row) })));
    }
    Ok((Workload { site, jobs, truth: Truth::new(runs) }, rates))
}

/// Steps per second of a job on each type, as the table has it. What it lacks of types without
/// GPUs is nothing.
fn exact_rates(
    job: usize,
    row: &GavelJob,
    speeds: &Throughputs,
    options: &Options,
) -> Result<Vec<f64>, GavelError> {
    let (kind, gpus) = (&row.kind, row.gpus);
    let rate = |(model, there): (&'static str, u32)| {
        let mut names = speeds.gpu_models().iter();
        let name = names.find(|name| name.eq_ignore_ascii_case(model));
        let exact = name.and_then(|name| speeds.steps_per_sec(kind, name, gpus, false));
        let unmeasured = || GavelError::Unmeasured { job, kind: kind.clone(), gpus, model };
        if there == 0 { Ok(exact.unwrap_or(0.0)) } else { exact.ok_or_else(unmeasured) }
    };
    TYPES.into_iter().zip(options.gpus).map(rate).collect()
}

/// Runs a trace under a policy.
pub fn run(
    rows: &[GavelJob],
    speeds: &Throughputs,
    options: &Options,
    policy: &GavelPolicyDef,
) -> Result<GavelOutcome, GavelError> {
    let (workload, rates) = measured(rows, speeds, options)?;
    let jobs = rows.iter().zip(rates).map(|(row, rates)| (row.arrival, row.weight, rates));
    let exact = Arc::new(Exact::new(jobs));
    let mut engine = Engine::new(policy.build(options, &exact), ());
    let mut world = RoundWorld::new(workload, Arc::clone(&exact), rows, options);
    executor::run(&mut world, &mut engine)?;
    let (_, fallbacks) = engine.state().solves();
    let tally = world.tally();
    let left: Vec<usize> = (0..rows.len()).filter(|job| tally.jcts[*job].is_nan()).collect();
    if !left.is_empty() {
        let named = left.iter().take(5).map(usize::to_string).collect::<Vec<_>>().join(", ");
        return Err(GavelError::NeverDone { count: left.len(), jobs: named });
    }
    let mut sorted = tally.jcts.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let mean = |sum: f64, count: f64| if count > 0.0 { sum / count } else { 0.0 };
    let gpus = f64::from(options.gpus.iter().sum::<u32>());
    Ok(GavelOutcome {
        avg_jct_s: mean(sorted.iter().sum(), sorted.len() as f64),
        p50_jct_s: percentile(&sorted, 0.5),
        p99_jct_s: percentile(&sorted, 0.99),
        makespan_s: tally.clock,
        util: mean(tally.busy, gpus * tally.clock),
        lease_ext_pct: 100.0 * mean(tally.extended as f64, tally.continued as f64),
        rounds: tally.rounds,
        solves: exact.solves(),
        fallbacks,
        cost: tally.cost,
        done: sorted.len() as u64,
        jcts_s: tally.jcts,
    })
}

/// Between the two values around a rank, in proportion, as the original's library has it.
fn percentile(sorted: &[f64], part: f64) -> f64 {
    let rank = part * sorted.len().saturating_sub(1) as f64;
    let value = |at: usize| sorted.get(at.min(sorted.len() - 1)).copied().unwrap_or(0.0);
    if sorted.is_empty() {
        return 0.0;
    }
    let low = value(rank.floor() as usize);
    low + (value(rank.ceil() as usize) - low) * rank.fract()
}

/// When a job must be done that may take `slo` times as long as on the first type.
fn deadline(row: &GavelJob, slo: f64, profile: &Profile) -> Option<Time> {
    let rate = profile.steps_per_sec(ModelId(0), row.gpus, false);
    let secs = row.arrival + slo * row.steps as f64 / rate;
    (rate > 0.0 && secs < SECS_MAX).then(|| Time((secs * 1e6).round() as u64))
}

fn spec(job: usize, row: &GavelJob) -> JobSpec {
    let demand = Demand {
        gpu: Milli::ONE,
        gpu_mem: Mib(0),
        cpu: Milli(0),
        mem: Mib(0),
        models: Models::Any,
        locality: Locality::Any,
        ..Demand::default()
    };
    let count = row.gpus;
    JobSpec {
        name: job.to_string().into(),
        tenant: TenantId(0),
        group: None,
        kind: JobKind::Training,
        gangs: Box::new([Gang { count, demand }]),
        // Solvers are told the weight itself.
        priority: row.weight.round().max(1.0) as i32,
        deadline: None,
        time_limit: None,
        user_estimate: None,
        elastic: None,
        checkpoint: Checkpoint::default(),
        // The original pairs whom it likes.
        sharing: Sharing::Willing,
        profile: None,
        work: Some(row.steps),
        ..JobSpec::default()
    }
}

fn site(speeds: &Throughputs, options: &Options) -> Site {
    let model = |(tier, name): (usize, &&str)| GpuModel {
        name: (**name).into(),
        mem: GPU_MEM,
        tier: tier as u32,
        mig_slices: 0,
        idle_watts: 0,
        busy_watts: 0,
    };
    let tiers = TYPES.iter().enumerate().map(|(at, name)| (TYPES.len() - at, name));
    let models: Vec<GpuModel> = tiers.map(model).collect();
    let node = |model: usize| NodeSpec {
        name: TYPES[model].into(),
        cpu: Milli(1000),
        mem: Mib(1024),
        gpu_model: Some(ModelId(model as u32)),
        gpus: 1,
        ..NodeSpec::default()
    };
    let nodes = options.gpus.iter().enumerate();
    let nodes = nodes.flat_map(|(at, count)| std::iter::repeat_n(node(at), *count as usize));
    let nodes = nodes.collect();
    let profiles = speeds.profiles(&models).into_iter().enumerate();
    let profiles =
        profiles.map(|(key, profile)| (hostler_core::id::ProfileKey(key as u32), profile));
    let physics = Physics { profiles: profiles.collect(), ..Physics::default() };
    let tenants = vec![Tenant::named("all")];
    Site { models, tenants, nodes, physics, ..Site::default() }
}
