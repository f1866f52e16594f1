//! `hostler parity blox`: the orders of the Blox simulator, in its own world.

use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use hostler_parity::blox::{self, BloxOutcome, BloxPolicy, Options};
use serde::Serialize;

use crate::cli::{Blox, BloxOrder};
use crate::progress;

#[derive(Serialize)]
struct Json {
    policy: String,
    #[serde(flatten)]
    outcome: BloxOutcome,
    wall_s: f64,
}

/// Runs the trace under each order.
pub fn run(args: &Blox) -> Result<()> {
    let spinner = progress::spinner("reading");
    let rows = blox::read(&args.trace)?;
    let tracked = args.tracked.map(|(first, last)| first..=last);
    let mut results = Vec::new();
    for order in &args.policy {
        let (policy, name) = match order {
            BloxOrder::Fifo => (BloxPolicy::Fifo, "fifo"),
            BloxOrder::Las => (BloxPolicy::Las, "las"),
            BloxOrder::Srtf => (BloxPolicy::Srtf, "srtf"),
        };
        spinner.set_message(name);
        let options = Options { gpus: args.gpus, policy, tracked: tracked.clone() };
        let started = Instant::now();
        let outcome = blox::run(&rows, &options)?;
        let wall_s = started.elapsed().as_secs_f64();
        results.push(Json { policy: name.to_owned(), outcome, wall_s });
    }
    spinner.finish_and_clear();
    print(args, &results)
}

fn print(args: &Blox, results: &[Json]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match results {
        [only] if args.json => writeln!(out, "{}", serde_json::to_string_pretty(only)?)?,
        several if args.json => writeln!(out, "{}", serde_json::to_string_pretty(several)?)?,
        results => {
            writeln!(
                out,
                "policy     avg JCT s    median s       p95 s       max s    rounds  suspended  wall s"
            )?;
            for Json { policy, outcome, wall_s } in results {
                let BloxOutcome { avg_jct_s, median_jct_s, p95_jct_s, max_jct_s, .. } = outcome;
                let BloxOutcome { rounds, suspensions, .. } = outcome;
                writeln!(
                    out,
                    "{policy:6} {avg_jct_s:>13.5} {median_jct_s:>11} {p95_jct_s:>11} \
                     {max_jct_s:>11} {rounds:>9} {suspensions:>10} {wall_s:>7.3}"
                )?;
            }
        }
    }
    Ok(())
}
