//! The jobs of the comparison, and the same as a trace.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use hostler_core::random::Random;

use crate::lab::Kind;
use crate::{PAI, Size};

/// GPU time that comes, over what the cluster has: somebody always waits.
const LOAD: f64 = 1.3;

/// One job.
pub struct Job {
    pub at: f64,
    pub secs: u64,
    pub kind: &'static Kind,
    pub nodes: u32,
    /// Of each node.
    pub gpus: u32,
    /// What its user believes, in whole minutes as Slurm has it.
    pub limit_mins: u64,
}

/// GPUs of the cluster.
pub fn gpus() -> u32 {
    PAI.iter().map(|kind| kind.count * kind.gpus).sum()
}

/// The jobs, in order of arrival; the same every time.
pub fn jobs(size: &Size) -> Vec<Job> {
    let mut random = Random::new(11);
    let mut jobs: Vec<Job> = (0..size.jobs).map(|_| job(&mut random, size)).collect();
    let work: f64 = jobs.iter().map(|job| job.gpu_secs()).sum();
    let over = work / (f64::from(gpus()) * LOAD);
    let mut times: Vec<f64> = jobs.iter().map(|_| random.uniform() * over).collect();
    times.sort_by(f64::total_cmp);
    jobs.iter_mut().zip(times).for_each(|(job, at)| job.at = at);
    jobs
}

fn job(random: &mut Random, size: &Size) -> Job {
    // Every kind of GPU is asked for as much as there is of it.
    let mut at = (random.uniform() * f64::from(gpus())) as u32;
    let kind = PAI.iter().find(|kind| {
        let here = at < kind.count * kind.gpus;
        at = at.saturating_sub(kind.count * kind.gpus);
        here
    });
    let kind = kind.expect("one of the GPUs");
    let wide = [1, 1, 1, 2, 2, 4, 4, 8][(random.uniform() * 8.0) as usize];
    let nodes = u32::div_ceil(wide, kind.gpus);
    let (least, middle, most) = size.secs;
    // Half of them run no longer than the middle one.
    let secs = (middle * (random.normal()).exp()).clamp(least, most) as u64;
    // Users ask for up to thrice as long as they need.
    let limit_mins = ((secs as f64 * (1.2 + 1.8 * random.uniform())) / 60.0).ceil() as u64;
    Job { at: 0.0, secs, kind, nodes, gpus: wide / nodes, limit_mins }
}

impl Job {
    pub fn gpu_secs(&self) -> f64 {
        (u64::from(self.nodes * self.gpus) * self.secs) as f64
    }
}

/// The same jobs and machines for the simulator, and how long Slurm takes to start a job.
pub fn write(folder: &Path, jobs: &[Job], start_delay: f64) {
    let mut list = "job_id,submit_ms,est_ms,time_limit_ms\n".to_owned();
    let mut tasks = "job_id,count,gpu_milli,gpu_models,cpu_milli,duration_ms\n".to_owned();
    for (number, job) in jobs.iter().enumerate() {
        let limit = job.limit_mins * 60_000;
        writeln!(list, "{number},{:.0},{limit},{limit}", job.at * 1e3).unwrap();
        let (nodes, gpus, model) = (job.nodes, job.gpus * 1000, job.kind.model);
        writeln!(tasks, "{number},{nodes},{gpus},{model},1000,{}", job.secs * 1000).unwrap();
    }
    fs::write(folder.join("jobs.csv"), list).unwrap();
    fs::write(folder.join("tasks.csv"), tasks).unwrap();
    let mut text = "node_id,gpu_count,gpu_model,cpu_milli\n".to_owned();
    for kind in PAI {
        for number in 1..=kind.count {
            let (prefix, gpus, model) = (kind.prefix, kind.gpus, kind.model);
            writeln!(text, "{prefix}{number},{gpus},{model},32000").unwrap();
        }
    }
    fs::write(folder.join("nodes.csv"), text).unwrap();
    let scenario = format!("[physics]\nstart_delay_secs = {start_delay:.3}\n");
    fs::write(folder.join("scenario.toml"), scenario).unwrap();
}
