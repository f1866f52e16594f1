//! What came of it, in tables.

use std::fmt::Write as _;

use super::job::Run;
use super::log::Moves;

/// All that was measured.
pub struct Report {
    /// Where, with what and when.
    pub about: String,
    /// The jobs that take turns, undisturbed.
    pub alone: Vec<Run>,
    pub slices: Vec<Sliced>,
    pub priorities: Vec<Priority>,
}

/// The same jobs in turns.
pub struct Sliced {
    pub policy: String,
    pub runs: Vec<Run>,
    pub moves: Moves,
}

/// A job that gave way to one that is more important.
pub struct Priority {
    pub undisturbed: Run,
    pub victim: Run,
    pub important: Run,
    /// Seconds until it was away, and until it was back.
    pub out: f64,
    pub back: f64,
}

impl Report {
    /// The report as Markdown.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n{}", self.about, self.alone_text());
        if !self.slices.is_empty() {
            text += &self.slices_text();
        }
        if !self.priorities.is_empty() {
            text += &self.priorities_text();
        }
        text
    }

    fn alone_text(&self) -> String {
        let head = ["job", "GPU memory", "steps", "steps/s", "last loss"];
        let row = |run: &Run| {
            let gib = format!("{} GiB", run.task.gib);
            let rate = format!("{:.1}", run.rate());
            vec![run.job.to_string(), gib, run.task.steps.to_string(), rate, run.said.loss.clone()]
        };
        let rows: Vec<Vec<String>> = self.alone.iter().map(row).collect();
        let mut text = "### Undisturbed\n\n".to_owned();
        let (secs, rate) = (total(&self.alone), throughput(&self.alone));
        let _ = writeln!(
            text,
            "One after the other (`fifo`): {secs:.1} s, {rate:.1} steps/s in all.\n\n{}",
            table(&head, &rows)
        );
        text
    }

    fn slices_text(&self) -> String {
        let head = [
            "policy",
            "total s",
            "steps/s",
            "throughput lost",
            "time moving",
            "suspensions",
            "slice s",
            "out s",
            "back s",
        ];
        let row = |sliced: &Sliced| {
            let Moves { out, back, slices } = &sliced.moves;
            let rate = throughput(&sliced.runs);
            vec![
                format!("`{}`", sliced.policy),
                format!("{:.1}", total(&sliced.runs)),
                format!("{rate:.1}"),
                format!("{:.1} %", 100.0 * lost(throughput(&self.alone), rate)),
                format!("{:.1} %", 100.0 * moving(sliced)),
                out.len().to_string(),
                range(slices),
                range(out),
                range(back),
            ]
        };
        let rows: Vec<Vec<String>> = self.slices.iter().map(row).collect();
        format!(
            "### Time slices\n\nThe same jobs at once. Mean, least and most of slices that ended \
             with a suspension.\nEach job ended with the loss and the memory of its undisturbed \
             run,\nin the process that began it.\n\n{}\n",
            table(&head, &rows)
        )
    }

    fn priorities_text(&self) -> String {
        let head = [
            "victim",
            "away after s",
            "started after s",
            "first step after s",
            "victim back in s",
            "its loss",
            "undisturbed",
        ];
        let row = |shown: &Priority| {
            let Priority { undisturbed, victim, important, out, back } = shown;
            vec![
                format!("{} GiB", victim.task.gib),
                format!("{out:.1}"),
                format!("{:.1}", important.started - important.submitted),
                format!("{:.1}", important.said.first_step - important.submitted),
                format!("{back:.1}"),
                victim.said.loss.clone(),
                undisturbed.said.loss.clone(),
            ]
        };
        let rows: Vec<Vec<String>> = self.priorities.iter().map(row).collect();
        format!(
            "### A job with priority\n\nIt comes while the victim trains \
             (`priority:preempt=true`); seconds since it was submitted.\nFrom its start to its \
             first step it loads Python and PyTorch.\n\n{}\n",
            table(&head, &rows)
        )
    }
}

/// Seconds from the first submission to the last end.
fn total(runs: &[Run]) -> f64 {
    let first = runs.iter().map(|run| run.submitted).fold(f64::INFINITY, f64::min);
    let last = runs.iter().map(|run| run.ended).fold(0.0, f64::max);
    last - first
}

