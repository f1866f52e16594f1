//! `hostler compare`: the main job.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use hostler_core::id::NodeId;
use hostler_core::metrics::{Heat, Metrics, Series, Summary, Which, percentile};
use hostler_core::policy::Need;
use hostler_core::predict::EstimateSource;
use hostler_core::registry::Registry;
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_sim::jobs::{self, JobTable};
use hostler_sim::lower::Workload;
use hostler_sim::report::data::{self, Changes, Column, Report, Run, Spread};
use hostler_sim::report::{findings, rejections, render, table, thin};
use indicatif::ProgressBar;
use serde_json::json;

use super::rejected::{self, Rejected};
use super::simulate::warnings;
use super::{RunJson, loads};
use crate::cli::Compare;
use crate::progress::{Bars, Counter};
use crate::say::say;
use crate::settings::Chosen;
use crate::{columns, input, memory, pool};

/// Least time that plots show after the last arrival.
const PLOT_MILLIS_MIN: u64 = 3_600_000;

/// Points of a distribution in the report.
const CDF_POINTS: usize = 400;

/// What came of one policy.
struct Compared {
    json: RunJson,
    run: Run,
    /// Seconds to completion, by job.
    completions: Vec<f32>,
    /// What a user should know before he believes the numbers.
    warnings: Vec<String>,
}

/// Simulates the policies and shows how they compare.
pub fn run(args: &Compare, registry: &Registry) -> Result<()> {
    let chosen = choose(args, registry)?;
    let loads = loads::rising(&args.loads)?;
    input::check_estimates(&chosen, &args.input)?;
    let loaded = input::load(&args.input)?;
    let (chosen, mut notes) = keep_applicable(chosen, &loaded.workload, args);
    if chosen.is_empty() {
        bail!("no policy applies to this workload; name some with `--policies`");
    }
    if !loads.is_empty() {
        return loads::run(args, loads, &chosen, &loaded, notes);
    }
    let results = simulate_all(&chosen, &loaded.workload, args)?;
    results.iter().flat_map(|result| &result.warnings).for_each(say);
    let runs: Vec<serde_json::Value> = results.iter().map(|result| json!(result.json)).collect();
    notes.push("Times are over finished jobs; percentiles are by nearest rank.".to_owned());
    let changes = changes(&results, &loaded.workload);
    let (columns, mut results) = with_columns(results);
    results.iter_mut().zip(changes).for_each(|(run, changes)| run.changes = changes);
    let report = Report {
        title: "Hostler: policies compared".to_owned(),
        subtitle: loaded.words,
        command: command_line(),
        columns,
        runs: results,
        notes,
    };
    let findings = findings(&report);
    let words = &report.subtitle;
    let json = args.json.then(|| json!({ "workload": words, "findings": findings, "runs": runs }));
    let alarm = alarm(&report);
    let told = table::paragraph(&findings[rejections(&report).len()..].join(" "));
    let text = |colour| format!("{words}\n\n{alarm}{}\n{told}", table::text(&report, colour));
    hand_out(args, &render(&report), json.as_ref(), text)?;
    refuse_most(&report)
}

/// What each policy changes for each job, against the first.
fn changes(results: &[Compared], workload: &Workload) -> Vec<Option<Changes>> {
    let Some((first, _)) = results.split_first() else { return Vec::new() };
    let change = |(at, other): (usize, &Compared)| {
        (at > 0).then(|| jobs::changes(&first.completions, &other.completions, workload))
    };
    results.iter().enumerate().map(change).collect()
}

/// What is told before a table: jobs that were turned away.
pub fn alarm(report: &Report) -> String {
    rejections(report).iter().map(|sentence| format!("warning: {sentence}\n\n")).collect()
}

/// Fails where a policy turned half of the jobs away, or more.
pub fn refuse_most(report: &Report) -> Result<()> {
    rejected::refuse_most(report.runs.iter().map(|run| (&*run.policy, run.jobs)))
}

/// Writes the page and prints the result, as JSON if there is some.
pub fn hand_out(
    args: &Compare,
    page: &str,
    json: Option<&serde_json::Value>,
    text: impl Fn(bool) -> String,
) -> Result<()> {
    // Neither loses the other: a full disk not the table, a closed pipe not the report.
    let written = std::fs::write(&args.out, page)
        .with_context(|| format!("cannot write `{}`", args.out.display()));
    let mut out = std::io::stdout().lock();
    let colour = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let printed = match json {
        Some(json) => writeln!(out, "{json:#}"),
        None => writeln!(out, "{}", text(colour)),
    };
    written?;
    say(format_args!("report: {}", args.out.display()));
    Ok(printed?)
}

