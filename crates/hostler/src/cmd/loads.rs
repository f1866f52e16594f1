//! `hostler compare --loads`: the policies over the load that is offered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use anyhow::Result;
use hostler_core::id::JobId;
use hostler_core::metrics::{Metrics, Summary};
use hostler_sim::lower::Workload;
use hostler_sim::report::data::{JobCounts, Report, Run};
use hostler_sim::report::loads::{self, LoadReport};
use hostler_sim::trace::TraceError;
use indicatif::ProgressBar;
use serde_json::json;

use super::RunJson;
use super::compare::{alarm, command_line, hand_out, refuse_most};
use super::rejected::{Rejected, counts};
use super::simulate::warnings;
use crate::cli::Compare;
use crate::input::Loaded;
use crate::progress::{Bars, Counter};
use crate::say::say;
use crate::settings::Chosen;
use crate::{columns, memory, pool};

/// More columns than these nobody reads, and each is as much work as a comparison.
const LOADS_MAX: usize = 16;

/// Measures that are shown over load, by key; `--json` has all.
const SHOWN: [&str; 2] = ["avg_jct", "avg_wait"];

/// Simulates the policies at each load and shows how they compare.
pub fn run(
    args: &Compare,
    loads: Vec<f64>,
    chosen: &[Chosen],
    loaded: &Loaded,
    mut notes: Vec<String>,
) -> Result<()> {
    // What cannot be reached is told before anything is simulated; the ends are the hardest.
    for load in loads.first().into_iter().chain(loads.last()) {
        loaded.at_load(*load)?;
    }
    let runs = simulate_all(chosen, &loads, loaded, args)?;
    let point = |(load, runs): (&f64, &Vec<Outcome>)| {
        let runs: Vec<&RunJson> = runs.iter().map(|outcome| &outcome.run).collect();
        json!({ "load": load, "runs": runs })
    };
    let points: Vec<_> = loads.iter().zip(&runs).map(point).collect();
    notes.push(
        "At every load the jobs are the same and ask for the same; only the time between their \
         submissions is scaled, by one factor. Machines come, go and fail when they do. Times are \
         over finished jobs."
            .to_owned(),
    );
    let report = report(chosen, loads, &runs, loaded, notes);
    let (about, findings) = (&report.about.subtitle, report.findings());
    let words = &loaded.words;
    let json =
        args.json.then(|| json!({ "workload": words, "findings": findings, "loads": points }));
    let alarm = alarm(&report.about);
    let quiet = report.quiet().map_or_else(String::new, |words| format!("\n{words}\n"));
    let text = |colour| format!("{about}\n\n{alarm}{}{quiet}", loads::text(&report, colour));
    hand_out(args, &loads::render(&report), json.as_ref(), text)?;
    refuse_most(&report.about)
}

/// One run in numbers, with what it turned away and what to warn of.
struct Outcome {
    run: RunJson,
    rejected_for: Vec<String>,
    warnings: Vec<String>,
}

/// The loads in rising order, each once.
pub fn rising(asked: &[f64]) -> Result<Vec<f64>> {
    let mut loads = asked.to_vec();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    if loads.len() > LOADS_MAX {
        let (value, expected) = (format!("{} loads", loads.len()), format!("at most {LOADS_MAX}"));
        return Err(TraceError::Option { name: "loads", value, expected }.into());
    }
    Ok(loads)
}

/// A workload for each load, made when a thread needs it and dropped when none does: of many loads
/// no more are in memory than there are threads.
struct Workloads<'a> {
    loaded: &'a Loaded,
    loads: &'a [f64],
    made: Vec<Mutex<Weak<Workload>>>,
}

impl Workloads<'_> {
    fn at(&self, load: usize) -> Result<Arc<Workload>> {
        let mut made = self.made[load].lock().expect("making a workload does not panic");
        if let Some(workload) = made.upgrade() {
            return Ok(workload);
        }
        let workload = Arc::new(self.loaded.at_load(self.loads[load])?);
        *made = Arc::downgrade(&workload);
        Ok(workload)
    }
}

/// Runs every policy at every load; the answer is by load, then by policy.
fn simulate_all(
    chosen: &[Chosen],
    loads: &[f64],
    loaded: &Loaded,
    args: &Compare,
) -> Result<Vec<Vec<Outcome>>> {
    let made = loads.iter().map(|_| Mutex::default()).collect();
    let workloads = Workloads { loaded, loads, made };
    let names: Vec<String> = loads.iter().map(|load| format!("load {load}")).collect();
    let bars = Bars::new(names.iter().map(String::len).max().unwrap_or(0));
    let jobs = (loaded.workload.job_count() * chosen.len()) as u64;
    let bars: Vec<ProgressBar> = names.iter().map(|name| bars.jobs(name, jobs)).collect();
    let left: Vec<AtomicUsize> = loads.iter().map(|_| AtomicUsize::new(chosen.len())).collect();
    let count = loads.len() * chosen.len();
    let work = |piece: usize, kept: &mut Option<(usize, Arc<Workload>)>| {
        let (load, policy) = (piece / chosen.len(), &chosen[piece % chosen.len()]);
        if kept.as_ref().is_none_or(|(at, _)| *at != load) {
            // The old one goes first, so that a thread never holds two.
            *kept = None;
            *kept = Some((load, workloads.at(load)?));
        }
        let (_, workload) = kept.as_ref().expect("it was put there just now");
        let result = simulate_one(policy, workload, &bars[load])?;
        if left[load].fetch_sub(1, Ordering::Relaxed) == 1 {
            bars[load].finish();
        }
        Ok(result)
    };
    let results: Result<Vec<_>> = pool::run(count, args.threads, work).into_iter().collect();
    let mut results = results?.into_iter();
    let mut by_load = Vec::with_capacity(loads.len());
    for load in loads {
        let runs: Vec<Outcome> = results.by_ref().take(chosen.len()).collect();
        for words in runs.iter().flat_map(|outcome| &outcome.warnings) {
            say(format_args!("at load {load}: {words}"));
        }
        by_load.push(runs);
    }
    Ok(by_load)
}

