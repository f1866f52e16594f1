//! The command line of `hostler rehearse`.

use std::path::PathBuf;

use clap::Args;
use hostler_live::agent::gpus::FakeGpus;

/// Run the same jobs for real and simulated, and compare.
///
/// Jobs of a trace become `sleep` commands of some seconds: run times are divided by one number and
/// kept between 1 and 20 s, arrivals are spread so that the GPUs are offered the load, jobs ask for
/// GPUs only. Each tells what it uses of them, a fixed part for each group of the trace, and those
/// that ask for less than one share it. They run on a daemon and agents of their own with made-up
/// GPUs, in a temporary folder. The simulator gets the same jobs at the times that were planned,
/// and no start takes time there: the difference shows what starting, storing and reporting cost. A
/// policy that looks at when jobs end may order starts otherwise where two things happen within
/// some hundredths of a second. At the end the policy is asked again at every step of the daemon's
/// log; if it says something else then, the command fails.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler rehearse
  hostler rehearse --policy fifo-backfill --jobs 50 --fake-gpus 4xV100
  hostler rehearse --trace mine/ --policy srtf --speedup 600 --json")]
pub struct Rehearse {
    /// Folder of native tables (jobs.csv, tasks.csv); a generated trace by default.
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// Jobs to run: the first ones of the trace.
    #[arg(long, value_name = "N", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub jobs: u32,
    /// The policy; `hostler policies` lists them.
    #[arg(long, value_name = "KIND", default_value = hostler_policies::SIMPLEST)]
    pub policy: String,
    /// A setting of the policy; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// What run times are divided by; by default so that half of the jobs run 3 s or less.
    #[arg(long, value_name = "N")]
    pub speedup: Option<f64>,
    /// GPU time that is asked for, as a share of what there is.
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    pub load: f64,
    /// Agents to run.
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub nodes: u32,
    /// GPUs that each of them pretends to have.
    #[arg(long, value_name = "NxMODEL", default_value = "8xV100")]
    pub fake_gpus: FakeGpus,
    /// Seed of the generated trace and of what groups use of their GPUs.
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
