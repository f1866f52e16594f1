//! The measures that tables and reports show, in their order.

use hostler_core::metrics::{Contention, Summary};
use hostler_sim::report::data::{Better, Column, Format};
use hostler_sim::report::format;

use crate::cmd::RunJson;

/// A measure: how it is shown, and where it comes from.
struct Measure {
    key: &'static str,
    label: &'static str,
    unit: &'static str,
    explanation: &'static str,
    better: Better,
    format: Format,
    value: fn(&Summary) -> f64,
}

const MEASURES: &[Measure] = &[
    Measure {
        key: "avg_jct",
        label: "avg JCT",
        unit: "time",
        explanation: "Mean time from submission to completion, over finished jobs.",
        better: Better::Lower,
        format: Format::Duration,
        value: |summary| summary.avg_jct_s,
    },
    Measure {
        key: "p50_jct",
        label: "p50 JCT",
        unit: "time",
        explanation: "Half of the finished jobs took no longer.",
        better: Better::Lower,
        format: Format::Duration,
        value: |summary| summary.p50_jct_s,
    },
    Measure {
        key: "p99_jct",
        label: "p99 JCT",
        unit: "time",
        explanation: "Ninety-nine in a hundred finished jobs took no longer.",
        better: Better::Lower,
        format: Format::Duration,
        value: |summary| summary.p99_jct_s,
    },
    Measure {
        key: "avg_wait",
        label: "avg wait",
        unit: "time",
        explanation: "Mean time without resources, over all waits of a job.",
        better: Better::Lower,
        format: Format::Duration,
        value: |summary| summary.avg_wait_s,
    },
    Measure {
        key: "p99_wait",
        label: "p99 wait",
        unit: "time",
        explanation: "Ninety-nine in a hundred finished jobs waited no longer in all.",
        better: Better::Lower,
        format: Format::Duration,
        value: |summary| summary.p99_wait_s,
    },
    Measure {
        key: "slowdown",
        label: "slowdown",
        unit: "factor",
        explanation: "Mean of completion time over run time (or 10 s, if longer).",
        better: Better::Lower,
        format: Format::Number,
        value: |summary| summary.avg_bounded_slowdown,
    },
    Measure {
        key: "unfair_share",
        label: "unfair",
        unit: "share of jobs",
        explanation: "Jobs that took more than 1.05 times as long as with the part of the cluster \
                      that is due to them (finish-time fairness).",
        better: Better::Lower,
        format: Format::Percent,
        value: |summary| summary.unfair_share,
    },
    Measure {
        key: "fairness_p99",
        label: "p99 FTF",
        unit: "factor",
        explanation: "Completion time over that with the part of the cluster that is due to a job \
                      (finish-time fairness): ninety-nine in a hundred fared no worse.",
        better: Better::Lower,
        format: Format::Number,
        value: |summary| summary.fairness_p99,
    },
    Measure {
        key: "gpu_utilisation",
        label: "GPU alloc",
        unit: "share of GPU time",
        explanation: "GPU time that was booked, over GPU time that was there, from the first to \
                      the last submission.",
        better: Better::Higher,
        format: Format::Percent,
        value: |summary| summary.gpu_utilisation_while_arriving,
    },
    Measure {
        key: "fragmentation",
        label: "fragm.",
        unit: "share of idle GPU time",
        explanation: "Idle GPU time on devices of which another job holds a part.",
        better: Better::Lower,
        format: Format::Percent,
        value: |summary| summary.fragmentation,
    },
    Measure {
        key: "preemptions",
        label: "preempt.",
        unit: "times",
        explanation: "Times that a running job was stopped in favour of another.",
        better: Better::Neither,
        format: Format::Count,
        value: |summary| summary.preemptions as f64,
    },
    Measure {
        key: "jobs_done",
        label: "done",
        unit: "jobs",
        explanation: "Jobs that did their work.",
        better: Better::Higher,
        format: Format::Count,
        value: |summary| summary.jobs_done as f64,
    },
    Measure {
        key: "makespan",
        label: "makespan",
        unit: "time",
        explanation: "From the first submission to the last completion. Where jobs keep coming, mostly \
                      the luck of one long job.",
        better: Better::Lower,
        format: Format::Duration,
        value: |summary| summary.makespan_s,
    },
];

/// Shown before all others where some run turned jobs away. Not ranked: no run that turned more
/// away than another is best in anything.
const OF_REJECTION: &[Measure] = &[Measure {
    key: "rejected",
    label: "rejected",
    unit: "jobs",
    explanation: "Jobs that were turned away, because they can never run on this cluster. Nothing \
                  else counts them.",
    better: Better::Neither,
    format: Format::Count,
    value: |summary| summary.jobs_rejected as f64,
}];

