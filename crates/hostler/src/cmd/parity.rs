//! `hostler parity`: published simulators, through the same engine and policies.

use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use hostler_parity::pai2020::{self, Options, Pai2020Outcome};
use hostler_sim::analyze::{Rank, SimulatedCluster};
use serde::Serialize;

use crate::cli::{NodeOrder, Pai2020, Pai2020Cluster, Pai2020Policy, ParityCommand};
use crate::progress;
use crate::say::say;

/// Rows that the original reads of a table for a sample of `jobs`.
fn rows_read(jobs: Option<usize>) -> usize {
    jobs.map_or(usize::MAX, |jobs| jobs.saturating_mul(10).saturating_add(1))
}

#[derive(Serialize)]
struct Json {
    policy: String,
    #[serde(flatten)]
    outcome: Pai2020Outcome,
    wall_s: f64,
}

/// Runs one of the parity worlds.
pub fn run(command: &ParityCommand) -> Result<()> {
    match command {
        ParityCommand::Gavel(args) => super::parity_gavel::run(args),
        ParityCommand::Pai2020(args) => pai2020(args),
        ParityCommand::Tiresias(args) => super::parity_tiresias::run(args),
        ParityCommand::Blox(args) => super::parity_blox::run(args),
    }
}

fn pai2020(args: &Pai2020) -> Result<()> {
    let spinner = progress::spinner("reading");
    let rows = pai2020::read(&args.trace, rows_read(args.jobs))?;
    let per_minute = u32::try_from(args.arrivals_per_minute).ok();
    let cluster = match args.cluster {
        Pai2020Cluster::Single => SimulatedCluster::Single(args.gpus),
        Pai2020Cluster::Hetero => SimulatedCluster::Hetero,
    };
    let mut results = Vec::new();
    for named in &args.policy {
        let (rank, name) = rank(*named);
        let pack = matches!(args.nodes, NodeOrder::Pack);
        let options = Options { rank, cluster, pack, per_minute, sample: args.jobs };
        spinner.set_message(name);
        let started = Instant::now();
        let outcome = pai2020::run(&rows, &options)?;
        let wall_s = started.elapsed().as_secs_f64();
        results.push(Json { policy: name.to_owned(), outcome, wall_s });
    }
    spinner.finish_and_clear();
    print(args, &results)
}

fn print(args: &Pai2020, results: &[Json]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match results {
        [only] if args.json => writeln!(out, "{}", serde_json::to_string_pretty(only)?)?,
        several if args.json => writeln!(out, "{}", serde_json::to_string_pretty(several)?)?,
        results => {
            writeln!(out, "policy    avg JCT s   avg wait s  makespan s      done   wall s")?;
            for Json { policy, outcome, wall_s } in results {
                let Pai2020Outcome { avg_jct_s, avg_wait_s, makespan_s, done, .. } = outcome;
                writeln!(
                    out,
                    "{policy:6} {avg_jct_s:>12.2} {avg_wait_s:>12.2} {makespan_s:>11} {done:>9} \
                     {wall_s:>8.3}"
                )?;
            }
        }
    }
    let clipped = results.iter().map(|result| result.outcome.clipped).max().unwrap_or(0);
    if clipped > 0 {
        let words = "were cut to the size of the cluster";
        say(format_args!("warning: the requests of {clipped} jobs {words}"));
    }
    Ok(())
}

fn rank(policy: Pai2020Policy) -> (Rank, &'static str) {
    match policy {
        Pai2020Policy::Fifo => (Rank::Submit, "fifo"),
        Pai2020Policy::Sjf => (Rank::Duration, "sjf"),
        Pai2020Policy::Sju => (Rank::User, "sju"),
        Pai2020Policy::Sjg => (Rank::Group, "sjg"),
        Pai2020Policy::Sjgg => (Rank::GroupGpu, "sjgg"),
    }
}
