//! How many tasks do again what others did.

use std::collections::BTreeMap;

use super::{Def, percent};
use crate::analyze::figure::Figure;
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::report::chart::{Axis, ChartShape};
use crate::report::data::Format;
use crate::trace::TextId;

/// The figure `recur`.
pub const RECUR: Def = Def {
    key: "recur",
    title: "Recurring tasks",
    meaning: "What recurs can be predicted: the larger this share, the more a scheduler gains by \
              learning run times from earlier tasks of the same group.",
    published: "65 % of tasks recur at least 5 times.",
    needs: &[Need::Groups, Need::Sizes],
    compute,
};

fn compute(input: &Input, figure: &mut Figure) {
    let mut groups: BTreeMap<TextId, u64> = BTreeMap::new();
    for task in &input.tasks {
        *groups.entry(task.group).or_default() += 1;
    }
    let mut sizes: Vec<u64> = groups.into_values().collect();
    sizes.sort_unstable();
    let total = input.tasks.len() as f64;
    let at_least = |size: u64| {
        let from = sizes.partition_point(|count| *count < size);
        sizes[from..].iter().sum::<u64>() as f64 / total
    };
    let share = at_least(5);
    figure.fact("groups", "groups", sizes.len() as f64, Format::Count);
    figure.fact("share_5", "tasks in groups of 5 or more", share, Format::Percent);
    figure.finding(
        0.55 * share,
        share,
        input.tasks.len(),
        &format!("{} of tasks recur at least 5 times.", percent(share)),
    );
    let mut distinct = sizes.clone();
    distinct.dedup();
    let points = distinct.iter().map(|size| (*size as f64, at_least(*size))).collect();
    figure.lines(
        "Share of tasks in groups of at least a size",
        Axis::log("tasks of a group", Format::Count, 1.0),
        Axis::linear("share of tasks", Format::Percent).up_to(1.0),
        vec![("tasks".to_owned(), ChartShape::Straight, points)],
    );
    figure.notes.push("A task without a group counts under its user.".to_owned());
}
