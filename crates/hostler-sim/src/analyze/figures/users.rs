//! How much each user submits.

use std::collections::BTreeMap;

use super::{Def, percent};
use crate::analyze::figure::{Figure, curve};
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::analyze::stats::ascending;
use crate::report::chart::Axis;
use crate::report::data::Format;
use crate::trace::TextId;

/// The figure `tasks-per-user`.
pub const TASKS_PER_USER: Def = Def {
    key: "tasks-per-user",
    title: "Tasks per user",
    meaning: "Where few users submit most, fairness between users and quotas matter more than \
              fairness between jobs.",
    published: "More than 1,300 users.",
    needs: &[Need::Sizes, Need::Users],
    compute,
};

fn compute(input: &Input, figure: &mut Figure) {
    let mut tasks: BTreeMap<TextId, f64> = BTreeMap::new();
    for task in input.tasks.iter().filter(|task| !task.user.is_empty()) {
        *tasks.entry(task.user).or_default() += 1.0;
    }
    let counts = ascending(tasks.into_values());
    let users = counts.len();
    let top = (0.05 * counts.len() as f64).ceil() as usize;
    let held: f64 = counts.iter().rev().take(top).sum();
    let share = held / counts.iter().sum::<f64>();
    figure.fact("users", "users", counts.len() as f64, Format::Count);
    figure.fact("top_users", "users of the top 5 %", top as f64, Format::Count);
    figure.fact("top_share", "tasks of the top 5 % of users", share, Format::Percent);
    figure.finding(
        0.35 * share,
        share,
        users,
        &format!("The top 5 % of users ({top}) submit {} of tasks.", percent(share)),
    );
    let axis = Axis::log("tasks of a user", Format::Count, 1.0);
    figure.cdf("Tasks per user", axis, "users", vec![curve("users", counts)]);
}
