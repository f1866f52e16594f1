//! One figure: its facts, its numbers as tables, and the plots that show them.

use serde::{Serialize, Serializer};

use super::stats::{mean, quantile};
use crate::report::chart::{Axis, Bar, BarChart, Chart, ChartShape, HeatChart, Line, LineChart};
use crate::report::data::{Format, Heat};
use crate::report::{format, html, reduce};

/// Fewer cases than these make no finding.
pub const CASES_MIN: usize = 20;

/// A computed figure.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Stable name.
    pub key: &'static str,
    /// Heading.
    pub title: &'static str,
    /// What it means for whoever runs the cluster, in one sentence.
    pub meaning: &'static str,
    /// What the study of the full PAI trace found, where this is that trace.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub published: &'static str,
    /// Numbers worth a name.
    pub facts: Vec<Fact>,
    /// All numbers.
    pub tables: Vec<FigureTable>,
    /// What the page draws.
    #[serde(skip)]
    pub charts: Vec<(String, Chart)>,
    /// Sentences with their weights.
    #[serde(skip)]
    pub findings: Vec<Finding>,
    /// Remarks: what was left out, what stands in for what.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A number with a name.
#[derive(Debug, Clone, Serialize)]
pub struct Fact {
    /// Stable name.
    pub key: String,
    /// What it is, in words.
    pub words: String,
    /// The number; null where nothing was there to count.
    pub value: f64,
    /// How it is written.
    pub format: Format,
}

/// A table of numbers with a name in front of each row.
#[derive(Debug, Clone, Serialize)]
pub struct FigureTable {
    /// What it shows.
    pub name: String,
    /// Headings, that of the names first.
    pub columns: Vec<String>,
    /// Rows.
    pub rows: Vec<TableRow>,
    /// How each column of numbers is written.
    #[serde(skip)]
    pub formats: Vec<Format>,
    /// Whether the page shows it; the points of a plot are only for machines.
    #[serde(skip)]
    pub shown: bool,
}

/// A name and its numbers.
#[derive(Debug, Clone)]
pub struct TableRow(pub String, pub Vec<f64>);

impl Serialize for TableRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut row = serializer.serialize_seq(Some(1 + self.1.len()))?;
        row.serialize_element(&self.0)?;
        for value in &self.1 {
            row.serialize_element(value)?;
        }
        row.end()
    }
}

/// A sentence, and how much it matters from 0 to 1.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Weight.
    pub importance: f64,
    /// The sentence.
    pub text: String,
    /// The figure it comes from.
    pub figure: &'static str,
}

/// A distribution with a name; values ascend.
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Values, ascending.
    pub values: Vec<f64>,
}

/// A line: its name, how it is drawn, its points.
pub type NamedLine = (String, ChartShape, Vec<(f64, f64)>);

/// A curve of ascending values.
pub fn curve(name: impl Into<String>, values: Vec<f64>) -> Curve {
    Curve { name: name.into(), values }
}

