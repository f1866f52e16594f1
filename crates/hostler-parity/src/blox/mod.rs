//! The round-based simulator that was published with Blox ("Blox: A Modular Toolkit for Deep
//! Learning Schedulers", EuroSys'24; msr-fiddle/blox).
//!
//! Every 300 seconds all jobs are put in order, and those that do not run are placed one after the
//! other, taking GPUs from the end of the order where none are left. Jobs end and begin with
//! rounds; a stop costs nothing. What is measured is a range of jobs, so that the cluster is busy
//! before the first and after the last of them.

mod policy;
mod table;
mod world;

use std::ops::RangeInclusive;

use hostler_core::engine::Engine;
use hostler_core::executor;
use hostler_core::verify::Violation;
use hostler_sim::trace::TraceError;
pub use policy::BloxPolicy;
use policy::Rounds;
pub use table::{BloxJob, read};
use world::RoundWorld;

/// Length of a round in seconds.
const ROUND_SECS: u64 = 300;

/// GPUs of a node.
pub const GPUS_PER_NODE: u32 = 4;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Options {
    /// GPUs, on nodes of four.
    pub gpus: u32,
    /// The policy.
    pub policy: BloxPolicy,
    /// Jobs that are measured, numbered from zero as they enter; all if none.
    pub tracked: Option<RangeInclusive<usize>>,
}

/// What the original reports; times in seconds, of jobs that are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct BloxOutcome {
    /// Mean time from arrival to end.
    pub avg_jct_s: f64,
    /// The middle one.
    pub median_jct_s: u64,
    /// The 95th percentile.
    pub p95_jct_s: u64,
    /// The longest.
    pub max_jct_s: u64,
    /// Rounds until the last of them ended.
    pub rounds: u64,
    /// Times that any job lost its GPUs.
    pub suspensions: u64,
    /// Jobs that were measured.
    pub tracked: u64,
    /// Facts taken in.
    pub events: u64,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum BloxError {
    /// The file cannot be read.
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
    /// GPUs that do not fill their nodes.
    #[error("{0} GPUs do not fill nodes of {GPUS_PER_NODE}; choose a multiple")]
    Gpus(u32),
    /// Jobs are to be measured that there are not.
    #[error("there is no job {last}: the trace has {jobs} jobs, numbered from 0")]
    Tracked {
        /// The last of them.
        last: usize,
        /// Jobs of the trace.
        jobs: usize,
    },
    /// The policy breaks a rule of the cluster.
    #[error("the policy breaks a rule of the cluster: {0}")]
    Violation(#[from] Violation),
    /// Jobs that are never placed: the original runs for ever.
    #[error("{0} jobs never ended: no set of nodes gives them just the GPUs that they ask for")]
    NeverDone(usize),
}

/// Runs the jobs.
pub fn run(rows: &[BloxJob], options: &Options) -> Result<BloxOutcome, BloxError> {
    if options.gpus == 0 || !options.gpus.is_multiple_of(GPUS_PER_NODE) {
        return Err(BloxError::Gpus(options.gpus));
    }
    let mut rows = rows.to_vec();
    // Jobs are numbered as they enter: round by round, in each as they are listed.
    rows.sort_by_key(|row| row.arrival.div_ceil(ROUND_SECS));
    let tracked = options.tracked.clone().unwrap_or(0..=rows.len().saturating_sub(1));
    if *tracked.end() >= rows.len() {
        return Err(BloxError::Tracked { last: *tracked.end(), jobs: rows.len() });
    }
    let policy = Rounds::new(options.policy, &rows, options.gpus);
    let mut engine = Engine::new(Box::new(policy), ());
    let mut world = RoundWorld::new(&rows, options.gpus, tracked.clone());
    executor::run(&mut world, &mut engine)?;
    let mut times = world.times(tracked);
    if world.left() > 0 {
        return Err(BloxError::NeverDone(world.left()));
    }
    times.sort_unstable();
    let at = |place: usize| times.get(place).copied().unwrap_or(0);
    Ok(BloxOutcome {
        avg_jct_s: times.iter().sum::<u64>() as f64 / times.len().max(1) as f64,
        median_jct_s: at(times.len() / 2),
        p95_jct_s: at((0.95 * times.len() as f64) as usize),
        max_jct_s: times.last().copied().unwrap_or(0),
        rounds: world.rounds(),
        suspensions: world.suspensions(),
        tracked: times.len() as u64,
        events: engine.events(),
    })
}