fn simulate_one(chosen: &Chosen, workload: &Workload, bar: &ProgressBar) -> Result<Outcome> {
    let watch = ((Metrics::default(), Rejected::default()), Counter::new(bar.clone()));
    let started = Instant::now();
    let finished = super::simulated(chosen, workload, watch, None)?;
    let wall_s = started.elapsed().as_secs_f64();
    let ((metrics, rejected), _) = finished.watch;
    let mut summary = metrics.summary(&finished.state);
    summary.contention = finished.contention;
    let (solves, fallbacks) = finished.state.solves();
    let run = RunJson {
        policy: chosen.def.kind.to_string(),
        settings: chosen.short(),
        summary,
        events: finished.events,
        solves,
        fallbacks,
        wall_s,
        peak_rss_mib: memory::peak_rss_mib(),
    };
    let warnings = warnings(&finished.state, chosen);
    Ok(Outcome { run, rejected_for: rejected.lines(), warnings })
}

fn report(
    chosen: &[Chosen],
    loads: Vec<f64>,
    runs: &[Vec<Outcome>],
    loaded: &Loaded,
    notes: Vec<String>,
) -> LoadReport {
    let summaries: Vec<&Summary> =
        runs.iter().flatten().map(|outcome| &outcome.run.summary).collect();
    let columns = columns::columns(&summaries);
    let shown: Vec<usize> = (0..columns.len())
        .filter(|column| SHOWN.contains(&columns[*column].key.as_str()))
        .collect();
    let values = |outcome: &Outcome| {
        let values = columns::values(&outcome.run.summary, &summaries);
        shown.iter().map(|column| values[*column]).collect()
    };
    let policy = |(at, chosen): (usize, &Chosen)| {
        let (jobs, rejected_for) = most_rejected(&loads, runs, at);
        Run {
            policy: chosen.def.kind.to_string(),
            settings: chosen.given.clone(),
            is_bound: chosen.is_bound,
            summary: chosen.def.summary.to_string(),
            jobs,
            rejected_for,
            ..Run::default()
        }
    };
    let about = Report {
        title: "Hostler: policies over load".to_owned(),
        subtitle: format!("{} as submitted", loaded.words),
        command: command_line(),
        columns: shown.iter().map(|column| columns[*column].clone()).collect(),
        runs: chosen.iter().enumerate().map(policy).collect(),
        notes,
    };
    let values = runs.iter().map(|runs| runs.iter().map(values).collect()).collect();
    let (arrivals_s, run_s) = (arrivals(loaded, &loads), run_time(&loaded.workload));
    LoadReport { about, loads, values, arrivals_s, run_s }
}

/// What a policy turned away at the load at which it was most: where machines move to another pool
/// it depends on when a job comes.
fn most_rejected(loads: &[f64], runs: &[Vec<Outcome>], policy: usize) -> (JobCounts, Vec<String>) {
    let by_load = || runs.iter().map(|runs| &runs[policy]).zip(loads);
    let rejected = |outcome: &Outcome| outcome.run.summary.jobs_rejected;
    // Of several with as many the first.
    let most = by_load().rev().max_by_key(|(outcome, _)| rejected(outcome));
    let Some((outcome, load)) = most else { return (JobCounts::default(), Vec::new()) };
    let mut reasons = outcome.rejected_for.clone();
    if by_load().any(|(other, _)| rejected(other) < rejected(outcome)) {
        reasons.push(format!("most at load {load}"));
    }
    (counts(&outcome.run.summary), reasons)
}

/// Seconds from the first submission to the last, by load.
fn arrivals(loaded: &Loaded, loads: &[f64]) -> Vec<f64> {
    let jobs = &loaded.workload.trace().jobs;
    let (first, last) = (jobs.first(), jobs.last());
    let span = first.zip(last).map_or(0, |(first, last)| last.submit_ms - first.submit_ms);
    let (span, present) = (span as f64 / 1000.0, loaded.load());
    loads.iter().map(|load| span * present / load).collect()
}

/// Mean run time in seconds, where each job counts by its work.
fn run_time(workload: &Workload) -> f64 {
    let (mut work, mut weighted) = (0.0, 0.0);
    for (at, job) in workload.trace().jobs.iter().enumerate() {
        let run = workload.truth.run(JobId(at as u32)).secs_f64();
        let tasks = workload.trace().tasks_of(job).iter();
        let size = tasks.map(|task| f64::from(task.count) * f64::from(task.gpu_milli.or(0).max(1)));
        let of_job = run * size.sum::<f64>();
        (work, weighted) = (work + of_job, weighted + of_job * run);
    }
    if work > 0.0 { weighted / work } else { 0.0 }
}
