//! `hostler parity`: published simulators, through the same engine and policies.

use std::io::Write;
use std::time::Instant;

use anyhow::{Result, bail};
use hostler_core::pipeline::{Cache, Head, Pipeline, Preempt};
use hostler_core::policy::{Cadence, Policy};
use hostler_core::predict::EstimateSource;
use hostler_core::stage::{Order, Place};
use hostler_policies::order::{fifo, sjf};
use hostler_policies::place::balance::Balance;
use hostler_policies::place::first_fit::FirstFit;
use hostler_sim::parity::pai2020::{self, Cluster, Options, Outcome, Rank};
use serde::Serialize;

use crate::cli::{Pai2020, ParityCommand};
use crate::progress;

/// Rows that the original reads of a table for a sample of `jobs`.
fn rows_read(jobs: Option<usize>) -> usize {
    jobs.map_or(usize::MAX, |jobs| jobs.saturating_mul(10).saturating_add(1))
}

#[derive(Serialize)]
struct Json {
    policy: String,
    #[serde(flatten)]
    outcome: Outcome,
    wall_s: f64,
}

/// Runs one of the parity worlds.
pub fn run(command: &ParityCommand) -> Result<()> {
    match command {
        ParityCommand::Pai2020(args) => pai2020(args),
    }
}

fn pai2020(args: &Pai2020) -> Result<()> {
    let spinner = progress::spinner("reading");
    let rows = pai2020::read(&args.trace, rows_read(args.jobs))?;
    let per_minute = match args.arrivals_per_minute {
        0 => bail!("`--arrivals-per-minute`: 0; give 1 or more, or -1 for the times of the table"),
        rate => u32::try_from(rate).ok(),
    };
    let cluster = match args.cluster.as_str() {
        "single" => Cluster::Single(args.gpus),
        "hetero" => Cluster::Hetero,
        other => bail!("unknown cluster `{other}`; known: single, hetero"),
    };
    let mut results = Vec::new();
    for name in &args.policy {
        let rank = rank(name)?;
        let options = Options { rank, cluster, per_minute, sample: args.jobs };
        spinner.set_message(name.clone());
        let started = Instant::now();
        let outcome = pai2020::run(&rows, &options, policy(rank, packs(&args.nodes)?))?;
        let wall_s = started.elapsed().as_secs_f64();
        results.push(Json { policy: name.clone(), outcome, wall_s });
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
                let Outcome { avg_jct_s, avg_wait_s, makespan_s, done, .. } = outcome;
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
        eprintln!("warning: the requests of {clipped} jobs were cut to the size of the cluster");
    }
    Ok(())
}

fn rank(name: &str) -> Result<Rank> {
    Ok(match name {
        "fifo" => Rank::Submit,
        "sjf" => Rank::Duration,
        "sju" => Rank::User,
        "sjg" => Rank::Group,
        "sjgg" => Rank::GroupGpu,
        other => bail!("unknown policy `{other}`; known: sjf, sju, sjg, sjgg, fifo"),
    })
}

/// The product's own stages, put together as the original does.
pub(super) fn policy(rank: Rank, pack: bool) -> Box<dyn Policy> {
    let place: Box<dyn Place> = match pack {
        true => Box::new(FirstFit),
        false => Box::new(Balance { with_gpus: false }),
    };
    let order: Box<dyn Order> = match rank {
        Rank::Submit => Box::new(fifo::BySubmission),
        Rank::Duration | Rank::User | Rank::Group | Rank::GroupGpu => Box::new(sjf::ByTotal),
    };
    Box::new(Pipeline {
        order,
        place,
        head: Head::Skips,
        preempt: Preempt::Never,
        cadence: Cadence::EveryEvent,
        estimates: EstimateSource::User,
        cache: Cache::default(),
    })
}

fn packs(nodes: &str) -> Result<bool> {
    Ok(match nodes {
        "pack" => true,
        "balance" => false,
        other => bail!("unknown order of nodes `{other}`; known: pack, balance"),
    })
}