/// Measures of GPU sharing: shown where some run shared GPUs.
const OF_SHARING: &[Measure] = &[
    Measure {
        key: "gpus_held",
        label: "GPUs held",
        unit: "GPUs",
        explanation: "Mean number of GPUs of which some job holds a part.",
        // Few are held where jobs are packed, and where they wait.
        better: Better::Neither,
        format: Format::Number,
        value: |summary| summary.gpus_held_avg,
    },
    Measure {
        key: "gpus_saved",
        label: "GPUs saved",
        unit: "share of GPUs",
        explanation: "GPUs that would be held besides if each share had one of its own, over all \
                      that would be held then.",
        better: Better::Higher,
        format: Format::Percent,
        value: |summary| summary.gpus_saved_share,
    },
    Measure {
        key: "gpus_saved_peak",
        label: "saved at peak",
        unit: "GPUs",
        explanation: "The most GPUs that sharing saved at any time.",
        better: Better::Higher,
        format: Format::Count,
        value: |summary| summary.gpus_saved_peak as f64,
    },
];

/// Measures of contention: shown where the trace tells what jobs really use, too.
const OF_CONTENTION: &[Measure] = &[
    Measure {
        key: "contended",
        label: "contended",
        unit: "share of shared GPU time",
        explanation: "Time of shared GPUs in which the jobs on them would use more than there is.",
        better: Better::Lower,
        format: Format::Percent,
        value: |summary| contention(summary).contended_share,
    },
    Measure {
        key: "sharing_slowdown",
        label: "shared slowdown",
        unit: "factor",
        explanation: "Mean run time of jobs that shared a GPU over that of the same jobs alone.",
        better: Better::Lower,
        format: Format::Number,
        value: |summary| contention(summary).slowdown_avg,
    },
    Measure {
        key: "sharing_slowdown_p95",
        label: "p95 shared slowdown",
        unit: "factor",
        explanation: "Nineteen in twenty of them were slowed down no more.",
        better: Better::Lower,
        format: Format::Number,
        value: |summary| contention(summary).slowdown_p95,
    },
];

fn contention(summary: &Summary) -> Contention {
    summary.contention.clone().unwrap_or_default()
}

/// The measures that have something to show in some of the runs.
fn shown(runs: &[&Summary]) -> impl Iterator<Item = &'static Measure> {
    let shared = runs.iter().any(|run| run.gpus_saved_peak > 0);
    let contended = shared && runs.iter().any(|run| run.contention.is_some());
    let rejected = runs.iter().any(|run| run.jobs_rejected > 0);
    let of_rejection: &[Measure] = if rejected { OF_REJECTION } else { &[] };
    let of_sharing: &[Measure] = if shared { OF_SHARING } else { &[] };
    let of_contention: &[Measure] = if contended { OF_CONTENTION } else { &[] };
    of_rejection.iter().chain(MEASURES).chain(of_sharing).chain(of_contention)
}

/// The columns of a report on these runs.
pub fn columns(runs: &[&Summary]) -> Vec<Column> {
    let column = |measure: &Measure| Column {
        key: measure.key.to_owned(),
        label: measure.label.to_owned(),
        unit: measure.unit.to_owned(),
        explanation: measure.explanation.to_owned(),
        better: measure.better,
        format: measure.format,
    };
    shown(runs).map(column).collect()
}

/// The values of one of the runs, by column. A run that shared nothing has no slowdown by it, and
/// one in which no job finished has no times.
pub fn values(summary: &Summary, runs: &[&Summary]) -> Vec<Option<f64>> {
    shown(runs).map(|measure| measure.of(summary)).collect()
}

impl Measure {
    fn of(&self, summary: &Summary) -> Option<f64> {
        let of_contention = OF_CONTENTION.iter().any(|of| of.key == self.key);
        let shared = summary.gpus_saved_peak > 0;
        let of_finished = matches!(self.format, Format::Duration) || self.key == "slowdown";
        let has_any = (shared || !of_contention) && (summary.jobs_done > 0 || !of_finished);
        has_any.then(|| (self.value)(summary))
    }
}

/// One run as a list, for people: first what did not become of jobs, with the reasons why some
/// were rejected.
pub fn list(run: &RunJson, reasons: &[String]) -> String {
    let summary = &run.summary;
    let measures: Vec<&Measure> =
        shown(&[summary]).filter(|measure| measure.key != "rejected").collect();
    let width = measures.iter().map(|measure| measure.label.len()).max().unwrap_or(0).max(10);
    let mut lines = Vec::new();
    let mut told = |label: &str, value: String| lines.push(format!("  {label:width$}  {value}"));
    let count = |jobs: u64| format::grouped(jobs as f64, 0);
    let of_all = |jobs: u64| match jobs {
        0 => "0".to_owned(),
        jobs => format!("{} of {} jobs", count(jobs), count(summary.jobs_submitted)),
    };
    told("rejected", of_all(summary.jobs_rejected));
    reasons.iter().for_each(|reason| told("", reason.clone()));
    told("failed", of_all(summary.jobs_failed));
    if summary.jobs_unfinished > 0 {
        told("unfinished", of_all(summary.jobs_unfinished));
    }
    for measure in measures {
        let value = measure.of(summary).map(|value| format::value(value, measure.format));
        told(measure.label, value.unwrap_or_else(|| format::MISSING.to_owned()));
    }
    told("events", format!("{} in {:.2} s", run.events, run.wall_s));
    lines.join("\n")
}
