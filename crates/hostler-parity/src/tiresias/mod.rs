//! The simulator that was published with Tiresias ("Tiresias: A GPU Cluster Manager for Distributed
//! Deep Learning", NSDI'19; SymbioticLab/Tiresias).
//!
//! Time goes in whole seconds, from one arrival, end or change of queue to the next. A stop costs
//! nothing, and a job runs equally fast wherever it is. What the original repeats at each of these
//! times is here (`scan`, `sorted`, `queued`): it takes all GPUs away and deals them out anew, down
//! a list whose order it keeps. Jobs that are never stopped go through the product's own stages.
//!
//! One thing is not repeated: where an arrival and an end fall together and a queue changes before,
//! the original ends that job at the time it noted, even if it was stopped meanwhile.

mod gittins;
mod policies;
mod queued;
mod scan;
mod sorted;
mod table;
mod world;
mod yarn;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hostler_core::engine::Engine;
use hostler_core::executor;
use hostler_core::job::{Ending, Job, Phase};
use hostler_core::metrics::{UNFAIR, ideal_secs};
use hostler_core::predict::UserEstimate;
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_core::verify::Violation;
use hostler_core::watch::Watch;
use hostler_sim::trace::TraceError;
pub use policies::{Placement, TiresiasPolicy};
pub use table::{ClusterShape, TiresiasJob, read, read_samples, read_shape};
use world::SecondsWorld;

/// Promotions so far; only the list of the original knows them.
type Promotions = Arc<AtomicU64>;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub shape: ClusterShape,
    /// The policy.
    pub policy: TiresiasPolicy,
    /// The placement.
    pub placement: Placement,
    /// GPU seconds of jobs that are known to the policy that goes by them.
    pub samples: Vec<u64>,
}

/// What the original reports; times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct TiresiasOutcome {
    /// Mean time from submission to end.
    pub avg_jct_s: f64,
    /// The mean of the two middle ones.
    pub median_jct_s: f64,
    /// The 95th percentile.
    pub p95_jct_s: f64,
    /// The 99th percentile.
    pub p99_jct_s: f64,
    /// The longest.
    pub max_jct_s: u64,
    /// When the last job ended.
    pub makespan_s: u64,
    /// Mean time without GPUs.
    pub avg_pending_s: f64,
    /// Times that jobs lost their GPUs.
    pub preemptions: u64,
    /// Times that jobs came back to the first queue.
    pub promotions: u64,
    /// Finish-time fairness of the job in the middle.
    pub fairness_p50: f64,
    /// That of the worst but one in twenty.
    pub fairness_p95: f64,
    /// That of the job that fared worst.
    pub fairness_max: f64,
    /// Share of jobs above 1.05.
    pub unfair_share: f64,
    /// Jobs that ended.
    pub done: u64,
    /// Facts taken in.
    pub events: u64,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum TiresiasError {
    /// A file cannot be read.
    #[error(transparent)]
    Source(#[from] TraceError),
    /// A row cannot be read.
    #[error("{file}:{line}: {fault}")]
    Row {
        /// The file.
        file: String,
        /// The line.
        line: u64,
        /// What is wrong.
        fault: String,
    },
    /// A policy that is not repeated.
    #[error(
        "unknown policy `{0}`; known: fifo, fjf, sjf, shortest, shortest-gpu, dlas, dlas-gpu, \
         dlas-gpu-KNOB as in `dlas-gpu-05`, dlas-gpu-gittins"
    )]
    Policy(String),
    /// A cluster that is neither a file nor a shape.
    #[error("unknown cluster `{0}`; name a file, or nodes and GPUs in each as in `n15g4`")]
    Cluster(String),
    /// A placement that the original cannot combine with the policy.
    #[error("placement `yarn` does not go with `{0}`: the original stops half-way; use `count`")]
    Placement(String),
    /// The policy goes by jobs of the past, and there are none.
    #[error("`dlas-gpu-gittins` goes by the GPU time of past jobs; name a file of it by --samples")]
    NoSamples,
    /// The policy breaks a rule of the cluster.
    #[error("the policy breaks a rule of the cluster: {0}")]
    Violation(#[from] Violation),
    /// Jobs that never ended.
    #[error("{count} jobs never ended, among them {jobs}; is the cluster large enough?")]
    NeverDone {
        /// How many.
        count: usize,
        /// Some of them.
        jobs: String,
    },
}

