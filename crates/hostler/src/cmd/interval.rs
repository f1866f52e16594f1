//! `hostler simulate --best-interval`: how often jobs should save by themselves.
//!
//! A save costs time, and so does the work since the last one when a machine fails. The formula of
//! Young and Daly balances the two for a job that runs on one machine for ever; a simulation knows
//! jobs that end, gangs whose machines fail one by one, and queues. So it is asked around what the
//! formula says.

use std::io::Write;

use anyhow::{Result, bail};
use hostler_core::metrics::Metrics;
use hostler_core::units::Span;
use hostler_sim::report::data::{Format, JobCounts};
use hostler_sim::report::format;
use serde::Serialize;

use super::rejected::{self, Rejected};
use crate::cli::Simulate;
use crate::input::Loaded;
use crate::progress::{Bars, Counter};
use crate::say::say;
use crate::settings::Chosen;

/// What the formula says, times these; zero is a job that saves only when it is asked to.
const TIMES: [f64; 10] = [0.0, 0.125, 0.25, 0.5, 0.707, 1.0, 1.414, 2.0, 4.0, 8.0];

/// What one interval cost.
#[derive(Serialize)]
struct Tried {
    /// Work between two saves; zero where there are none.
    every_s: f64,
    gpu_hours: f64,
    lost_gpu_hours: f64,
    avg_jct_s: f64,
    jobs_done: u64,
    #[serde(skip)]
    jobs: JobCounts,
    #[serde(skip)]
    rejected_for: Vec<String>,
}

#[derive(Serialize)]
struct Answer {
    policy: String,
    save_s: f64,
    time_between_failures_s: f64,
    formula_s: f64,
    best_s: f64,
    intervals: Vec<Tried>,
}

/// Simulates with each interval and tells which takes least GPU time.
pub fn run(args: &Simulate, chosen: &Chosen, mut loaded: Loaded) -> Result<()> {
    let save = loaded.workload.checkpoint.save;
    let Some(between) = loaded.time_between_failures() else {
        bail!("machines never fail here; give `--scenario FILE` with `[failures]`");
    };
    if save == Span::ZERO || loaded.workload.checkpoint.never {
        bail!(
            "saving takes no time here; give `--scenario FILE` with `save_secs` in `[checkpoint]`"
        );
    }
    // Young's first order, which Daly's agrees with where saves are short.
    let formula = (2.0 * save.secs_f64() * between.secs_f64()).sqrt();
    let mut intervals = Vec::with_capacity(TIMES.len());
    for times in TIMES {
        let every_s = (formula * times).round().max(if times > 0.0 { 1.0 } else { 0.0 });
        loaded.workload.checkpoint.every = Span::from_secs(every_s as u64);
        intervals.push(tried(chosen, &loaded, every_s)?);
    }
    let most = intervals.iter().map(|tried| tried.jobs_done).max().unwrap_or(0);
    let finished = intervals.iter().filter(|tried| tried.jobs_done == most);
    let best = finished.min_by(|one, other| one.gpu_hours.total_cmp(&other.gpu_hours));
    let answer = Answer {
        policy: chosen.def.kind.to_string(),
        save_s: save.secs_f64(),
        time_between_failures_s: between.secs_f64(),
        formula_s: formula,
        best_s: best.map_or(0.0, |best| best.every_s),
        intervals,
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&answer)?)?;
    } else {
        writeln!(out, "{}: {}\n\n{}", answer.policy, loaded.words, answer.text())?;
    }
    let most = answer.intervals.iter().max_by_key(|tried| tried.jobs.rejected);
    for line in most.iter().flat_map(|tried| &tried.rejected_for) {
        say(format_args!("warning: rejected {line}"));
    }
    rejected::refuse_most(most.map(|tried| (&*answer.policy, tried.jobs)))
}

fn tried(chosen: &Chosen, loaded: &Loaded, every_s: f64) -> Result<Tried> {
    let bar = Bars::new(0).jobs(&interval(every_s), loaded.workload.job_count() as u64);
    let watch = ((Metrics::default(), Rejected::default()), Counter::new(bar.clone()));
    let finished = super::simulated(chosen, &loaded.workload, watch, None)?;
    bar.finish_and_clear();
    let ((metrics, rejected), _) = finished.watch;
    let summary = metrics.summary(&finished.state);
    Ok(Tried {
        every_s,
        gpu_hours: summary.gpu_hours,
        lost_gpu_hours: summary.lost_gpu_hours,
        avg_jct_s: summary.avg_jct_s,
        jobs_done: summary.jobs_done,
        jobs: rejected::counts(&summary),
        rejected_for: rejected.lines(),
    })
}

fn interval(every_s: f64) -> String {
    match every_s {
        0.0 => "never".to_owned(),
        secs => format::value(secs, Format::Duration),
    }
}

impl Answer {
    fn text(&self) -> String {
        let column = |heading: &str, how: Format, value: fn(&Tried) -> f64| {
            let values: Vec<Option<f64>> = self.intervals.iter().map(|t| Some(value(t))).collect();
            let mut cells = vec![heading.to_owned()];
            cells.extend(format::column(&values, how));
            cells
        };
        let mut every = vec!["save every".to_owned()];
        every.extend(self.intervals.iter().map(|tried| interval(tried.every_s)));
        let columns = [
            every,
            column("GPU hours", Format::Number, |tried| tried.gpu_hours),
            column("lost GPU hours", Format::Number, |tried| tried.lost_gpu_hours),
            column("avg JCT", Format::Duration, |tried| tried.avg_jct_s),
            column("done", Format::Count, |tried| tried.jobs_done as f64),
        ];
        let mut lines = Vec::new();
        for row in 0..=self.intervals.len() {
            let cells = columns.iter().map(|cells| {
                let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
                format!("{:>width$}", cells[row])
            });
            lines.push(cells.collect::<Vec<_>>().join("  "));
        }
        let duration = |secs: f64| format::value(secs, Format::Duration);
        lines.push(String::new());
        lines.push(format!("best: {} (least GPU time)", interval(self.best_s)));
        lines.push(format!(
            "by the formula of Young and Daly: {}, the root of twice {} to save times {} between \
             failures, for a job on one machine",
            duration(self.formula_s),
            duration(self.save_s),
            duration(self.time_between_failures_s)
        ));
        lines.join("\n")
    }
}
