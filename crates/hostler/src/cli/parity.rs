//! Arguments of `hostler parity`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Repeat a published simulator to the printed digit.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler parity pai2020 --trace mix_est_1k.csv.gz --policy sjf --gpus 150")]
pub struct Parity {
    #[command(subcommand)]
    pub command: ParityCommand,
}

#[derive(Debug, Subcommand)]
pub enum ParityCommand {
    Gavel(Gavel),
    Pai2020(Pai2020),
    Tiresias(Tiresias),
    Blox(Blox),
}

/// The simulator of Tiresias: queues by attained GPU time.
///
/// It counts whole seconds, charges nothing for preemption and deals all GPUs out anew at each
/// event; the other commands do none of that.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler parity tiresias --trace 60_job.csv --cluster n4g4 --policy dlas-gpu --json
  hostler parity tiresias --trace 60_job.csv --cluster n4g4 --policy fifo,fjf --placement yarn")]
pub struct Tiresias {
    /// Trace of jobs, packed or not.
    #[arg(long, value_name = "FILE")]
    pub trace: PathBuf,
    /// Nodes and GPUs of each, as in `n15g4`, or a file with the shape of the cluster.
    #[arg(long, value_name = "SHAPE")]
    pub cluster: String,
    /// Policy, as the original calls it; several give a table.
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub policy: Vec<String>,
    /// Whether GPUs are only counted, or nodes and switches matter.
    #[arg(long, value_enum, default_value = "count")]
    pub placement: TiresiasPlacement,
    /// GPU seconds of past jobs, for `dlas-gpu-gittins`; by default `yarn-gput1000.csv` in the
    /// folder of the trace, or in `theirs/tiresias` of a folder above.
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TiresiasPlacement {
    Count,
    Yarn,
}

/// The round simulator of Blox: jobs are put in order every 300 seconds.
///
/// Jobs begin and end with rounds there, and a preemption costs nothing; the other commands do none
/// of that.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler parity blox --trace blox_single_l2.0.csv --gpus 32 --policy las --tracked 200-400 --json")]
pub struct Blox {
    /// Trace of jobs, packed or not.
    #[arg(long, value_name = "FILE")]
    pub trace: PathBuf,
    /// GPUs, on nodes of four.
    #[arg(long, value_name = "N")]
    pub gpus: u32,
    /// Who comes first; several give a table.
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',', required = true)]
    pub policy: Vec<BloxOrder>,
    /// Jobs that are measured, from 0; the run ends with the last of them. All by default.
    #[arg(long, value_name = "FIRST-LAST", value_parser = tracked)]
    pub tracked: Option<(usize, usize)>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum BloxOrder {
    Fifo,
    Las,
    Srtf,
}

fn tracked(text: &str) -> Result<(usize, usize), String> {
    let range = text.split_once('-').and_then(|(first, last)| {
        Some((first.parse().ok()?, last.parse().ok()?)).filter(|(first, last)| first <= last)
    });
    range.ok_or_else(|| "give the first and the last job, as in 200-400".to_owned())
}

/// The round simulator of Gavel: shares of time on GPUs of three types.
///
/// It does whole steps, ends rounds with the last of them and charges nothing for preemption; the
/// other commands do none of that.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler parity gavel --trace own_cont_single_80.trace --throughputs own_throughputs.json \
--cluster 4:4:4 --policy max_min_fairness_perf --json")]
pub struct Gavel {
    /// Trace of jobs, packed or not.
    #[arg(long, value_name = "FILE")]
    pub trace: PathBuf,
    /// Table of throughputs, packed or not.
    #[arg(long, value_name = "FILE")]
    pub throughputs: PathBuf,
    /// GPUs of type V100, P100 and K80.
    #[arg(long, value_name = "V100:P100:K80", value_parser = gavel_cluster)]
    pub cluster: [u32; 3],
    /// Policy, as the original calls it; several give a table.
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub policy: Vec<String>,
    /// Seed of the order in which agnostic policies deal out GPU types.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Dollars for a GPU hour of each type.
    #[arg(
        long,
        value_name = "V100:P100:K80",
        default_value = "0.74:0.43:0.135",
        value_parser = gavel_prices
    )]
    pub prices: [f64; 3],
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn gavel_cluster(text: &str) -> Result<[u32; 3], String> {
    triple(text).ok_or_else(|| "give three whole numbers, as in 12:12:12".to_owned())
}

fn gavel_prices(text: &str) -> Result<[f64; 3], String> {
    let prices = triple(text)
        .filter(|prices: &[f64; 3]| prices.iter().all(|price| price.is_finite() && *price > 0.0));
    prices.ok_or_else(|| "give three numbers above 0, as in 0.74:0.43:0.135".to_owned())
}

fn triple<Value: std::str::FromStr>(text: &str) -> Option<[Value; 3]> {
    let values: Vec<Value> =
        text.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    values.try_into().ok()
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
    /// What ranks jobs; several give a table.
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',', required = true)]
    pub policy: Vec<Pai2020Policy>,
    /// GPUs of the single pool.
    #[arg(long, value_name = "N", default_value_t = 6500)]
    pub gpus: u32,
    /// Jobs that arrive at each full minute; -1 keeps the times of the table.
    #[arg(
        long,
        value_name = "R",
        default_value_t = 1000,
        allow_negative_numbers = true,
        value_parser = arrivals
    )]
    pub arrivals_per_minute: i64,
    /// One pool of GPUs, or the nodes of the original.
    #[arg(long, value_enum, default_value = "single")]
    pub cluster: Pai2020Cluster,
    /// Order in which nodes are tried.
    #[arg(long, value_enum, default_value = "balance")]
    pub nodes: NodeOrder,
    /// Size of the sample that the original would draw; all jobs by default.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Pai2020Policy {
    Sjf,
    Sju,
    Sjg,
    Sjgg,
    Fifo,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Pai2020Cluster {
    Single,
    Hetero,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum NodeOrder {
    Pack,
    Balance,
}

fn arrivals(text: &str) -> Result<i64, String> {
    match text.parse() {
        Ok(0) => Err("give 1 or more, or -1 for the times of the table".to_owned()),
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}
