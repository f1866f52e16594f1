//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

/// Compare, simulate and run schedulers for machine-learning work on GPU clusters.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  hostler compare                                       the embedded example, every policy
  hostler compare --trace mine/ --cluster mine.toml     my jobs on my machines
  hostler simulate --policy sjf --set preempt=true      one policy, its numbers
  hostler analyze mine/                                 what my jobs ask for, use and wait for
  hostler policies sjf                                  what a policy does and can be told"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Compare(Compare),
    Simulate(Simulate),
    Analyze(Analyze),
    Policies(Policies),
    Trace(Trace),
    Replay(Replay),
    Parity(Parity),
    Completions(Completions),
}

/// Run a workload under several policies and compare them.
///
/// Prints one table (the best value of each column is marked) and writes a report with plots that
/// opens in any browser, offline.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler compare
  hostler compare --trace mine/ --cluster mine.toml --out mine.html
  hostler compare --policies fifo,sjf,sjf:preempt=true,srtf
  hostler compare --json > result.json")]
pub struct Compare {
    #[command(flatten)]
    pub input: Input,
    /// Policies to compare, with settings after colons; every one that applies by default.
    #[arg(long, value_delimiter = ',', value_name = "KIND[:KEY=VALUE..]")]
    pub policies: Vec<String>,
    /// Where the report goes.
    #[arg(long, value_name = "FILE", default_value = "hostler-report.html")]
    pub out: PathBuf,
    /// Print JSON instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Simulations at a time; as many as there are cores by default.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// Run a workload under one policy.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler simulate --policy fifo
  hostler simulate --trace T --cluster C --policy sjf --set preempt=true --json
  hostler simulate --policy srtf --log run.jsonl && hostler replay run.jsonl --check")]
pub struct Simulate {
    #[command(flatten)]
    pub input: Input,
    /// The policy; `hostler policies` lists them.
    #[arg(long, value_name = "KIND")]
    pub policy: String,
    /// A setting of the policy; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Keep the log of facts and decisions as JSON lines.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// What is simulated.
#[derive(Debug, Args)]
pub struct Input {
    /// Folder of native tables (jobs.csv, tasks.csv, nodes.csv); the embedded example by default.
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// Cluster file (TOML), or a nodes.csv; the trace's own nodes by default.
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// Scenario (TOML): speeds, checkpoint costs, failures.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
}

/// Compute figures and findings from a recorded workload.
///
/// Reads native tables, the tables of Alibaba's PAI trace of 2020, or a CSV of its job simulator,
/// and computes every figure that they allow: gangs, run times, waiting, requests against use,
/// sharing, contention, recurrence, predictability, allocation and more. Prints findings and
/// facts, writes a report with plots that opens in any browser, offline, and names what is missing
/// for the other figures.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler analyze mine/
  hostler analyze cluster-trace-gpu-v2020/data/ --out pai.html
  hostler analyze mine/ --json > figures.json
  hostler analyze pai_job_duration_estimate_100K.csv")]
pub struct Analyze {
    /// Folder of native or PAI tables, packed or not; or a CSV of the PAI job simulator.
    pub dir: PathBuf,
    /// Where the report goes.
    #[arg(long, value_name = "FILE", default_value = "hostler-analysis.html")]
    pub out: PathBuf,
    /// Print all figures as tables of numbers in JSON instead of the summary.
    #[arg(long)]
    pub json: bool,
}

/// List the policies, or show one with its settings.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler policies
  hostler policies sjf")]
pub struct Policies {
    /// The policy to show.
    pub kind: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Check, convert and generate traces.
#[derive(Debug, Args)]
pub struct Trace {
    #[command(subcommand)]
    pub command: TraceCommand,
}

#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    Check(TraceCheck),
    Convert(TraceConvert),
    Gen(TraceGen),
}

/// Check the tables of a folder; names file, line and column of every fault.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler trace check mine/
  hostler trace check mine/ --json")]
pub struct TraceCheck {
    /// Folder of native tables.
    pub dir: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Convert a trace to native tables.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler trace convert jobs.csv native/ --from pai-sim-gang
  hostler trace convert native/ packed/ --compress zstd")]
pub struct TraceConvert {
    /// What to read: a folder of native or PAI tables, or a file of another format.
    pub input: PathBuf,
    /// Folder to write; it must hold no tables yet.
    pub output: PathBuf,
    /// Format of the input; guessed when left out.
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<String>,
    /// Pack the tables.
    #[arg(long, value_name = "none|gzip|zstd", default_value = "none")]
    pub compress: String,
    /// Keep the times as they are instead of counting from the first submission.
    #[arg(long)]
    pub keep_times: bool,
    /// Fail when any row would be dropped.
    #[arg(long)]
    pub strict: bool,
}

/// Generate a trace.
#[derive(Debug, Args)]
pub struct TraceGen {
    #[command(subcommand)]
    pub command: GenCommand,
}

#[derive(Debug, Subcommand)]
pub enum GenCommand {
    PaiLike(GenPaiLike),
}

/// Jobs that look like those of Alibaba's PAI cluster, from its published statistics.
///
/// The same options and seed give the same bytes on every machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler trace gen pai-like --jobs 2000 --seed 7 --out example/
  hostler trace gen pai-like --jobs 100000 --load 0.9 --out busy/ --compress zstd")]
pub struct GenPaiLike {
    /// Number of jobs.
    #[arg(long, default_value_t = 2000)]
    pub jobs: u32,
    /// Seed of all chance.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Mean arrivals per hour.
    #[arg(long, value_name = "R", default_value_t = 345.0)]
    pub per_hour: f64,
    /// Choose the arrivals per hour so that this load is offered to the cluster.
    #[arg(long, value_name = "LOAD", conflicts_with = "per_hour")]
    pub load: Option<f64>,
    /// Divide the number of machines and the largest gang.
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub scale: u32,
    /// native, pai-sim-estimate or pai-sim-gang.
    #[arg(long, default_value = "native")]
    pub format: String,
    /// Folder to write, which must hold no tables yet; a file for the pai-sim formats.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Pack the tables.
    #[arg(long, value_name = "none|gzip|zstd", default_value = "none")]
    pub compress: String,
}

/// Fold a log to its state and show it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler simulate --policy sjf --log run.jsonl
  hostler replay run.jsonl --check")]
pub struct Replay {
    /// A log that `hostler simulate --log` wrote.
    pub log: PathBuf,
    /// Ask the policy again at every step and compare.
    #[arg(long)]
    pub check: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Repeat a published simulator to the printed digit.
#[derive(Debug, Args)]
pub struct Parity {
    #[command(subcommand)]
    pub command: ParityCommand,
}

#[derive(Debug, Subcommand)]
pub enum ParityCommand {
    Pai2020(Pai2020),
}

/// The job simulator of Alibaba's PAI trace of 2020.
///
/// It pools fractional GPUs, lets jobs arrive in batches and counts averages over instances; the
/// other commands do none of that.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler parity pai2020 --trace mix_est_1k.csv.gz --policy sjf --gpus 150 --json
  hostler parity pai2020 --trace mix_gang_1k.csv.gz --policy fifo --cluster hetero --nodes pack
  hostler parity pai2020 --trace mix_est_1k.csv.gz --policy sjf,sju,sjg,sjgg,fifo --gpus 150")]
pub struct Pai2020 {
    /// Table of jobs, packed or not.
    #[arg(long, value_name = "FILE")]
    pub trace: PathBuf,
    /// sjf, sju, sjg, sjgg or fifo; several give a table.
    #[arg(long, value_name = "KIND", value_delimiter = ',', required = true)]
    pub policy: Vec<String>,
    /// GPUs of the single pool.
    #[arg(long, value_name = "N", default_value_t = 6500)]
    pub gpus: u32,
    /// Jobs that arrive at each full minute; -1 keeps the times of the table.
    #[arg(long, value_name = "R", default_value_t = 1000, allow_negative_numbers = true)]
    pub arrivals_per_minute: i64,
    /// single or hetero.
    #[arg(long, default_value = "single")]
    pub cluster: String,
    /// Order in which nodes are tried: pack or balance.
    #[arg(long, default_value = "balance")]
    pub nodes: String,
    /// Size of the sample that the original would draw; all jobs by default.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler completions bash > ~/.local/share/bash-completion/completions/hostler")]
pub struct Completions {
    /// The shell.
    pub shell: Shell,
}
