//! The charts of the comparison: which numbers of a report are drawn, and on which axes.
//!
//! Says what is drawn; the page's script knows how.

use super::chart::{
    Axis, Bar, BarChart, BoxChart, BoxRow, Chart, ChartShape, HeatChart, Line, LineChart, Scale,
};
use super::data::{Better, Format, Report, Run, Series, Spread};
use super::{format, html, reduce};
use std::collections::BTreeMap;

/// Shorter times are drawn at the left edge of a logarithmic axis.
const SHORTEST_SECS: f64 = 1.0;

/// All charts of a report by the key their figures name.
pub fn charts(report: &Report) -> BTreeMap<String, Chart> {
    let labels = report.labels();
    let mut charts = BTreeMap::new();
    let jct = |run: &Run| run.jct_cdf.clone();
    let wait = |run: &Run| run.wait_cdf.clone();
    charts.insert("jct".to_owned(), cdf(report, &labels, "time to completion", jct));
    charts.insert("wait".to_owned(), cdf(report, &labels, "time to first start", wait));
    let jct = boxes(report, &labels, "time to completion", |run| run.jct_spread);
    let wait = boxes(report, &labels, "time without resources", |run| run.wait_spread);
    charts.insert("jct-box".to_owned(), jct);
    charts.insert("wait-box".to_owned(), wait);
    let series: Vec<Series> = report
        .runs
        .iter()
        .map(|run| reduce::thin_series(&run.series, reduce::SERIES_POINTS_MAX))
        .collect();
    charts.insert("queue".to_owned(), queue(&labels, &series));
    if report.runs.iter().any(Run::shares) {
        charts.insert("saved".to_owned(), saved(&labels, &series));
        charts.insert("contended".to_owned(), contended(report, &labels));
    }
    for (index, series) in series.iter().enumerate() {
        charts.insert(format!("use-{index}"), utilisation(&labels[index], index, series));
    }
    for (index, run) in report.runs.iter().enumerate() {
        charts.insert(format!("heat-{index}"), heat(&labels[index], run));
    }
    if let Some(chart) = waiting_and_running(report, &labels) {
        charts.insert("parts".to_owned(), chart);
    }
    for column in 0..report.columns.len() {
        charts.insert(format!("bar-{column}"), bars(report, &labels, column));
    }
    charts
}

fn cdf(
    report: &Report,
    labels: &[String],
    axis: &str,
    points: impl Fn(&Run) -> Vec<(f64, f64)>,
) -> Chart {
    let lines = report.runs.iter().enumerate().map(|(index, run)| {
        let points = reduce::thin(&points(run), reduce::CDF_POINTS_MAX);
        Line {
            name: labels[index].clone(),
            part: String::new(),
            slot: index,
            shape: ChartShape::Step,
            x: points.iter().map(|point| reduce::short(point.0)).collect(),
            y: points.iter().map(|point| reduce::short(point.1)).collect(),
        }
    });
    Chart::Line(LineChart {
        title: format!("Share of jobs by {axis} and policy"),
        x: Axis::log(axis, Format::Duration, SHORTEST_SECS),
        y: Axis::linear("share of jobs", Format::Percent).up_to(1.0),
        lines: lines.collect(),
        height: 300,
    })
}

fn boxes(
    report: &Report,
    labels: &[String],
    axis: &str,
    spread: impl Fn(&Run) -> Option<Spread>,
) -> Chart {
    let row = |(slot, run): (usize, &Run)| BoxRow {
        name: labels[slot].clone(),
        slot,
        spread: spread(run),
    };
    Chart::Box(BoxChart {
        title: format!("Spread of the {axis} by policy"),
        x: Axis::log(axis, Format::Duration, SHORTEST_SECS),
        boxes: report.runs.iter().enumerate().map(row).collect(),
    })
}

fn queue(labels: &[String], series: &[Series]) -> Chart {
    let lines = series.iter().enumerate().map(|(index, series)| Line {
        name: labels[index].clone(),
        part: String::new(),
        slot: index,
        shape: ChartShape::Straight,
        x: series.times_s.clone(),
        y: series.queue.clone(),
    });
    Chart::Line(LineChart {
        title: "Jobs waiting over time by policy".to_owned(),
        x: Axis::linear("time since start", Format::Duration),
        y: Axis::linear("", Format::Count),
        lines: lines.collect(),
        height: 280,
    })
}