/// The columns that have something to show, and the runs with their values.
fn with_columns(results: Vec<Compared>) -> (Vec<Column>, Vec<Run>) {
    let summaries: Vec<&Summary> = results.iter().map(|result| &result.json.summary).collect();
    let columns = columns::columns(&summaries);
    let values: Vec<_> =
        summaries.iter().map(|summary| columns::values(summary, &summaries)).collect();
    let runs = results.into_iter().zip(values);
    (columns, runs.map(|(result, values)| Run { values, ..result.run }).collect())
}

/// The words of this call, for the report; paths may hold bytes that are no text.
pub fn command_line() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.collect::<Vec<_>>().join(" ")
}

/// Jobs above which policies that solve do so every so often, unless they were named: a comparison
/// of everything is to be quick.
const SOLVING_JOBS: usize = 1000;
const SOLVING_SECS: i64 = 360;

/// The policies that were asked for, or all.
fn choose(args: &Compare, registry: &Registry) -> Result<Vec<Chosen>> {
    if args.policies.is_empty() {
        return all(registry);
    }
    let named = args.policies.iter().map(|text| Chosen::parse(registry, text));
    named.collect()
}

/// All policies, as honest as they can be: those that go by run times learn them from jobs that
/// are over, and one that knows them stands beside its like as a bound. The first is what others
/// are measured against: it needs nothing and leaves no GPU idle that somebody waits for.
fn all(registry: &Registry) -> Result<Vec<Chosen>> {
    let mut all = vec![Chosen::parse(registry, hostler_policies::BY_SUBMISSION)?];
    for def in registry.all() {
        let chosen = Chosen::new(registry, &def.kind, std::iter::empty())?;
        if chosen.build().estimates() != EstimateSource::Oracle {
            all.push(chosen);
            continue;
        }
        let ranks = def.kind == hostler_policies::BY_RUN_TIME;
        all.push(chosen.clone().learning());
        all.extend(ranks.then(|| chosen.bound()));
    }
    Ok(all)
}

/// What to know of the policies of [`all`].
fn honesty(chosen: &[Chosen]) -> Option<String> {
    let bound = chosen.iter().find(|chosen| chosen.is_bound)?;
    let (kind, given) = (&bound.def.kind, &bound.given);
    Some(format!(
        "Run times are estimated from jobs that are over (`estimate=blend`); {kind} ({given}) \
         knows them, and shows what there is to gain."
    ))
}

/// Has policies that solve do so less often where there is much to solve.
fn solve_less(chosen: &mut [Chosen], workload: &Workload) -> Option<String> {
    if workload.job_count() <= SOLVING_JOBS {
        return None;
    }
    let mut any = false;
    for policy in chosen {
        if let Some(gap) = &policy.def.solve_gap {
            policy.settings.insert(gap.to_string(), SOLVING_SECS.into());
            any = true;
        }
    }
    any.then(|| format!(
        "Policies that share time out solve every {SOLVING_SECS} s at most here; one that is named \
         solves at every change."
    ))
}

/// Leaves out policies that have nothing to go by in this workload, unless they were named.
fn keep_applicable(
    chosen: Vec<Chosen>,
    workload: &Workload,
    args: &Compare,
) -> (Vec<Chosen>, Vec<String>) {
    if !args.policies.is_empty() {
        return (chosen, Vec::new());
    }
    let mut notes = Vec::new();
    let lacks = workload.lacks();
    let mut kept = Vec::new();
    let mut left_out: Vec<(Need, Vec<String>)> = Vec::new();
    for policy in chosen {
        let Some(need) = policy.def.needs.iter().find(|need| lacks.contains(need)) else {
            kept.push(policy);
            continue;
        };
        match left_out.iter_mut().find(|(other, _)| other == need) {
            Some((_, kinds)) => kinds.push(policy.def.kind.into_owned()),
            None => left_out.push((*need, vec![policy.def.kind.into_owned()])),
        }
    }
    for (need, kinds) in left_out {
        let note = match kinds.as_slice() {
            [first @ .., last] if !first.is_empty() => {
                format!("{} and {last} are left out: {need}.", first.join(", "))
            }
            kinds => format!("{} is left out: {need}.", kinds.concat()),
        };
        say(&note);
        notes.push(note);
    }
    for note in [honesty(&kept), solve_less(&mut kept, workload)].into_iter().flatten() {
        say(&note);
        notes.push(note);
    }
    (kept, notes)
}

/// Runs all simulations on as many threads as there are cores. Results come in the order asked.
fn simulate_all(chosen: &[Chosen], workload: &Workload, args: &Compare) -> Result<Vec<Compared>> {
    let width = chosen.iter().map(|chosen| chosen.def.kind.len()).max().unwrap_or(0);
    let bars = Bars::new(width);
    let jobs = workload.job_count() as u64;
    let bars: Vec<ProgressBar> =
        chosen.iter().map(|chosen| bars.jobs(&chosen.def.kind, jobs)).collect();
    let results = pool::run(chosen.len(), args.threads, |at, _: &mut ()| {
        bars[at].reset_elapsed();
        let result = simulate_one(&chosen[at], workload, &bars[at]);
        bars[at].finish();
        result
    });
    results.into_iter().collect()
}

