//! How well run times could have been told from earlier tasks.
//!
//! Medians of the first 80 % by time are asked for the rest. A task teaches only if it had ended
//! when the first of the rest came: what was not known then is not used.

use std::collections::BTreeMap;

use super::{Def, percent};
use crate::analyze::figure::{Figure, curve};
use crate::analyze::input::{Input, Task};
use crate::analyze::need::Need;
use crate::analyze::stats::{ascending, median, share};
use crate::report::chart::Axis;
use crate::report::data::Format;
use crate::trace::TextId;

/// The figure `predictor`.
pub const PREDICTOR: Def = Def {
    key: "predictor",
    title: "Predictability of run times",
    meaning: "The share of tasks within 25 % is how much a policy that orders by expected run \
              time can trust its order.",
    published: "Under 25 % error for 78 % of instances with a group tag.",
    needs: &[Need::Sizes, Need::Submissions, Need::Runs],
    compute,
};

/// What tasks have in common, closest first; what a level does not look at is empty.
type Key = (TextId, TextId, TextId);
/// Key, words, level, and whether the tables tell what it goes by.
type Set = (&'static str, &'static str, usize, fn(&Input) -> bool);
const SETS: [Set; 4] = [
    ("all", "all earlier tasks", 3, |input| !has_users(input)),
    ("user", "user", 2, has_users),
    ("user_group", "user and group", 1, |input| has_users(input) && input.groups_listed),
    ("user_group_gpu", "user, group and GPU type", 0, has_users),
];

fn has_users(input: &Input) -> bool {
    input.tasks.iter().any(|task| !task.user.is_empty())
}

fn keys(task: &Task) -> [Key; 4] {
    let none = TextId::EMPTY;
    let Task { user, group, gpu_type, .. } = *task;
    [(user, group, gpu_type), (user, group, none), (user, none, none), (none, none, none)]
}

fn compute(input: &Input, figure: &mut Figure) {
    let mut tasks: Vec<&Task> =
        input.tasks.iter().filter(|task| task.run > 0.0 && task.asked.is_finite()).collect();
    tasks.sort_by(|one, other| one.asked.total_cmp(&other.asked));
    let (first, rest) = tasks.split_at(tasks.len() * 4 / 5);
    let Some(split) = rest.first().map(|task| task.asked) else { return };
    let ended = |task: &&&Task| {
        let end = if task.end.is_finite() { task.end } else { task.asked + task.run };
        end <= split
    };
    let mut runs: [BTreeMap<Key, Vec<f64>>; 4] = Default::default();
    let mut taught = 0.0;
    for task in first.iter().filter(ended) {
        taught += 1.0;
        for (level, key) in keys(task).into_iter().enumerate() {
            runs[level].entry(key).or_default().push(task.run);
        }
    }
    let medians = runs.map(|level| {
        let median_of = |(key, runs): (Key, Vec<f64>)| (key, median(&ascending(runs)));
        level.into_iter().map(median_of).collect::<BTreeMap<Key, f64>>()
    });
    figure.fact("taught", "tasks that teach", taught, Format::Count);
    figure.fact("asked", "tasks that are predicted", rest.len() as f64, Format::Count);
    let mut curves = Vec::new();
    let mut best = f64::NAN;
    for (key, name, level, _) in SETS.into_iter().filter(|set| set.3(input)) {
        let error = |task: &&Task| {
            let keys = keys(task);
            let guess = (level..4).find_map(|level| medians[level].get(&keys[level]));
            guess.map_or(f64::NAN, |guess| (guess - task.run).abs() / task.run)
        };
        let errors = ascending(rest.iter().map(error));
        let within = share(&errors, |error| error < 0.25);
        let words = format!("by {name}: error below 25 %");
        figure.fact(&format!("within_25_{key}"), &words, within, Format::Percent);
        curves.push(curve(name, errors));
        // The last one knows most.
        best = within;
    }
    let text = format!(
        "Run times of {} of later tasks could be told within 25 % from earlier ones.",
        percent(best)
    );
    figure.finding(0.5 * best, best, rest.len(), &text);
    let axis = Axis::log("error as a share of the true run time", Format::Percent, 0.001);
    figure.cdf("Error of predicted run times", axis, "tasks", curves);
}
