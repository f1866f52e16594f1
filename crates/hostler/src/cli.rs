//! The command line.

mod array;
mod images;
mod interactive;
mod live;
mod notices;
mod parity;
mod rehearse;
mod reservation;
mod slurm;
mod store;
mod submit;
mod usage;
mod user;
mod values;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use hostler_live::agent::gpus::FakeGpus;
use hostler_live::agent::progress::gpu_milli;
use hostler_sim::scenario::PairSource;

pub use array::Array;
pub use images::*;
pub use interactive::*;
pub use live::*;
pub use notices::*;
pub use parity::*;
pub use rehearse::*;
pub use reservation::*;
pub use slurm::*;
pub use store::*;
pub use submit::*;
pub use usage::*;
pub use user::*;
pub use values::{grace, mebibytes, seconds};

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
  hostler policies sjf                                  what a policy does and can be told
  hostler serve --with-agent                            schedule this machine
  hostler submit --gpus 1 -- python train.py            run a job on it"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of them")]
pub enum Command {
    Compare(Compare),
    Simulate(Simulate),
    Analyze(Analyze),
    Policies(Policies),
    Trace(Trace),
    Predict(Predict),
    Replay(Replay),
    Parity(Parity),
    Rehearse(Rehearse),
    #[command(flatten)]
    Live(LiveCommand),
    Agent(Agent),
    Progress(Progress),
    Completions(Completions),
}

/// Run a workload under several policies and compare them.
///
/// Prints one table (the best value of each column is marked) and writes a report with plots that
/// opens in any browser, offline. Ends with exit code 3 when a policy rejected half of the jobs or
/// more, because they can never run on the cluster.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler compare
  hostler compare --trace mine/ --cluster mine.toml --out mine.html
  hostler compare --trace mine/ --cluster other.toml --any-gpu
  hostler compare --policies fifo,sjf,sjf:preempt=true,srtf
  hostler compare --policies fifo,sjf --loads 0.5,0.8,1,1.2,2
  hostler compare --json > result.json")]
pub struct Compare {
    #[command(flatten)]
    pub input: Input,
    /// Policies to compare, with settings after colons; every one that applies by default.
    #[arg(long, value_delimiter = ',', value_name = "KIND[:KEY=VALUE..]")]
    pub policies: Vec<String>,
    /// Submit the jobs closer together or further apart so that each of these loads is offered,
    /// and show completion and waiting over load; 1 keeps all GPUs or all cores busy, whichever is
    /// scarcer. At most 16.
    #[arg(long, value_delimiter = ',', value_name = "LOAD", value_parser = load)]
    #[arg(allow_negative_numbers = true)]
    pub loads: Vec<f64>,
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
///
/// Ends with exit code 3 when half of the jobs or more were rejected, because they can never run on
/// the cluster.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("written").args(["log", "jobs"]).multiple(true)))]
#[command(after_help = "\
Examples:
  hostler simulate --policy fifo
  hostler simulate --trace T --cluster C --policy sjf --set preempt=true --json
  hostler simulate --policy sjf --jobs jobs.csv
  hostler simulate --policy sjf --jobs jobs.parquet
  hostler simulate --policy fifo --scenario failures.toml --best-interval
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
    /// Find out how often jobs should save by themselves: simulate with intervals around what the
    /// formula of Young and Daly says, and tell which takes least GPU time. Needs a scenario with
    /// `save_secs` and `[failures]`.
    #[arg(long, conflicts_with = "log")]
    pub best_interval: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Keep the log of facts and decisions as JSON lines.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Write what became of each job to a table: when it was submitted, started and ended, how long
    /// it waited and ran, where, and what it lost. CSV, or Parquet where the name ends so.
    #[arg(long, value_name = "FILE", conflicts_with = "best_interval")]
    pub jobs: Option<PathBuf>,
    /// Write the log or the table over a file that is there.
    #[arg(long, requires = "written")]
    pub force: bool,
}

