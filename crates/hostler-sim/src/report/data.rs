//! What a comparison report is made of: plain numbers and words, by run and by column.
//!
//! Knows nothing of engines or metrics; whoever simulated fills these in. Times are in seconds,
//! shares are fractions of one.

use serde::{Deserialize, Serialize};

/// Everything one comparison report shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Heading of the page.
    pub title: String,
    /// Size of the experiment in words: `4,000 jobs, 190 machines, 674 GPUs, load 0.9`.
    pub subtitle: String,
    /// The command line that made the report.
    pub command: String,
    /// Measured columns, in the order shown; the first that has a better end leads the findings.
    pub columns: Vec<Column>,
    /// One entry per compared policy; the first is what the others are measured against.
    pub runs: Vec<Run>,
    /// Remarks for the reader, one paragraph each.
    pub notes: Vec<String>,
}

/// One measured quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Stable identifier; `avg_jct` and `preemptions` get their own words in the findings.
    pub key: String,
    /// Short heading: `avg JCT`.
    pub label: String,
    /// What a value counts, for the definitions: `time`, `share of GPUs`, `jobs`.
    pub unit: String,
    /// Definition in one or two sentences.
    pub explanation: String,
    /// Which end of the column is good.
    pub better: Better,
    /// How a value is written.
    pub format: Format,
}

/// Which end of a column is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Small values are good.
    Lower,
    /// Large values are good.
    Higher,
    /// No value is better than another.
    Neither,
}

/// How a value is written, in tables and on axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Seconds, written as `45 s`, `12 min`, `3.2 h` or `2.1 d`.
    Duration,
    /// A fraction of one, written as `87.3 %`.
    Percent,
    /// A whole number with thousands separators.
    Count,
    /// A plain number with a fitting number of decimals.
    Number,
}

/// What one policy did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the policy.
    pub policy: String,
    /// The settings that it was given, in short; empty when they are the defaults.
    pub settings: String,
    /// Whether it knows what no real scheduler does: shown as a bound, and never called best.
    #[serde(default)]
    pub is_bound: bool,
    /// What the policy does, in one line.
    pub summary: String,
    /// One value per column of the report; `None` or a missing entry is shown as a dash.
    pub values: Vec<Option<f64>>,
    /// Share of jobs complete within a time: (seconds, 0..=1), rising.
    pub jct_cdf: Vec<(f64, f64)>,
    /// Share of jobs that waited at most a time: (seconds, 0..=1), rising.
    pub wait_cdf: Vec<(f64, f64)>,
    /// How completion times are spread, if any job is done.
    #[serde(default)]
    pub jct_spread: Option<Spread>,
    /// How waiting times are spread, if any job is done.
    #[serde(default)]
    pub wait_spread: Option<Spread>,
    /// State of the cluster over time.
    pub series: Series,
    /// GPUs on which jobs would have used more than there is: (seconds, GPUs).
    #[serde(default)]
    pub contended: Vec<(f64, f64)>,
    /// How many jobs it was given, and what came of them.
    #[serde(default)]
    pub jobs: JobCounts,
    /// Why jobs were turned away, in words: how many for which reason.
    #[serde(default)]
    pub rejected_for: Vec<String>,
    /// Account of every tenant.
    pub tenants: Vec<GroupFigures>,
    /// Account of every queue; empty where there are none.
    #[serde(default)]
    pub queues: Vec<GroupFigures>,
    /// Account of every GPU model, of the jobs that it gave most GPU time.
    #[serde(default)]
    pub models: Vec<GroupFigures>,
    /// What it changes for each job against the first run; none of that itself.
    #[serde(default)]
    pub changes: Option<Changes>,
    /// Allocation of every machine over time.
    pub heat: Heat,
}

/// Jobs of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCounts {
    /// Those that were submitted.
    pub submitted: u64,
    /// Those that did their work.
    pub done: u64,
    /// Those that were turned away: they can never run there.
    pub rejected: u64,
}

impl JobCounts {
    /// Whether so many were turned away that the figures are about something else.
    pub fn mostly_rejected(self) -> bool {
        self.rejected > 0 && 2 * self.rejected >= self.submitted
    }
}

/// How values are spread: percentiles and the mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// 5th percentile.
    pub p5: f64,
    /// 25th percentile.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Mean.
    pub mean: f64,
}

