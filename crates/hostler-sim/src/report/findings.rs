//! The opening paragraph: what the numbers say, in sentences.
//!
//! States differences, never causes. Runs are compared with the first one; the winner of the
//! leading column is also asked what a bound would gain, what it gave up in the other columns, and
//! who waits under it.

use super::data::{Better, Column, Format, JobCounts, Report, Run};
use super::{advice, format};

/// Fewer finished jobs than these make no finding.
const JOBS_MIN: u64 = 20;
/// Differences below this share are called a tie.
const NOTABLE: f64 = 0.01;
/// What the winner gave up is worth a sentence from this share on.
const COSTLY: f64 = 0.10;
/// The paragraph mentions at most this many things the winner gave up.
const COSTS_MAX: usize = 2;

/// Sentences of the opening paragraph, the most important first. Jobs that were turned away come
/// before everything else.
pub fn findings(report: &Report) -> Vec<String> {
    let mut sentences = rejections(report);
    let finished = |run: &Run| run.jobs.submitted == 0 || run.jobs.done > 0;
    if !report.runs.is_empty() && !report.runs.iter().any(finished) {
        sentences.push("No job finished, so there is nothing to compare.".to_owned());
        return sentences;
    }
    match too_few(report) {
        Some(words) => sentences.push(words),
        None => sentences.extend(differences(report)),
    }
    sentences
}

/// That so few jobs finished that nothing can be said of policies.
pub fn too_few(report: &Report) -> Option<String> {
    let most = report.runs.iter().map(|run| run.jobs.done).max()?;
    let few = (1..JOBS_MIN).contains(&most);
    few.then(|| format!("Only {most} jobs finished: too few to tell policies apart by."))
}

/// Who turned how many jobs away, and why; nothing when nobody did.
pub fn rejections(report: &Report) -> Vec<String> {
    let (runs, labels) = (&report.runs, report.labels());
    let Some(first) = runs.first().filter(|_| runs.iter().any(|run| run.jobs.rejected > 0)) else {
        return Vec::new();
    };
    let count = |run: &Run| {
        let JobCounts { submitted, rejected, .. } = run.jobs;
        let share = rejected as f64 / submitted.max(1) as f64;
        let written = |jobs: u64| format::grouped(jobs as f64, 0);
        let (rejected, submitted) = (written(rejected), written(submitted));
        let why = match run.rejected_for.as_slice() {
            [] => String::new(),
            reasons => format!(": {}", reasons.join("; ")),
        };
        let share = format::value(share, Format::Percent);
        format!("rejected {rejected} of {submitted} jobs ({share}){why}")
    };
    let alike = runs.iter().all(|run| run.jobs.rejected == first.jobs.rejected);
    let mut sentences: Vec<String> = match alike {
        true if runs.len() == 1 => vec![format!("{} {}.", labels[0], count(first))],
        true => vec![format!("Every policy {}.", count(first))],
        false => {
            let rejecting = runs.iter().zip(&labels).filter(|(run, _)| run.jobs.rejected > 0);
            let mut told: Vec<String> =
                rejecting.map(|(run, label)| format!("{label} {}.", count(run))).collect();
            told.push(
                "Only those that rejected fewest are called best: the others ran fewer jobs."
                    .to_owned(),
            );
            told
        }
    };
    if runs.iter().any(|run| run.jobs.mostly_rejected()) {
        sentences.push(
            "Figures over so small a part of the jobs say little about the workload.".to_owned(),
        );
    }
    sentences
}

fn differences(report: &Report) -> Vec<String> {
    let text = |index: usize| {
        let values: Vec<Option<f64>> = report.runs.iter().map(|run| run.value(index)).collect();
        format::column(&values, report.columns[index].format)
    };
    let texts = (0..report.columns.len()).map(text).collect();
    let facts = Facts { report, labels: report.labels(), texts };
    match report.runs.len() {
        0 => vec!["There are no runs to compare.".to_owned()],
        1 => vec![facts.alone()],
        _ => facts.compared(),
    }
}

struct Facts<'a> {
    report: &'a Report,
    labels: Vec<String>,
    /// By column, then by run, as the tables show them.
    texts: Vec<Vec<String>>,
}

