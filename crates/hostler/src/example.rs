//! The embedded example: what `hostler compare` shows without arguments.
//!
//! Made on the spot by the generator, so that it costs the program nothing to carry.

use anyhow::{Context, Result};
use hostler_sim::scenario::Scenario;
use hostler_sim::trace::{Cluster, PaiLike, Trace};

/// How fast the sorts of work are on which GPU.
const SPEEDS: &str = include_str!("../../../examples/scenarios/published-speeds.toml");
/// Sorts of work in `SPEEDS`.
const WORK: [&str; 3] = ["single-precision", "half-precision", "memory-bound"];

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
    let mut trace = options.generate().context("the embedded example")?;
    for at in 0..trace.jobs.len() {
        let tasks = trace.jobs[at].tasks();
        // Jobs of a group do the same thing again; groups are numbered as they appear.
        let work = WORK[trace.jobs[at].group_tag.index() % WORK.len()];
        let asked = trace.tasks[tasks.start].gpu_models;
        // Nobody asks for GPUs without half precision to compute in it.
        let work = if trace.str(asked) == "MISC" { WORK[0] } else { work };
        let model = trace.text.intern(work)?;
        trace.tasks[tasks].iter_mut().for_each(|task| task.model = model);
    }
    Ok(trace)
}

/// The example's speeds.
pub fn scenario() -> Scenario {
    Scenario::parse(SPEEDS).expect("the embedded scenario is valid")
}