/// What is simulated.
#[derive(Debug, Default, Args)]
pub struct Input {
    /// Folder of native tables (jobs.csv, tasks.csv, nodes.csv); the embedded example by default.
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// Cluster file (TOML), a nodes.csv, or `32x8` for 32 machines of 8 GPUs; the trace's own nodes
    /// by default.
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// Let every job run on any GPU model, whatever the trace asks for.
    #[arg(long)]
    pub any_gpu: bool,
    /// Scenario (TOML): speeds, checkpoint costs, failures, wrong estimates.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Steps per second by workload and GPU model: a CSV table, a folder with `throughputs.csv` and
    /// `pairs.csv`, or the JSON of the Gavel simulator. Names workloads as `model` in tasks.csv
    /// does.
    #[arg(long, value_name = "FILE")]
    pub throughputs: Option<PathBuf>,
    /// Pairs of workloads on one GPU that policies with `packed=true` know of: those that the
    /// throughput table has, or also the others, estimated from these. Goes before `pairs` in the
    /// scenario.
    #[arg(long, value_name = "WHICH")]
    pub pairs: Option<Pairs>,
    /// Model of run times for policies with `estimate=trained`; `hostler predict train` writes one.
    #[arg(long, value_name = "FILE")]
    pub estimates: Option<PathBuf>,
}

