//! The measures that tables and reports show, in their order.

use hostler_core::metrics::Summary;
use hostler_sim::report::data::{Better, Column, Format};

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
        key: "makespan",
        label: "makespan",
        unit: "time",
        explanation: "From the first submission to the last completion.",
        better: Better::Lower,
        format: Format::Duration,
        value: |summary| summary.makespan_s,
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
];

/// The columns of a report.
pub fn columns() -> Vec<Column> {
    let column = |measure: &Measure| Column {
        key: measure.key.to_owned(),
        label: measure.label.to_owned(),
        unit: measure.unit.to_owned(),
        explanation: measure.explanation.to_owned(),
        better: measure.better,
        format: measure.format,
    };
    MEASURES.iter().map(column).collect()
}

/// The values of a run, by column.
pub fn values(summary: &Summary) -> Vec<Option<f64>> {
    MEASURES.iter().map(|measure| Some((measure.value)(summary))).collect()
}

/// One run as a list, for people.
pub fn list(run: &RunJson) -> String {
    let width = MEASURES.iter().map(|measure| measure.label.len()).max().unwrap_or(0);
    let line = |measure: &Measure| {
        let value = (measure.value)(&run.summary);
        let value = hostler_sim::report::format::value(value, measure.format);
        format!("  {:width$}  {value}", measure.label)
    };
    let mut lines: Vec<String> = MEASURES.iter().map(line).collect();
    lines.push(format!("  {:width$}  {}", "rejected", run.summary.jobs_rejected));
    lines.push(format!("  {:width$}  {} in {:.2} s", "events", run.events, run.wall_s));
    lines.join("\n")
}
