//! Who asks for how much, who waits and whose work comes to nothing: by queue, user and GPU type.

use std::collections::BTreeMap;

use super::{ANY, Def, percent};
use crate::analyze::figure::{CASES_MIN, Figure};
use crate::analyze::input::{Input, Task};
use crate::analyze::need::Need;
use crate::analyze::stats::{ascending, mean, quantile};
use crate::report::data::Format;
use crate::trace::{Status, TextId};

/// The figure `who`.
pub const WHO: Def = Def {
    key: "who",
    title: "Who asks, waits and fails",
    meaning: "A queue that waits longer than others lacks GPUs or holds too many jobs; whoever \
              holds many GPU hours for work that does not complete is worth a talk.",
    published: "",
    needs: &[Need::Sizes],
    compute,
};

/// Groups that a table shows; the largest by GPU hours.
const ROWS_MAX: usize = 50;

type Kind = (&'static str, &'static str, fn(&Task) -> TextId);
const KINDS: [Kind; 3] = [
    ("queue", "queues", |task| task.queue),
    ("user", "users", |task| task.user),
    ("GPU type", "GPU types", |task| task.gpu_type),
];

/// GPU hours are of tasks with a run time; waits of those that tell when they started.
#[derive(Default)]
struct Sums {
    tasks: usize,
    gpu_hours: f64,
    /// Of tasks that say how they ended.
    ended_hours: f64,
    wasted_hours: f64,
    waits: Vec<f64>,
}

fn compute(input: &Input, figure: &mut Figure) {
    for (name, plural, of) in KINDS {
        let mut groups: BTreeMap<TextId, Sums> = BTreeMap::new();
        for task in &input.tasks {
            groups.entry(of(task)).or_default().add(task);
        }
        if groups.keys().all(|id| id.is_empty()) {
            continue;
        }
        let words = |id: TextId| if id.is_empty() { ANY } else { input.str(id) };
        let mut rows: Vec<(String, Sums)> =
            groups.into_iter().map(|(id, sums)| (words(id).to_owned(), sums)).collect();
        rows.sort_by(|one, other| other.1.gpu_hours.total_cmp(&one.1.gpu_hours));
        figure.fact(plural, plural, rows.len() as f64, Format::Count);
        wasted(figure, name, &rows);
        let columns = [name, "tasks", "GPU hours", "not completed", "mean wait", "P90 wait"];
        let formats =
            [Format::Count, Format::Count, Format::Percent, Format::Duration, Format::Duration];
        let rows = rows.into_iter().take(ROWS_MAX).map(|(name, sums)| (name, sums.row()));
        figure.table(&format!("By {name}"), &columns, &formats, rows.collect());
    }
    figure.notes.push(
        "GPU hours count what was asked for, while it ran; tasks without a run time or a start \
         add none, or no wait. Not completed is the part of the GPU hours of tasks that say how \
         they ended."
            .to_owned(),
    );
}

impl Sums {
    fn add(&mut self, task: &Task) {
        self.tasks += 1;
        let hours = task.gpu_or_zero() / 100.0 * f64::from(task.count) * task.run / 3600.0;
        if hours.is_finite() {
            let open = matches!(task.status, Status::Unknown | Status::Running | Status::Waiting);
            let wasted = !open && task.status != Status::Completed;
            self.gpu_hours += hours;
            self.ended_hours += if open { 0.0 } else { hours };
            self.wasted_hours += if wasted { hours } else { 0.0 };
        }
        if task.wait() >= 0.0 {
            self.waits.push(task.wait());
        }
    }

    fn row(self) -> Vec<f64> {
        let waits = ascending(self.waits);
        let wasted = self.wasted_hours / self.ended_hours;
        let (middle, high) = (mean(&waits), quantile(&waits, 0.9));
        vec![self.tasks as f64, self.gpu_hours, wasted, middle, high]
    }
}

/// Who holds most GPU hours for work that did not complete.
fn wasted(figure: &mut Figure, name: &str, rows: &[(String, Sums)]) {
    let all: f64 = rows.iter().map(|(_, sums)| sums.wasted_hours).sum();
    let known = rows.iter().filter(|(name, sums)| name != ANY && sums.tasks >= CASES_MIN);
    let most = known.max_by(|one, other| one.1.wasted_hours.total_cmp(&other.1.wasted_hours));
    let Some((who, sums)) = most.filter(|_| rows.len() > 1 && all > 0.0) else { return };
    let share = sums.wasted_hours / all;
    let text = format!(
        "Of the GPU hours of tasks that did not complete, {} are those of {name} `{who}`.",
        percent(share)
    );
    figure.finding(0.3 * share, share, sums.tasks, &text);
}
