//! How policies compare as the load grows: the same jobs, closer and closer together.
//!
//! Tables for the terminal and one HTML page. Each measure is a table of its own with one column
//! for each load, so that marks and units are those of an ordinary comparison.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::chart::{Axis, Chart, ChartShape, Line, LineChart, Scale};
use super::data::{Column, Format, Report, Run};
use super::findings::{rejections, too_few};
use super::html::{self, escape};
use super::page::{NEEDS_SCRIPT, contents, header, notes, opening, select, table_of};
use super::{format, growth, table};

/// Shorter times are drawn at the lower edge of a logarithmic axis.
const SHORTEST_SECS: f64 = 1.0;

/// Values further apart than by this factor are first shown on a logarithmic axis.
const WIDE: f64 = 20.0;

/// Jobs that wait less than this part of their time do not queue.
const QUIET: f64 = 0.01;

/// Everything a report over loads shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Title, policies, measures and notes; values of its runs are not looked at.
    pub about: Report,
    /// The loads that are offered, rising.
    pub loads: Vec<f64>,
    /// By load and policy: one value for each measure.
    pub values: Vec<Vec<Vec<Option<f64>>>>,
    /// By load: seconds from the first submission to the last.
    pub arrivals_s: Vec<f64>,
    /// How long jobs run, where each counts by its work.
    pub run_s: f64,
}

impl LoadReport {
    /// One measure as a table: a row for each policy, a column for each load.
    pub fn measure(&self, measure: usize) -> Report {
        let column = |load: &f64| Column {
            key: load.to_string(),
            label: format!("load {load}"),
            ..self.about.columns[measure].clone()
        };
        let run = |(policy, run): (usize, &Run)| Run {
            policy: run.policy.clone(),
            settings: run.settings.clone(),
            jobs: run.jobs,
            values: (0..self.loads.len()).map(|load| self.value(load, policy, measure)).collect(),
            ..Run::default()
        };
        Report {
            columns: self.loads.iter().map(column).collect(),
            runs: self.about.runs.iter().enumerate().map(run).collect(),
            ..Report::default()
        }
    }

    /// The finite value of a policy at a load, if there is one.
    fn value(&self, load: usize, policy: usize, measure: usize) -> Option<f64> {
        let values = self.values.get(load)?.get(policy)?;
        values.get(measure).copied().flatten().filter(|value| value.is_finite())
    }

    /// Whether the values of a measure are so far apart that equal steps show only the largest.
    fn is_wide(&self, measure: usize) -> bool {
        let table = self.measure(measure);
        let values = table.runs.iter().flat_map(|run| run.values.iter().flatten());
        let drawn = || values.clone().map(|value| value.max(SHORTEST_SECS));
        let (least, most) = (drawn().reduce(f64::min), drawn().reduce(f64::max));
        least.zip(most).is_some_and(|(least, most)| most > WIDE * least)
    }

    /// What each measure does as the load grows, a sentence each, after jobs that were turned away.
    pub fn findings(&self) -> Vec<String> {
        let columns = self.about.columns.iter().enumerate();
        let finding = |(at, column)| growth::finding(column, &self.measure(at), &self.loads);
        let mut sentences = rejections(&self.about);
        match too_few(&self.about) {
            Some(words) => sentences.push(words),
            None => sentences.extend(columns.filter_map(finding)),
        }
        sentences.extend(self.quiet());
        sentences
    }

    /// Loads that should fill the cluster and under which nobody waits, and why.
    pub fn quiet(&self) -> Option<String> {
        let measure = |key: &str| self.about.columns.iter().position(|column| column.key == key);
        let (jct, wait) = (measure("avg_jct")?, measure("avg_wait")?);
        let waits = |load: usize, policy: usize| {
            let of = self.value(load, policy, wait).zip(self.value(load, policy, jct));
            of.is_some_and(|(wait, jct)| wait >= QUIET * jct)
        };
        let nobody = |load: &usize| !(0..self.about.runs.len()).any(|run| waits(*load, run));
        let mut full = (0..self.loads.len()).filter(|load| self.loads[*load] >= 1.0);
        let quiet = full.rfind(nobody)?;
        let arrivals = format::value(*self.arrivals_s.get(quiet)?, Format::Duration);
        let run = format::value(self.run_s, Format::Duration);
        Some(format!(
            "At load {} hardly anything queues: under every policy jobs wait less than {} of their \
             time. They all come within {arrivals} and run {run}, weighted by work, so that most \
             of it is done when nobody comes any more.",
            self.loads[quiet],
            format::value(QUIET, Format::Percent),
        ))
    }
}

