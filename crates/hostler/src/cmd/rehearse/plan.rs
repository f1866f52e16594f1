//! The jobs of a rehearsal: a trace, made short enough to be waited for.

use anyhow::{Context as _, Result, bail};
use hostler_core::random::Random;
use hostler_sim::trace::{PaiLike, Trace};

use crate::cli::Rehearse;
use crate::input::read_trace;

/// Milliseconds that a job runs at least and at most: long against the start of a process, short
/// enough to be waited for.
const RUN_MS: (u64, u64) = (1_000, 20_000);

/// Milliseconds that half of the jobs run at most, when nothing else is said.
const MEDIAN_MS: f64 = 3_000.0;

/// Parts of what it asks for that a job uses at least and at most. Assumed: jobs of one group use
/// the same, most of them less than they ask for.
const USE: (f64, f64) = (0.15, 0.75);

/// Jobs and what was done to them.
pub struct RehearsalPlan {
    /// In order of submission.
    pub jobs: Vec<Planned>,
    /// What run times were divided by.
    pub speedup: f64,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    pub name: String,
    pub at_ms: u64,
    pub run_ms: u64,
    /// Thousandths of GPUs of each task.
    pub gpu_milli: u32,
    pub tasks: u32,
    /// Jobs with the same one do the same thing again; none has zero.
    pub group: u32,
    /// Compute that it uses of each of its GPUs, in thousandths.
    pub use_milli: u32,
}

impl Planned {
    /// Memory of each GPU that it asks for and uses, in proportion to its compute.
    pub fn mem_mib(&self, device_mib: u32) -> u32 {
        let mib = u64::from(device_mib) * u64::from(self.use_milli) / 1000;
        u32::try_from(mib).unwrap_or(u32::MAX).max(1)
    }
}

impl RehearsalPlan {
    /// The first jobs of the trace, scaled.
    pub fn new(args: &Rehearse) -> Result<RehearsalPlan> {
        if !(args.load.is_finite() && args.load > 0.0) {
            bail!("invalid `--load`: {}; use a number above 0", args.load);
        }
        let trace = match &args.trace {
            Some(folder) => read_trace(folder)?,
            None => {
                let options =
                    PaiLike { jobs: args.jobs, seed: args.seed, scale: 100, ..PaiLike::default() };
                options.generate().context("the generated trace")?
            }
        };
        let (per_node, nodes) = (args.fake_gpus.count, args.nodes);
        let mut jobs = first_jobs(&trace, args.jobs as usize, per_node, nodes);
        if jobs.is_empty() {
            bail!("the trace has no jobs with a run time; give `duration_ms` in tasks.csv");
        }
        let speedup = args.speedup.unwrap_or_else(|| median(&jobs) / MEDIAN_MS);
        if !(speedup.is_finite() && speedup > 0.0) {
            bail!("invalid `--speedup`: {speedup}; use a number above 0");
        }
        let mut milli_ms = 0.0;
        for job in &mut jobs {
            job.run_ms = ((job.run_ms as f64 / speedup) as u64).clamp(RUN_MS.0, RUN_MS.1);
            milli_ms += job.run_ms as f64 * f64::from(job.gpu_milli * job.tasks);
        }
        let horizon_ms = milli_ms / (f64::from(per_node * nodes) * 1e3 * args.load);
        for job in &mut jobs {
            let chance = Random::stream(args.seed, u64::from(job.group)).uniform();
            let part = USE.0 + (USE.1 - USE.0) * chance;
            job.use_milli = (f64::from(job.gpu_milli.min(1000)) * part) as u32;
        }
        let (from, to) = (jobs[0].at_ms, jobs[jobs.len() - 1].at_ms);
        for job in &mut jobs {
            let share = (job.at_ms - from) as f64 / (to - from).max(1) as f64;
            job.at_ms = (share * horizon_ms) as u64;
        }
        Ok(RehearsalPlan { jobs, speedup })
    }
}

/// Jobs as the trace has them, as far as the GPUs go.
fn first_jobs(trace: &Trace, most: usize, per_node: u32, nodes: u32) -> Vec<Planned> {
    let planned = trace.jobs.iter().filter_map(|job| {
        let task = trace.tasks[job.tasks()].iter().max_by_key(|task| task.gpu_milli.or(0))?;
        let gpu_milli = match task.gpu_milli.or(0) {
            0 => 1000,
            milli => milli.min(per_node * 1000),
        };
        let fit = if gpu_milli < 1000 {
            1000 / gpu_milli * per_node
        } else {
            per_node * 1000 / gpu_milli
        };
        Some(Planned {
            name: trace.text.get(job.job_id).to_owned(),
            at_ms: job.submit_ms,
            run_ms: task.duration_ms.get()?,
            gpu_milli,
            tasks: task.count.clamp(1, (fit * nodes).max(1)),
            group: job.group_tag.index() as u32,
            use_milli: 0,
        })
    });
    planned.take(most).collect()
}

fn median(jobs: &[Planned]) -> f64 {
    let mut runs: Vec<u64> = jobs.iter().map(|job| job.run_ms).collect();
    runs.sort_unstable();
    runs[runs.len() / 2].max(1) as f64
}
