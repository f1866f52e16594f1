//! What a plot shows, as data: the page's script draws any of these, whoever made it.
//!
//! A chart is serialised into the page as JSON and named by a figure. Lines are thinned and heat
//! maps are merged before they get here, so that a report stays small enough to mail.

use super::data::{Format, Spread};
use serde::Serialize;

/// One plot.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Chart {
    /// Lines, steps and distributions over a common axis.
    Line(LineChart),
    /// Horizontal bars, one per category.
    Bar(BarChart),
    /// Horizontal boxes with whiskers, one per category.
    Box(BoxChart),
    /// Cells of rows over time, coloured by percent.
    Heat(HeatChart),
}

/// Lines over a common axis.
#[derive(Debug, Clone, Serialize)]
pub struct LineChart {
    /// The plot in words, for readers who do not see it.
    pub title: String,
    /// Axis to the right.
    pub x: Axis,
    /// Axis upwards.
    pub y: Axis,
    /// What is drawn; lines that share a name share a legend entry.
    pub lines: Vec<Line>,
    /// Height in pixels.
    pub height: u32,
}

/// One line of a [`LineChart`].
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Entry of the legend.
    pub name: String,
    /// Which of the lines under one name, for the read-out: `allocated`, `used`, or empty.
    pub part: String,
    /// Colour and dash by number, the same for one policy in every plot.
    pub slot: usize,
    /// How points are joined.
    pub shape: ChartShape,
    /// Positions to the right, rising.
    pub x: Vec<f64>,
    /// Heights; a value that is not finite leaves a gap.
    pub y: Vec<f64>,
}

/// How the points of a line are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChartShape {
    /// Straight from point to point.
    Straight,
    /// Straight and dashed.
    Dashed,
    /// Straight, with the area below filled.
    Area,
    /// Level until the next point.
    Step,
    /// Straight, with a dot at each point; only points are read.
    Marked,
}

/// One axis.
#[derive(Debug, Clone, Serialize)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// How its ticks are written.
    pub unit: Format,
    /// How values are spread.
    pub scale: Scale,
    /// Left or lower end; on a logarithmic axis smaller values are drawn here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Right or upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// How an axis spreads its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Equal factors.
    Log,
}

impl Axis {
    /// An axis of equal steps that starts at zero.
    pub fn linear(label: &str, unit: Format) -> Axis {
        Axis { label: label.to_owned(), unit, scale: Scale::Linear, min: Some(0.0), max: None }
    }

    /// An axis of equal factors that starts at `min`.
    pub fn log(label: &str, unit: Format, min: f64) -> Axis {
        Axis { label: label.to_owned(), unit, scale: Scale::Log, min: Some(min), max: None }
    }

    /// The same axis, ending at `max`.
    pub fn up_to(self, max: f64) -> Axis {
        Axis { max: Some(max), ..self }
    }
}

/// Horizontal bars, one per category.
#[derive(Debug, Clone, Serialize)]
pub struct BarChart {
    /// The plot in words, for readers who do not see it.
    pub title: String,
    /// Axis of the bars' length.
    pub x: Axis,
    /// The bars, from the top.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug, Clone, Serialize)]
pub struct Bar {
    /// Its category.
    pub name: String,
    /// Colour by number.
    pub slot: usize,
    /// Its length; not finite means no bar.
    pub value: f64,
    /// How much of it, from the left, is drawn as the part that matters; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<f64>,
    /// The value as written beside the bar.
    pub text: String,
    /// Whether it is the best one.
    pub best: bool,
}

/// Horizontal boxes with whiskers, one per category.
#[derive(Debug, Clone, Serialize)]
pub struct BoxChart {
    /// The plot in words, for readers who do not see it.
    pub title: String,
    /// Axis of the values.
    pub x: Axis,
    /// The boxes, from the top.
    pub boxes: Vec<BoxRow>,
}

/// One box.
#[derive(Debug, Clone, Serialize)]
pub struct BoxRow {
    /// Its category.
    pub name: String,
    /// Colour by number.
    pub slot: usize,
    /// Where it lies; nothing is drawn without.
    pub spread: Option<Spread>,
}

/// Cells of rows over time.
#[derive(Debug, Clone, Serialize)]
pub struct HeatChart {
    /// The plot in words, for readers who do not see it.
    pub title: String,
    /// What a cell measures: `GPUs allocated`.
    pub measure: String,
    /// Start of each column in seconds.
    pub times: Vec<f64>,
    /// Name of each row.
    pub rows: Vec<String>,
    /// Runs of rows that belong together, from the top.
    pub groups: Vec<ChartGroup>,
    /// Percent by row and column, one byte each in base64; 255 where there is nothing to measure.
    pub cells: String,
}

/// Neighbouring rows of a heat map that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChartGroup {
    /// What they have in common.
    pub name: String,
    /// How many rows there are.
    pub rows: usize,
}
