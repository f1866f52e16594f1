//! Which part of all instances runs in gangs of a size.

use super::{Def, percent};
use crate::analyze::figure::Figure;
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::report::chart::{Axis, ChartShape};
use crate::report::data::Format;

/// The figure `gang`.
pub const GANG: Def = Def {
    key: "gang",
    title: "Gangs",
    meaning: "Instances of a gang must start together, so a scheduler that places them one by one \
              leaves GPUs idle or deadlocks in proportion to this share.",
    published: "85 % of instances belong to gangs.",
    needs: &[Need::Sizes],
    compute,
};

fn compute(input: &Input, figure: &mut Figure) {
    let mut sizes: Vec<u64> = input.tasks.iter().map(|task| u64::from(task.count)).collect();
    sizes.sort_unstable();
    let total: u64 = sizes.iter().sum();
    let at_least = |size: u64| {
        let from = sizes.partition_point(|count| *count < size);
        sizes[from..].iter().sum::<u64>() as f64 / total as f64
    };
    figure.fact("instances", "instances", total as f64, Format::Count);
    for size in [2, 10, 100] {
        let words = format!("instances in tasks of {size} or more");
        figure.fact(&format!("share_{size}"), &words, at_least(size), Format::Percent);
    }
    let share = at_least(2);
    figure.finding(
        0.5 * share,
        share,
        total as usize,
        &format!("{} of instances run in gangs of two or more.", percent(share)),
    );
    let mut distinct = sizes.clone();
    distinct.dedup();
    let points = distinct.iter().filter(|size| **size > 0);
    let points: Vec<(f64, f64)> = points.map(|size| (*size as f64, at_least(*size))).collect();
    figure.lines(
        "Share of instances in tasks of at least a size",
        Axis::log("instances of a task", Format::Count, 1.0),
        Axis::linear("share of instances", Format::Percent).up_to(1.0),
        vec![("instances".to_owned(), ChartShape::Straight, points)],
    );
    if !input.tasks_listed {
        let note = "Without a table of tasks, sizes are counted from instances: lower bounds.";
        figure.notes.push(note.to_owned());
    }
}
