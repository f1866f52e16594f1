//! Every job of a run as a line: a table for other programs, and what groups of jobs are made of.

mod table;

use std::collections::BTreeMap;

pub use table::{write_csv, write_parquet};

use hostler_core::id::{JobId, ModelId};
use hostler_core::job::{Ending, Job, Phase};
use hostler_core::metrics::percentile;
use hostler_core::state::ClusterState;
use hostler_core::units::{Span, Time};
use hostler_core::watch::Watch;

use crate::lower::Workload;
use crate::report::data::{Changed, Changes, GroupFigures};

const MICROS_PER_HOUR: f64 = 3.6e9;

/// Jobs that are named on each side of a comparison.
const NAMED_MAX: usize = 10;

/// What became of a job.
#[derive(Clone, Debug)]
pub struct JobLine {
    job: JobId,
    submitted: Time,
    first_start: Option<Time>,
    end: Time,
    /// None while it is not over.
    ending: Option<Ending>,
    wait: Span,
    ran: Span,
    /// GPU time, and the part of it that was thrown away, in device-microseconds.
    gpu_time: u64,
    lost_gpu_time: u64,
    model: Option<ModelId>,
    restarts: u32,
    preemptions: u32,
}

/// Gathers the lines of a run, if it is kept.
#[derive(Debug)]
pub struct JobTable {
    kept: bool,
    lines: Vec<JobLine>,
}

impl Watch for JobTable {
    fn retired(&mut self, at: Time, _: &ClusterState, job: &Job) {
        if self.kept {
            self.lines.push(JobLine::new(at, job));
        }
    }
}

impl JobTable {
    /// An empty table; one that is not kept stays empty.
    pub fn new(kept: bool) -> JobTable {
        JobTable { kept, lines: Vec::new() }
    }

    /// All jobs in order of submission, with those that are not over.
    pub fn finish(mut self, state: &ClusterState) -> Vec<JobLine> {
        self.lines.extend(state.jobs().map(|job| JobLine::new(state.now(), job)));
        self.lines.sort_unstable_by_key(|line| line.job);
        self.lines
    }
}

impl JobLine {
    fn new(end: Time, job: &Job) -> JobLine {
        let ledger = &job.ledger;
        let (gpu_time, lost) = (ledger.gpu_time(), ledger.lost_work);
        let all = u128::from((ledger.done + lost).0).max(1);
        let most = ledger.served.iter().copied().reduce(|one, next| match next.1 > one.1 {
            true => next,
            false => one,
        });
        JobLine {
            job: job.id,
            submitted: job.submitted,
            first_start: ledger.first_start,
            end,
            ending: if let Phase::Done(ending) = job.phase { Some(ending) } else { None },
            wait: ledger.waited,
            ran: ledger.ran,
            gpu_time,
            lost_gpu_time: (u128::from(gpu_time) * u128::from(lost.0) / all) as u64,
            model: most.map(|(model, _)| model),
            restarts: ledger.restarts,
            preemptions: ledger.preemptions,
        }
    }

    /// Seconds from submission to end of a job that did its work.
    pub fn jct_s(&self) -> Option<f64> {
        let finished = self.ending == Some(Ending::Finished);
        finished.then(|| self.end.since(self.submitted).secs_f64())
    }

    fn ending_word(&self) -> &'static str {
        match self.ending {
            Some(Ending::Finished) => "finished",
            Some(Ending::Failed) => "failed",
            Some(Ending::Cancelled) => "cancelled",
            Some(Ending::TimedOut) => "timed-out",
            Some(Ending::Rejected) => "rejected",
            None => "unfinished",
        }
    }
}

/// Jobs by who submitted them.
pub fn by_user(lines: &[JobLine], workload: &Workload) -> Vec<GroupFigures> {
    let trace = workload.trace();
    groups(lines, |line| trace.jobs.get(line.job.index()).map(|job| trace.str(job.user)))
}

