//! `hostler parity gavel`: the policies of Gavel, in its own world.

use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use hostler_parity::gavel::{self, GavelOutcome, Options};
use serde::Serialize;

use super::simulate::fallback_warning;
use crate::cli::Gavel;
use crate::progress;
use crate::say::say;

#[derive(Serialize)]
struct Json {
    policy: String,
    #[serde(flatten)]
    outcome: GavelOutcome,
    wall_s: f64,
}

/// Runs the trace under each policy.
pub fn run(args: &Gavel) -> Result<()> {
    let policies = args.policy.iter().map(|name| gavel::find(name));
    let policies = policies.collect::<Result<Vec<_>, _>>()?;
    let spinner = progress::spinner("reading");
    let rows = gavel::read(&args.trace)?;
    let speeds = gavel::read_speeds(&args.throughputs)?;
    let options = Options { gpus: args.cluster, prices: args.prices, seed: args.seed };
    let mut results = Vec::new();
    for policy in policies {
        spinner.set_message(policy.name);
        let started = Instant::now();
        let outcome = gavel::run(&rows, &speeds, &options, policy)?;
        let wall_s = started.elapsed().as_secs_f64();
        results.push(Json { policy: policy.name.to_owned(), outcome, wall_s });
    }
    spinner.finish_and_clear();
    for Json { policy, outcome, .. } in &results {
        fallback_warning(policy, outcome.solves, outcome.fallbacks).iter().for_each(say);
    }
    print(args, &results)
}

fn print(args: &Gavel, results: &[Json]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match results {
        [only] if args.json => writeln!(out, "{}", serde_json::to_string_pretty(only)?)?,
        several if args.json => writeln!(out, "{}", serde_json::to_string_pretty(several)?)?,
        results => {
            writeln!(
                out,
                "{:42} {:>10} {:>10} {:>10} {:>6} {:>7} {:>7} {:>7} {:>8} {:>8}",
                "policy",
                "avg JCT s",
                "p50 s",
                "makespan s",
                "util",
                "ext %",
                "rounds",
                "solves",
                "cost $",
                "wall s"
            )?;
            for Json { policy, outcome: o, wall_s } in results {
                writeln!(
                    out,
                    "{policy:42} {:>10.1} {:>10.1} {:>10.1} {:>6.3} {:>7.1} {:>7} {:>7} {:>8.0} \
                     {wall_s:>8.3}",
                    o.avg_jct_s,
                    o.p50_jct_s,
                    o.makespan_s,
                    o.util,
                    o.lease_ext_pct,
                    o.rounds,
                    o.solves,
                    o.cost
                )?;
            }
        }
    }
    Ok(())
}
