//! The embedded example: what `hostler compare` shows without arguments.
//!
//! Made on the spot by the generator, so that it costs the program nothing to carry.

use anyhow::{Context, Result};
use hostler_sim::scenario::Scenario;
use hostler_sim::trace::{Cluster, PaiLike, Trace};

/// What it costs to stop a job.
const COSTS: &str = include_str!("../../../examples/scenarios/example.toml");
/// Sorts of work of which `examples/scenarios/published-speeds.toml` knows the speeds.
const WORK: [&str; 3] = ["single-precision", "half-precision", "memory-bound"];

/// Jobs of the example: enough for the policies to differ, few enough to wait for.
const JOBS: u32 = 4000;
/// Offered load: for a day and a half, half as much again is asked for as the cluster has, as
/// before a deadline.
const LOAD: f64 = 1.5;
/// A hundredth of the PAI cluster: twenty machines.
const SCALE: u32 = 100;
const SEED: u64 = 7;

/// The example's machines.
pub fn cluster() -> Cluster {
    PaiLike { scale: SCALE, ..PaiLike::default() }.cluster()
}

/// The example's jobs.
pub fn trace() -> Result<Trace> {
    let options =
        PaiLike { jobs: JOBS, seed: SEED, scale: SCALE, habits: true, ..PaiLike::default() };
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

/// What the example's jobs do not say.
pub fn scenario() -> Scenario {
    Scenario::parse(COSTS).expect("the embedded scenario is valid")
}