/// Jobs by the queue that they were in; nothing where the trace has no queues.
pub fn by_queue(lines: &[JobLine], workload: &Workload) -> Vec<GroupFigures> {
    let trace = workload.trace();
    if trace.jobs.iter().all(|job| job.queue.is_empty()) {
        return Vec::new();
    }
    groups(lines, |line| trace.jobs.get(line.job.index()).map(|job| trace.str(job.queue)))
}

/// Jobs by the GPU model that gave them most GPU time; those that had no GPU are left out.
pub fn by_model(lines: &[JobLine], workload: &Workload) -> Vec<GroupFigures> {
    groups(lines, |line| line.model.map(|model| &*workload.site.models[model.index()].name))
}

fn groups<'a>(
    lines: &'a [JobLine],
    name: impl Fn(&'a JobLine) -> Option<&'a str>,
) -> Vec<GroupFigures> {
    let mut named: BTreeMap<&str, Vec<&JobLine>> = BTreeMap::new();
    for line in lines {
        if let Some(name) = name(line) {
            named.entry(name).or_default().push(line);
        }
    }
    named.into_iter().map(|(name, lines)| group(name, &lines)).collect()
}

fn group(name: &str, lines: &[&JobLine]) -> GroupFigures {
    let finished = || lines.iter().filter(|line| line.ending == Some(Ending::Finished));
    let mut waits: Vec<f64> = finished().map(|line| line.wait.secs_f64()).collect();
    waits.sort_unstable_by(f64::total_cmp);
    let jobs = waits.len();
    let mean = |sum: f64| if jobs == 0 { 0.0 } else { sum / jobs as f64 };
    let hours = |micros: fn(&JobLine) -> u64| {
        lines.iter().map(|line| micros(line) as f64).sum::<f64>() / MICROS_PER_HOUR
    };
    GroupFigures {
        name: if name.is_empty() { "(none)".to_owned() } else { name.to_owned() },
        jobs: jobs as u64,
        gpu_hours: hours(|line| line.gpu_time),
        lost_gpu_hours: hours(|line| line.lost_gpu_time),
        waited_s: waits.iter().sum(),
        avg_jct_s: mean(finished().filter_map(|line| line.jct_s()).sum()),
        avg_wait_s: mean(waits.iter().sum()),
        p99_wait_s: percentile(&waits, 99).unwrap_or(0.0),
    }
}

/// What another run changes for each job that finished in both; `before` and `after` are seconds to
/// completion, by job.
pub fn changes(before: &[f32], after: &[f32], workload: &Workload) -> Changes {
    let trace = workload.trace();
    let pairs = before.iter().zip(after).enumerate();
    let both = pairs.filter(|(_, (one, other))| one.is_finite() && other.is_finite());
    let mut changed: Vec<(f32, usize)> = both.map(|(at, (one, two))| (two - one, at)).collect();
    changed.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let same = |change: f32| change.abs() < 1.0;
    let named = |(_, at): &(f32, usize)| Changed {
        job: trace.jobs.get(*at).map_or("", |job| trace.str(job.job_id)).to_owned(),
        before_s: before[*at].into(),
        after_s: after[*at].into(),
    };
    let sooner = changed.iter().take_while(|(change, _)| *change < 0.0 && !same(*change));
    let later = changed.iter().rev().take_while(|(change, _)| *change > 0.0 && !same(*change));
    let middle = changed.get(changed.len() / 2).map_or(0.0, |(change, _)| f64::from(*change));
    Changes {
        jobs: changed.len() as u64,
        sooner: sooner.clone().count() as u64,
        later: later.clone().count() as u64,
        median_s: middle,
        most_sooner: sooner.take(NAMED_MAX).map(named).collect(),
        most_later: later.take(NAMED_MAX).map(named).collect(),
    }
}

/// Seconds to completion by job; not a number for one that did not finish.
pub fn completions(lines: &[JobLine], jobs: usize) -> Vec<f32> {
    let mut times = vec![f32::NAN; jobs];
    for line in lines {
        if let (Some(time), Some(jct)) = (times.get_mut(line.job.index()), line.jct_s()) {
            *time = jct as f32;
        }
    }
    times
}
