//! The embedded example: what `hostler compare` shows without arguments.
//!
//! Made on the spot by the generator, so that it costs the program nothing to carry.

use anyhow::{Context, Result};
use hostler_sim::trace::{Cluster, PaiLike, Trace};

/// Jobs of the example: enough for the policies to differ, few enough to wait for.
const JOBS: u32 = 4000;
/// Offered load: a few hours in which twice as much is asked for as the cluster has, as after a
/// deadline was announced.
const LOAD: f64 = 2.0;
/// A tenth of the PAI cluster.
const SCALE: u32 = 10;
const SEED: u64 = 7;

/// The example's machines.
pub fn cluster() -> Cluster {
    PaiLike { scale: SCALE, ..PaiLike::default() }.cluster()
}

/// The example's jobs.
pub fn trace() -> Result<Trace> {
    let options = PaiLike { jobs: JOBS, seed: SEED, scale: SCALE, ..PaiLike::default() };
    let options = options.at_load(LOAD, &cluster()).context("the embedded example")?;
    options.generate().context("the embedded example")
}