/// State of the cluster over time; all lists are as long as `times_s`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Seconds since the start.
    pub times_s: Vec<f64>,
    /// Jobs waiting.
    pub queue: Vec<f64>,
    /// Share of GPUs allocated, 0..=1.
    pub allocated: Vec<f64>,
    /// Share of GPUs busy, 0..=1.
    pub used: Vec<f64>,
    /// GPUs that sharing saved.
    #[serde(default)]
    pub saved: Vec<f64>,
}

/// What a run changes for each job against another, over jobs that finished in both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Jobs that finished in both.
    pub jobs: u64,
    /// Those of them that are done sooner, by a second or more.
    pub sooner: u64,
    /// Those that are done later, by a second or more.
    pub later: u64,
    /// Half of them are done sooner by more, or later by less, than this.
    pub median_s: f64,
    /// Jobs that gain most.
    pub most_sooner: Vec<Changed>,
    /// Jobs that lose most.
    pub most_later: Vec<Changed>,
}

/// What became of one job in two runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    /// Its name.
    pub job: String,
    /// Seconds to completion in the first run.
    pub before_s: f64,
    /// The same in the other.
    pub after_s: f64,
}

/// Account of jobs that have a tenant, a queue or a GPU model in common.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupFigures {
    /// What they have in common.
    pub name: String,
    /// Jobs that did their work.
    pub jobs: u64,
    /// GPU hours received.
    pub gpu_hours: f64,
    /// GPU hours of work that was thrown away.
    #[serde(default)]
    pub lost_gpu_hours: f64,
    /// Time without resources, over all of them.
    #[serde(default)]
    pub waited_s: f64,
    /// Mean time from submission to completion.
    pub avg_jct_s: f64,
    /// Mean time from submission to first start.
    pub avg_wait_s: f64,
    /// 99th percentile of the time from submission to first start.
    pub p99_wait_s: f64,
}

/// Allocation of every machine over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Heat {
    /// Start of each time bucket, in seconds since the start.
    pub times_s: Vec<f64>,
    /// Name of each row.
    pub machines: Vec<String>,
    /// GPU model of each row; rows of one model stand together on the page.
    pub groups: Vec<String>,
    /// Row by row, percent of the machine's GPUs allocated; [`DOWN`] where it was not there.
    pub cells: Vec<u8>,
}

/// Cell of a machine that was down.
pub const DOWN: u8 = 255;

impl Run {
    /// Whether sharing saved GPUs at any time.
    pub fn shares(&self) -> bool {
        self.series.saved.iter().any(|saved| *saved > 0.0)
    }

    /// The finite value of a column, if there is one.
    pub fn value(&self, column: usize) -> Option<f64> {
        self.values.get(column).copied().flatten().filter(|value| value.is_finite())
    }
}

impl Report {
    /// Names that tell the runs apart: the policy with the settings that it was given, and a
    /// number where that runs twice.
    pub fn labels(&self) -> Vec<String> {
        let with_settings = |run: &Run| match run.settings.as_str() {
            "" => run.policy.clone(),
            settings => format!("{} ({settings})", run.policy),
        };
        let mut labels: Vec<String> = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let label = with_settings(run);
            let mut unique = label.clone();
            let mut number = 2;
            while labels.contains(&unique) {
                unique = format!("{label} #{number}");
                number += 1;
            }
            labels.push(unique);
        }
        labels
    }

    /// Whether a run may be called best: it is no bound, and nobody turned fewer jobs away, since
    /// figures over the easier part of the jobs are not better ones.
    pub fn is_comparable(&self, run: usize) -> bool {
        let least = self.runs.iter().map(|run| run.jobs.rejected).min();
        let run = &self.runs[run];
        !run.is_bound && least.is_none_or(|least| run.jobs.rejected == least)
    }

    /// Which runs hold the best value of a column; nobody when there is nothing to choose between,
    /// and never one that turned more jobs away than another.
    pub fn best(&self, column: usize) -> Vec<bool> {
        let value = |(at, run): (usize, &Run)| run.value(column).filter(|_| self.is_comparable(at));
        let values: Vec<Option<f64>> = self.runs.iter().enumerate().map(value).collect();
        let present = values.iter().flatten().copied();
        let best = match self.columns[column].better {
            Better::Lower => present.reduce(f64::min),
            Better::Higher => present.reduce(f64::max),
            Better::Neither => None,
        };
        let Some(best) = best else {
            return vec![false; values.len()];
        };
        let marks: Vec<bool> = values.iter().map(|value| *value == Some(best)).collect();
        let someone_is_worse = values.iter().flatten().any(|value| *value != best);
        if someone_is_worse { marks } else { vec![false; marks.len()] }
    }
}