impl Figure {
    /// An empty figure.
    pub fn new(key: &'static str, title: &'static str, meaning: &'static str) -> Figure {
        Figure {
            key,
            title,
            meaning,
            published: "",
            facts: Vec::new(),
            tables: Vec::new(),
            charts: Vec::new(),
            findings: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a named number.
    pub fn fact(&mut self, key: &str, words: &str, value: f64, format: Format) {
        self.facts.push(Fact { key: key.to_owned(), words: words.to_owned(), value, format });
    }

    /// Adds a sentence with the number of cases that it is about; nothing is said of a number that
    /// is not there, or that a few cases make.
    pub fn finding(&mut self, importance: f64, value: f64, cases: usize, text: &str) {
        if value.is_finite() && cases >= CASES_MIN {
            let cases = format::grouped(cases as f64, 0);
            let text = format!("{} (n = {cases}).", text.trim_end_matches('.'));
            self.findings.push(Finding { importance, text, figure: self.key });
        }
    }

    /// The value of a fact.
    pub fn value(&self, key: &str) -> Option<f64> {
        self.facts.iter().find(|fact| fact.key == key).map(|fact| fact.value)
    }

    /// Adds distributions: a plot, their points, and a table of quantiles.
    pub fn cdf(&mut self, title: &str, x: Axis, of: &str, curves: Vec<Curve>) {
        let curves: Vec<Curve> =
            curves.into_iter().filter(|curve| !curve.values.is_empty()).collect();
        self.quantiles(title, x.unit, of, &curves);
        let mut points = empty_table(title, &["curve", &x.label, "share"], &[], false);
        let mut lines = Vec::new();
        for (slot, curve) in curves.iter().enumerate() {
            let thinned = reduce::thin(&distribution(&curve.values), reduce::CDF_POINTS_MAX);
            let thinned: Vec<(f64, f64)> =
                thinned.iter().map(|(x, y)| (reduce::short(*x), reduce::short(*y))).collect();
            let rows = thinned.iter().map(|(x, y)| TableRow(curve.name.clone(), vec![*x, *y]));
            points.rows.extend(rows);
            lines.push(line(&curve.name, slot, ChartShape::Step, thinned));
        }
        self.tables.push(points);
        let y = Axis::linear(&format!("share of {of}"), Format::Percent).up_to(1.0);
        let chart = LineChart { title: title.to_owned(), x, y, lines, height: 300 };
        self.charts.push((title.to_owned(), Chart::Line(chart)));
    }

    fn quantiles(&mut self, title: &str, unit: Format, of: &str, curves: &[Curve]) {
        let columns = ["", of, "mean", "P50", "P90", "P95", "P99"];
        let formats = [Format::Count, unit, unit, unit, unit, unit];
        let mut table = empty_table(&format!("{title}: quantiles"), &columns, &formats, true);
        for Curve { name, values } in curves {
            let at = |share| quantile(values, share);
            let count = values.len() as f64;
            let row = vec![count, mean(values), at(0.5), at(0.9), at(0.95), at(0.99)];
            table.rows.push(TableRow(name.clone(), row));
        }
        self.tables.push(table);
    }

    /// Adds lines over a common axis; each has a name, a shape and points.
    pub fn lines(&mut self, title: &str, x: Axis, y: Axis, named: Vec<NamedLine>) {
        let mut points = empty_table(title, &["line", &x.label, &y.label], &[], false);
        let mut lines = Vec::new();
        for (slot, (name, shape, values)) in named.into_iter().enumerate() {
            let all = values.iter().map(|(x, y)| TableRow(name.clone(), vec![*x, *y]));
            points.rows.extend(all);
            let thinned = thin_line(&values, reduce::SERIES_POINTS_MAX);
            lines.push(line(&name, slot, shape, thinned));
        }
        self.tables.push(points);
        let chart = LineChart { title: title.to_owned(), x, y, lines, height: 280 };
        self.charts.push((title.to_owned(), Chart::Line(chart)));
    }

    /// Adds bars, with their numbers.
    pub fn bars(&mut self, title: &str, label: &str, format: Format, bars: &[(String, f64)]) {
        let mut table = empty_table(title, &["", label], &[format], false);
        let rows = bars.iter().map(|(name, value)| TableRow(name.clone(), vec![*value]));
        table.rows.extend(rows);
        self.tables.push(table);
        let values: Vec<Option<f64>> = bars.iter().map(|bar| Some(bar.1)).collect();
        let texts = format::column(&values, format);
        let bars = bars.iter().zip(texts).map(|((name, value), text)| Bar {
            name: name.clone(),
            slot: 0,
            value: *value,
            part: None,
            text,
            best: false,
        });
        let x = Axis::linear(label, format);
        let chart = BarChart { title: title.to_owned(), x, bars: bars.collect() };
        self.charts.push((title.to_owned(), Chart::Bar(chart)));
    }

    /// Adds a map of rows over time; its numbers are merged like the picture.
    pub fn heat(&mut self, title: &str, measure: &str, heat: &Heat) {
        let merged = reduce::merge(heat);
        let mut table = empty_table(title, &["row", "from s", "per cent"], &[], false);
        for (row, cells) in merged.rows.iter().zip(merged.cells.chunks(merged.times_s.len().max(1)))
        {
            for (time, cell) in merged.times_s.iter().zip(cells) {
                let percent =
                    if *cell == crate::report::data::DOWN { f64::NAN } else { f64::from(*cell) };
                table.rows.push(TableRow(row.clone(), vec![*time, percent]));
            }
        }
        self.tables.push(table);
        let chart = HeatChart {
            title: title.to_owned(),
            measure: measure.to_owned(),
            times: merged.times_s,
            rows: merged.rows,
            groups: merged.groups,
            cells: html::base64(&merged.cells),
        };
        self.charts.push((title.to_owned(), Chart::Heat(chart)));
    }

    /// Adds a table that the page shows.
    pub fn table(
        &mut self,
        name: &str,
        columns: &[&str],
        formats: &[Format],
        rows: Vec<(String, Vec<f64>)>,
    ) {
        let mut table = empty_table(name, columns, formats, true);
        table.rows.extend(rows.into_iter().map(|(name, values)| TableRow(name, values)));
        self.tables.push(table);
    }
}

fn empty_table(name: &str, columns: &[&str], formats: &[Format], shown: bool) -> FigureTable {
    let columns = columns.iter().map(|column| (*column).to_owned()).collect();
    FigureTable {
        name: name.to_owned(),
        columns,
        rows: Vec::new(),
        formats: formats.to_vec(),
        shown,
    }
}

/// Points of a distribution as the study draws it: the i-th of n values at i / (n - 1).
fn distribution(values: &[f64]) -> Vec<(f64, f64)> {
    let last = (values.len() - 1).max(1) as f64;
    let only = values.len() == 1;
    let share = |at: usize| if only { 1.0 } else { at as f64 / last };
    values.iter().enumerate().map(|(at, value)| (*value, share(at))).collect()
}

fn thin_line(points: &[(f64, f64)], max: usize) -> Vec<(f64, f64)> {
    let per_bucket = points.len().div_ceil(max).max(1);
    let bucket = |points: &[(f64, f64)]| {
        let heights: Vec<f64> =
            points.iter().map(|point| point.1).filter(|height| height.is_finite()).collect();
        (reduce::short(points[0].0), reduce::short(mean(&heights)))
    };
    points.chunks(per_bucket).map(bucket).collect()
}

fn line(name: &str, slot: usize, shape: ChartShape, points: Vec<(f64, f64)>) -> Line {
    let (x, y) = points.into_iter().unzip();
    Line { name: name.to_owned(), part: String::new(), slot, shape, x, y }
}
