//! `hostler parity gavel`: the policies of Gavel, in its own world.

use std::io::Write;
use std::time::Instant;

use anyhow::{Result, bail};
use hostler_core::policy::Policy;
use hostler_parity::gavel::{self, GavelOutcome, Options, TYPES};
use serde::Serialize;
use toml::{Table, Value};

use super::simulate::fallback_warning;
use crate::cli::Gavel;
use crate::progress;
use crate::say::say;

/// A policy of the original: its name, ours, our settings, and whether it deals out GPU types in
/// a new order each round.
struct Named(&'static str, &'static str, &'static str, bool);

const POLICIES: &[Named] = &[
    Named("isolated", "isolated", "", true),
    Named(
        "max_min_fairness",
        "max-min-fairness",
        "aware = false\nweighted = true\npublished = true",
        true,
    ),
    Named("max_min_fairness_perf", "max-min-fairness", "weighted = true\npublished = true", false),
    Named(
        "max_min_fairness_packed",
        "max-min-fairness",
        "packed = true\nweighted = true\npublished = true",
        false,
    ),
    Named(
        "max_min_fairness_water_filling",
        "water-filling",
        "aware = false\nweighted = true",
        true,
    ),
    Named("max_min_fairness_water_filling_perf", "water-filling", "weighted = true", false),
    Named(
        "max_min_fairness_water_filling_packed",
        "water-filling",
        "packed = true\nweighted = true",
        false,
    ),
    Named("strategy_proof", "strategy-proof", "weighted = true", false),
    Named(
        "finish_time_fairness",
        "finish-time-fairness",
        "aware = false\nspeed = 'first'\npublished = true",
        true,
    ),
    Named("finish_time_fairness_perf", "finish-time-fairness", "published = true", false),
    Named("finish_time_fairness_packed", "finish-time-fairness", "packed = true", false),
    Named(
        "min_total_duration",
        "makespan",
        "published = true\naware = false\nspeed = 'first'",
        true,
    ),
    Named("min_total_duration_perf", "makespan", "published = true", false),
    Named("min_total_duration_packed", "makespan", "published = true\npacked = true", false),
    Named("max_sum_throughput_perf", "max-throughput", "published = true", false),
    Named(
        "max_sum_throughput_normalized_by_cost_perf",
        "max-throughput",
        "per_cost = true\npublished = true",
        false,
    ),
    Named(
        "max_sum_throughput_normalized_by_cost_perf_SLOs",
        "max-throughput",
        "per_cost = true\ndeadlines = true\npublished = true",
        false,
    ),
    Named(
        "max_sum_throughput_normalized_by_cost_packed_SLOs",
        "max-throughput",
        "per_cost = true\ndeadlines = true\npacked = true",
        false,
    ),
    Named("fifo", "fifo-fastest", "aware = false\npublished = true", true),
    Named("fifo_perf", "fifo-fastest", "published = true", false),
    Named("fifo_packed", "fifo-fastest", "packed = true\npublished = true", false),
    Named("allox", "allox", "ahead = false", false),
];

/// What makes rounds go as in the original.
const ROUNDS: &str = "
    gap_secs = 1920
    reuse = false
    blank_turns = true
    place = 'first-fit'
";

#[derive(Serialize)]
struct Json {
    policy: String,
    #[serde(flatten)]
    outcome: GavelOutcome,
    wall_s: f64,
}

/// Runs the trace under each policy.
pub fn run(args: &Gavel) -> Result<()> {
    let policies = args.policy.iter().map(|name| policy(name, args)).collect::<Result<Vec<_>>>()?;
    let spinner = progress::spinner("reading");
    let rows = gavel::read(&args.trace)?;
    let speeds = gavel::read_speeds(&args.throughputs)?;
    let options = Options { gpus: args.cluster, prices: args.prices };
    let mut results = Vec::new();
    for (name, policy) in args.policy.iter().zip(policies) {
        spinner.set_message(name.clone());
        let started = Instant::now();
        let outcome = gavel::run(&rows, &speeds, &options, policy)?;
        let wall_s = started.elapsed().as_secs_f64();
        results.push(Json { policy: name.clone(), outcome, wall_s });
    }
    spinner.finish_and_clear();
    for Json { policy, outcome, .. } in &results {
        fallback_warning(policy, outcome.solves, outcome.fallbacks).iter().for_each(say);
    }
    print(args, &results)
}

/// One of our policies, set to do what the original does under this name.
fn policy(name: &str, args: &Gavel) -> Result<Box<dyn Policy>> {
    let Some(Named(_, kind, own, shuffled)) = POLICIES.iter().find(|named| named.0 == name) else {
        let known: Vec<&str> = POLICIES.iter().map(|named| named.0).collect();
        bail!("unknown policy `{name}`; known: {}", known.join(", "));
    };
    let mut settings: Table = format!("{ROUNDS}{own}").parse()?;
    let order = if *shuffled { "shuffled" } else { "listed" };
    settings.insert("models".to_owned(), Value::from(order));
    settings.insert("seed".to_owned(), Value::from(i64::try_from(args.seed)?));
    if *kind == "max-throughput" {
        let prices = TYPES.iter().zip(args.prices);
        let prices = prices.map(|(name, price)| ((*name).to_owned(), Value::from(price)));
        settings.insert("prices".to_owned(), Value::Table(prices.collect()));
    }
    Ok(hostler_policies::build(kind, &settings)?)
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