/// Writes a table for each measure; with `colour` the best values are bold as well as marked.
pub fn text(report: &LoadReport, colour: bool) -> String {
    let columns = report.about.columns.iter().enumerate();
    let tables = columns.map(|(at, column)| {
        format!("{}\n{}", column.label, table::text(&report.measure(at), colour))
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// Writes the report as one self-contained HTML page.
pub fn render(report: &LoadReport) -> String {
    html::document(&report.about.title, &body(report), &charts(report))
}

fn body(report: &LoadReport) -> String {
    let labels = report.about.labels();
    let sections = [summary(report), curves(report), tables(report), notes(&report.about, &labels)];
    let sections = sections.concat();
    format!("{}<main>\n{}{sections}</main>", header(&report.about), contents(&sections))
}

fn summary(report: &LoadReport) -> String {
    opening(&report.findings(), rejections(&report.about).len())
}

fn curves(report: &LoadReport) -> String {
    let curve = |(at, column)| curve(at, column, report.is_wide(at));
    let figures: String = report.about.columns.iter().enumerate().map(curve).collect();
    format!(
        "<section aria-labelledby=\"curves\">\n<h2 id=\"curves\">As the load grows</h2>\n\
         <p class=\"quiet\">Load is the work that arrives over what the cluster can do in the \
         time in which it arrives, by GPUs or by cores, whichever are scarcer. The jobs are the \
         same at every load, only submitted closer together. Lower lines are better.</p>\n\
         {NEEDS_SCRIPT}\n<div class=\"pair\">\n{figures}</div>\n</section>\n"
    )
}

fn curve(at: usize, column: &Column, wide: bool) -> String {
    let id = format!("load-{at}");
    let target = format!("{id}-figure");
    let mut options = [(format!("{id}-linear"), "linear"), (format!("{id}-log"), "logarithmic")];
    if wide {
        options.reverse();
    }
    format!(
        "<div>\n{}<figure class=\"chart\" id=\"{target}\" data-chart=\"{}\"><figcaption>{}\
         </figcaption></figure>\n</div>\n",
        select(&id, "Scale", "chart", &target, &options),
        options[0].0,
        escape(&column.label)
    )
}

fn tables(report: &LoadReport) -> String {
    let table = |(at, column): (usize, &Column)| {
        let id = format!("table-{at}");
        format!(
            "<h3 id=\"{id}\">{}</h3>\n{}",
            escape(&column.label),
            table_of(&report.measure(at), &id)
        )
    };
    let tables: String = report.about.columns.iter().enumerate().map(table).collect();
    format!(
        "<section aria-labelledby=\"policies\">\n<h2 id=\"policies\">Policies compared</h2>\n\
         {tables}</section>\n"
    )
}

fn charts(report: &LoadReport) -> BTreeMap<String, Chart> {
    let mut charts = BTreeMap::new();
    for (at, column) in report.about.columns.iter().enumerate() {
        for (name, scale) in [("linear", Scale::Linear), ("log", Scale::Log)] {
            charts.insert(format!("load-{at}-{name}"), chart(report, at, column, scale));
        }
    }
    charts
}

fn chart(report: &LoadReport, measure: usize, column: &Column, scale: Scale) -> Chart {
    let height = |policy: usize| {
        let values = (0..report.loads.len()).map(|load| report.value(load, policy, measure));
        values.map(|value| value.unwrap_or(f64::NAN)).collect()
    };
    let lines = report.about.labels().into_iter().enumerate().map(|(policy, name)| Line {
        name,
        part: String::new(),
        slot: policy,
        shape: ChartShape::Marked,
        x: report.loads.clone(),
        y: height(policy),
    });
    let y = match scale {
        Scale::Linear => Axis::linear("", column.format),
        Scale::Log => Axis::log("", column.format, SHORTEST_SECS),
    };
    let x = Axis { min: report.loads.first().copied(), ..Axis::linear("load", Format::Number) };
    Chart::Line(LineChart {
        title: format!("{} over load by policy", column.label),
        x,
        y,
        lines: lines.collect(),
        height: 340,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::data::Better;
    use super::*;

    /// A report on the mean wait; lines are policies, words are values by load.
    fn report(loads: &[f64], text: &str) -> LoadReport {
        let rows: Vec<Vec<&str>> =
            text.trim().lines().map(|line| line.split_whitespace().collect()).collect();
        let value = |load: usize, row: &Vec<&str>| vec![row[load + 1].parse().ok()];
        let run = |row: &Vec<&str>| Run { policy: row[0].to_owned(), ..Run::default() };
        let column = Column {
            key: "avg_wait".to_owned(),
            label: "avg wait".to_owned(),
            unit: "time".to_owned(),
            explanation: String::new(),
            better: Better::Lower,
            format: Format::Duration,
        };
        let runs = rows.iter().map(run).collect();
        let about = Report { columns: vec![column], runs, ..Report::default() };
        let at_load = |load| rows.iter().map(|row| value(load, row)).collect();
        let values = (0..loads.len()).map(at_load).collect();
        LoadReport { about, loads: loads.to_vec(), values, ..LoadReport::default() }
    }

    fn check_finding(text: &str, expected: Expect) {
        expected.assert_eq(&report(&[0.5, 2.0], text).findings().join("\n"));
    }

    #[test]
    fn each_load_is_a_column_in_which_the_best_is_marked() {
        let report = report(&[0.5, 1.0, 2.0], "fifo 10 60 7200\nsjf 20 30 -");
        expect![[r#"
            avg wait
                     load           load
            policy    0.5  load 1      2
            fifo   10.0 s* 60.0 s  2.0 h
            sjf    20.0 s  30.0 s*     –

            * best of its column
        "#]]
        .assert_eq(&text(&report, false));
    }

    #[test]
    fn the_best_at_the_highest_load_is_compared_with_the_first() {
        check_finding(
            "fifo 100 1000\nsjf 90 630\nsrtf 80 800",
            expect![
                "sjf cuts the mean waiting time of fifo by 37 % at load 2, from 16.7 min to 10.5 min, and by 10 % at load 0.5."
            ],
        );
        check_finding(
            "fifo 100 1000\nsjf 100 1",
            expect![
                "sjf cuts the mean waiting time of fifo by over 99 % at load 2, from 16.7 min to 1.0 s, and is level with it at load 0.5."
            ],
        );
        check_finding(
            "fifo 100 1000\nsjf 120 0",
            expect![
                "sjf cuts the mean waiting time of fifo by 100 % at load 2, from 16.7 min to 0 s, and is behind it at load 0.5."
            ],
        );
        check_finding(
            "fifo 100 1000\nsjf 90 999",
            expect![
                "No policy has a notably lower mean waiting time than fifo at load 2: 16.7 min."
            ],
        );
        check_finding(
            "fifo 0 0\nsjf 0 0",
            expect!["No policy has a notably lower mean waiting time than fifo at load 2: 0 s."],
        );
        check_finding(
            "fifo 60 7200",
            expect![
                "Under fifo the mean waiting time goes from 60.0 s at load 0.5 to 2.0 h at load 2."
            ],
        );
        check_finding("fifo 60 -\nsjf 1 1", expect![""]);
    }

    #[test]
    fn the_page_has_a_curve_on_both_scales_and_a_table() {
        let hostile = "</script><img src=x>";
        let mut report = report(&[0.5, 2.0], "fifo 10 7200\nsjf 20 30");
        report.about.runs[1].policy = hostile.to_owned();
        let page = render(&report);
        assert!(!page.contains("<img"), "a name made an element");
        for part in ["\"load-0-linear\":{", "\"load-0-log\":{", "\"shape\":\"marked\"", "load 0.5"]
        {
            assert!(page.contains(part), "no {part}");
        }
        // Values far apart are first shown on the logarithmic scale.
        assert!(page.contains("data-chart=\"load-0-log\""), "the scale does not fit");
        report.values[1][0][0] = Some(40.0);
        assert!(render(&report).contains("data-chart=\"load-0-linear\""), "the scale does not fit");
    }

    #[test]
    fn a_report_without_loads_or_policies_is_a_page() {
        assert!(render(&LoadReport::default()).contains("<main>"), "no page");
        assert!(render(&report(&[], "fifo")).contains("fifo"), "the policy is not named");
    }
}