/// Runs the jobs.
pub fn run(rows: &[TiresiasJob], options: &Options) -> Result<TiresiasOutcome, TiresiasError> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.submit);
    let promotions = Promotions::default();
    let by_node = policies::by_node(options)?;
    let policy = policies::policy(options, &promotions)?;
    let mut world = SecondsWorld::new(&rows, &options.shape, by_node);
    let tally = Tally { gpus: rows.iter().map(|row| row.gpus).collect(), ..Tally::default() };
    let mut engine = Engine::new(policy, tally).with_predictor(Box::new(UserEstimate));
    executor::run(&mut world, &mut engine)?;
    let events = engine.events();
    let (_, tally) = engine.into_parts();
    let outcome = tally.outcome(&rows, &options.shape)?;
    Ok(TiresiasOutcome { promotions: promotions.load(Ordering::Relaxed), events, ..outcome })
}

/// What became of jobs.
#[derive(Default)]
struct Tally {
    /// Seconds from submission to end.
    times: Vec<u64>,
    /// GPUs that each job asks for.
    gpus: Vec<u32>,
    /// Seconds from submission to end, seconds of work, other jobs meanwhile, GPUs.
    lives: Vec<[f64; 4]>,
    ended: Vec<Box<str>>,
    last: u64,
    waited: u64,
    preemptions: u64,
}

impl Watch for Tally {
    fn retired(&mut self, at: Time, state: &ClusterState, job: &Job) {
        if job.phase != Phase::Done(Ending::Finished) {
            return;
        }
        let life = at.since(job.submitted);
        let crowd = state.crowd_since(job) as f64 / life.0.max(1) as f64;
        let gpus = f64::from(self.gpus[job.id.index()]);
        self.lives.push([life.secs_f64(), job.ledger.done.secs_f64(), crowd, gpus]);
        self.times.push(at.since(job.submitted).0 / SECOND);
        self.ended.push(job.spec.name.clone());
        self.last = self.last.max(at.0 / SECOND);
        self.waited += job.ledger.waited.0 / SECOND;
        self.preemptions += u64::from(job.ledger.preemptions);
    }
}

/// Microseconds in a second.
const SECOND: u64 = 1_000_000;

impl Tally {
    fn outcome(
        mut self,
        rows: &[TiresiasJob],
        shape: &ClusterShape,
    ) -> Result<TiresiasOutcome, TiresiasError> {
        let count = self.times.len();
        if count < rows.len() {
            let left = rows.iter().map(|row| &*row.id).filter(|id| !self.has_ended(id));
            let jobs = left.take(5).collect::<Vec<_>>().join(", ");
            return Err(TiresiasError::NeverDone { count: rows.len() - count, jobs });
        }
        self.times.sort_unstable();
        let fairness = self.fairness(f64::from(shape.all_gpus()));
        let mean = |sum: u64| sum as f64 / count.max(1) as f64;
        let at = |place: usize| self.times.get(place).copied().unwrap_or(0) as f64;
        let percentile = |part: usize| at((part * count).div_ceil(100).saturating_sub(1));
        Ok(TiresiasOutcome {
            avg_jct_s: mean(self.times.iter().sum()),
            median_jct_s: (at(count.saturating_sub(1) / 2) + at(count / 2)) / 2.0,
            p95_jct_s: percentile(95),
            p99_jct_s: percentile(99),
            max_jct_s: self.times.last().copied().unwrap_or(0),
            makespan_s: self.last,
            avg_pending_s: mean(self.waited),
            preemptions: self.preemptions,
            fairness_p50: fairness.get(count / 2).copied().unwrap_or(0.0),
            fairness_p95: fairness.get(count * 95 / 100).copied().unwrap_or(0.0),
            fairness_max: fairness.last().copied().unwrap_or(0.0),
            unfair_share: fairness.iter().filter(|one| **one > UNFAIR).count() as f64
                / count.max(1) as f64,
            done: count as u64,
            ..TiresiasOutcome::default()
        })
    }

    /// Finish-time fairness of all jobs, ascending.
    fn fairness(&self, all_gpus: f64) -> Vec<f64> {
        let one = |[life, run, crowd, gpus]: &[f64; 4]| {
            life / ideal_secs(*run, *crowd, gpus / all_gpus.max(1.0))
        };
        let mut fairness: Vec<f64> = self.lives.iter().map(one).collect();
        fairness.sort_unstable_by(f64::total_cmp);
        fairness
    }

    fn has_ended(&self, id: &str) -> bool {
        self.ended.iter().any(|name| &**name == id)
    }
}