/// Steps a second of all together.
fn throughput(runs: &[Run]) -> f64 {
    let steps: u64 = runs.iter().map(|run| run.task.steps).sum();
    steps as f64 / total(runs)
}

/// Part of a throughput that is lost by another.
fn lost(undisturbed: f64, rate: f64) -> f64 {
    1.0 - rate / undisturbed
}

/// Part of the time in which nobody ran, since one was on the way out or back. Unlike the
/// throughput that is lost, it does not depend on the GPU being as fast as it was before.
fn moving(sliced: &Sliced) -> f64 {
    let Moves { out, back, .. } = &sliced.moves;
    out.iter().chain(back).sum::<f64>() / total(&sliced.runs)
}

/// Mean, least and most.
fn range(values: &[f64]) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!("{mean:.1} ({least:.1}-{most:.1})")
}

/// A table in Markdown that reads well as it is.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([head[at].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!(" {cell:>width$} |"));
        format!("|{}\n", padded.collect::<String>())
    };
    let rule: String = widths.iter().map(|width| format!("{}:|", "-".repeat(width + 1))).collect();
    let mut text = line(head.to_vec()) + "|" + &rule + "\n";
    for row in rows {
        text += &line(row.iter().map(String::as_str).collect());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::job::tests::run;
    use super::*;
    use expect_test::expect;

    /// A run with other times.
    fn timed(run: &Run, submitted: f64, ended: f64) -> Run {
        Run { submitted, ended, ..run.clone() }
    }

    #[test]
    fn tables_are_worked_out_from_times_and_steps() {
        let (one, other) = (run(1, "0.123456789"), run(2, "0.5"));
        // 8,002 steps in 40 s, and the same in 50 s: a fifth is lost. Half of that was moving.
        let alone = vec![timed(&one, 100.0, 120.0), timed(&other, 100.25, 140.0)];
        let runs = vec![timed(&one, 200.0, 250.0), timed(&other, 200.25, 245.0)];
        let moves = Moves { out: vec![9.0, 11.0], back: vec![5.0, 0.0], slices: vec![10.0, 10.0] };
        let sliced = Sliced { policy: "las:quantum_gpu_secs=10".to_owned(), runs, moves };
        let priority = Priority {
            undisturbed: one.clone(),
            victim: one.clone(),
            important: other,
            out: 9.5,
            back: 5.25,
        };
        let report = Report {
            about: "A GPU".to_owned(),
            alone,
            slices: vec![sliced],
            priorities: vec![priority],
        };
        expect![[r#"
            A GPU

            ### Undisturbed

            One after the other (`fifo`): 40.0 s, 200.1 steps/s in all.

            | job | GPU memory | steps | steps/s |   last loss |
            |----:|-----------:|------:|--------:|------------:|
            |   1 |     20 GiB |  4001 |   200.0 | 0.123456789 |
            |   2 |     20 GiB |  4001 |   200.0 |         0.5 |

            ### Time slices

            The same jobs at once. Mean, least and most of slices that ended with a suspension.
            Each job ended with the loss and the memory of its undisturbed run,
            in the process that began it.

            |                    policy | total s | steps/s | throughput lost | time moving | suspensions |          slice s |           out s |        back s |
            |--------------------------:|--------:|--------:|----------------:|------------:|------------:|-----------------:|----------------:|--------------:|
            | `las:quantum_gpu_secs=10` |    50.0 |   160.0 |          20.0 % |      50.0 % |           2 | 10.0 (10.0-10.0) | 10.0 (9.0-11.0) | 2.5 (0.0-5.0) |

            ### A job with priority

            It comes while the victim trains (`priority:preempt=true`); seconds since it was submitted.
            From its start to its first step it loads Python and PyTorch.

            | victim | away after s | started after s | first step after s | victim back in s |    its loss | undisturbed |
            |-------:|-------------:|----------------:|-------------------:|-----------------:|------------:|------------:|
            | 20 GiB |          9.5 |             0.5 |                6.2 |              5.2 | 0.123456789 | 0.123456789 |

        "#]].assert_eq(&report.text());
    }
}