fn saved(labels: &[String], series: &[Series]) -> Chart {
    let lines = series.iter().map(|series| (series.times_s.clone(), series.saved.clone()));
    over_time("GPUs saved by sharing over time by policy", labels, lines)
}

fn contended(report: &Report, labels: &[String]) -> Chart {
    let lines = report.runs.iter().map(|run| {
        let end = run.series.times_s.last().copied().unwrap_or(0.0);
        let seen = run.contended.iter().filter(|(time, _)| *time <= end);
        seen.map(|(time, count)| (*time, reduce::short(*count))).unzip()
    });
    over_time("GPUs that are asked for more than they have, by policy", labels, lines)
}

fn over_time(
    title: &str,
    labels: &[String],
    lines: impl Iterator<Item = (Vec<f64>, Vec<f64>)>,
) -> Chart {
    let line = |(slot, (x, y)): (usize, (Vec<f64>, Vec<f64>))| Line {
        name: labels[slot].clone(),
        part: String::new(),
        slot,
        shape: ChartShape::Straight,
        x,
        y,
    };
    Chart::Line(LineChart {
        title: title.to_owned(),
        x: Axis::linear("time since start", Format::Duration),
        y: Axis::linear("", Format::Count),
        lines: lines.enumerate().map(line).collect(),
        height: 280,
    })
}

fn utilisation(label: &str, slot: usize, series: &Series) -> Chart {
    let line = |part: &str, shape: ChartShape, values: &[f64]| Line {
        name: label.to_owned(),
        part: part.to_owned(),
        slot,
        shape,
        x: series.times_s.clone(),
        y: values.to_vec(),
    };
    Chart::Line(LineChart {
        title: format!("GPUs allocated and used over time under {label}"),
        x: Axis::linear("", Format::Duration),
        y: Axis::linear("", Format::Percent).up_to(1.0),
        lines: vec![
            line("allocated", ChartShape::Area, &series.allocated),
            line("used", ChartShape::Dashed, &series.used),
        ],
        height: 150,
    })
}

fn heat(label: &str, run: &Run) -> Chart {
    let merged = reduce::merge(&run.heat);
    Chart::Heat(HeatChart {
        title: format!("GPUs allocated by machine over time under {label}"),
        measure: "GPUs allocated".to_owned(),
        times: merged.times_s,
        rows: merged.rows,
        groups: merged.groups,
        cells: html::base64(&merged.cells),
    })
}

/// How long a job takes, and how much of that it waits: the picture to begin with.
pub fn waiting_and_running(report: &Report, labels: &[String]) -> Option<Chart> {
    let column = |key: &str| report.columns.iter().position(|column| column.key == key);
    let (jct, wait) = (column("avg_jct")?, column("avg_wait")?);
    let Chart::Bar(mut chart) = bars(report, labels, jct) else { return None };
    for (bar, run) in chart.bars.iter_mut().zip(&report.runs) {
        bar.part = run.value(wait);
    }
    chart.title = "Average time that a job waits and runs, by policy".to_owned();
    chart.x.label =
        "A job on average: waiting (dark), then running (pale); shorter is better".to_owned();
    Some(Chart::Bar(chart))
}

fn bars(report: &Report, labels: &[String], index: usize) -> Chart {
    let column = &report.columns[index];
    let values: Vec<Option<f64>> = report.runs.iter().map(|run| run.value(index)).collect();
    let texts = format::column(&values, column.format);
    let best = report.best(index);
    let bars = labels.iter().enumerate().map(|(run, label)| Bar {
        name: label.clone(),
        slot: run,
        value: values[run].unwrap_or(f64::NAN),
        part: None,
        text: texts[run].clone(),
        best: best[run],
    });
    let direction = match column.better {
        Better::Lower => ", shorter bars are better",
        Better::Higher => ", longer bars are better",
        Better::Neither => "",
    };
    let label = format!("{}{direction}", column.label);
    let x = Axis { label, unit: column.format, scale: Scale::Linear, min: Some(0.0), max: None };
    Chart::Bar(BarChart { title: format!("{} by policy", column.label), x, bars: bars.collect() })
}