impl Input {
    /// Whether it is the embedded example, on its own machines and at its own speeds.
    pub fn is_example(&self) -> bool {
        let Input { trace, cluster, throughputs, .. } = self;
        trace.is_none() && cluster.is_none() && throughputs.is_none()
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Pairs {
    Measured,
    Estimated,
}

impl From<Pairs> for PairSource {
    fn from(pairs: Pairs) -> PairSource {
        match pairs {
            Pairs::Measured => PairSource::Measured,
            Pairs::Estimated => PairSource::Estimated,
        }
    }
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
  hostler analyze november/ --against october/
  hostler analyze mine/ --json > figures.json
  hostler analyze pai_job_duration_estimate_100K.csv")]
pub struct Analyze {
    /// Folder of native or PAI tables, packed or not; or a CSV of the PAI job simulator.
    pub dir: PathBuf,
    /// An earlier workload, of any such form: every figure that both allow is shown of both.
    #[arg(long, value_name = "DIR")]
    pub against: Option<PathBuf>,
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
#[command(after_help = "\
Examples:
  hostler trace check mine/
  hostler trace convert jobs.csv native/ --from pai-sim-gang
  hostler trace gen pai-like --jobs 2000 --seed 7 --out example/")]
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
  hostler trace convert native/ packed/ --compress zstd
  hostler trace convert cluster_job_log philly/ --span
  hostler trace convert sacct.txt mine/ --time-zone +02:00 --runnable")]
pub struct TraceConvert {
    /// What to read: a folder of native or PAI tables, or a file of another format.
    pub input: PathBuf,
    /// Folder to write; it must hold no tables yet.
    pub output: PathBuf,
    /// Format of the input; guessed when left out.
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<String>,
    /// Pack the tables.
    #[arg(long, value_enum, value_name = "PACKING", default_value = "none")]
    pub compress: Packing,
    /// Keep the times as they are instead of counting from the first submission.
    #[arg(long)]
    pub keep_times: bool,
    /// Fail when any row would be dropped.
    #[arg(long)]
    pub strict: bool,
    /// Drop jobs without a run time, which cannot be simulated.
    #[arg(long)]
    pub runnable: bool,
    /// Drop the GPU models that tasks ask for, so that any will do.
    #[arg(long)]
    pub any_gpu: bool,
    /// Take as run time the span from first start to last end, not the sum over attempts (philly).
    #[arg(long)]
    pub span: bool,
    /// Zone of times that do not say it, as a distance from UTC (philly, helios, sacct).
    #[arg(long, value_name = "+HH:MM", allow_hyphen_values = true)]
    pub time_zone: Option<String>,
}

/// Generate a trace.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler trace gen pai-like --jobs 2000 --seed 7 --out example/")]
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
    /// Draw what jobs really use of their GPUs, too, and which of them are willing to share.
    #[arg(long)]
    pub gpu_use: bool,
    /// Have users come back to kinds of work, as recorded users do, and give jobs names and queues.
    #[arg(long)]
    pub habits: bool,
    /// What to write.
    #[arg(long, value_enum, default_value = "native")]
    pub format: TraceFormat,
    /// Folder to write, which must hold no tables yet; a file for the pai-sim formats.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Pack the tables.
    #[arg(long, value_enum, value_name = "PACKING", default_value = "none")]
    pub compress: Packing,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Packing {
    None,
    #[value(alias = "gz")]
    Gzip,
    #[value(alias = "zst")]
    Zstd,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TraceFormat {
    Native,
    PaiSimEstimate,
    PaiSimGang,
}

/// Train and judge predictors of run times.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler predict eval --trace mine/
  hostler predict train --trace mine/ --out model.json")]
pub struct Predict {
    #[command(subcommand)]
    pub command: PredictCommand,
}

#[derive(Debug, Subcommand)]
pub enum PredictCommand {
    Train(PredictTrain),
    Eval(PredictEval),
}

/// Jobs that predictors learn from.
#[derive(Debug, Args)]
pub struct Experience {
    /// Folder of native tables (jobs.csv, tasks.csv, nodes.csv); the embedded example by default.
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// Cluster file (TOML), a nodes.csv, or `32x8` for 32 machines of 8 GPUs; the trace's own nodes
    /// by default.
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// Let every job run on any GPU model, whatever it names.
    #[arg(long)]
    pub any_gpu: bool,
    /// Like jobs that must have finished before their median is believed.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=50))]
    pub min_samples: u32,
}

/// A predictor of run times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Model {
    /// The median of like jobs
    Median,
    /// A regression tree over medians and what a job asks for
    Cart,
    /// Many ways to look at like jobs, each heard by how right it was before
    Blend,
}

/// Train a model on a trace, for jobs to come.
///
/// The file names users, groups and GPU models; on another cluster those count that it has too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler predict train --trace last-month/ --out model.json
  hostler predict train --trace last-month/ --model median --out model.json
  hostler simulate --trace this-month/ --policy sjf --set estimate=trained --estimates model.json")]
pub struct PredictTrain {
    #[command(flatten)]
    pub experience: Experience,
    /// What to train.
    #[arg(long, value_enum, default_value_t = Model::Cart)]
    pub model: Model,
    /// Where the model goes.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// Judge predictors by a trace.
///
/// Each predictor is judged by the last fifth of the jobs: trained once on the jobs before that
/// were over by then, and online, learning as jobs end. None knows a run before it ended. The error
/// is the distance from the true run time as a share of it; half of all estimates should be off by
/// no more than their spread.
///
/// What estimates are worth is their order. The rank correlation with the true run times is 1 where
/// both orders are the same and 0 where they have nothing in common. And the last fifth alone is
/// simulated with the shortest job first by each predictor: how much of what the true run times
/// would gain over the order of submission, in mean completion time, does it gain?
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler predict eval
  hostler predict eval --trace mine/ --cluster mine.toml
  hostler predict eval --trace mine/ --model blend --load 1.2
  hostler predict eval --trace mine/ --model cart --json")]
pub struct PredictEval {
    #[command(flatten)]
    pub experience: Experience,
    /// What to judge; all by default.
    #[arg(long, value_enum)]
    pub model: Option<Model>,
    /// Submit the jobs of the simulation closer together or further apart so that this load is
    /// offered; 1 keeps all GPUs or all cores busy, whichever is scarcer.
    #[arg(long, value_name = "LOAD", value_parser = load, allow_negative_numbers = true)]
    pub load: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Fold a log to its state and show it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler simulate --policy sjf --log run.jsonl
  hostler replay run.jsonl --check")]
pub struct Replay {
    /// A log that `hostler simulate --log` or `hostler log export` wrote.
    pub log: PathBuf,
    /// Ask the policy again at every step and compare.
    #[arg(long)]
    pub check: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Run jobs on this machine for a daemon.
///
/// Finds CPUs, memory and GPUs, connects to the daemon and starts what it is told. Jobs go on when
/// the agent ends, and the next agent on the same data folder takes them over.
///
/// A job that is to save and leave gets SIGUSR1 in the processes that handle it and SIGTERM at half
/// of its grace; where none handles it, and when it is not to save, SIGTERM comes at once. SIGKILL
/// for everything that is left ends the grace.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler agent --show
  hostler agent --server https://head:7717 --fingerprint sha256:.. --token-file token
  hostler agent --server http://127.0.0.1:7717 --token-file token --fake-gpus 8xV100")]
pub struct Agent {
    /// The daemon.
    #[arg(
        long,
        value_name = "URL",
        env = "HOSTLER_SERVER",
        hide_env_values = true,
        required_unless_present = "show"
    )]
    pub server: Option<String>,
    /// File with this agent's token; HOSTLER_TOKEN by default.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// SHA-256 of the daemon's certificate, as `hostler serve` prints it.
    #[arg(long, value_name = "sha256:HEX", env = "HOSTLER_FINGERPRINT", hide_env_values = true)]
    pub fingerprint: Option<String>,
    /// File of authorities (PEM) of which one signed the daemon's certificate.
    #[arg(long, value_name = "FILE", conflicts_with = "fingerprint")]
    pub ca: Option<PathBuf>,
    /// Where it keeps what must survive it.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/hostler-agent")]
    pub data: PathBuf,
    /// Name of the node; the host's name by default.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where other nodes reach this one; the address used towards the daemon by default.
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Cores to offer; all by default.
    #[arg(long, value_name = "N")]
    pub cpus: Option<u32>,
    /// Memory to offer in MiB, or as in 64G; all by default.
    #[arg(long, value_name = "MIB", alias = "mem", value_parser = values::mebibytes)]
    pub mem_mib: Option<u32>,
    /// Rack of the node.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rack: u32,
    /// Offer made-up GPUs, as in `8xV100` or `8xV100:32768` with MiB of memory; behind `@` the
    /// watts that each tells to take.
    #[arg(long, value_name = "NxMODEL")]
    pub fake_gpus: Option<FakeGpus>,
    #[command(flatten)]
    pub users: JobUserOptions,
    #[command(flatten)]
    pub images: ImageOptions,
    /// Folder for checkpoints that all nodes share; one of this node by default.
    #[arg(long, value_name = "DIR")]
    pub checkpoints: Option<PathBuf>,
    /// Keep jobs that share a GPU to their parts by NVIDIA's multi-process service.
    #[arg(long)]
    pub mps: bool,
    /// Whether jobs with whole GPUs are suspended in main memory to let others have these.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub suspend: Suspend,
    /// MiB of one file of a job's output; 16 are kept of each stream.
    #[arg(long, value_name = "MIB", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub output_mib: u64,
    /// Print what this machine offers as JSON and end.
    #[arg(long)]
    pub show: bool,
    #[command(flatten)]
    pub log: LogOptions,
}

/// When an agent suspends jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suspend {
    /// Where the driver of the GPUs can: 570 or newer
    Auto,
    /// Also with made-up GPUs, where jobs just stand still
    On,
    /// Never
    Off,
}

/// Tell how far a job is and what it uses of its GPUs, from within the job.
///
/// Jobs may also write lines like `step 40 total 100 saved` and `gpu-use 0.35` to the Unix socket
/// that HOSTLER_SOCKET names.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler progress --step 40 --total 100
  hostler progress --step 50 --saved
  hostler progress --gpu-use 0.35")]
pub struct Progress {
    /// Steps done, those before a restart included.
    #[arg(long, value_name = "N", required_unless_present = "gpu_use")]
    pub step: Option<u64>,
    /// Steps in all.
    #[arg(long, value_name = "N", requires = "step")]
    pub total: Option<u64>,
    /// A restart would go on from here.
    #[arg(long, requires = "step")]
    pub saved: bool,
    /// Mean compute that it uses of each GPU that it has, from 0 to 1. The last word before it ends
    /// counts, and comes before what the agent measures; jobs of its group are packed by it.
    #[arg(long, value_name = "PART", value_parser = gpu_milli)]
    pub gpu_use: Option<u32>,
}

fn load(text: &str) -> Result<f64, String> {
    let load = text.parse().ok().filter(|load: &f64| load.is_finite() && *load > 0.0);
    load.ok_or_else(|| "give a number above 0".to_owned())
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
