//! `hostler parity tiresias`: the policies of the Tiresias simulator, in its own world.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use hostler_parity::tiresias::{self, Options, Placement, TiresiasOutcome, TiresiasPolicy};
use serde::Serialize;

use crate::cli::{Tiresias, TiresiasPlacement};
use crate::progress;

/// The file of GPU times that the original comes with.
const SAMPLES: &str = "yarn-gput1000.csv";

#[derive(Serialize)]
struct Json {
    policy: String,
    #[serde(flatten)]
    outcome: TiresiasOutcome,
    wall_s: f64,
}

/// Runs the trace under each policy.
pub fn run(args: &Tiresias) -> Result<()> {
    let policies = args.policy.iter().map(|name| Ok((name, name.parse::<TiresiasPolicy>()?)));
    let policies = policies.collect::<Result<Vec<_>>>()?;
    let spinner = progress::spinner("reading");
    let rows = tiresias::read(&args.trace)?;
    let shape = tiresias::read_shape(&args.cluster)?;
    let learnt = policies.iter().any(|(_, policy)| *policy == TiresiasPolicy::Gittins);
    let file = args.samples.clone().or_else(|| samples_near(&args.trace)).filter(|_| learnt);
    let samples = file.map(|file| tiresias::read_samples(&file)).transpose()?.unwrap_or_default();
    let placement = match args.placement {
        TiresiasPlacement::Count => Placement::Count,
        TiresiasPlacement::Yarn => Placement::Yarn,
    };
    let mut results = Vec::new();
    for (name, policy) in policies {
        spinner.set_message(name.clone());
        let options = Options { shape, policy, placement, samples: samples.clone() };
        let started = Instant::now();
        let outcome = tiresias::run(&rows, &options)?;
        let wall_s = started.elapsed().as_secs_f64();
        results.push(Json { policy: name.clone(), outcome, wall_s });
    }
    spinner.finish_and_clear();
    print(args, &results)
}

/// The published file of GPU times, beside a trace or in a folder above.
fn samples_near(trace: &Path) -> Option<PathBuf> {
    let folders = trace.ancestors().skip(1);
    let mut files = folders.flat_map(|folder| {
        [folder.join(SAMPLES), folder.join("theirs").join("tiresias").join(SAMPLES)]
    });
    files.find(|file| file.is_file())
}

fn print(args: &Tiresias, results: &[Json]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match results {
        [only] if args.json => writeln!(out, "{}", serde_json::to_string_pretty(only)?)?,
        several if args.json => writeln!(out, "{}", serde_json::to_string_pretty(several)?)?,
        results => {
            writeln!(
                out,
                "policy              avg JCT s   median s      p95 s  makespan s  preempted  promoted  \
                 wall s"
            )?;
            for Json { policy, outcome, wall_s } in results {
                let TiresiasOutcome { avg_jct_s, median_jct_s, p95_jct_s, .. } = outcome;
                let TiresiasOutcome { makespan_s, preemptions, promotions, .. } = outcome;
                writeln!(
                    out,
                    "{policy:17} {avg_jct_s:>11.4} {median_jct_s:>10.1} {p95_jct_s:>10.1} \
                     {makespan_s:>11} {preemptions:>10} {promotions:>9} {wall_s:>7.3}"
                )?;
            }
        }
    }
    Ok(())
}
