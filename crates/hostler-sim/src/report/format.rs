//! Numbers as people write them: durations, shares, counts.
//!
//! The rule for units: one column is written in one unit with one number of decimals, so that its
//! values can be compared by eye, unless that would leave a value with less than two digits; then
//! each is written in its own. No time at all is `0 s` in any column. Not for axes: the page's
//! script writes those.

use super::data::Format;

/// Shown where there is no value.
pub const MISSING: &str = "–";

/// No time at all.
const NO_TIME: &str = "0 s";

const SECOND: f64 = 1.0;
const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;
const UNITS: [(f64, &str); 4] = [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")];

/// Writes one value on its own: `3.2 h`, `87.3 %`, `4,000`.
pub fn value(value: f64, format: Format) -> String {
    column(&[Some(value)], format).remove(0)
}

/// Writes the values of one column in a common unit; what is missing or not finite is a dash.
pub fn column(values: &[Option<f64>], format: Format) -> Vec<String> {
    let finite = |value: &Option<f64>| value.filter(|value| value.is_finite());
    let values: Vec<Option<f64>> = values.iter().map(finite).collect();
    let written: Box<dyn Fn(f64) -> String> = match format {
        Format::Duration => durations(&values),
        Format::Percent => Box::new(|value| format!("{:.1} %", no_negative_zero(value * 100.0, 1))),
        Format::Count => Box::new(|value| grouped(value, 0)),
        Format::Number => {
            let decimals = decimals_for(smallest(&values));
            Box::new(move |value| grouped(value, decimals))
        }
    };
    values.iter().map(|value| value.map_or_else(|| MISSING.to_owned(), &written)).collect()
}

/// The unit of the middle value serves the column, or a larger one where numbers would get long;
/// values too far apart for any unit are written each in its own.
fn durations(values: &[Option<f64>]) -> Box<dyn Fn(f64) -> String> {
    let mut sizes: Vec<f64> = values.iter().flatten().map(|value| value.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let middle = sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
    let largest = sizes.last().copied().unwrap_or(0.0);
    let smallest = smallest(values).unwrap_or(middle);
    let at_least = natural_unit(middle).0;
    let readable_below = |limit: f64| {
        let fits = move |unit: &(f64, &str)| {
            unit.0 >= at_least && largest < limit * unit.0 && smallest >= 0.1 * unit.0
        };
        UNITS.into_iter().rev().find(fits)
    };
    let Some((seconds, unit)) = readable_below(100.0).or_else(|| readable_below(1_000.0)) else {
        return Box::new(duration);
    };
    let close = smallest < 2.0 * seconds && largest < 100.0 * seconds;
    let decimals = if smallest < seconds || close { 2 } else { 1 };
    Box::new(move |value| match value {
        0.0 => NO_TIME.to_owned(),
        value => format!("{} {unit}", grouped(value / seconds, decimals)),
    })
}

fn duration(value: f64) -> String {
    if value == 0.0 {
        return NO_TIME.to_owned();
    }
    if value.abs() < 0.1 {
        return format!("{} ms", grouped(value * 1000.0, if value.abs() < 0.01 { 2 } else { 1 }));
    }
    let (seconds, unit) = natural_unit(value.abs());
    format!("{} {unit}", grouped(value / seconds, 1))
}

/// A duration changes unit at twice the next one, so that `90 min` stays minutes.
fn natural_unit(seconds: f64) -> (f64, &'static str) {
    let fits = |unit: &(f64, &str)| seconds >= 2.0 * unit.0;
    UNITS.into_iter().find(fits).unwrap_or((SECOND, "s"))
}

fn smallest(values: &[Option<f64>]) -> Option<f64> {
    let sizes = values.iter().flatten().map(|value| value.abs());
    sizes.filter(|value| *value > 0.0).reduce(f64::min)
}

fn decimals_for(smallest: Option<f64>) -> usize {
    match smallest {
        Some(value) if value < 1.0 => 3,
        Some(value) if value < 10.0 => 2,
        Some(value) if value < 1_000.0 => 1,
        Some(_) | None => 0,
    }
}

/// A number with thousands separators: `12,345.6`.
pub fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", no_negative_zero(value, decimals));
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut grouped = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

/// A value that rounds to zero is written without a sign.
fn no_negative_zero(value: f64, decimals: usize) -> f64 {
    let half_step = 0.5 / 10_f64.powi(decimals as i32);
    if value.abs() < half_step { 0.0 } else { value }
}