fn simulate_one(chosen: &Chosen, workload: &Workload, bar: &ProgressBar) -> Result<Compared> {
    let until = plots_end(workload);
    let pictures = (Series::ending(until), Heat::ending(until));
    let counted = (Rejected::default(), Counter::new(bar.clone()));
    let watch = (((Metrics::default(), JobTable::new(true)), counted), pictures);
    let started = Instant::now();
    let finished = super::simulated(chosen, workload, watch, None)?;
    let wall_s = started.elapsed().as_secs_f64();
    let (((metrics, table), (rejected, _)), (series, heat)) = finished.watch;
    let lines = table.finish(&finished.state);
    let warnings = warnings(&finished.state, chosen);
    let (solves, fallbacks) = finished.state.solves();
    let mut summary = metrics.summary(&finished.state);
    summary.contention = finished.contention;
    let points = series.points(&finished.state);
    let (jct, wait) = (metrics.distribution(Which::Jct), metrics.distribution(Which::Wait));
    let run = Run {
        policy: chosen.def.kind.to_string(),
        settings: chosen.given.clone(),
        is_bound: chosen.is_bound,
        summary: chosen.def.summary.to_string(),
        values: Vec::new(),
        jct_cdf: cdf(&jct),
        wait_cdf: cdf(&wait),
        jct_spread: spread(&jct),
        wait_spread: spread(&wait),
        series: data::Series {
            times_s: points.times_s,
            queue: points.queue,
            allocated: points.allocated,
            used: points.used,
            saved: points.saved,
        },
        contended: contended(&summary),
        jobs: rejected::counts(&summary),
        rejected_for: rejected.lines(),
        tenants: jobs::by_user(&lines, workload),
        queues: jobs::by_queue(&lines, workload),
        models: jobs::by_model(&lines, workload),
        changes: None,
        heat: heat_map(&heat, &finished.state),
    };
    let json = RunJson {
        policy: run.policy.clone(),
        settings: chosen.short(),
        summary,
        events: finished.events,
        solves,
        fallbacks,
        wall_s,
        peak_rss_mib: memory::peak_rss_mib(),
    };
    let completions = jobs::completions(&lines, workload.job_count());
    Ok(Compared { json, run, completions, warnings })
}

/// Plots over time show the time of arrivals and as much again: the longest jobs go on for days,
/// and nothing else happens then.
fn plots_end(workload: &Workload) -> Time {
    let jobs = &workload.trace().jobs;
    let last = jobs.last().map_or(0, |job| job.submit_ms);
    let first = jobs.first().map_or(0, |job| job.submit_ms);
    Time::from_millis(last + (last - first).max(PLOT_MILLIS_MIN))
}

fn cdf(sorted: &[f64]) -> Vec<(f64, f64)> {
    let count = sorted.len() as f64;
    let points = sorted.iter().enumerate().map(|(at, value)| (*value, (at + 1) as f64 / count));
    thin(&points.collect::<Vec<_>>(), CDF_POINTS)
}

fn spread(sorted: &[f64]) -> Option<Spread> {
    Some(Spread {
        p5: percentile(sorted, 5)?,
        p25: percentile(sorted, 25)?,
        p50: percentile(sorted, 50)?,
        p75: percentile(sorted, 75)?,
        p95: percentile(sorted, 95)?,
        mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
    })
}

/// Devices on which jobs would have used more than there is, hour by hour.
fn contended(summary: &Summary) -> Vec<(f64, f64)> {
    let hourly = summary.contention.iter().flat_map(|contention| &contention.hourly);
    hourly.enumerate().map(|(hour, [_, contended])| (hour as f64 * 3600.0, *contended)).collect()
}

/// Only machines with GPUs: the map shows where those are.
fn heat_map(heat: &Heat, state: &ClusterState) -> data::Heat {
    let map = heat.map(state);
    let time = |column: usize| (map.start.0 + map.width.0 * column as u64) as f64 / 1e6;
    let mut shown =
        data::Heat { times_s: (0..map.columns).map(time).collect(), ..data::Heat::default() };
    for node in state.nodes() {
        let Some(model) = node.spec.gpu_model else { continue };
        shown.machines.push(node.spec.name.to_string());
        shown.groups.push(state.model(model).name.to_string());
        shown.cells.extend_from_slice(map.row(NodeId(node.id.0)));
    }
    shown
}
