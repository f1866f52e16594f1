//! What a measure does as the load grows, in a sentence.
//!
//! States differences, never causes. The best policy at the highest load is compared with the
//! first one, there and at the lowest load.

use super::data::{Better, Column, Report};
use super::findings::distance;
use super::format;

/// Differences below this share are none worth telling.
const NOTABLE: f64 = 0.01;

/// The sentence for one measure; `table` has a column for each of `loads`.
pub fn finding(measure: &Column, table: &Report, loads: &[f64]) -> Option<String> {
    let last = loads.len().checked_sub(1)?;
    let facts = Facts { table, labels: table.labels(), loads, measure };
    let first = facts.value(0, last)?;
    if table.runs.len() < 2 || measure.better != Better::Lower {
        return Some(facts.alone(last));
    }
    let comparable = (0..table.runs.len()).filter(|run| table.is_comparable(*run));
    let valued = comparable.filter_map(|run| Some((run, facts.value(run, last)?)));
    let (winner, best) = valued.min_by(|left, right| left.1.total_cmp(&right.1))?;
    if distance(best, first) < NOTABLE {
        return Some(facts.unbeaten(last, first));
    }
    Some(facts.cut(winner, last))
}

struct Facts<'a> {
    table: &'a Report,
    labels: Vec<String>,
    loads: &'a [f64],
    measure: &'a Column,
}

impl Facts<'_> {
    fn value(&self, run: usize, load: usize) -> Option<f64> {
        self.table.runs.get(run)?.value(load)
    }

    fn subject(&self) -> String {
        match self.measure.key.as_str() {
            "avg_jct" => "mean completion time".to_owned(),
            "avg_wait" => "mean waiting time".to_owned(),
            _ => self.measure.label.clone(),
        }
    }

    /// There is nobody to compare with.
    fn alone(&self, last: usize) -> String {
        let (label, subject) = (&self.labels[0], self.subject());
        let written = |load: usize| match self.value(0, load) {
            Some(value) => format::value(value, self.measure.format),
            None => format::MISSING.to_owned(),
        };
        let (low, high) = (self.loads[0], self.loads[last]);
        if last == 0 {
            return format!("Under {label} the {subject} is {} at load {low}.", written(0));
        }
        format!(
            "Under {label} the {subject} goes from {} at load {low} to {} at load {high}.",
            written(0),
            written(last)
        )
    }

    /// The winner against the first policy, at the highest and at the lowest load.
    fn cut(&self, winner: usize, last: usize) -> String {
        let (label, first) = (&self.labels[winner], &self.labels[0]);
        let value = |run: usize| self.value(run, last).expect("both have a value there");
        let texts = self.texts(&[value(0), value(winner)]);
        let mut sentence = format!(
            "{label} cuts the {} of {first} by {} at load {}, from {} to {}",
            self.subject(),
            share(value(0), value(winner)),
            self.loads[last],
            texts[0],
            texts[1]
        );
        if let (Some(before), Some(after)) = (self.value(0, 0), self.value(winner, 0))
            && last > 0
        {
            let load = self.loads[0];
            sentence += &match distance(after, before) {
                small if small < NOTABLE => format!(", and is level with it at load {load}"),
                _ if after < before => {
                    format!(", and by {} at load {load}", share(before, after))
                }
                _ => format!(", and is behind it at load {load}"),
            };
        }
        sentence + "."
    }

    /// Nobody is notably better than the first policy.
    fn unbeaten(&self, last: usize, value: f64) -> String {
        let text = format::value(value, self.measure.format);
        format!(
            "No policy has a notably lower {} than {} at load {}: {text}.",
            self.subject(),
            self.labels[0],
            self.loads[last]
        )
    }

    fn texts(&self, values: &[f64]) -> Vec<String> {
        let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        format::column(&values, self.measure.format)
    }
}

/// By how much of `from` the value `to` is lower.
fn share(from: f64, to: f64) -> String {
    let share = (from - to) / from;
    // A cut to almost nothing is not one to nothing.
    if to > 0.0 && share > 0.995 {
        return "over 99 %".to_owned();
    }
    format!("{} %", format::grouped(share * 100.0, 0))
}