impl Facts<'_> {
    fn alone(&self) -> String {
        let label = &self.labels[0];
        let shown = (0..self.report.columns.len()).filter(|column| self.leads(*column)).take(4);
        let parts: Vec<String> = shown
            .filter_map(|column| {
                let value = self.report.runs[0].value(column)?;
                let column = &self.report.columns[column];
                Some(format!("{} {}", column.label, format::value(value, column.format)))
            })
            .collect();
        if parts.is_empty() {
            return format!("Only {label} ran; there is nothing to compare it with.");
        }
        format!("Only {label} ran: {}.", join(&parts))
    }

    fn compared(&self) -> Vec<String> {
        let leading = (0..self.report.columns.len())
            .find(|column| self.leads(*column) && self.winner(*column).is_some());
        let Some(leading) = leading else {
            return vec!["No column has values that can be ranked.".to_owned()];
        };
        let winner = self.winner(leading).expect("the leading column has a winner");
        let mut sentences = vec![self.headline(leading, winner)];
        sentences.extend(self.bound(leading, winner));
        sentences.extend(self.stops(leading, winner));
        sentences.extend(self.costs(leading, winner));
        let run = &self.report.runs[winner];
        sentences.extend(advice::who_waits(run).or_else(|| advice::what_is_scarce(run)));
        sentences
    }

    fn headline(&self, column: usize, winner: usize) -> String {
        let subject = self.phrase(column);
        let label = &self.labels[winner];
        let best = self.value(winner, column).expect("a winner has a value");
        let reference = (0..self.labels.len()).find(|run| self.value(*run, column).is_some());
        let reference =
            reference.filter(|run| *run != winner).or_else(|| self.next(column, winner));
        let best_text = self.written(winner, column);
        let Some(other) = reference else {
            return format!("{label} alone has a value for {subject}: {best_text}.");
        };
        let other_value = self.value(other, column).expect("a reference has a value");
        let other_text = self.written(other, column);
        let other_label = &self.labels[other];
        if distance(best, other_value) < NOTABLE {
            return format!(
                "{label} has the best {subject}, {best_text}, all but level with {other_label} \
                 ({other_text})."
            );
        }
        match self.difference(column, best, other_value) {
            Some(difference) => format!(
                "{label} has the best {subject}: {best_text}, {difference} than {other_label} \
                 ({other_text})."
            ),
            None => format!(
                "{label} has the best {subject}: {best_text}, where {other_label} has {other_text}."
            ),
        }
    }

    /// Columns in which the overall winner is clearly behind the best.
    fn costs(&self, leading: usize, winner: usize) -> Vec<String> {
        let mut costs: Vec<(f64, String)> = Vec::new();
        for column in (0..self.report.columns.len()).filter(|column| *column != leading) {
            let (Some(own), Some(best_run)) = (self.value(winner, column), self.winner(column))
            else {
                continue;
            };
            let best = self.value(best_run, column).expect("a winner has a value");
            let loss = distance(own, best);
            // The longest job decides when all are done, whoever goes first.
            let luck = self.report.columns[column].key == "makespan";
            if !self.leads(column) || luck || loss < COSTLY {
                continue;
            }
            let part = format!(
                "{}: {}, where {} has {}",
                self.phrase(column),
                self.written(winner, column),
                self.labels[best_run],
                self.written(best_run, column)
            );
            costs.push((loss, part));
        }
        costs.sort_by(|left, right| right.0.total_cmp(&left.0));
        let parts: Vec<String> = costs.into_iter().take(COSTS_MAX).map(|cost| cost.1).collect();
        if parts.is_empty() {
            return Vec::new();
        }
        vec![format!("It is behind in {}.", parts.join("; and in "))]
    }

    /// How much of what a policy that knows more would gain over the first run the winner gains.
    fn bound(&self, column: usize, winner: usize) -> Option<String> {
        let bound = self.report.runs.iter().position(|run| run.is_bound)?;
        let (first, best) = (self.value(0, column)?, self.value(winner, column)?);
        let most = self.value(bound, column)?;
        let (label, text) = (&self.labels[bound], self.written(bound, column));
        let better = |one: f64, other: f64| match self.report.columns[column].better {
            Better::Lower => one < other,
            Better::Higher | Better::Neither => one > other,
        };
        if !better(most, best) {
            return Some(format!("Not even {label} does better: {text}."));
        }
        let share = (first - best) / (first - most);
        let worth_telling = better(best, first) && distance(first, most) >= NOTABLE;
        worth_telling.then(|| {
            let share = format::value(share, Format::Percent);
            format!("That is {share} of what {label} would gain: {text}.")
        })
    }

    /// How often the winner stops running jobs, and who is best of those that do not.
    fn stops(&self, leading: usize, winner: usize) -> Option<String> {
        let column = self.report.columns.iter().position(|column| column.key == "preemptions")?;
        let stops = |run: usize| self.value(run, column).unwrap_or(0.0);
        if stops(winner) == 0.0 {
            return None;
        }
        let times = match self.written(winner, column) {
            "1" => "once".to_owned(),
            count => format!("{count} times"),
        };
        let gentle = |run: &usize| self.report.is_comparable(*run) && stops(*run) == 0.0;
        let valued = (0..self.labels.len()).filter(gentle);
        let valued = valued.filter_map(|run| Some((run, self.value(run, leading)?)));
        let higher = self.report.columns[leading].better == Better::Higher;
        let rank = |value: f64| if higher { -value } else { value };
        let next = valued.min_by(|left, right| rank(left.1).total_cmp(&rank(right.1)));
        let rest = next.map_or(String::new(), |(run, _)| {
            let (label, text) = (&self.labels[run], self.written(run, leading));
            format!("; where that will not do, {label} is best ({text})")
        });
        Some(format!("It stops running jobs, {times} in all{rest}."))
    }

    fn leads(&self, column: usize) -> bool {
        self.report.columns[column].better != Better::Neither
    }

    fn value(&self, run: usize, column: usize) -> Option<f64> {
        self.report.runs[run].value(column)
    }

    /// The first run that holds the best value of a column.
    fn winner(&self, column: usize) -> Option<usize> {
        if let Some(run) = self.report.best(column).iter().position(|best| *best) {
            return Some(run);
        }
        let valued = |run: &usize| self.leads(column) && self.value(*run, column).is_some();
        (0..self.labels.len()).filter(|run| self.report.is_comparable(*run)).find(valued)
    }

    /// The best of the others.
    fn next(&self, column: usize, winner: usize) -> Option<usize> {
        let others = (0..self.labels.len()).filter(|run| *run != winner);
        let valued = others.filter_map(|run| Some((run, self.value(run, column)?)));
        let higher = self.report.columns[column].better == Better::Higher;
        let rank = |value: f64| if higher { -value } else { value };
        valued.min_by(|left, right| rank(left.1).total_cmp(&rank(right.1))).map(|next| next.0)
    }

    fn written(&self, run: usize, column: usize) -> &str {
        &self.texts[column][run]
    }

    /// How the best differs from another, in words; nothing differs from zero by a share.
    fn difference(&self, column: usize, best: f64, other: f64) -> Option<String> {
        let Column { format, .. } = &self.report.columns[column];
        let apart = (best - other).abs();
        let more = best > other;
        let word = match format {
            Format::Duration => {
                if more {
                    "longer"
                } else {
                    "shorter"
                }
            }
            Format::Count => {
                if more {
                    "more"
                } else {
                    "fewer"
                }
            }
            Format::Percent | Format::Number => {
                if more {
                    "higher"
                } else {
                    "lower"
                }
            }
        };
        if *format == Format::Percent {
            return Some(format!("{} points {word}", format::grouped(apart * 100.0, 1)));
        }
        let share = format::grouped(apart / other.abs() * 100.0, 0);
        (other != 0.0).then(|| format!("{share} % {word}"))
    }

    fn phrase(&self, column: usize) -> String {
        let column = &self.report.columns[column];
        match column.key.as_str() {
            "avg_jct" => "average job completion time".to_owned(),
            _ => column.label.clone(),
        }
    }
}

/// How far apart two values are, as a share of the larger.
pub fn distance(left: f64, right: f64) -> f64 {
    let scale = left.abs().max(right.abs());
    if scale == 0.0 { 0.0 } else { (left - right).abs() / scale }
}

fn join(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
